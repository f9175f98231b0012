//! Commands that are harmless in any state of the machine, judged by program and arguments together.
//!
//! Invariant: every program has an allowlist of arguments; anything else is not harmless. No program is harmless by its
//! name alone unless it can only print.

mod git;
mod options;
mod readers;
mod search;

use crate::understand::{Understood, understand};

/// The owner of the settings that a program such as `git` finds around its working directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checkout {
    /// The checkout that the thread works in.
    Own,
    /// The same, but its own settings may name programs, and the policy does not confine them.
    Armed {
        /// Whether a sandbox could.
        is_confinable: bool,
    },
    /// Another checkout, which may exist only to make a program run.
    Foreign,
}

impl Checkout {
    /// The checkout for commands that change their folder on the way.
    pub(crate) fn after(self, commands: &[Vec<String>]) -> Self {
        let moves = commands.iter().any(|command| matches!(command.as_slice(), [cd, to] if cd == "cd" && to != "."));
        if moves { Self::Foreign } else { self }
    }
}

/// Whether every command of a command line is understood and known to be harmless in its working directory.
///
/// Only bare program names count: `./ls` and `/tmp/ls` can be anything.
#[must_use]
pub fn is_known_safe(argv: &[String], checkout: Checkout) -> bool {
    match understand(argv) {
        Understood::Commands(commands) => are_safe(&commands, checkout),
        Understood::No(_) => false,
    }
}

/// Whether a sequence or pipeline of commands is harmless.
pub(crate) fn are_safe(commands: &[Vec<String>], checkout: Checkout) -> bool {
    let checkout = checkout.after(commands);
    commands.iter().all(|command| command_is_safe(command) && !obeys(command, checkout))
}

/// Whether a command would use the settings of another checkout, which can name programs to run.
pub(crate) fn obeys(command: &[String], checkout: Checkout) -> bool {
    checkout != Checkout::Own && command.first().is_some_and(|program| program == "git")
}

/// Whether one command is harmless.
pub(crate) fn command_is_safe(command: &[String]) -> bool {
    let Some((program, arguments)) = command.split_first() else { return false };
    if command.iter().any(|word| word.contains('\0')) {
        return false;
    }
    match program.as_str() {
        // These only print or set their exit code, whatever their arguments.
        "true" | "false" | "echo" | "expr" => true,
        "cd" => matches!(arguments, [folder] if !folder.starts_with(['-', '+'])),
        "find" => search::find_is_safe(arguments),
        "rg" => search::RG.operands_of(arguments).is_some(),
        "git" => git::git_is_safe(arguments),
        "sed" => sed_is_safe(arguments),
        name => readers::options_of(name).is_some_and(|options| options.operands_of(arguments).is_some()),
    }
}

/// Accepts `sed -n 5p`, `sed -n 1,5p FILE` and `sed -n '5,$p' FILE` and nothing else.
fn sed_is_safe(arguments: &[String]) -> bool {
    let (script, file) = match arguments {
        [quiet, script] if quiet == "-n" => (script, None),
        [quiet, script, file] if quiet == "-n" => (script, Some(file)),
        _ => return false,
    };
    is_line_range(script) && file.is_none_or(|file| !file.starts_with('-'))
}

/// Whether a `sed` script prints one line or a range of lines.
pub(crate) fn is_line_range(script: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.len() < 10 && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some(range) = script.strip_suffix('p') else { return false };
    match range.split_once(',') {
        Some((from, to)) => number(from) && (number(to) || to == "$"),
        None => number(range),
    }
}
