//! Commands in terminals that may outlive the call that starts them: `exec_command` and `write_stdin`.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use codex_sandbox::Launch;
use codex_sandbox::terminal::{Screen, TerminalError, TerminalOutput, Terminals};
use serde::Deserialize;
use tokio::time::Instant;

use codex_wire::tokens::BYTES_PER_TOKEN;

use super::output::cut;

/// The size of a terminal that no person looks at.
const ROWS: u16 = 24;
const COLUMNS: u16 = 80;

/// The default time that a call waits for output.
const START_PATIENCE: Duration = Duration::from_secs(10);
const WRITE_PATIENCE: Duration = Duration::from_millis(250);

/// The bounds for the model's values.
const LEAST_PATIENCE: Duration = Duration::from_millis(250);
const MOST_PATIENCE: Duration = Duration::from_secs(30);

/// The default number of output tokens for the model.
const OUTPUT_TOKENS: usize = 10_000;

/// The parameters of a poll of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TerminalPoll {
    /// The number that the model uses for the terminal.
    pub(crate) process: u64,
    /// The time to wait for the command to end.
    pub(crate) patience: Duration,
    /// The maximum number of output bytes.
    pub(crate) limit: usize,
    /// Whether output is passed on unchanged.
    pub(crate) is_verbatim: bool,
}

impl TerminalPoll {
    fn new(process: u64, patience: Option<u64>, default: Duration, tokens: Option<usize>) -> Self {
        let patience = patience.map_or(default, Duration::from_millis).clamp(LEAST_PATIENCE, MOST_PATIENCE);
        let limit = tokens.unwrap_or(OUTPUT_TOKENS).min(OUTPUT_TOKENS) * BYTES_PER_TOKEN;
        Self { process, patience, limit, is_verbatim: false }
    }

    /// The poll of a call that starts a terminal.
    pub(super) fn at_start(process: u64, patience: Option<u64>, tokens: Option<usize>) -> Self {
        Self::new(process, patience, START_PATIENCE, tokens)
    }
}

/// The arguments of `write_stdin`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct WriteRequest {
    session_id: u64,
    #[serde(default)]
    chars: String,
    #[serde(default)]
    yield_time_ms: Option<u64>,
    #[serde(default)]
    max_output_tokens: Option<usize>,
}

impl WriteRequest {
    /// Parses the arguments of a call.
    pub(crate) fn read(arguments: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(arguments)
    }

    /// The text to type.
    pub(crate) fn chars(&self) -> &str {
        &self.chars
    }

    /// The poll after typing.
    pub(crate) fn look(&self) -> TerminalPoll {
        TerminalPoll::new(self.session_id, self.yield_time_ms, WRITE_PATIENCE, self.max_output_tokens)
    }
}

/// The result of a poll.
#[derive(Debug)]
pub struct PollOutput {
    /// The output since the last poll.
    pub(crate) bytes: Vec<u8>,
    /// Its total number of bytes.
    pub(crate) total_bytes: u64,
    /// The exit status, once the command has ended.
    pub(crate) exit_code: Option<i32>,
    /// The duration of the poll.
    pub(crate) duration: Duration,
}

impl PollOutput {
    fn new(glance: TerminalOutput, duration: Duration) -> Self {
        Self {
            total_bytes: glance.output.total_bytes,
            bytes: glance.output.text().into_bytes(),
            exit_code: glance.exit.map(codex_sandbox::Exit::shell_code),
            duration,
        }
    }

    /// The report for the model.
    pub(crate) fn for_model(&self, look: TerminalPoll) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        let lines = text.lines().count();
        let state = match self.exit_code {
            Some(code) => format!("Process exited with code {code}"),
            None => format!("Process running with session ID {}", look.process),
        };
        format!(
            "Chunk ID: {:06x}\nWall time: {:.4} seconds\n{state}\nOriginal token count: {}\nOutput:\n{}",
            self.duration.subsec_nanos() & 0x00ff_ffff,
            self.duration.as_secs_f64(),
            self.total_bytes.div_ceil(BYTES_PER_TOKEN as u64),
            cut(&text, look.limit, self.total_bytes, lines),
        )
    }
}

/// A poll in progress.
pub(crate) type PollFuture = Pin<Box<dyn Future<Output = Result<PollOutput, TerminalError>> + Send>>;

/// Polls a terminal.
pub(crate) fn look(terminals: Arc<Terminals>, terminal: u64, look: TerminalPoll) -> PollFuture {
    Box::pin(async move {
        let since = Instant::now();
        let glance = terminals.poll(terminal, look.patience, look.limit).await?;
        Ok(PollOutput::new(glance, since.elapsed()))
    })
}

/// A terminal that a call has started and polls for the first time. Dropping it before that ends the terminal.
pub(crate) struct Starting {
    terminals: Arc<Terminals>,
    pub(super) terminal: Result<u64, Option<TerminalError>>,
    looking: Option<PollFuture>,
}

impl Starting {
    pub(super) fn new(terminals: Arc<Terminals>, launch: Launch, first: TerminalPoll) -> Self {
        let screen = Screen { rows: ROWS, cols: COLUMNS, is_verbatim: first.is_verbatim };
        let terminal = terminals.start(launch, screen).map_err(Some);
        let looking = terminal.as_ref().ok().map(|id| look(Arc::clone(&terminals), *id, first));
        Self { terminals, terminal, looking }
    }

    /// Waits for the first poll. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<PollOutput, TerminalError> {
        if let Err(error) = &mut self.terminal
            && let Some(error) = error.take()
        {
            return Err(error);
        }
        match &mut self.looking {
            Some(looking) => {
                let shown = looking.await;
                self.looking = None;
                shown
            }
            None => std::future::pending().await,
        }
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        if let (Ok(terminal), Some(_)) = (&self.terminal, &self.looking) {
            // A terminal that has ended by itself needs no kill.
            let _: Result<(), TerminalError> = self.terminals.kill(*terminal);
        }
    }
}
