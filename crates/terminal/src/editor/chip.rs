//! Chips: one character of the text for a large paste or a picture.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

/// The character that stands for the first chip, and the maximum number of chips. No script uses these characters.
const FIRST_CHIP: u32 = 0x0010_f000;
const MOST_CHIPS: usize = 1024;

/// Something that is shown as a few words and moved over as one character.
#[derive(Debug, Clone)]
pub(super) enum Chip {
    /// A large paste.
    Text {
        text: Arc<str>,
        label: Arc<str>,
    },
    Picture {
        path: PathBuf,
        label: Arc<str>,
    },
}

impl Chip {
    pub(super) fn label(&self) -> &str {
        match self {
            Self::Text { label, .. } | Self::Picture { label, .. } => label,
        }
    }

    /// The text that is sent for it.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Text { text, .. } => text,
            Self::Picture { label, .. } => label,
        }
    }
}

/// The character for the chip with a number, if there can be so many.
pub(super) fn nth_chip(number: usize) -> Option<char> {
    let offset = u32::try_from(number).ok().filter(|_| number < MOST_CHIPS)?;
    char::from_u32(FIRST_CHIP + offset)
}

/// A number with a comma after every three digits.
pub(super) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

pub(super) fn chip_number(c: char) -> Option<usize> {
    let number = usize::try_from(u32::from(c).checked_sub(FIRST_CHIP)?).ok()?;
    (number < MOST_CHIPS).then_some(number)
}

/// Removes the characters that stand for chips.
pub(super) fn without_chips(text: &str) -> Cow<'_, str> {
    if !text.contains(|c| chip_number(c).is_some()) {
        return Cow::Borrowed(text);
    }
    text.chars().map(|c| if chip_number(c).is_some() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}
