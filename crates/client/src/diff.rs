//! Changes of files for people: hunks, lines with their numbers, and the words that have changed.
//!
//! Invariant: pure and total. A diff that is no diff has no hunks, and one that is too long is cut and says so.

use std::ops::Range;

use serde_json::Value;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::event::Members;
use crate::router;
use crate::state::{Question, Thread, Turn};

/// The most lines of a file that are shown.
const MOST_LINES: usize = 20_000;
/// The most words of a line that are compared.
const MOST_WORDS: usize = 400;

/// The change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    pub path: String,
    pub kind: Kind,
    /// Its new path, if it was moved.
    pub moved_to: Option<String>,
    pub hunks: Vec<Hunk>,
    pub added: usize,
    pub removed: usize,
    /// Whether further lines were left out.
    pub is_cut: bool,
}

/// The operation on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Add,
    Delete,
    Update,
}

/// Lines that belong together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hunk {
    /// The text after the numbers, often the function that contains it.
    pub heading: String,
    pub lines: Vec<Line>,
}

/// A line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub side: Side,
    /// Its number in the old file.
    pub old: Option<usize>,
    /// Its number in the new file.
    pub new: Option<usize>,
    pub text: String,
    /// The bytes that differ from the line that it replaces, or that replaces it; empty if all of it does.
    pub changed: Vec<Range<usize>>,
}

/// The files that contain a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Both,
    Old,
    New,
}

/// The changes of an item of the kind `fileChange`.
#[must_use]
pub fn of_item(item: &Members) -> Vec<FileDiff> {
    item.get("changes").map(of_changes).unwrap_or_default()
}

/// The changes that a question is about. The newer one names the item that has them.
#[must_use]
pub fn of_question(question: &Question, thread: &Thread) -> Vec<FileDiff> {
    let changes = router::changes(&question.params);
    if changes.as_array().is_some_and(|changes| !changes.is_empty()) {
        return of_changes(&changes);
    }
    let Some(id) = question.params.get("itemId").and_then(Value::as_str) else { return Vec::new() };
    let item = thread.turns().iter().rev().flat_map(Turn::items).find(|item| item.id() == id);
    item.map(|item| of_item(item.members())).unwrap_or_default()
}

/// The changes of a diff of several files, such as that of a turn.
#[must_use]
pub fn of_text(diff: &str) -> Vec<FileDiff> {
    let mut files = Vec::new();
    let mut rest = diff;
    while let Some(start) = file_start(rest) {
        let body = &rest[start..];
        let end = body.find('\n').and_then(|end| Some(end + 1 + file_start(&body[end + 1..])?)).unwrap_or(body.len());
        files.extend(of_file(&body[..end]));
        rest = &body[end..];
    }
    files
}

/// The start of the next file.
fn file_start(text: &str) -> Option<usize> {
    const MARK: &str = "diff --git ";
    if text.starts_with(MARK) { Some(0) } else { text.find("\ndiff --git ").map(|at| at + 1) }
}

fn of_file(text: &str) -> Option<FileDiff> {
    let head = &text[..text.find("\n@@ ").unwrap_or(text.len())];
    let named = |mark: &str, side: &str| {
        let name = head.lines().find_map(|line| line.strip_prefix(mark))?.trim_end().trim_matches('"');
        (name != "/dev/null").then(|| name.strip_prefix(side).unwrap_or(name).to_owned())
    };
    let (old, new) = (named("--- ", "a/"), named("+++ ", "b/"));
    let (kind, path, moved_to) = match (old, new) {
        (None, Some(new)) => (Kind::Add, new, None),
        (Some(old), None) => (Kind::Delete, old, None),
        (Some(old), Some(new)) if old != new => (Kind::Update, old, Some(new)),
        (Some(old), Some(_)) => (Kind::Update, old, None),
        (None, None) => (Kind::Update, named("rename from ", "")?, named("rename to ", "")),
    };
    Some(unified(text, FileDiff { kind, moved_to, ..FileDiff::new(path) }))
}

fn of_changes(changes: &Value) -> Vec<FileDiff> {
    let changes = changes.as_array().into_iter().flatten();
    changes
        .filter_map(|change| {
            let file = FileDiff::new(change.get("path")?.as_str()?.to_owned());
            let text = change.get("diff").and_then(Value::as_str).unwrap_or_default();
            let told = change.get("kind").unwrap_or(&Value::Null);
            let moved = ["move_path", "movePath"].iter().find_map(|name| told.get(name)?.as_str());
            let moved_to = moved.map(str::to_owned);
            Some(match told.get("type").and_then(Value::as_str).or_else(|| told.as_str()) {
                Some("add") => whole(text, FileDiff { kind: Kind::Add, ..file }),
                Some("delete") => whole(text, FileDiff { kind: Kind::Delete, ..file }),
                _ => unified(text, FileDiff { moved_to, ..file }),
            })
        })
        .collect()
}

impl FileDiff {
    fn new(path: String) -> Self {
        let hunks = Vec::new();
        Self { path, kind: Kind::Update, moved_to: None, hunks, added: 0, removed: 0, is_cut: false }
    }
}

