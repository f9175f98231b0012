//! Moves, which replace existing files silently.

use crate::reach::{Reached, reach};
use crate::script::Word;

/// A move of some files, as far as it can be determined. The caller has to check the disk for what it replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    pub from: Vec<String>,
    /// The target: a folder, or the new name.
    pub to: String,
}

/// The moves in a command line that would keep no backup of what they replace.
#[must_use]
pub fn moves(argv: &[String]) -> Vec<Move> {
    let found = reach(argv).commands;
    found.iter().filter(|command| matches!(command.program(), Some("mv" | "gmv"))).filter_map(read).collect()
}

fn read(command: &Reached) -> Option<Move> {
    let (mut from, mut to) = (Vec::new(), None);
    let mut words = command.arguments().iter().map(Word::text);
    while let Some(word) = words.next() {
        let word = word?;
        match word.strip_prefix("--") {
            Some("") => from.extend(words.by_ref().flatten().map(str::to_owned)),
            Some(long) => match long.split_once('=') {
                Some(("target-directory", folder)) => to = Some(folder.to_owned()),
                None if long == "target-directory" => to = Some(words.next()??.to_owned()),
                _ if long.starts_with("no-c") || long.starts_with("backup") => return None,
                _ => {}
            },
            None => match word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
                Some(letters) if letters.contains(['n', 'b']) => return None,
                Some("t") => to = Some(words.next()??.to_owned()),
                Some(_) => {}
                None => from.push(word.to_owned()),
            },
        }
    }
    let to = to.or_else(|| from.pop())?;
    (!from.is_empty()).then_some(Move { from, to })
}
