//! Renders a thread for people: shared by `exec`, `demo` and the chat, whatever their source.
//!
//! Invariant: text from a model or a repository is written only through [`printable`].

use std::borrow::Cow;
use std::io::{self, Write};

use codex_wire::plan::StepStatus;

pub use crate::{Ink, Style, printable, visible};

/// Writes directly to an output.
#[derive(Debug)]
pub struct Direct<W> {
    pub output: W,
    pub colour: bool,
}

impl<W: Write> Ink for Direct<W> {
    fn write(&mut self, style: Style, text: &str) -> io::Result<()> {
        match style.code().filter(|_| self.colour && !text.is_empty()) {
            Some(code) => write!(self.output, "\x1b[{code}m{text}\x1b[0m"),
            None => write!(self.output, "{text}"),
        }
    }
}

/// The kind of text at the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    Nothing,
    Message,
    Reasoning,
    Output,
}

/// The outcome of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended<'a> {
    /// With an exit status.
    Exit(i32),
    /// It was not allowed to run.
    Declined(&'a str),
}

/// The operation on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Add,
    Delete,
    Update,
}

/// A rendered thread that grows.
#[derive(Debug)]
pub struct Transcript<I> {
    pub ink: I,
    within: TextKind,
    /// The latest command. The end of any other names it, because several may run concurrently.
    newest: Option<String>,
}

impl<I: Ink> Transcript<I> {
    #[must_use]
    pub fn new(ink: I) -> Self {
        Self { ink, within: TextKind::Nothing, newest: None }
    }

    /// Adds to a message, reasoning or command output.
    pub fn more(&mut self, within: TextKind, text: &str) -> io::Result<()> {
        self.enter(within)?;
        self.write(if within == TextKind::Message { Style::Plain } else { Style::Dim }, text)
    }

    /// The kind of text at the cursor.
    #[must_use]
    pub fn within(&self) -> TextKind {
        self.within
    }

    /// Ends the text at the cursor, unless the next piece belongs to it.
    pub fn enter(&mut self, within: TextKind) -> io::Result<()> {
        if self.within != within && self.within != TextKind::Nothing {
            self.ink.write(Style::Plain, "\n\n")?;
        }
        self.within = within;
        Ok(())
    }

    /// Renders user input, in pieces.
    pub fn user<'a>(&mut self, pieces: impl Iterator<Item = (Style, Cow<'a, str>)>) -> io::Result<()> {
        self.enter(TextKind::Nothing)?;
        self.write(Style::Bold, "> ")?;
        for (style, text) in pieces {
            self.hanging(style, &text)?;
        }
        self.ink.write(Style::Plain, "\n\n")
    }

    /// Renders the start of a command.
    pub fn command(&mut self, id: &str, line: &str) -> io::Result<()> {
        self.enter(TextKind::Nothing)?;
        self.newest = Some(id.to_owned());
        self.write(Style::Green, "$ ")?;
        self.hanging(Style::Bold, line)?;
        self.end_line()
    }

    /// Renders the end of a command. `is_open` tells whether the last line of its output is incomplete.
    pub fn command_end(
        &mut self,
        (id, line): (&str, &str),
        ended: Ended<'_>,
        seconds: f64,
        is_open: bool,
    ) -> io::Result<()> {
        if self.within == TextKind::Output && is_open {
            self.end_line()?;
        }
        self.within = TextKind::Nothing;
        let (style, what) = match ended {
            Ended::Exit(0) => (Style::Dim, "exit 0".to_owned()),
            Ended::Exit(code) => (Style::Red, format!("exit {code}")),
            Ended::Declined(why) => (Style::Yellow, why.to_owned()),
        };
        let is_newest = self.newest.as_deref() == Some(id);
        let whose = if is_newest { String::new() } else { format!(": {line}") };
        self.write(style, &format!("  {what}, {seconds:.1} s{whose}"))?;
        self.ink.write(Style::Plain, "\n\n")
    }

    /// Renders the change of a file: the new text, the old text, or the diff, by kind.
    pub fn change(&mut self, change: Change, path: &str, text: &str) -> io::Result<()> {
        self.enter(TextKind::Nothing)?;
        let what = match change {
            Change::Add => "add",
            Change::Delete => "delete",
            Change::Update => "change",
        };
        self.write(Style::Bold, &format!("{what} {path}"))?;
        self.end_line()?;
        text.lines().try_for_each(|line| {
            let style = match (change, line.chars().next()) {
                (Change::Add, _) | (Change::Update, Some('+')) => Style::Green,
                (Change::Delete, _) | (Change::Update, Some('-')) => Style::Red,
                (Change::Update, _) => Style::Dim,
            };
            self.ink.write(Style::Gutter, "  ")?;
            self.write(style, line)?;
            self.end_line()
        })
    }

    /// Renders the outcome of a patch.
    pub fn changed(&mut self, failure: Option<&str>) -> io::Result<()> {
        let (style, text) = failure.map_or((Style::Dim, "applied"), |failure| (Style::Red, failure));
        self.write(style, &format!("  {text}"))?;
        self.ink.write(Style::Plain, "\n\n")
    }

    /// Renders the plan.
    pub fn plan<'a>(
        &mut self,
        why: Option<&str>,
        steps: impl Iterator<Item = (&'a str, StepStatus)>,
    ) -> io::Result<()> {
        self.enter(TextKind::Nothing)?;
        self.write(Style::Bold, "Plan")?;
        if let Some(why) = why {
            self.write(Style::Dim, &format!(" ({why})"))?;
        }
        self.end_line()?;
        for (step, status) in steps {
            let (mark, style) = match status {
                StepStatus::Completed => ("[x] ", Style::Green),
                StepStatus::InProgress => ("[>] ", Style::Bold),
                StepStatus::Pending => ("[ ] ", Style::Plain),
            };
            self.write(style, &format!("  {mark}{step}"))?;
            self.end_line()?;
        }
        self.end_line()
    }

    /// Writes a line of this program.
    pub fn line(&mut self, text: &str) -> io::Result<()> {
        self.enter(TextKind::Nothing)?;
        self.write(Style::Dim, text)?;
        self.end_line()
    }

    /// Writes a notice.
    pub fn note(&mut self, style: Style, what: &str, message: &str) -> io::Result<()> {
        self.enter(TextKind::Nothing)?;
        self.write(style, &format!("{what}: "))?;
        self.write(Style::Plain, message)?;
        self.end_line()
    }

    /// Writes text with further lines indented, so that none of them looks like something else.
    fn hanging(&mut self, style: Style, text: &str) -> io::Result<()> {
        for (at, line) in text.split('\n').enumerate() {
            if at > 0 {
                self.end_line()?;
                self.ink.write(Style::Gutter, "  ")?;
            }
            self.write(style, line)?;
        }
        Ok(())
    }

    /// Writes text without control sequences.
    pub fn write(&mut self, style: Style, text: &str) -> io::Result<()> {
        self.ink.write(style, &printable(text))
    }

    /// Ends a line.
    pub fn end_line(&mut self) -> io::Result<()> {
        self.ink.write(Style::Plain, "\n")
    }
}

/// The header before a thread, as rows of labels and values.
#[must_use]
pub fn heading(rows: &[(&str, String)]) -> String {
    let mut heading = format!("codex {}\n", env!("CARGO_PKG_VERSION"));
    for (what, value) in rows {
        heading.extend([&format!("{what:>8}  "), value.as_str(), "\n"]);
    }
    heading
}
