//! Searches for lines in a text: first exactly, then more and more leniently.
//!
//! Invariant: a search takes time linear in the lines it passes, however often they repeat, and a line that is not in
//! the text ends it at once.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;

use crate::text::Text;

/// The precision with which lines have to match, strictest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Exact,
    /// Trailing white space is ignored.
    TrimEnd,
    /// Leading white space is ignored too.
    Trim,
    /// The kind of dashes, quotes and spaces is ignored too; bytes that are not UTF-8 match the replacement character.
    Folded,
}

pub(crate) const LEVELS: [Level; 4] = [Level::Exact, Level::TrimEnd, Level::Trim, Level::Folded];

impl Level {
    /// The part of a line that is compared.
    pub(crate) fn key(self, line: &[u8]) -> Cow<'_, [u8]> {
        match self {
            Self::Exact => line.into(),
            Self::TrimEnd => line.trim_ascii_end().into(),
            Self::Trim => line.trim_ascii().into(),
            Self::Folded if line.is_ascii() => line.trim_ascii().into(),
            Self::Folded => {
                let folded: String = String::from_utf8_lossy(line).chars().filter_map(fold).collect();
                folded.trim().as_bytes().to_vec().into()
            }
        }
    }
}

/// The ASCII form of a typographic character.
fn fold(character: char) -> Option<char> {
    match character {
        '\u{feff}' => None,
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' | '\u{ff0d}' => Some('-'),
        '\u{2018}'..='\u{201b}' | '\u{2032}' => Some('\''),
        '\u{201c}'..='\u{201f}' | '\u{2033}' => Some('"'),
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => Some(' '),
        _ => Some(character),
    }
}

/// The lines of a text, indexed at each level on demand.
pub(crate) struct Index<'a> {
    pub(crate) text: Text<'a>,
    levels: [OnceCell<Numbered<'a>>; 4],
}

/// Lines as numbers: two lines that match have the same number.
struct Numbered<'a> {
    lines: Vec<u32>,
    numbers: HashMap<Cow<'a, [u8]>, u32>,
}

impl<'a> Index<'a> {
    pub(crate) fn new(text: Text<'a>) -> Self {
        Self { text, levels: Default::default() }
    }

    fn numbered(&self, level: Level) -> &Numbered<'a> {
        self.levels[level as usize].get_or_init(|| {
            let mut numbers = HashMap::new();
            let mut number = |line| {
                let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                *numbers.entry(level.key(self.text.body(line))).or_insert(next)
            };
            let lines = (0..self.text.len()).map(&mut number).collect();
            Numbered { lines, numbers }
        })
    }

    /// The number of each line of the text, and those of `wanted`; `None` if a line is not in the text.
    pub(crate) fn numbers(&self, level: Level, wanted: &[&str]) -> (&[u32], Vec<Option<u32>>) {
        let numbered = self.numbered(level);
        let number = |line: &&str| numbered.numbers.get(level.key(line.as_bytes()).as_ref()).copied();
        (&numbered.lines, wanted.iter().map(number).collect())
    }

    /// The first position of `wanted` at line `from` or later, at the strictest level with a match.
    pub(crate) fn find(&self, wanted: &[&str], from: usize) -> Option<usize> {
        LEVELS.into_iter().find_map(|level| {
            let (lines, wanted) = self.numbers(level, wanted);
            let wanted: Vec<u32> = wanted.into_iter().collect::<Option<_>>()?;
            Some(from + search(lines.get(from..)?, &wanted)?)
        })
    }

    /// The position of `wanted`, if it is at the end of the text and not above line `from`.
    pub(crate) fn find_at_end(&self, wanted: &[&str], from: usize) -> Option<usize> {
        let at = self.text.len().checked_sub(wanted.len()).filter(|at| *at >= from)?;
        let agree = |level: Level| {
            let same =
                |(offset, line): (usize, &&str)| level.key(line.as_bytes()) == level.key(self.text.body(at + offset));
            wanted.iter().enumerate().all(same)
        };
        LEVELS.into_iter().any(agree).then_some(at)
    }
}

/// The first position of `wanted` in `lines`, by the Knuth–Morris–Pratt algorithm.
fn search(lines: &[u32], wanted: &[u32]) -> Option<usize> {
    // For each match length, the length of the longest proper prefix that is also a suffix.
    let mut shorter = vec![0; wanted.len()];
    let mut matched = 0;
    for at in 1..wanted.len() {
        while matched > 0 && wanted[at] != wanted[matched] {
            matched = shorter[matched - 1];
        }
        matched += usize::from(wanted[at] == wanted[matched]);
        shorter[at] = matched;
    }
    matched = 0;
    for (at, line) in lines.iter().enumerate() {
        while matched > 0 && *line != wanted[matched] {
            matched = shorter[matched - 1];
        }
        matched += usize::from(wanted.get(matched) == Some(line));
        if matched == wanted.len() {
            return Some(at + 1 - matched);
        }
    }
    None
}
