//! The ends of motions, and the ranges of text objects. All places are byte offsets of [`Editor::raw`].

use std::ops::Range;

use crate::cluster;
use crate::editor::Editor;

/// The end of a motion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) at: usize,
    /// Whether an operator takes the character there as well.
    pub(super) is_inclusive: bool,
    /// Whether an operator takes whole lines.
    pub(super) is_line: bool,
}

impl Place {
    pub(super) fn at(at: usize) -> Self {
        Self { at, is_inclusive: false, is_line: false }
    }

    pub(super) fn upto(at: usize) -> Self {
        Self { at, is_inclusive: true, is_line: false }
    }

    pub(super) fn line(at: usize) -> Self {
        Self { at, is_inclusive: false, is_line: true }
    }
}

/// A search for a character on the line: `f`, `F`, `t` or `T`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Find {
    is_back: bool,
    /// Whether it stops one character before.
    is_till: bool,
}

impl Find {
    pub(super) fn of(c: char) -> Self {
        Self { is_back: c.is_uppercase(), is_till: c.eq_ignore_ascii_case(&'t') }
    }

    pub(super) fn reversed(self) -> Self {
        Self { is_back: !self.is_back, ..self }
    }
}

/// The separation between words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// Letters, digits and underscores are one kind of word, and everything else but blanks another.
    Letters,
    /// Only blanks separate.
    Blank,
}

/// The kind of a character: blank, punctuation, letter.
fn kind(c: char, word: Word) -> u8 {
    match word {
        _ if c.is_whitespace() => 0,
        Word::Letters if !(c.is_alphanumeric() || c == '_') => 1,
        Word::Letters | Word::Blank => 2,
    }
}

fn kind_at(text: &str, place: usize, word: Word) -> Option<u8> {
    text[place..].chars().next().map(|c| kind(c, word))
}

pub(super) fn is_blank_at(editor: &Editor) -> bool {
    kind_at(editor.raw(), editor.cursor(), Word::Blank).is_none_or(|kind| kind == 0)
}

/// So many clusters to the left, on this line.
pub(super) fn left(editor: &Editor, times: usize) -> usize {
    let start = editor.line_start(editor.cursor());
    let mut at = editor.cursor();
    for _ in 0..times {
        if at <= start {
            break;
        }
        at = cluster::before(editor.raw(), at);
    }
    at
}

/// So many clusters to the right, on this line.
pub(super) fn right(editor: &Editor, times: usize) -> usize {
    let end = editor.line_end(editor.cursor());
    let mut at = editor.cursor();
    for _ in 0..times {
        if at >= end {
            break;
        }
        at = cluster::after(editor.raw(), at);
    }
    at.min(end)
}

pub(super) fn first_letter(editor: &Editor) -> usize {
    let (start, end) = (editor.line_start(editor.cursor()), editor.line_end(editor.cursor()));
    let line = &editor.raw()[start..end];
    start + line.find(|c: char| !c.is_whitespace()).unwrap_or(line.len())
}

/// The start of the line with a number, counted from 1.
pub(super) fn nth_line(editor: &Editor, number: usize) -> usize {
    line_below(editor, 0, number.saturating_sub(1))
}

/// The start of the line so many below.
pub(super) fn line_below(editor: &Editor, place: usize, times: usize) -> usize {
    let mut at = place;
    for _ in 0..times {
        let end = editor.line_end(at);
        if end == editor.raw().len() {
            break;
        }
        at = end + 1;
    }
    at
}

/// The start of the line so many above.
pub(super) fn line_above(editor: &Editor, place: usize, times: usize) -> usize {
    let mut at = editor.line_start(place);
    for _ in 0..times {
        if at == 0 {
            break;
        }
        at = editor.line_start(at - 1);
    }
    at
}

/// `w`: the start of the next word. For an operator, a line break ends the last one.
pub(super) fn word_start(editor: &Editor, word: Word, times: usize, is_operated: bool) -> usize {
    let text = editor.raw();
    let mut at = editor.cursor();
    for number in 0..times {
        let Some(now) = kind_at(text, at, word) else { break };
        while now != 0 && kind_at(text, at, word) == Some(now) {
            at = cluster::after(text, at);
        }
        let blank = at;
        while kind_at(text, at, word) == Some(0) {
            at = cluster::after(text, at);
        }
        let is_last = number + 1 == times;
        if let Some(end) = text[blank..at].find('\n').filter(|_| is_operated && is_last) {
            at = blank + end;
        }
    }
    at
}

/// `b`: the start of this word or the one before it.
pub(super) fn word_back(editor: &Editor, word: Word, times: usize) -> usize {
    let text = editor.raw();
    let mut at = editor.cursor();
    let before = |at: usize| text[..at].chars().next_back().map(|c| kind(c, word));
    for _ in 0..times {
        while before(at) == Some(0) {
            at = cluster::before(text, at);
        }
        let Some(now) = before(at) else { break };
        while before(at) == Some(now) {
            at = cluster::before(text, at);
        }
    }
    at
}

