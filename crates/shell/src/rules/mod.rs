//! The user's decisions about commands, stored in files of `prefix_rule(…)` calls.
//!
//! Invariants: forbidden beats prompt beats allow, whatever the order. A rule that forbids or asks is checked against
//! everything that a command line may run; a rule that allows applies only to commands that are fully understood.

mod append;
mod check;
mod listing;
mod rule;
mod syntax;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

pub(crate) use append::too_broad;
pub use append::{append_allow, remove_rule};
pub(crate) use check::RunContext;
pub use check::{Match, Verdict};

use codex_files::FileError;
use rule::Rule;
use syntax::{Call, SyntaxError};

/// The maximum size of a rules file, in bytes.
const FILE_BYTES: u64 = 1024 * 1024;

/// The maximum number of rules files in a folder.
const MOST_FILES: usize = 256;

/// The decision of a rule, the strictest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// The command runs without asking.
    Allow,
    /// A person is asked.
    Prompt,
    /// The command does not run.
    Forbidden,
}

impl Decision {
    /// Its name in rules files.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Prompt => "prompt",
            Self::Forbidden => "forbidden",
        }
    }
}

impl FromStr for Decision {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        [Self::Allow, Self::Prompt, Self::Forbidden].into_iter().find(|decision| decision.word() == word).ok_or(())
    }
}

/// The runs that a rule allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All runs: the meaning of a rule that the user has written.
    Anywhere,
    /// Sandboxed runs only, because the approval that created the rule was about one.
    Confined,
}

/// An error while reading or writing rules.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    #[error("could not read {path}", path = .path.display())]
    Read { path: PathBuf, source: io::Error },
    /// A rules file is malformed.
    #[error("{path}:{line}:{column}: {problem}", path = .path.display())]
    Syntax {
        path: PathBuf,
        /// The line number, starting at 1.
        line: usize,
        /// The column number, starting at 1.
        column: usize,
        problem: String,
    },
    #[error("could not write to {path}", path = .path.display())]
    Write { path: PathBuf, source: io::Error },
    /// A rule that is to be removed is not in its file, or no longer.
    #[error("{path}:{line}: there is no such rule; the file may have changed", path = .path.display())]
    Gone { path: PathBuf, line: u32 },
    /// A rule would allow far more than one command.
    #[error("a rule for `{prefix}` would allow too much: {why}")]
    TooBroad { prefix: String, why: &'static str },
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    rules: Vec<Rule>,
}

impl Rules {
    #[must_use]
    pub const fn empty() -> Self {
        Self { rules: Vec::new() }
    }

    /// Loads all `*.rules` files of a folder in the order of their names; a missing folder has none.
    pub fn load(folder: &Path) -> Result<Self, RulesError> {
        let failed = |source| RulesError::Read { path: folder.to_owned(), source };
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::empty()),
            Err(error) => return Err(failed(error)),
        };
        let mut paths = Vec::new();
        for entry in entries {
            if paths.len() == MOST_FILES {
                return Err(failed(io::Error::other(format!("there are more than {MOST_FILES} rules files"))));
            }
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == "rules") && !path.is_dir() {
                paths.push(path);
            }
        }
        paths.sort();
        let mut rules = Vec::new();
        for path in paths {
            let text = read(&path)?;
            rules.extend(Self::parse(path, &text)?.rules);
        }
        Ok(Self { rules })
    }

    /// Parses rules from a text; `name` appears in errors.
    pub fn parse(name: impl Into<PathBuf>, text: &str) -> Result<Self, RulesError> {
        let path = name.into();
        let rules = parse(&path, text);
        rules.map(|rules| Self { rules }).map_err(|SyntaxError { place, problem }| RulesError::Syntax {
            path,
            line: place.line,
            column: place.column,
            problem,
        })
    }

    /// Appends the rules of another set.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.rules.extend(other.rules);
        self
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

fn read(path: &Path) -> Result<String, RulesError> {
    let failed = |error: FileError| RulesError::Read { path: path.to_owned(), source: error.into() };
    codex_files::read_text(path, FILE_BYTES).map_err(failed)
}

fn parse(path: &Path, text: &str) -> Result<Vec<Rule>, SyntaxError> {
    let mut rules = Vec::new();
    for call in syntax::calls(text)? {
        match call.name.as_str() {
            "prefix_rule" => rules.push(Rule::from_call(call, path.to_owned())?),
            // Other programs that read the same files use these; they do not concern commands.
            "host_executable" | "network_rule" => {}
            _ => return Err(unknown(&call)),
        }
    }
    Ok(rules)
}

fn unknown(call: &Call) -> SyntaxError {
    let problem = format!("unknown call `{}`, expected `prefix_rule`, `host_executable` or `network_rule`", call.name);
    SyntaxError::new(call.place, problem)
}
