//! Access to standard output and standard error, for the whole program.
//!
//! Invariants: nothing else in the program opens these streams; a tidy test checks this. Text for people goes through
//! [`Clean`], so no control sequence from a model, a file, an argument or a server reaches a terminal. Output for
//! programs is written unchanged: JSON and protocols always, documents unless they go to a terminal.

pub mod config_warnings;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, IsTerminal, Stderr, Stdout, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::PanicHookInfo;

use codex_config::Env;

use codex_terminal::transcript::printable;
use codex_wire::command_line::is_deceptive;

/// Standard output, for human-readable text.
#[must_use]
pub fn out() -> Clean<Stdout> {
    Clean::new(io::stdout())
}

/// Standard output, for a document that a program may want byte for byte. A terminal gets it cleaned.
#[must_use]
pub fn document() -> Clean<Stdout> {
    Clean::unless_piped(io::stdout())
}

/// Standard output, for JSON only. On a terminal, characters that could hide text are escaped, as JSON allows.
#[must_use]
pub fn json() -> Clean<Stdout> {
    Clean::json(io::stdout())
}

/// Standard output, for code that cleans the text itself because it adds colours or moves the cursor.
#[must_use]
pub fn painted_out() -> Stdout {
    io::stdout()
}

/// Standard error, for code that cleans the text itself because it adds colours.
#[must_use]
pub fn painted_err() -> Stderr {
    io::stderr()
}

/// Prints a line to standard error. If that is closed, nobody is left to tell.
pub fn note(text: impl Display) {
    let _: io::Result<()> = Clean::new(io::stderr()).write_all(format!("{text}\n").as_bytes());
}

/// Standard error, for text that a program may compare byte for byte.
#[must_use]
pub fn document_err() -> Clean<Stderr> {
    Clean::unless_piped(io::stderr())
}

/// Prints a prompt to standard error without a line break.
pub fn ask(question: impl Display) -> io::Result<()> {
    Clean::new(io::stderr()).write_all(question.to_string().as_bytes())
}

#[must_use]
pub fn out_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// The width of the terminal at standard output.
#[must_use]
pub fn out_columns() -> Option<usize> {
    columns(io::stdout())
}

/// The width of the terminal at standard error.
#[must_use]
pub fn err_columns() -> Option<usize> {
    columns(io::stderr())
}

fn columns(output: impl std::os::fd::AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(output).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

#[must_use]
pub fn err_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Reserves standard output for a protocol: the returned file is the only access to it from here on, and anything else
/// that this process or its children print to descriptor 1 goes to standard error.
pub fn take() -> io::Result<File> {
    let stdout = rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3)?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok(File::from(stdout))
}

/// Cleans panic messages as well: they may quote text from anywhere.
pub fn tell_of_panics() {
    std::panic::set_hook(Box::new(|panic| note(description(panic))));
}

fn description(panic: &PanicHookInfo<'_>) -> String {
    let thread = std::thread::current();
    let text = format!("\nthread '{}' {panic}", thread.name().unwrap_or("<unnamed>"));
    let trace = Backtrace::capture();
    match trace.status() {
        BacktraceStatus::Captured => format!("{text}\nstack backtrace:\n{trace}"),
        _ => format!("{text}\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace"),
    }
}

/// An output without control sequences. Invalid UTF-8 is replaced.
#[derive(Debug)]
pub struct Clean<W> {
    output: W,
    cleaning: Cleaning,
    begun: Vec<u8>,
}

/// The change to a text that goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cleaning {
    /// None.
    Nothing,
    /// Control sequences are replaced.
    Replaced,
    /// Within JSON, they are escaped.
    Escaped,
}

impl<W: Write> Clean<W> {
    /// Cleans everything.
    #[must_use]
    pub fn new(output: W) -> Self {
        Self { output, cleaning: Cleaning::Replaced, begun: Vec::new() }
    }

    /// Cleans only what goes to a terminal.
    #[must_use]
    pub fn unless_piped(output: W) -> Self
    where
        W: IsTerminal,
    {
        Self::on_terminal(output, Cleaning::Replaced)
    }

    /// For JSON: a terminal gets it with escapes that mean the same.
    #[must_use]
    pub fn json(output: W) -> Self
    where
        W: IsTerminal,
    {
        Self::on_terminal(output, Cleaning::Escaped)
    }

    fn on_terminal(output: W, cleaning: Cleaning) -> Self
    where
        W: IsTerminal,
    {
        let cleaning = if output.is_terminal() { cleaning } else { Cleaning::Nothing };
        Self { cleaning, ..Self::new(output) }
    }

