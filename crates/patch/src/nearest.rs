//! Finds the place in a text that best matches lines which are not there.

use std::collections::HashMap;

use crate::seek::{Index, Level};

/// The maximum number of lines searched for a similar one.
const LOOKED_AT: usize = 50_000;
/// The maximum number of bytes of a line that are compared or shown.
const LENGTH: usize = 200;

/// The closest match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nearest {
    /// The number of the first differing line of the file, starting at 1.
    pub line: usize,
    /// That line, shortened.
    pub found: String,
    /// The expected line, if there is one.
    pub expected: String,
    /// The reason why the place is wrong although all lines match.
    pub reason: Option<Mismatch>,
}

/// The reason why a place where all lines match is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mismatch {
    /// It is above the place of an earlier hunk, or above an anchor.
    TooEarly,
    /// It is not at the end of the file.
    NotAtEnd,
}

/// Finds the place that matches most of the lines, or else the line most similar to the first of them.
pub(crate) fn find(index: &Index, wanted: &[&str], from: usize, at_end: bool) -> Option<Nearest> {
    let Some(at) = most_agreeing(index, wanted, from) else { return most_alike(index, wanted) };
    if let Some(offset) = first_difference(index, wanted, at) {
        return Some(nearest(index, wanted, at + offset, offset, None));
    }
    let ends = at + wanted.len() == index.text.len();
    let reason = if at_end && !ends { Mismatch::NotAtEnd } else { Mismatch::TooEarly };
    Some(nearest(index, wanted, at, 0, Some(reason)))
}

fn nearest(index: &Index, wanted: &[&str], line: usize, offset: usize, reason: Option<Mismatch>) -> Nearest {
    let found = if line < index.text.len() { shortened(index.text.body(line)) } else { String::new() };
    let expected = wanted.get(offset).map(|line| shortened(line.as_bytes())).unwrap_or_default();
    Nearest { line: line + 1, found, expected, reason }
}

/// The place where most lines match; if there are several, one near `from` and below it.
fn most_agreeing(index: &Index, wanted: &[&str], from: usize) -> Option<usize> {
    let (lines, wanted_numbers) = index.numbers(Level::Folded, wanted);
    let mut offsets: HashMap<u32, Vec<usize>> = HashMap::new();
    for (offset, number) in wanted_numbers.iter().enumerate() {
        let says_something = wanted[offset].chars().any(char::is_alphanumeric);
        if let Some(number) = number.filter(|_| says_something) {
            let offsets = offsets.entry(number).or_default();
            // Repeated lines say little, and must not cost much.
            if offsets.len() < 4 {
                offsets.push(offset);
            }
        }
    }
    let mut agreeing: HashMap<usize, usize> = HashMap::new();
    for (at, number) in lines.iter().enumerate() {
        for offset in offsets.get(number).into_iter().flatten() {
            *agreeing.entry(at.saturating_sub(*offset)).or_default() += 1;
        }
    }
    let worth = |&(at, count): &(usize, usize)| (count, at >= from, std::cmp::Reverse(at.abs_diff(from)), at);
    agreeing.into_iter().max_by_key(worth).map(|(at, _)| at)
}

fn first_difference(index: &Index, wanted: &[&str], at: usize) -> Option<usize> {
    let (lines, wanted) = index.numbers(Level::Folded, wanted);
    wanted.iter().enumerate().position(|(offset, number)| number.is_none() || lines.get(at + offset) != number.as_ref())
}

/// The line most similar to the first non-empty wanted line, if they share more than half of it.
fn most_alike(index: &Index, wanted: &[&str]) -> Option<Nearest> {
    let offset = wanted.iter().position(|line| line.chars().any(char::is_alphanumeric))?;
    let line = cut(wanted[offset].trim().as_bytes());
    let alike = |at: usize| {
        let other = cut(index.text.body(at).trim_ascii());
        let (short, long) = (line.len().min(other.len()), line.len().max(other.len()));
        let start = line.iter().zip(other).take_while(|(a, b)| a == b).count();
        let end = line.iter().rev().zip(other.iter().rev()).take(short - start).take_while(|(a, b)| a == b).count();
        ((start + end) * 2 > long).then_some(((start + end) * 1000 / long.max(1), std::cmp::Reverse(at)))
    };
    let (_, std::cmp::Reverse(at)) = (0..index.text.len().min(LOOKED_AT)).filter_map(alike).max()?;
    Some(nearest(index, wanted, at, offset, None))
}

fn cut(line: &[u8]) -> &[u8] {
    &line[..line.len().min(LENGTH)]
}

fn shortened(line: &[u8]) -> String {
    String::from_utf8_lossy(cut(line)).into_owned()
}
