//! Adds rules that the user has approved.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use codex_files::Links;
use codex_wire::command_line::display;

use super::rule::CONFINED;
use super::{FILE_BYTES, Rules, RulesError, Scope};
use crate::danger::danger;
use crate::reach::is_wrapper;
use crate::script::Word;
use crate::understand::{base_name, is_shell, script};

/// The maximum wait for another process's lock, and the polling interval.
const LOCK_WAIT: Duration = Duration::from_secs(2);
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Adds a rule to `default.rules` in a folder that allows commands with a given prefix.
///
/// A rule for the sandbox only is marked with a trailing comment. An existing rule is not added again. Prefixes that
/// would allow nearly anything, such as `bash -c`, `env` or `rm -rf`, are refused.
pub fn append_allow(folder: &Path, prefix: &[String], scope: Scope) -> Result<(), RulesError> {
    if let Some(why) = too_broad(prefix) {
        return Err(RulesError::TooBroad { prefix: display(prefix), why });
    }
    let path = folder.join("default.rules");
    let line = rule_line(prefix, scope);
    let known = append(folder, &path, &line).map_err(|source| RulesError::Write { path: path.clone(), source })?;
    // The existing content may be broken; then the new rule has no effect, and the user should know.
    Rules::parse(path, &known).map(drop)
}

/// The reason why a rule with this prefix would allow too much.
pub(crate) fn too_broad(prefix: &[String]) -> Option<&'static str> {
    let Some(program) = prefix.first() else { return Some("it matches every command") };
    if prefix.iter().any(|word| word.contains('\0')) {
        return Some("no command has such a word");
    }
    if danger(prefix).is_some() {
        return Some("it matches a dangerous command");
    }
    // A whole script is one command.
    if script(prefix).is_some() {
        return None;
    }
    let name = base_name(program);
    let options_only = prefix.iter().skip(1).all(|word| word.starts_with('-') || word.contains('='));
    if is_shell(name) && prefix.iter().skip(1).any(|word| word.starts_with('-')) || is_shell(name) && options_only {
        return Some("a shell runs anything");
    }
    if is_wrapper(&Word::Literal(name.to_owned())) && !is_shell(name) {
        return wrapper_too_broad(name, prefix);
    }
    (options_only && runs_anything(name)).then_some("it runs anything")
}

fn wrapper_too_broad(name: &str, prefix: &[String]) -> Option<&'static str> {
    if matches!(name, "xargs" | "parallel" | "eval" | "trap" | "ssh" | "busybox" | "toybox" | "watch") {
        return Some("it runs anything");
    }
    match crate::unwrap::unwrap(prefix) {
        Some(inner) => too_broad(&inner),
        None => Some("it runs anything"),
    }
}

/// Whether a program runs anything if no further words restrict it.
fn runs_anything(name: &str) -> bool {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    matches!(
        bare,
        "awk"
            | "bun"
            | "bunx"
            | "curl"
            | "deno"
            | "find"
            | "gawk"
            | "git"
            | "lua"
            | "mawk"
            | "node"
            | "npx"
            | "osascript"
            | "perl"
            | "php"
            | "pnpx"
            | "pwsh"
            | "python"
            | "rm"
            | "ruby"
            | "sed"
            | "tclsh"
            | "uvx"
            | "vim"
            | "wget"
            | "chmod"
            | "chown"
            | "dd"
            | "docker"
            | "kubectl"
            | "make"
            | "source"
            | "."
            | "mv"
            | "cp"
    )
}

/// Formats the rule as a line of a rules file.
fn rule_line(prefix: &[String], scope: Scope) -> String {
    // JSON strings mean the same in Starlark.
    let words: Vec<_> = prefix.iter().map(|word| serde_json::Value::from(word.as_str()).to_string()).collect();
    let comment = match scope {
        Scope::Anywhere => String::new(),
        Scope::Confined => format!("  # {CONFINED}"),
    };
    format!("prefix_rule(pattern=[{}], decision=\"allow\"){comment}\n", words.join(", "))
}

/// Adds a line, under a lock, unless it is there; returns the resulting content.
fn append(folder: &Path, path: &Path, line: &str) -> io::Result<String> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600);
    let mut file = codex_files::open_with(&mut options, Links::Followed, path)?;
    lock(&file)?;
    let unreadable = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let mut known = String::from_utf8(codex_files::read_open(&file, FILE_BYTES)?).map_err(unreadable)?;
    if known.lines().any(|known| known == line.trim_end()) {
        return Ok(known);
    }
    let separator = if known.is_empty() || known.ends_with('\n') { "" } else { "\n" };
    let addition = format!("{separator}{line}");
    // A single write, so that a reader sees the whole line or none of it.
    file.write_all(addition.as_bytes())?;
    file.sync_data()?;
    known.push_str(&addition);
    Ok(known)
}

/// Locks a file. Anyone who may read the file can hold the lock, so the wait is short.
fn lock(file: &File) -> io::Result<()> {
    let deadline = Instant::now() + LOCK_WAIT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => std::thread::park_timeout(LOCK_PAUSE),
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, "it is locked by another process"));
            }
        }
    }
}
