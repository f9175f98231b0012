//! Colours of code, by the words and marks of its language.
//!
//! One lexer with a table for each language tells comments, texts, numbers, words, types and names apart. It prepares
//! nothing and keeps nothing. Grammars of regular expressions (`syntect`) would tell more apart, but they took 260 ms and
//! 80 MB for the first 250 lines of TypeScript, and a key has to be on the screen within 16 ms. Text that is not code in
//! its language is merely coloured oddly.

mod language;
mod markup;

use language::{BlockComment, Language, Quote};

use crate::style::add;
use crate::{Row, Span, Style};

/// The longest line that is coloured. Longer ones are data, and nobody reads them whole.
const LONGEST_LINE: usize = 4096;

/// The part of some code in which a line ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Within {
    #[default]
    Code,
    /// A comment, with the number of comments around it.
    Comment(u16),
    /// A text up to its mark.
    Text(&'static Quote),
    /// A raw text of Rust, with the number of its marks.
    Raw(usize),
    /// A tag of a markup language.
    Tag,
}

enum Lexer {
    Code(&'static Language),
    Markup,
    Diff,
}

/// The lexer for the name of a language or of a file.
fn lexer(name: &str) -> Option<Lexer> {
    let name = name.to_ascii_lowercase();
    let ending = name.rsplit(['/', '.']).next().unwrap_or_default();
    [name.as_str(), ending].into_iter().find_map(|name| match name {
        "" => None,
        "html" | "htm" | "xml" | "svg" | "vue" | "svelte" | "xhtml" | "plist" | "xaml" | "jinja" => Some(Lexer::Markup),
        "diff" | "patch" => Some(Lexer::Diff),
        _ => {
            let is_named = |language: &&Language| language.names.split(' ').any(|one| one == name);
            language::ALL.iter().find(is_named).map(Lexer::Code)
        }
    })
}

/// The lines of some code, coloured if its language is known.
#[must_use]
pub fn code(name: &str, text: &str) -> Vec<Row> {
    code_within(name, text, &mut Within::Code)
}

/// The same for a part of some code, which may begin and end within a comment or a text.
pub(crate) fn code_within(name: &str, text: &str, within: &mut Within) -> Vec<Row> {
    let Some(lexer) = lexer(name) else {
        return text.lines().map(|line| vec![Span::new(Style::Code, line)]).collect();
    };
    text.lines().map(|line| coloured(&lexer, line, within)).collect()
}

fn coloured(lexer: &Lexer, line: &str, within: &mut Within) -> Row {
    if line.len() > LONGEST_LINE {
        return vec![Span::new(Style::Plain, line)];
    }
    let mut row = Row::new();
    let mut at = 0;
    while at < line.len() {
        let (length, style) = match lexer {
            Lexer::Code(language) => Place { language, line, at }.next(within),
            Lexer::Markup => markup::next(&line[at..], within),
            Lexer::Diff => (line.len(), diff_style(line)),
        };
        add(&mut row, style, &line[at..at + length]);
        at += length;
    }
    if matches!(within, Within::Text(quote) if !quote.is_long) {
        *within = Within::Code;
    }
    row
}

fn diff_style(line: &str) -> Style {
    match line.as_bytes().first() {
        Some(b'+') => Style::Green,
        Some(b'-') => Style::Red,
        Some(b'@') => Style::Keyword,
        _ => Style::Plain,
    }
}

/// A place in a line of code.
struct Place<'a> {
    language: &'static Language,
    line: &'a str,
    at: usize,
}

impl<'a> Place<'a> {
    fn rest(&self) -> &'a str {
        &self.line[self.at..]
    }

    fn before(&self) -> Option<char> {
        self.line[..self.at].chars().next_back()
    }

    /// The next piece of the line: its length, which is not zero, and its style.
    fn next(&self, within: &mut Within) -> (usize, Style) {
        match *within {
            Within::Comment(depth) => {
                let Some(marks) = self.language.block_comment else { return (self.rest().len(), Style::Comment) };
                (in_comment(self.rest(), marks, depth, within), Style::Comment)
            }
            Within::Text(quote) => (in_text(self.rest(), quote, within), Style::Quoted),
            Within::Raw(marks) => (in_raw(self.rest(), marks, within), Style::Quoted),
            Within::Code | Within::Tag => self.begin(within),
        }
    }

    /// The next piece outside of comments and texts.
    fn begin(&self, within: &mut Within) -> (usize, Style) {
        let rest = self.rest();
        if let Some(marks) = self.language.block_comment.filter(|marks| rest.starts_with(marks.start)) {
            let length = marks.start.len();
            return (length + in_comment(&rest[length..], marks, 1, within), Style::Comment);
        }
        if self.begins_comment() {
            return (rest.len(), Style::Comment);
        }
        if self.language.rules.is_rust
            && let Some(piece) = rust_piece(rest, within)
        {
            return piece;
        }
        if let Some(quote) = self.language.quotes.iter().find(|quote| rest.starts_with(quote.start)) {
            let start = quote.start.len();
            let length = start + in_text(&rest[start..], quote, within);
            return (length, if self.is_key(length) { Style::Name } else { Style::Quoted });
        }
        let first = rest.chars().next().unwrap_or_default();
        if first.is_ascii_digit() {
            return (number(rest), Style::Number);
        }
        let mark = self.word_mark(first);
        match self.word_end(mark) {
            end if end > mark => (end, self.style_of_word(mark, end)),
            _ => (first.len_utf8(), Style::Plain),
        }
    }

    fn begins_comment(&self) -> bool {
        let is_start = !self.language.rules.comments_begin_words || self.before().is_none_or(char::is_whitespace);
        is_start && self.language.line_comments.iter().any(|mark| self.rest().starts_with(mark))
    }

    /// The length of a mark that belongs to the word behind it.
    fn word_mark(&self, first: char) -> usize {
        let rules = self.language.rules;
        usize::from(rules.has_dollars && first == '$' || rules.has_marked_words && matches!(first, '@' | '#'))
    }

    /// The end of the word that begins at a place of the rest.
    fn word_end(&self, from: usize) -> usize {
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || self.language.also_in_words.contains(c);
        let rest = self.rest();
        rest[from..].find(|c| !is_part(c)).map_or(rest.len(), |at| from + at)
    }

    fn style_of_word(&self, mark: usize, end: usize) -> Style {
        let (word, after, rules) = (&self.rest()[mark..end], &self.rest()[end..], self.language.rules);
        let is_call = || after.starts_with('(') || rules.is_rust && after.starts_with('!') && !after.starts_with("!=");
        let is_type = || word.starts_with(char::is_uppercase) && word.contains(char::is_lowercase);
        if mark > 0 || self.is_key(end) {
            Style::Name
        } else if is_keyword(self.language, word) {
            Style::Keyword
        } else if rules.has_types && is_type() {
            Style::Type
        } else if rules.has_calls && is_call() {
            Style::Name
        } else {
            Style::Plain
        }
    }

    /// Whether the piece of this length is a key of data: the first in its line, or behind a bracket or a comma.
    fn is_key(&self, length: usize) -> bool {
        let Some(mark) = self.language.after_keys else { return false };
        let before = self.line[..self.at].trim_end().chars().next_back();
        before.is_none_or(|c| matches!(c, '{' | ',' | '-' | '[' | ';'))
            && self.rest()[length..].trim_start_matches(' ').starts_with(mark)
    }
}