/// `e`: the last character of this word or the next one.
pub(super) fn word_end(editor: &Editor, word: Word, times: usize) -> usize {
    let text = editor.raw();
    let mut at = editor.cursor();
    for _ in 0..times {
        let mut next = cluster::after(text, at);
        while kind_at(text, next, word) == Some(0) {
            next = cluster::after(text, next);
        }
        let Some(now) = kind_at(text, next, word) else { break };
        at = next;
        loop {
            let next = cluster::after(text, at);
            if kind_at(text, next, word) != Some(now) {
                break;
            }
            at = next;
        }
    }
    at
}

/// A character on this line; `None` if there are not so many.
pub(super) fn find(editor: &Editor, find: Find, sought: char, times: usize) -> Option<Place> {
    let (at, text) = (editor.cursor(), editor.raw());
    if find.is_back {
        let start = editor.line_start(at);
        let found = text[start..at].char_indices().rev().filter(|(_, c)| *c == sought).nth(times.saturating_sub(1))?;
        let place = start + found.0;
        return Some(Place::at(if find.is_till { cluster::after(text, place) } else { place }));
    }
    let next = cluster::after(text, at);
    let line = text.get(next..editor.line_end(at))?;
    let found = line.char_indices().filter(|(_, c)| *c == sought).nth(times.saturating_sub(1))?;
    let place = next + found.0;
    Some(Place::upto(if find.is_till { cluster::before(text, place) } else { place }))
}

/// A text object around the cursor: a word, a quoted text, or what brackets enclose.
pub(super) fn object(editor: &Editor, c: char, is_around: bool) -> Option<Range<usize>> {
    match c {
        'w' => word_object(editor, Word::Letters, is_around),
        'W' => word_object(editor, Word::Blank, is_around),
        '"' | '\'' | '`' => quoted(editor, c, is_around),
        '(' | ')' | 'b' => enclosed(editor, ('(', ')'), is_around),
        '[' | ']' => enclosed(editor, ('[', ']'), is_around),
        '{' | '}' | 'B' => enclosed(editor, ('{', '}'), is_around),
        '<' | '>' => enclosed(editor, ('<', '>'), is_around),
        _ => None,
    }
}

fn word_object(editor: &Editor, word: Word, is_around: bool) -> Option<Range<usize>> {
    let (text, at) = (editor.raw(), editor.cursor());
    let (first, last) = (editor.line_start(at), editor.line_end(at));
    let now = kind_at(&text[..last], at, word)?;
    let run = |from: usize, wanted: u8| {
        let mut end = from;
        while end < last && kind_at(text, end, word) == Some(wanted) {
            end = cluster::after(text, end);
        }
        end
    };
    let back = |from: usize, wanted: u8| {
        let mut start = from;
        while start > first {
            let before = cluster::before(text, start);
            if kind_at(text, before, word) != Some(wanted) {
                break;
            }
            start = before;
        }
        start
    };
    let (start, end) = (back(at, now), run(at, now));
    if !is_around {
        return Some(start..end);
    }
    if now == 0 {
        let next = kind_at(&text[..last], end, word);
        return Some(start..next.map_or(end, |next| run(end, next)));
    }
    // The blanks after a word go with it, or else those before it.
    let after = run(end, 0);
    Some(if after > end { start..after } else { back(start, 0)..end })
}

fn quoted(editor: &Editor, quote: char, is_around: bool) -> Option<Range<usize>> {
    let (start, end) = (editor.line_start(editor.cursor()), editor.line_end(editor.cursor()));
    let marks: Vec<usize> = editor.raw()[start..end].match_indices(quote).map(|(at, _)| start + at).collect();
    let pair = marks.chunks_exact(2).find(|pair| pair[1] >= editor.cursor())?;
    Some(if is_around { pair[0]..pair[1] + 1 } else { pair[0] + 1..pair[1] })
}

fn enclosed(editor: &Editor, (open, close): (char, char), is_around: bool) -> Option<Range<usize>> {
    let (text, at) = (editor.raw(), editor.cursor());
    let mut depth = 0usize;
    let here = text[at..].chars().next();
    let before = text[..at].char_indices().rev();
    let start = if here == Some(open) {
        at
    } else {
        let mut found = None;
        for (place, c) in before {
            if c == close {
                depth += 1;
            } else if c == open && depth == 0 {
                found = Some(place);
                break;
            } else if c == open {
                depth -= 1;
            }
        }
        found?
    };
    let mut depth = 0usize;
    for (place, c) in text[start..].char_indices() {
        if c == open {
            depth += 1;
        } else if c == close {
            depth -= 1;
            if depth == 0 {
                let end = start + place;
                return Some(if is_around { start..end + 1 } else { start + 1..end });
            }
        }
    }
    None
}
