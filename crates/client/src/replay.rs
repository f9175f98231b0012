//! A recorded thread, replayed without a model or a server: `codex replay` tells it, and this reads it.
//!
//! Invariant: as that of a connection. No child outlives its [`Replay`], and every wait has a deadline.

use std::collections::VecDeque;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::ChildStdout;
use tokio::time::timeout;

use crate::error::ConnectError;
use crate::event::Event;
use crate::server::{Launch, Tree};
use crate::state::State;
use crate::transcript::Transcript;

/// The longest pause between two lines. The program shortens those of the original to a minute.
const PAUSE: Duration = Duration::from_secs(90);
const READ_BYTES: usize = 64 * 1024;
/// The most bytes of an error that are kept.
const ERROR_BYTES: u64 = 16 * 1024;

/// The speed of a replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Speed {
    /// As fast as it can be read.
    #[default]
    Instant,
    /// With the pauses of the original.
    Original,
}

/// The reason why a thread cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error(transparent)]
    Start(#[from] ConnectError),
    #[error("could not read the replay")]
    Read(#[from] std::io::Error),
    #[error("the replay has ended with {status}: {why}")]
    Failed { status: String, why: String },
    #[error("the replay has paused for longer than {}s", PAUSE.as_secs())]
    Late,
}

/// A replay.
pub struct Replay {
    tree: Tree,
    output: ChildStdout,
    transcript: Transcript,
    waiting: VecDeque<Event>,
    is_over: bool,
}

impl std::fmt::Debug for Replay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replay").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}

impl Replay {
    /// Begins to replay a thread, named by its file, its id or its name. The arguments of `launch` come before those of
    /// the replay.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn start(launch: &Launch, thread: &Path, speed: Speed) -> Result<Self, ReplayError> {
        let mut command = launch.command();
        let speed = match speed {
            Speed::Instant => "instant",
            Speed::Original => "original",
        };
        command.args(&launch.args).args(["replay", "--dialect", "v2", "--speed", speed, "--"]).arg(thread);
        command.stdin(Stdio::null());
        let failed = |source| launch.failed(source);
        let mut tree = Tree::new(command.spawn().map_err(failed)?);
        let output = tree.child.stdout.take();
        let output = output.ok_or_else(|| failed(std::io::Error::other("its output is missing")))?;
        Ok(Self { tree, output, transcript: Transcript::default(), waiting: VecDeque::new(), is_over: false })
    }

    /// The next event; `None` at the end.
    ///
    /// # Errors
    /// If the thread cannot be read, or the program does not go on.
    pub async fn next(&mut self) -> Result<Option<Event>, ReplayError> {
        let mut bytes = Vec::new();
        while self.waiting.is_empty() && !self.is_over {
            bytes.clear();
            bytes.reserve(READ_BYTES);
            let reading = timeout(PAUSE, self.output.read_buf(&mut bytes));
            let count = reading.await.map_err(|_| ReplayError::Late)??;
            let waiting = &mut self.waiting;
            if count > 0 {
                self.transcript.push(&bytes, |message| waiting.extend(message.event()));
            } else {
                self.transcript.finish(|message| waiting.extend(message.event()));
                self.is_over = true;
                self.check_end().await?;
            }
        }
        Ok(self.waiting.pop_front())
    }

    /// The state at the end.
    ///
    /// # Errors
    /// As those of [`Replay::next`].
    pub async fn state(mut self) -> Result<State, ReplayError> {
        let mut state = State::default();
        while let Some(event) = self.next().await? {
            state.apply(&event);
        }
        Ok(state)
    }

    async fn check_end(&mut self) -> Result<(), ReplayError> {
        let stderr = self.tree.child.stderr.take();
        let ending = async {
            let mut why = Vec::new();
            if let Some(stderr) = stderr {
                stderr.take(ERROR_BYTES).read_to_end(&mut why).await?;
            }
            Ok::<_, std::io::Error>((self.tree.child.wait().await?, why))
        };
        let (status, why) = timeout(PAUSE, ending).await.map_err(|_| ReplayError::Late)??;
        if status.success() {
            return Ok(());
        }
        let why = String::from_utf8_lossy(&why).trim_end().to_owned();
        Err(ReplayError::Failed { status: status.to_string(), why })
    }
}