fn is_keyword(language: &Language, word: &str) -> bool {
    language
        .keywords
        .split(' ')
        .any(|keyword| keyword == word || language.rules.ignores_case && keyword.eq_ignore_ascii_case(word))
}

/// The length of the rest of a comment in this line.
fn in_comment(rest: &str, marks: BlockComment, depth: u16, within: &mut Within) -> usize {
    let (mut depth, mut at) = (depth, 0);
    loop {
        let tail = &rest[at..];
        let end = tail.find(marks.end);
        let start = tail.find(marks.start).filter(|start| marks.nests && end.is_none_or(|end| *start < end));
        match (start, end) {
            (Some(start), _) => (depth, at) = (depth.saturating_add(1), at + start + marks.start.len()),
            (None, Some(end)) => {
                (depth, at) = (depth - 1, at + end + marks.end.len());
                if depth == 0 {
                    *within = Within::Code;
                    return at;
                }
            }
            (None, None) => {
                *within = Within::Comment(depth);
                return rest.len();
            }
        }
    }
}

/// The length of the rest of a text in this line.
fn in_text(rest: &str, quote: &'static Quote, within: &mut Within) -> usize {
    let mut at = 0;
    while let Some(c) = rest[at..].chars().next() {
        if rest[at..].starts_with(quote.end) {
            *within = Within::Code;
            return at + quote.end.len();
        }
        at += c.len_utf8();
        if c == '\\' && quote.has_escapes {
            at += rest[at..].chars().next().map_or(0, char::len_utf8);
        }
    }
    *within = Within::Text(quote);
    rest.len()
}

fn in_raw(rest: &str, marks: usize, within: &mut Within) -> usize {
    let mark = format!("\"{}", "#".repeat(marks));
    let end = rest.find(&mark).map(|at| at + mark.len());
    *within = if end.is_some() { Within::Code } else { Within::Raw(marks) };
    end.unwrap_or(rest.len())
}

/// A raw text, a character or a lifetime of Rust, which other languages would read as the start of a long text.
fn rust_piece(rest: &str, within: &mut Within) -> Option<(usize, Style)> {
    let raw = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'));
    if let Some(after) = raw {
        let marks = after.len() - after.trim_start_matches('#').len();
        if after[marks..].starts_with('"') {
            let start = rest.len() - after.len() + marks + 1;
            return Some((start + in_raw(&rest[start..], marks, within), Style::Quoted));
        }
    }
    let inside = rest.strip_prefix('\'')?;
    let mut chars = inside.char_indices();
    if inside.starts_with('\\') {
        let end = chars.skip(2).find(|(_, c)| *c == '\'')?.0;
        return Some((end + 2, Style::Quoted));
    }
    let (_, first) = chars.next()?;
    if chars.next().is_some_and(|(_, c)| c == '\'') {
        return Some((first.len_utf8() + 2, Style::Quoted));
    }
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let end = inside.find(|c| !is_part(c)).unwrap_or(inside.len());
    Some((end + 1, Style::Type))
}

/// The length of a number such as `0xff`, `1_000` or `2.5e-3`.
fn number(rest: &str) -> usize {
    let mut end = 0;
    let mut chars = rest.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let is_digit_next = chars.peek().is_some_and(|(_, next)| next.is_ascii_digit());
        let has_exponent = !rest.starts_with("0x") && rest[..at].ends_with(['e', 'E']);
        let is_part = c.is_alphanumeric()
            || c == '_'
            || c == '.' && is_digit_next
            || matches!(c, '+' | '-') && has_exponent && is_digit_next;
        if !is_part {
            break;
        }
        end = at + c.len_utf8();
    }
    end
}

#[cfg(test)]
mod tests;
