//! Adds rules that the user has approved, and removes rules.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use codex_files::Links;
use codex_wire::command_line::display;
use codex_wire::permissions::CommandRule;

use super::rule::CONFINED;
use super::{FILE_BYTES, Rules, RulesError, Scope};
use crate::danger::danger;
use crate::reach::is_wrapper;
use crate::script::Word;
use crate::understand::{base_name, is_shell, script};

/// The maximum wait for another process's lock, and the polling interval.
const LOCK_WAIT: Duration = Duration::from_secs(2);
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// The number of times that a file is opened again because it was replaced.
const MOST_TRIES: usize = 16;

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
    let (mut file, mut known) = locked(&mut options, path)?;
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

/// Removes a rule from its file, by the line and the text that it had when it was listed.
///
/// # Errors
/// If it is no longer there, the file is not one of this folder, or the file cannot be written.
pub fn remove_rule(folder: &Path, rule: &CommandRule) -> Result<(), RulesError> {
    let path = &rule.file;
    let gone = || RulesError::Gone { path: path.clone(), line: rule.line };
    if path.parent() != Some(folder) || path.extension().is_none_or(|extension| extension != "rules") {
        return Err(gone());
    }
    let failed = |source| RulesError::Write { path: path.clone(), source };
    let (file, known) = locked(OpenOptions::new().read(true).write(true), path).map_err(failed)?;
    let rest = without(&known, rule).ok_or_else(gone)?;
    // The new file replaces the old one while that is locked, so a rule that is added meanwhile is not lost.
    let copy = path.with_extension("rules.new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut write = || {
        let mut new = codex_files::open_with(&mut options, Links::Refused, &copy)?;
        new.set_permissions(file.metadata()?.permissions())?;
        new.write_all(rest.as_bytes())?;
        new.sync_data()?;
        std::fs::rename(&copy, path.canonicalize()?)
    };
    write().map_err(failed)
}

/// A text of rules without one of them. A line with nothing else goes as a whole, and a comment behind the rule with it.
fn without(known: &str, rule: &CommandRule) -> Option<String> {
    let line = usize::try_from(rule.line).ok()?.checked_sub(1)?;
    let start: usize = known.split_inclusive('\n').take(line).map(str::len).sum();
    let rest = known.get(start..)?;
    let first = rest.find('\n').unwrap_or(rest.len());
    let at = rest.find(rule.text.as_str()).filter(|at| *at < first)?;
    let (before, after) = (&rest[..at], &rest[at + rule.text.len()..]);
    let tail = after.split('\n').next().unwrap_or_default();
    let is_last = tail.trim().is_empty() || tail.trim_start().starts_with('#');
    let (kept, from) = match (before.trim().is_empty(), is_last) {
        (true, true) => ("", (tail.len() + 1).min(after.len())),
        (false, true) => (before, tail.len()),
        (_, false) => (before, tail.find(';').map_or(0, |at| at + 1)),
    };
    Some(format!("{}{kept}{}", &known[..start], &after[from..]))
}

/// Opens and locks a file; returns its content too. A file that was replaced before it was locked is opened again.
fn locked(options: &mut OpenOptions, path: &Path) -> io::Result<(File, String)> {
    let unreadable = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    for _ in 0..MOST_TRIES {
        let file = codex_files::open_with(options, Links::Followed, path)?;
        lock(&file)?;
        let (mine, now) = (file.metadata()?, std::fs::metadata(path)?);
        if (mine.dev(), mine.ino()) == (now.dev(), now.ino()) {
            let known = String::from_utf8(codex_files::read_open(&file, FILE_BYTES)?).map_err(unreadable)?;
            return Ok((file, known));
        }
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "it is being replaced by other processes"))
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
