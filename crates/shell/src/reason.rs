//! Reasons why a command line was not understood.

use std::fmt;

/// The part of a command line that was not understood, and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    what: ReasonKind,
    place: Option<(usize, usize)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReasonKind {
    Nothing,
    ShellOptions,
    TooLong,
    TooMany,
    TooDeep,
    Control,
    NonAscii,
    Open,
    Expansion,
    Escape,
    Pattern,
    Redirection,
    Group,
    Background,
    Comment,
    Assignment,
    Keyword,
    Operator,
    Disagreement,
}

impl Reason {
    pub(crate) const fn new(what: ReasonKind) -> Self {
        Self { what, place: None }
    }

    /// A reason at a byte offset of a script.
    pub(crate) fn at(what: ReasonKind, script: &str, byte: usize) -> Self {
        let before = script.get(..byte).unwrap_or(script);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        Self { what, place: Some((line, column)) }
    }

    /// Whether a limit was exceeded, so that nothing is known about what it runs.
    pub(crate) const fn is_limit(&self) -> bool {
        matches!(self.what, ReasonKind::TooLong | ReasonKind::TooMany | ReasonKind::TooDeep)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.what {
            ReasonKind::Nothing => "there is no command",
            ReasonKind::ShellOptions => "a shell with options other than `-c` or `-lc` and one script",
            ReasonKind::TooLong => "the script is too long to check",
            ReasonKind::TooMany => "there are too many commands or words to check",
            ReasonKind::TooDeep => "the script is nested too deeply to check",
            ReasonKind::Control => "a control character",
            ReasonKind::NonAscii => "a character outside ASCII without quotes",
            ReasonKind::Open => "a quote that is not closed",
            ReasonKind::Expansion => "an expansion or substitution",
            ReasonKind::Escape => "a backslash that is not before punctuation",
            ReasonKind::Pattern => "a pattern, brace or tilde that the shell expands",
            ReasonKind::Redirection => "a redirection",
            ReasonKind::Group => "a subshell, group or function",
            ReasonKind::Background => "a command in the background",
            ReasonKind::Comment => "a comment",
            ReasonKind::Assignment => "an assignment",
            ReasonKind::Keyword => "a keyword of the shell",
            ReasonKind::Operator => "an operator without a command",
            ReasonKind::Disagreement => "syntax that two readers take differently",
        })?;
        match self.place {
            Some((line, column)) => write!(f, " at line {line}, column {column}"),
            None => Ok(()),
        }
    }
}
