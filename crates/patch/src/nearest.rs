//! Finds the place in a text that lines which are not there were most likely meant for.

use std::collections::HashMap;

use crate::seek::{Index, Level};

/// The most lines of a text that are looked at for one that is merely alike.
const LOOKED_AT: usize = 50_000;
/// The longest part of a line that is compared or shown, in bytes.
const LENGTH: usize = 200;

/// The place that is nearest to what was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nearest {
    /// The line of the file, counted from 1, that is the first to differ there.
    pub line: usize,
    /// What that line says, shortened.
    pub found: String,
    /// What was expected on that line, if it was a line at all.
    pub expected: String,
    /// Why the place does not count, where all lines agree.
    pub reason: Option<Misfit>,
}

/// Why a place where all lines agree is not the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfit {
    /// It is above the place of an earlier hunk, or above an anchor.
    TooEarly,
    /// It is not at the end of the file.
    NotAtEnd,
}

/// Finds the place that agrees with most of the lines, or else the line that is most like the first of them.
pub(crate) fn find(index: &Index, wanted: &[&str], from: usize, at_end: bool) -> Option<Nearest> {
    let Some(at) = most_agreeing(index, wanted, from) else { return most_alike(index, wanted) };
    if let Some(offset) = first_difference(index, wanted, at) {
        return Some(nearest(index, wanted, at + offset, offset, None));
    }
    let ends = at + wanted.len() == index.text.len();
    let reason = if at_end && !ends { Misfit::NotAtEnd } else { Misfit::TooEarly };
    Some(nearest(index, wanted, at, 0, Some(reason)))
}

fn nearest(index: &Index, wanted: &[&str], line: usize, offset: usize, reason: Option<Misfit>) -> Nearest {
    let found = if line < index.text.len() { shortened(index.text.body(line)) } else { String::new() };
    let expected = wanted.get(offset).map(|line| shortened(line.as_bytes())).unwrap_or_default();
    Nearest { line: line + 1, found, expected, reason }
}

/// Where most lines agree; near `from` and below it where there are several such places.
fn most_agreeing(index: &Index, wanted: &[&str], from: usize) -> Option<usize> {
    let (lines, wanted_numbers) = index.numbers(Level::Folded, wanted);
    let mut offsets: HashMap<u32, Vec<usize>> = HashMap::new();
    for (offset, number) in wanted_numbers.iter().enumerate() {
        let says_something = wanted[offset].chars().any(char::is_alphanumeric);
        if let Some(number) = number.filter(|_| says_something) {
            let offsets = offsets.entry(number).or_default();
            // Lines that repeat say little, and must not cost much.
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

/// The line that shares most with the first wanted line that says something, if that is more than half of it.
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
