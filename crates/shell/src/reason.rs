//! Reasons why a command line was not understood.

use std::fmt;

/// The part of a command line that was not understood, and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    what: What,
    place: Option<(usize, usize)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
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
    pub(crate) const fn new(what: What) -> Self {
        Self { what, place: None }
    }

    /// A reason at a byte offset of a script.
    pub(crate) fn at(what: What, script: &str, byte: usize) -> Self {
        let before = script.get(..byte).unwrap_or(script);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        Self { what, place: Some((line, column)) }
    }

    /// Whether a limit was exceeded, so that nothing is known about what it runs.
    pub(crate) const fn is_limit(&self) -> bool {
        matches!(self.what, What::TooLong | What::TooMany | What::TooDeep)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.what {
            What::Nothing => "there is no command",
            What::ShellOptions => "a shell with options other than `-c` or `-lc` and one script",
            What::TooLong => "the script is too long to check",
            What::TooMany => "there are too many commands or words to check",
            What::TooDeep => "the script is nested too deeply to check",
            What::Control => "a control character",
            What::NonAscii => "a character outside ASCII without quotes",
            What::Open => "a quote that is not closed",
            What::Expansion => "an expansion or substitution",
            What::Escape => "a backslash that is not before punctuation",
            What::Pattern => "a pattern, brace or tilde that the shell expands",
            What::Redirection => "a redirection",
            What::Group => "a subshell, group or function",
            What::Background => "a command in the background",
            What::Comment => "a comment",
            What::Assignment => "an assignment",
            What::Keyword => "a keyword of the shell",
            What::Operator => "an operator without a command",
            What::Disagreement => "syntax that two readers take differently",
        })?;
        match self.place {
            Some((line, column)) => write!(f, " at line {line}, column {column}"),
            None => Ok(()),
        }
    }
}