    /// Decodes and cleans the text so far.
    fn text(&mut self, piece: &[u8]) -> String {
        let mut bytes = std::mem::take(&mut self.begun);
        bytes.extend_from_slice(piece);
        let mut text = String::with_capacity(bytes.len());
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            match std::str::from_utf8(chunk.invalid()) {
                Ok(_) => {}
                Err(error) if error.error_len().is_none() && chunks.peek().is_none() => {
                    self.begun = chunk.invalid().to_vec();
                }
                Err(_) => text.push(char::REPLACEMENT_CHARACTER),
            }
        }
        text
    }
}

impl<W: AsFd> AsFd for Clean<W> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.output.as_fd()
    }
}

impl<W: Write> Write for Clean<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.cleaning == Cleaning::Nothing {
            return self.output.write(bytes);
        }
        let text = self.text(bytes);
        if self.cleaning == Cleaning::Escaped {
            self.output.write_all(escaped(&text).as_bytes())?;
        } else {
            self.output.write_all(printable(&text).as_bytes())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

/// JSON without characters that could hide text. Outside of its strings it has none.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_ascii() || !is_deceptive(c) {
            text.push(c);
        } else {
            text.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    text
}

/// Whether to colour standard output.
#[must_use]
pub fn wants_colour(env: &Env) -> bool {
    colours(out_is_terminal(), env)
}

/// Whether to colour an output that may be a terminal.
#[must_use]
pub fn colours(is_terminal: bool, env: &Env) -> bool {
    is_terminal && env.get("NO_COLOR").is_none() && env.text("TERM").is_none_or(|term| term != "dumb")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// The cleaned result of consecutive writes.
    fn cleaned(pieces: &[&[u8]]) -> String {
        let mut clean = Clean::new(Vec::new());
        for piece in pieces {
            clean.write_all(piece).unwrap();
        }
        String::from_utf8(clean.output).unwrap()
    }

    #[test]
    fn nothing_is_left_that_a_terminal_would_obey() {
        assert_eq!(cleaned(&[b"plain\ttext\n", "größe 🦀".as_bytes()]), "plain\ttext\ngröße 🦀");
        assert_eq!(cleaned(&[b"\x1b]0;t\x07\r\x7f\x08"]), "\u{fffd}]0;t\u{fffd}\u{fffd}\u{fffd}\u{fffd}");
        // C1 controls, as text and as a byte.
        assert_eq!(cleaned(&["\u{9b}31m".as_bytes(), b"\x9b31m"]), "\u{fffd}31m\u{fffd}31m");
        assert_eq!(cleaned(&["a\u{202e}b\u{2066}".as_bytes()]), "a\u{fffd}b\u{fffd}");
    }

    #[test]
    fn json_on_a_terminal_escapes_what_could_hide_text() {
        let text = "{\"a\":\"\u{9b}31m\u{202e}b\u{e0041} größe 🦀\"}\n";
        let shown = escaped(text);
        assert_eq!(shown, "{\"a\":\"\\u009b31m\\u202eb\\udb40\\udc41 größe 🦀\"}\n");
        let value = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap();
        assert_eq!(value(&shown), value(text));
    }

    #[test]
    fn a_character_may_come_in_pieces() {
        assert_eq!(cleaned(&[b"\xf0\x9f", b"\xa6", b"\x80!"]), "🦀!");
        // A control sequence in several chunks is still one, and an incomplete character is none.
        assert_eq!(cleaned(&[b"\xc2", b"\x9b31m"]), "\u{fffd}31m");
        assert_eq!(cleaned(&[b"\xc2", b"x", b"\x9b"]), "\u{fffd}x\u{fffd}");
    }

    #[test]
    fn a_program_gets_a_document_as_it_is() {
        let file = tempfile::NamedTempFile::new().unwrap();
        Clean::unless_piped(file.reopen().unwrap()).write_all(b"\x1b[1m\x9b").unwrap();
        assert_eq!(std::fs::read(file.path()).unwrap(), b"\x1b[1m\x9b");
    }

    #[test]
    fn a_panic_is_described_with_what_it_quotes() {
        let (sender, described) = channel();
        let before = std::panic::take_hook();
        let here = std::thread::current().id();
        std::panic::set_hook(Box::new(move |panic| {
            if std::thread::current().id() == here {
                sender.send(cleaned(&[description(panic).as_bytes()])).unwrap();
            } else {
                before(panic);
            }
        }));
        std::panic::catch_unwind(|| panic!("no \x1b]0;title\x07")).unwrap_err();
        let text = described.recv().unwrap();
        assert!(text.contains("panicked at ") && text.contains("no \u{fffd}]0;title\u{fffd}"), "{text}");
    }
}
