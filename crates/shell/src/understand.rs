//! Determines what a command line runs, without running it.

use crate::limits;
use crate::reason::{Reason, ReasonKind};
use crate::tree;

/// The commands of a command line, as far as they can be determined without running it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Understood {
    /// Exactly these commands, each as the words that the program gets.
    Commands(Vec<Vec<String>>),
    /// Something in it is known only at run time, or exceeds a limit.
    No(Reason),
}

/// Parses a command line: a shell's script as its commands, anything else as one command.
#[must_use]
pub fn understand(argv: &[String]) -> Understood {
    match commands(argv) {
        Ok(commands) => Understood::Commands(commands),
        Err(reason) => Understood::No(reason),
    }
}

fn commands(argv: &[String]) -> Result<Vec<Vec<String>>, Reason> {
    let program = argv.first().ok_or(Reason::new(ReasonKind::Nothing))?;
    if let Some(script) = script(argv) {
        let commands = tree::plain_commands(script)?;
        let texts = commands.into_iter().map(|command| command.words.into_iter().map(|word| word.text).collect());
        return Ok(texts.collect());
    }
    if is_shell(base_name(program)) && argv.iter().skip(1).any(|word| word.starts_with(['-', '+'])) {
        return Err(Reason::new(ReasonKind::ShellOptions));
    }
    let bytes: usize = argv.iter().map(String::len).sum();
    if bytes > limits::SCRIPT_BYTES || argv.len() > limits::WORDS {
        return Err(Reason::new(ReasonKind::TooLong));
    }
    Ok(vec![argv.to_vec()])
}

/// The script of a command line like `bash -lc SCRIPT`, if the shell has a trusted name.
pub(crate) fn script(argv: &[String]) -> Option<&str> {
    let [shell, option, script] = argv else { return None };
    let folder = shell.strip_suffix(base_name(shell)).unwrap_or_default();
    let known =
        matches!(base_name(shell), "bash" | "sh" | "zsh" | "dash") && matches!(folder, "" | "/bin/" | "/usr/bin/");
    (known && matches!(option.as_str(), "-c" | "-lc")).then_some(script)
}

/// Whether a program is a shell that takes `-c`.
pub(crate) fn is_shell(name: &str) -> bool {
    matches!(name, "bash" | "sh" | "zsh" | "dash" | "ksh" | "ash" | "rbash" | "mksh" | "fish")
}

/// The last part of a path.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a word is in a list of words separated by blanks.
pub(crate) fn is_among(list: &str, word: &str) -> bool {
    !word.is_empty() && list.split(' ').any(|listed| listed == word)
}
