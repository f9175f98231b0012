//! Characters as a person counts them: a letter with its accents, a flag, a family of emoji.
//!
//! The rules are those of extended grapheme clusters as far as a line editor needs them; what they leave out is shown
//! correctly and takes one more key to pass.

use unicode_width::UnicodeWidthChar;

const JOINER: char = '\u{200d}';

/// Vowel signs and marks that have a width and still belong to the letter before them.
const SPACING: &[(u32, u32)] = &[
    (0x0903, 0x0903),
    (0x093b, 0x093b),
    (0x093e, 0x0940),
    (0x0949, 0x094c),
    (0x094e, 0x094f),
    (0x0982, 0x0983),
    (0x09bf, 0x09c0),
    (0x09c7, 0x09c8),
    (0x09cb, 0x09cc),
    (0x0a03, 0x0a03),
    (0x0a3e, 0x0a40),
    (0x0a83, 0x0a83),
    (0x0abe, 0x0ac0),
    (0x0ac9, 0x0acc),
    (0x0b02, 0x0b03),
    (0x0bbf, 0x0bc2),
    (0x0bc6, 0x0bc8),
    (0x0bca, 0x0bcc),
    (0x0c01, 0x0c03),
    (0x0c41, 0x0c44),
    (0x0d02, 0x0d03),
    (0x0d3f, 0x0d40),
    (0x0d46, 0x0d4c),
    (0x0e33, 0x0e33),
    (0x0eb3, 0x0eb3),
    (0x1031, 0x1031),
    (0x103b, 0x103c),
    (0x17b6, 0x17b6),
    (0x17be, 0x17c8),
];

/// The position after the cluster that starts at a position.
#[must_use]
pub fn after(text: &str, place: usize) -> usize {
    let mut characters = text[place..].char_indices();
    let Some((_, mut last)) = characters.next() else { return place };
    let mut flags = usize::from(is_flag(last));
    for (at, c) in characters {
        if !joins(last, c, flags) {
            return place + at;
        }
        flags = if is_flag(c) { flags + 1 } else { 0 };
        last = c;
    }
    text.len()
}

/// The position before the cluster that ends at a position.
#[must_use]
pub fn before(text: &str, place: usize) -> usize {
    let head = &text[..place];
    let mut characters = head.char_indices().rev().peekable();
    while let Some((at, c)) = characters.next() {
        let Some((_, last)) = characters.peek() else { return at };
        let flags = if is_flag(c) { head[..at].chars().rev().take_while(|c| is_flag(*c)).count() } else { 0 };
        if !joins(*last, c, flags) {
            return at;
        }
    }
    0
}

/// Whether a character belongs to the one before it, which ends a run of so many letters of flags.
fn joins(last: char, c: char, flags: usize) -> bool {
    if c == '\n' || last == '\n' || c.is_control() {
        return false;
    }
    let is_emoji = |c: char| c.width() == Some(2) && !c.is_alphanumeric();
    let is_tone = matches!(c, '\u{1f3fb}'..='\u{1f3ff}');
    c.width() == Some(0)
        || (is_tone && is_emoji(last))
        || (last == JOINER && is_emoji(c))
        || (is_flag(c) && is_flag(last) && flags % 2 == 1)
        || SPACING.iter().any(|(first, end)| (*first..=*end).contains(&u32::from(c)))
}

/// Whether a character is half of a flag.
fn is_flag(c: char) -> bool {
    matches!(c, '\u{1f1e6}'..='\u{1f1ff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn clusters(text: &str) -> Vec<&str> {
        let (mut at, mut all) = (0, Vec::new());
        while at < text.len() {
            let end = after(text, at);
            all.push(&text[at..end]);
            at = end;
        }
        all
    }

    #[test]
    fn what_is_one_for_a_person_is_one_cluster() {
        assert_eq!(clusters("e\u{301}日x"), ["e\u{301}", "日", "x"]);
        assert_eq!(clusters("👨\u{200d}👩\u{200d}👧👍🏽"), ["👨\u{200d}👩\u{200d}👧", "👍🏽"]);
        assert_eq!(clusters("🇳🇴🇩🇪🇫"), ["🇳🇴", "🇩🇪", "🇫"]);
        assert_eq!(clusters("กำ\u{e19}\u{e49}ำ"), ["กำ", "\u{e19}\u{e49}ำ"]);
        assert_eq!(clusters("हिन्दी"), ["हि", "न्", "दी"]);
        assert_eq!(clusters("a\n\u{301}"), ["a", "\n", "\u{301}"]);
    }

    proptest! {
        /// Both directions find the same places, whatever the text.
        #[test]
        fn both_directions_agree(text in r"[a-zé日\u{301}\u{200d}👨👧🏽🇳🇴ำ\n]{0,24}") {
            let (mut forward, mut at) = (vec![0], 0);
            while at < text.len() {
                at = after(&text, at);
                forward.push(at);
            }
            let (mut backward, mut at) = (vec![text.len()], text.len());
            while at > 0 {
                at = before(&text, at);
                backward.push(at);
            }
            backward.reverse();
            prop_assert_eq!(forward, backward);
        }
    }
}
