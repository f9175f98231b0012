//! Colours of markup: tags, the names of their attributes, and comments.

use super::Within;
use crate::Style;

const COMMENT: (&str, &str) = ("<!--", "-->");

/// The next piece of a line: its length, which is not zero, and its style.
pub(super) fn next(rest: &str, within: &mut Within) -> (usize, Style) {
    match within {
        Within::Comment(_) => (comment(rest, within), Style::Comment),
        Within::Tag => in_tag(rest, within),
        _ if rest.starts_with(COMMENT.0) => (comment(rest, within), Style::Comment),
        _ if begins_tag(rest) => {
            *within = Within::Tag;
            let mark = if rest.starts_with("</") { 2 } else { 1 };
            (mark + name(&rest[mark..]), Style::Keyword)
        }
        _ => (text(rest), Style::Plain),
    }
}

fn begins_tag(rest: &str) -> bool {
    let name = rest.strip_prefix("</").or_else(|| rest.strip_prefix('<'));
    name.is_some_and(|name| name.starts_with(|c: char| c.is_alphabetic() || matches!(c, '!' | '?' | '_')))
}

/// The length of the text up to the next tag or comment.
fn text(rest: &str) -> usize {
    let first = rest.chars().next().map_or(0, char::len_utf8);
    rest[first..].find('<').map_or(rest.len(), |at| first + at)
}

fn comment(rest: &str, within: &mut Within) -> usize {
    let end = rest.find(COMMENT.1).map(|at| at + COMMENT.1.len());
    *within = if end.is_some() { Within::Code } else { Within::Comment(1) };
    end.unwrap_or(rest.len())
}

fn in_tag(rest: &str, within: &mut Within) -> (usize, Style) {
    let first = rest.chars().next().unwrap_or_default();
    match first {
        '>' => {
            *within = Within::Code;
            (1, Style::Keyword)
        }
        '/' | '?' => (1, Style::Keyword),
        // A value that goes on in the next line is read as names there, which loses no more than its colour.
        '"' | '\'' => (rest[1..].find(first).map_or(rest.len(), |at| at + 2), Style::Quoted),
        _ => match name(rest) {
            0 => (first.len_utf8(), Style::Plain),
            length => (length, Style::Name),
        },
    }
}

/// The length of a name, which may be none.
fn name(rest: &str) -> usize {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | ':' | '.' | '!' | '?' | '@' | '#');
    rest.find(|c| !is_part(c)).unwrap_or(rest.len())
}
