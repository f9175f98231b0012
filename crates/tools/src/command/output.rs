//! The outcome of a command, for clients and the model.

use std::time::Duration;

use codex_log::CommandEnd;
use serde_json::json;

use super::terminal::{PollOutput, TerminalPoll};

/// The exit status of a command that timed out, as in `timeout(1)`.
const TIMED_OUT: i32 = 124;

/// Messages that hint at a refused system call.
const DENIALS: &[&str] = &[
    "permission denied",
    "operation not permitted",
    "read-only file system",
    "network is unreachable",
    "could not resolve host",
    "temporary failure in name resolution",
    "bad system call",
];

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CommandOutcome {
    /// The exit status; 128 plus the signal number for a signal.
    pub(crate) exit_code: i32,
    pub(crate) is_timeout: bool,
    pub(crate) duration: Duration,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// Both streams, in order of arrival.
    pub(crate) aggregated: String,
    /// The total number of bytes of both, kept or not.
    pub(crate) total_bytes: u64,
    /// The number of kept lines of both.
    pub(crate) lines: usize,
}

impl CommandOutcome {
    /// A run that could not start.
    pub(crate) fn not_started(why: String) -> Self {
        Self {
            exit_code: 127,
            is_timeout: false,
            duration: Duration::ZERO,
            stdout: String::new(),
            stderr: why.clone(),
            total_bytes: why.len() as u64,
            lines: why.lines().count(),
            aggregated: why,
        }
    }

    /// A run without output.
    pub(super) fn silent() -> Self {
        Self { exit_code: 0, ..Self::not_started(String::new()) }
    }

    /// A run that was aborted after it had printed something.
    pub(crate) fn aborted(printed: &[u8], duration: Duration) -> Self {
        let stdout = String::from_utf8_lossy(printed).into_owned();
        let text = aborted_text(duration);
        let line_end = if stdout.is_empty() || stdout.ends_with('\n') { "" } else { "\n" };
        let aggregated = format!("{stdout}{line_end}{text}");
        Self { exit_code: 130, duration, stderr: text, stdout, ..Self::not_started(aggregated) }
    }

    /// A command whose terminal has reported its end.
    pub(super) fn shown(shown: &PollOutput) -> Self {
        let text = String::from_utf8_lossy(&shown.bytes).into_owned();
        Self {
            exit_code: shown.exit_code.unwrap_or_default(),
            is_timeout: false,
            duration: shown.duration,
            stdout: text.clone(),
            stderr: String::new(),
            total_bytes: shown.total_bytes,
            lines: text.lines().count(),
            aggregated: text,
        }
    }

    /// The report for the model about a command that has ended in its terminal.
    pub(super) fn for_model(&self, look: TerminalPoll) -> String {
        let shown = PollOutput {
            bytes: self.aggregated.clone().into_bytes(),
            total_bytes: self.total_bytes,
            exit_code: Some(self.exit_code),
            duration: self.duration,
        };
        shown.for_model(look)
    }

    /// Whether the sandbox is the likely cause of a failure.
    pub(crate) fn looks_denied(&self) -> bool {
        let text = self.aggregated.to_lowercase();
        self.exit_code != 0 && !self.is_timeout && DENIALS.iter().any(|denial| text.contains(denial))
    }

    /// The outcome for the log.
    pub(crate) fn end(self, limit: usize) -> CommandEnd {
        let notice = if self.is_timeout {
            format!("command timed out after {} milliseconds\n", self.duration.as_millis())
        } else {
            String::new()
        };
        CommandEnd {
            formatted: notice + &cut(&self.aggregated, limit, self.total_bytes, self.lines),
            exit_code: if self.is_timeout { TIMED_OUT } else { self.exit_code },
            duration: self.duration,
            stdout: self.stdout,
            stderr: self.stderr,
            aggregated: self.aggregated,
        }
    }
}

/// The report for the model about a command that was aborted with its turn.
fn aborted_text(duration: Duration) -> String {
    format!("Wall time: {:.1} seconds\naborted by user", duration.as_secs_f64())
}

/// The report for the model.
pub(super) fn for_model(end: &CommandEnd) -> String {
    let seconds = (end.duration.as_secs_f64() * 10.0).round() / 10.0;
    json!({"output": end.formatted, "metadata": {"exit_code": end.exit_code, "duration_seconds": seconds}}).to_string()
}

/// Shortens an output to about `limit` bytes for the model.
pub(super) fn shortened(printed: &[u8], limit: usize) -> Vec<u8> {
    let text = String::from_utf8_lossy(printed);
    cut(&text, limit, text.len() as u64, text.lines().count()).into_bytes()
}

/// Shortens a text to about `limit` bytes: its start and its end, with the omitted amount in between.
#[must_use]
pub fn cut(text: &str, limit: usize, total_bytes: u64, lines: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let head = (0..=limit / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let tail = (text.len() - limit / 2..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let kept = head + (text.len() - tail);
    let missing = total_bytes.saturating_sub(kept as u64);
    format!("Total output lines: {lines}\n\n{}…{missing} chars truncated…{}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_ends_and_counts_what_is_missing() {
        assert_eq!(cut("short", 10, 5, 1), "short");
        let text = format!("{}\n{}", "é".repeat(50), "z".repeat(100));
        let short = cut(&text, 41, 5000, 2);
        assert_eq!(
            short,
            format!("Total output lines: 2\n\n{}…4960 chars truncated…{}", "é".repeat(10), "z".repeat(20))
        );
    }

    #[test]
    fn a_denial_is_distinguished_from_an_ordinary_failure() {
        let ran = |exit_code, text: &str| CommandOutcome { exit_code, ..CommandOutcome::not_started(text.to_owned()) };
        assert!(ran(1, "touch: cannot touch 'x': Read-only file system").looks_denied());
        assert!(!ran(1, "assertion failed").looks_denied());
        assert!(!ran(0, "permission denied, but it went on").looks_denied());
    }
}
