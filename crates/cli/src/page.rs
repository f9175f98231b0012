//! How a thread looks to a person: one place for `exec`, `demo` and the chat, whatever they read it from.
//!
//! Invariant: text of a model or a repository reaches the ink only through [`printable`].

use std::borrow::Cow;
use std::io::{self, Write};

use codex_wire::plan::StepStatus;

/// How text is set apart. Everything reads well without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Dim,
    Bold,
    Green,
    Yellow,
    Red,
    /// What stands before a line, and before each row of it if it has to be broken.
    Gutter,
}

impl Style {
    /// The number that switches it on.
    pub(crate) fn code(self) -> Option<u8> {
        match self {
            Self::Plain => None,
            Self::Bold => Some(1),
            Self::Dim | Self::Gutter => Some(2),
            Self::Red => Some(31),
            Self::Green => Some(32),
            Self::Yellow => Some(33),
        }
    }
}

/// What a page is written with.
pub(crate) trait Ink {
    /// Writes text that holds nothing a terminal would obey but the ends of lines.
    fn write(&mut self, style: Style, text: &str) -> io::Result<()>;
}

/// Ink that goes straight to an output.
#[derive(Debug)]
pub(crate) struct Direct<W> {
    pub(crate) output: W,
    pub(crate) colour: bool,
}

impl<W: Write> Ink for Direct<W> {
    fn write(&mut self, style: Style, text: &str) -> io::Result<()> {
        match style.code().filter(|_| self.colour && !text.is_empty()) {
            Some(code) => write!(self.output, "\x1b[{code}m{text}\x1b[0m"),
            None => write!(self.output, "{text}"),
        }
    }
}

/// The kind of text the cursor stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Within {
    Nothing,
    Message,
    Reasoning,
    Output,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended<'a> {
    /// With an exit status.
    Exit(i32),
    /// It was not allowed to run.
    Declined(&'a str),
}

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Add,
    Delete,
    Update,
}

/// A thread as text that grows.
#[derive(Debug)]
pub(crate) struct Page<I> {
    pub(crate) ink: I,
    within: Within,
    /// The command that began last. The end of any other names it, because several may run side by side.
    newest: Option<String>,
}

impl<I: Ink> Page<I> {
    pub(crate) fn new(ink: I) -> Self {
        Self { ink, within: Within::Nothing, newest: None }
    }

    /// More of a message, of thoughts or of what a command prints.
    pub(crate) fn more(&mut self, within: Within, text: &str) -> io::Result<()> {
        self.enter(within)?;
        self.write(if within == Within::Message { Style::Plain } else { Style::Dim }, text)
    }

    /// Ends the text the cursor stands in, unless the next piece belongs to it.
    pub(crate) fn enter(&mut self, within: Within) -> io::Result<()> {
        if self.within != within && self.within != Within::Nothing {
            self.ink.write(Style::Plain, "\n\n")?;
        }
        self.within = within;
        Ok(())
    }

    /// What the user said, in pieces.
    pub(crate) fn user<'a>(&mut self, pieces: impl Iterator<Item = (Style, Cow<'a, str>)>) -> io::Result<()> {
        self.enter(Within::Nothing)?;
        self.write(Style::Bold, "> ")?;
        for (style, text) in pieces {
            self.write(style, &text)?;
        }
        self.ink.write(Style::Plain, "\n\n")
    }

    /// A command begins.
    pub(crate) fn command(&mut self, id: &str, line: &str) -> io::Result<()> {
        self.enter(Within::Nothing)?;
        self.newest = Some(id.to_owned());
        self.write(Style::Green, "$ ")?;
        self.write(Style::Bold, line)?;
        self.end_line()
    }

    /// A command has ended. `is_open` tells whether the last line that it printed has no end.
    pub(crate) fn command_end(
        &mut self,
        (id, line): (&str, &str),
        ended: Ended<'_>,
        seconds: f64,
        is_open: bool,
    ) -> io::Result<()> {
        if self.within == Within::Output && is_open {
            self.end_line()?;
        }
        self.within = Within::Nothing;
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

    /// What is done to a file: the new text, the old text, or the difference, by kind.
    pub(crate) fn change(&mut self, change: Change, path: &str, text: &str) -> io::Result<()> {
        self.enter(Within::Nothing)?;
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

    /// What came of a patch.
    pub(crate) fn changed(&mut self, failure: Option<&str>) -> io::Result<()> {
        let (style, text) = failure.map_or((Style::Dim, "applied"), |failure| (Style::Red, failure));
        self.write(style, &format!("  {text}"))?;
        self.ink.write(Style::Plain, "\n\n")
    }

    /// The plan.
    pub(crate) fn plan<'a>(
        &mut self,
        why: Option<&str>,
        steps: impl Iterator<Item = (&'a str, StepStatus)>,
    ) -> io::Result<()> {
        self.enter(Within::Nothing)?;
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

    /// A line of our own.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        self.enter(Within::Nothing)?;
        self.write(Style::Dim, text)?;
        self.end_line()
    }

    /// Something the person should know.
    pub(crate) fn note(&mut self, style: Style, what: &str, message: &str) -> io::Result<()> {
        self.enter(Within::Nothing)?;
        self.write(style, &format!("{what}: "))?;
        self.write(Style::Plain, message)?;
        self.end_line()
    }

    /// Text as it is, but for what a terminal would obey.
    pub(crate) fn write(&mut self, style: Style, text: &str) -> io::Result<()> {
        self.ink.write(style, &printable(text))
    }

    /// The end of a line.
    pub(crate) fn end_line(&mut self) -> io::Result<()> {
        self.ink.write(Style::Plain, "\n")
    }
}

/// Text without what a terminal would obey: a model or a repository must not move the cursor, hide text or reorder it.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    let is_shown = |c: char| is_harmless(c) || matches!(c, '\n' | '\t');
    if text.chars().all(is_shown) {
        return Cow::Borrowed(text);
    }
    text.chars().map(|c| if is_shown(c) { c } else { '\u{fffd}' }).collect::<String>().into()
}

/// Text in which everything that cannot be seen is written out, because somebody decides by what they see. Only the
/// ends of lines stay.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '\n' && codex_wire::command_line::is_deceptive(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

fn is_harmless(c: char) -> bool {
    let reorders = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}');
    !c.is_control() && !reorders
}

/// What a person wants to know before anything happens, in rows of what and which.
pub(crate) fn heading(rows: &[(&str, String)]) -> String {
    let mut heading = format!("codex {}\n", env!("CARGO_PKG_VERSION"));
    for (what, value) in rows {
        heading.extend([&format!("{what:>8}  "), value.as_str(), "\n"]);
    }
    heading
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown_as_a_mark() {
        assert_eq!(printable("plain\ttext\n"), "plain\ttext\n");
        assert_eq!(printable("\x1b]0;title\x07 a\rb \u{202e}evil"), "\u{fffd}]0;title\u{fffd} a\u{fffd}b \u{fffd}evil");
    }

    #[test]
    fn what_is_decided_about_hides_nothing() {
        assert_eq!(visible("ls -la\nrm x"), "ls -la\nrm x");
        assert_eq!(visible("ls\r\x1b[2Krm"), r"ls\r\u{1b}[2Krm");
        assert_eq!(visible("a\u{202e}b\u{200b}c\td\u{a0}e\u{2800}"), r"a\u{202e}b\u{200b}c\td\u{a0}e\u{2800}");
        assert_eq!(visible("größe 日本 🦀"), "größe 日本 🦀");
    }
}