/// A file that is new or gone. Some releases tell it as a diff.
fn whole(text: &str, file: FileDiff) -> FileDiff {
    if text.starts_with("@@ ") || text.starts_with("--- ") {
        return unified(text, file);
    }
    let is_new = file.kind == Kind::Add;
    let side = if is_new { Side::New } else { Side::Old };
    let number = |place: usize| Some(place + 1);
    let lines = text.lines().take(MOST_LINES).enumerate().map(|(place, text)| Line {
        side,
        old: if is_new { None } else { number(place) },
        new: if is_new { number(place) } else { None },
        text: text.to_owned(),
        changed: Vec::new(),
    });
    let lines: Vec<Line> = lines.collect();
    let count = text.lines().count();
    let (added, removed) = if is_new { (count, 0) } else { (0, count) };
    let is_cut = count > lines.len();
    let hunks = if lines.is_empty() { Vec::new() } else { vec![Hunk { heading: String::new(), lines }] };
    FileDiff { hunks, added, removed, is_cut, ..file }
}

fn unified(text: &str, mut file: FileDiff) -> FileDiff {
    let (mut old, mut new, mut shown) = (1, 1, 0);
    for line in text.lines() {
        if let Some(head) = Head::read(line) {
            (old, new) = (head.old, head.new);
            file.hunks.push(Hunk { heading: head.heading.to_owned(), lines: Vec::new() });
            continue;
        }
        let Some(hunk) = file.hunks.last_mut() else { continue };
        let (side, text) = match line.split_at_checked(1) {
            Some(("+", text)) => (Side::New, text),
            Some(("-", text)) => (Side::Old, text),
            Some((" ", text)) => (Side::Both, text),
            None => (Side::Both, ""),
            Some(_) => continue,
        };
        let (in_old, in_new) = (side != Side::New, side != Side::Old);
        file.added += usize::from(side == Side::New);
        file.removed += usize::from(side == Side::Old);
        if shown < MOST_LINES {
            let (text, changed) = (text.to_owned(), Vec::new());
            hunk.lines.push(Line { side, old: in_old.then_some(old), new: in_new.then_some(new), text, changed });
        }
        shown += 1;
        old += usize::from(in_old);
        new += usize::from(in_new);
    }
    file.is_cut = shown > MOST_LINES;
    file.hunks.iter_mut().for_each(|hunk| mark_words(&mut hunk.lines));
    file
}

/// `@@ -1,2 +3,4 @@ heading`.
struct Head<'a> {
    old: usize,
    new: usize,
    heading: &'a str,
}

impl<'a> Head<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let (numbers, heading) = line.strip_prefix("@@")?.split_once("@@").unwrap_or_default();
        let start = |mark: &str| {
            let range = numbers.split_whitespace().find_map(|word| word.strip_prefix(mark))?;
            range.split(',').next()?.parse().ok()
        };
        Some(Self { old: start("-").unwrap_or(1), new: start("+").unwrap_or(1), heading: heading.trim() })
    }
}

/// Marks the words that differ between lines that were removed and the lines that replace them.
fn mark_words(lines: &mut [Line]) {
    let mut place = 0;
    while place < lines.len() {
        let count = |from: usize, side: Side| lines[from..].iter().take_while(|line| line.side == side).count();
        let removed = count(place, Side::Old);
        let added = if removed > 0 { count(place + removed, Side::New) } else { 0 };
        for pair in 0..removed.min(added) {
            let (old, new) = (place + pair, place + removed + pair);
            if let Some((before, after)) = changed_words(&lines[old].text, &lines[new].text) {
                (lines[old].changed, lines[new].changed) = (before, after);
            }
        }
        place += (removed + added).max(1);
    }
}

/// The bytes that have changed in the old line, and in the new one.
type ChangedBytes = (Vec<Range<usize>>, Vec<Range<usize>>);

/// The bytes of two lines that differ; `None` if they have little in common, so that marks would not help.
fn changed_words(old: &str, new: &str) -> Option<ChangedBytes> {
    let (old_words, new_words) = (words(old), words(new));
    if old_words.len() > MOST_WORDS || new_words.len() > MOST_WORDS {
        return None;
    }
    let (mut before, mut after, mut same) = (Vec::new(), Vec::new(), 0);
    for change in capture_diff_slices(Algorithm::Myers, &texts(old, &old_words), &texts(new, &new_words)) {
        let (old_range, new_range) = (change.old_range(), change.new_range());
        if let DiffOp::Equal { .. } = change {
            let equal = old_words[old_range].iter().map(|word| old[word.clone()].trim().len());
            same += equal.sum::<usize>();
        } else {
            before.extend(joined(&old_words[old_range]));
            after.extend(joined(&new_words[new_range]));
        }
    }
    let longest = old.trim().len().max(new.trim().len());
    (same * 3 >= longest).then_some((before, after))
}

fn texts<'a>(line: &'a str, words: &[Range<usize>]) -> Vec<&'a str> {
    words.iter().map(|word| &line[word.clone()]).collect()
}

fn joined(words: &[Range<usize>]) -> Option<Range<usize>> {
    Some(words.first()?.start..words.last()?.end)
}

/// The words of a line, its white space, and each other character.
fn words(line: &str) -> Vec<Range<usize>> {
    #[derive(PartialEq, Clone, Copy)]
    enum Class {
        Word,
        Space,
        Other,
    }
    let class = |letter: char| match letter {
        letter if letter.is_alphanumeric() || letter == '_' => Class::Word,
        letter if letter.is_whitespace() => Class::Space,
        _ => Class::Other,
    };
    let (mut words, mut last): (Vec<Range<usize>>, _) = (Vec::new(), Class::Other);
    for (start, letter) in line.char_indices() {
        let (now, end) = (class(letter), start + letter.len_utf8());
        match words.last_mut() {
            Some(word) if now == last && now != Class::Other => word.end = end,
            _ => words.push(start..end),
        }
        last = now;
    }
    words
}

#[cfg(test)]
mod tests;
