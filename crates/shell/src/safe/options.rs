//! The harmless options of programs, and matching of arguments against them.

use crate::understand::is_among;

/// The harmless options of a program.
///
/// Long options must be spelled out: an abbreviated option, which many programs accept, does not match.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    /// Letters of options without a value.
    pub(super) flags: &'static str,
    /// Letters of options with a value, attached or in the next word.
    pub(super) valued: &'static str,
    /// Letters of options whose value, if they have one, is attached.
    pub(super) attached: &'static str,
    /// Names of long options, separated by blanks, with an optional value after `=`.
    pub(super) long: &'static str,
    /// Names of long options, separated by blanks, with a value after `=` or in the next word.
    pub(super) long_valued: &'static str,
    /// Whether `-5` is an option.
    pub(super) numbers: bool,
    /// The maximum number of operands.
    pub(super) operands: usize,
}

impl Options {
    /// No options and any number of operands.
    pub(super) const NONE: Self =
        Self { flags: "", valued: "", attached: "", long: "", long_valued: "", numbers: false, operands: usize::MAX };

    /// Removes the options from the arguments and returns the operands; `None` if an option is not listed.
    pub(super) fn operands_of<'a>(&self, arguments: &'a [String]) -> Option<Vec<&'a str>> {
        let mut operands = Vec::new();
        let mut words = arguments.iter().map(String::as_str);
        while let Some(word) = words.next() {
            if word == "--" {
                operands.extend(words.by_ref());
            } else if let Some(long) = word.strip_prefix("--") {
                self.long(long, &mut words)?;
            } else if let Some(short) = word.strip_prefix('-').filter(|short| !short.is_empty()) {
                self.short(short, &mut words)?;
            } else {
                operands.push(word);
            }
        }
        (operands.len() <= self.operands).then_some(operands)
    }

    fn long<'a>(&self, option: &str, words: &mut impl Iterator<Item = &'a str>) -> Option<()> {
        let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        if is_among(self.long_valued, name) {
            return value.or_else(|| words.next()).map(drop);
        }
        is_among(self.long, name).then_some(())
    }

    fn short<'a>(&self, cluster: &str, words: &mut impl Iterator<Item = &'a str>) -> Option<()> {
        if self.numbers && cluster.bytes().all(|byte| byte.is_ascii_digit()) {
            return Some(());
        }
        let mut letters = cluster.chars();
        while let Some(letter) = letters.next() {
            if self.attached.contains(letter) {
                return Some(());
            }
            if self.valued.contains(letter) {
                return if letters.as_str().is_empty() { words.next().map(drop) } else { Some(()) };
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some(())
    }
}
