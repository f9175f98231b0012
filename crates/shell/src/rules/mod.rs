//! What the user has decided about commands, kept in files of `prefix_rule(…)` calls.
//!
//! Invariants: forbidden beats prompt beats allow, whatever the order. A rule that forbids or asks is looked for in
//! everything a command line may come to run; a rule that allows counts only for commands that are fully understood.

mod append;
mod check;
mod rule;
mod syntax;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

pub use append::append_allow;
pub(crate) use append::too_broad;
pub use check::{Match, Verdict};

use codex_files::FileError;
use rule::Rule;
use syntax::{Call, SyntaxError};

/// The largest rules file, in bytes.
const FILE_BYTES: u64 = 1024 * 1024;

/// How many rules files a folder may have.
const MOST_FILES: usize = 256;

/// What a rule says about the commands it matches, the strictest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// They run without asking.
    Allow,
    /// They are asked about.
    Prompt,
    /// They do not run.
    Forbidden,
}

impl Decision {
    /// The word for it in rules files.
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

/// Why rules could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// A file or folder could not be read.
    #[error("could not read {path}", path = .path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file is not what a rules file can be.
    #[error("{path}:{line}:{column}: {problem}", path = .path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        /// What is wrong there.
        problem: String,
    },
    /// A rule could not be added.
    #[error("could not add a rule to {path}", path = .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A rule would allow far more than one command.
    #[error("a rule for `{prefix}` would allow too much: {why}")]
    TooBroad {
        /// The words of the rule.
        prefix: String,
        /// What it would allow.
        why: &'static str,
    },
}

/// The rules of all files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    rules: Vec<Rule>,
}

impl Rules {
    /// No rules at all.
    #[must_use]
    pub const fn empty() -> Self {
        Self { rules: Vec::new() }
    }

    /// Reads all `*.rules` files of a folder in the order of their names; a folder that is not there has none.
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

    /// Reads rules from a text; `name` is what errors call it.
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

    /// Puts the rules of another set behind these.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.rules.extend(other.rules);
        self
    }

    /// Tells whether there are no rules.
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
            // Other programs that read the same files know these; they say nothing about commands.
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
