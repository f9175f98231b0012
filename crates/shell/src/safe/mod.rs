//! Commands that are harmless whatever the state of the machine, as program and arguments together.
//!
//! Invariant: every program has a list of what it may be given; what is not on it is not harmless. No program is
//! harmless by its name alone unless it can do nothing but print.

mod git;
mod options;
mod readers;
mod search;

use crate::understand::{Understood, understand};

/// Whose settings a program finds that looks for some around the folder it starts in, as `git` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checkout {
    /// Those of the checkout that the thread works in.
    Own,
    /// Those of another one, which may be there only to have a program run.
    Foreign,
}

impl Checkout {
    /// Where commands may be that change their folder on the way.
    pub(crate) fn after(self, commands: &[Vec<String>]) -> Self {
        let moves = commands.iter().any(|command| matches!(command.as_slice(), [cd, to] if cd == "cd" && to != "."));
        if moves { Self::Foreign } else { self }
    }
}

/// Tells whether every command of a command line is understood and proved harmless where it starts.
///
/// Programs count by their bare names only: `./ls` and `/tmp/ls` can be anything.
#[must_use]
pub fn is_known_safe(argv: &[String], checkout: Checkout) -> bool {
    match understand(argv) {
        Understood::Commands(commands) => are_safe(&commands, checkout),
        Understood::No(_) => false,
    }
}

/// Tells whether commands that run one after another, or side by side, are harmless.
pub(crate) fn are_safe(commands: &[Vec<String>], checkout: Checkout) -> bool {
    let checkout = checkout.after(commands);
    commands.iter().all(|command| command_is_safe(command) && !obeys(command, checkout))
}

/// Tells whether a command would obey the settings of another checkout, which can name programs to run.
pub(crate) fn obeys(command: &[String], checkout: Checkout) -> bool {
    checkout == Checkout::Foreign && command.first().is_some_and(|program| program == "git")
}

/// Tells whether one command is harmless.
pub(crate) fn command_is_safe(command: &[String]) -> bool {
    let Some((program, arguments)) = command.split_first() else { return false };
    if command.iter().any(|word| word.contains('\0')) {
        return false;
    }
    match program.as_str() {
        // These do nothing but print or set their exit code, whatever they are given.
        "true" | "false" | "echo" | "expr" => true,
        "cd" => matches!(arguments, [folder] if !folder.starts_with(['-', '+'])),
        "find" => search::find_is_safe(arguments),
        "rg" => search::RG.operands_of(arguments).is_some(),
        "git" => git::git_is_safe(arguments),
        "sed" => sed_is_safe(arguments),
        name => readers::options_of(name).is_some_and(|options| options.operands_of(arguments).is_some()),
    }
}

/// Lets `sed -n 5p`, `sed -n 1,5p FILE` and `sed -n '5,$p' FILE` pass and nothing else.
fn sed_is_safe(arguments: &[String]) -> bool {
    let (script, file) = match arguments {
        [quiet, script] if quiet == "-n" => (script, None),
        [quiet, script, file] if quiet == "-n" => (script, Some(file)),
        _ => return false,
    };
    is_line_range(script) && file.is_none_or(|file| !file.starts_with('-'))
}

/// Tells whether a script of `sed` prints one line or a range of lines.
pub(crate) fn is_line_range(script: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.len() < 10 && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some(range) = script.strip_suffix('p') else { return false };
    match range.split_once(',') {
        Some((from, to)) => number(from) && (number(to) || to == "$"),
        None => number(range),
    }
}
