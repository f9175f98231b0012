//! Terminals that outlive one call: started, written to, polled and killed by number.
//!
//! Each has a task that reads its output into a bounded buffer, so a terminal that nobody polls costs no more than its
//! buffer.
//!
//! Invariant: there are never more than [`MAX_TERMINALS`]; ended ones make room for new ones, running ones never do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, timeout_at};

use crate::error::SpawnError;
use crate::launch::{Exit, Launch, Stdio};
use crate::platform::{Inspection, Pty, Running, spawn};
use crate::run::why_ended;
use codex_lines::{BoundedBuffer, Captured};

/// The maximum number of terminals.
pub const MAX_TERMINALS: usize = 64;
/// The maximum number of output bytes kept between two polls.
const KEPT_BYTES: usize = 1024 * 1024;
/// The size of the read buffer.
const READ_SIZE: usize = 16 * 1024;
/// The maximum number of writes queued for a program that does not read.
const TYPED_AHEAD: usize = 64;
/// The time to wait for the last output of an ended command.
const SETTLE: Duration = Duration::from_millis(20);

/// An error of a terminal operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TerminalError {
    /// No terminal has this number.
    #[error("there is no terminal {id}")]
    Unknown { id: u64 },
    /// All slots are taken by running terminals.
    #[error("there are {MAX_TERMINALS} running terminals already")]
    TooMany,
    /// The command has ended, or does not read its input.
    #[error("terminal {id} takes no input")]
    NoInput { id: u64 },
    #[error(transparent)]
    Spawn(#[from] SpawnError),
}

/// The result of a poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalOutput {
    /// The output since the last poll.
    pub output: Captured,
    /// The outcome of the command, if it has ended.
    pub exit: Option<Exit>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalInfo {
    pub id: u64,
    pub command: Vec<std::ffi::OsString>,
    /// The outcome of the command, if it has ended.
    pub exit: Option<Exit>,
}

/// The terminals of one session. Dropping it kills them all.
#[derive(Debug, Default)]
pub struct Terminals {
    inner: Mutex<Registry>,
}

#[derive(Debug, Default)]
struct Registry {
    next: u64,
    all: BTreeMap<u64, Arc<Terminal>>,
}

#[derive(Debug)]
struct Terminal {
    command: Vec<std::ffi::OsString>,
    state: Mutex<State>,
    changed: Notify,
    typed: mpsc::Sender<Vec<u8>>,
    unwanted: Arc<Notify>,
    pty: Pty,
    inspection: Inspection,
}

#[derive(Debug)]
struct State {
    output: BoundedBuffer,
    is_fresh: bool,
    exit: Option<Exit>,
}

/// The settings of a terminal.
#[derive(Debug, Clone, Copy)]
pub struct Screen {
    /// The height in characters.
    pub rows: u16,
    /// The width in characters.
    pub cols: u16,
    /// Whether output is passed on unchanged, without a carriage return before each line feed.
    pub is_verbatim: bool,
}

impl Terminals {
    /// Starts a command in a terminal and returns its number. Needs a tokio runtime.
    pub fn start(&self, launch: Launch, screen: Screen) -> Result<u64, TerminalError> {
        let mut registry = lock(&self.inner);
        if registry.all.len() >= MAX_TERMINALS {
            let ended = registry.all.iter().find(|(_, it)| lock(&it.state).exit.is_some()).map(|(id, _)| *id);
            registry.all.remove(&ended.ok_or(TerminalError::TooMany)?);
        }
        let command = launch.argv.clone();
        let Screen { rows, cols, is_verbatim } = screen;
        let mut running = spawn(Launch { stdio: Stdio::Pty { rows, cols, is_verbatim }, ..launch })?;
        let Some(pty) = running.take_pty() else { return Err(TerminalError::TooMany) };
        let inspection = Inspection::of(&running);
        let (typed, input) = mpsc::channel(TYPED_AHEAD);
        let unwanted = Arc::new(Notify::new());
        let state = Mutex::new(State { output: BoundedBuffer::new(KEPT_BYTES), is_fresh: false, exit: None });
        let terminal = Arc::new(Terminal {
            command,
            state,
            changed: Notify::new(),
            typed,
            unwanted: Arc::clone(&unwanted),
            pty: pty.clone(),
            inspection,
        });
        tokio::spawn(serve(TerminalTask { running, pty, terminal: Arc::downgrade(&terminal), input, unwanted }));
        registry.next += 1;
        let id = registry.next;
        registry.all.insert(id, terminal);
        Ok(id)
    }

    /// Writes to a terminal's input.
    pub fn write(&self, id: u64, bytes: &[u8]) -> Result<(), TerminalError> {
        self.find(id)?.typed.try_send(bytes.to_vec()).map_err(|_| TerminalError::NoInput { id })
    }

    /// Resizes a terminal.
    pub fn resize(&self, id: u64, rows: u16, cols: u16) -> Result<(), TerminalError> {
        self.find(id)?.pty.resize(rows, cols).map_err(|_| TerminalError::NoInput { id })
    }

    /// Kills a terminal's command and all of its processes. Its output can still be polled.
    pub fn kill(&self, id: u64) -> Result<(), TerminalError> {
        self.find(id)?.unwanted.notify_one();
        Ok(())
    }

    /// Waits up to `patience` for the command to end, and takes at most `limit` bytes of the output since the last
    /// poll.
    pub async fn poll(&self, id: u64, patience: Duration, limit: usize) -> Result<TerminalOutput, TerminalError> {
        let terminal = self.find(id)?;
        let until = Instant::now() + patience;
        loop {
            let changed = terminal.changed.notified();
            if lock(&terminal.state).exit.is_some() {
                break;
            }
            if timeout_at(until, changed).await.is_err() {
                break;
            }
        }
        let mut state = lock(&terminal.state);
        state.is_fresh = false;
        Ok(TerminalOutput { output: shortened(state.output.take(), limit), exit: state.exit })
    }

    /// Waits up to `patience` for new output or the end of the command.
    pub async fn wait_for_output(&self, id: u64, patience: Duration) -> Result<(), TerminalError> {
        let terminal = self.find(id)?;
        let until = Instant::now() + patience;
        loop {
            let changed = terminal.changed.notified();
            {
                let state = lock(&terminal.state);
                if state.is_fresh || state.exit.is_some() {
                    return Ok(());
                }
            }
            if timeout_at(until, changed).await.is_err() {
                return Ok(());
            }
        }
    }

    /// Starts an inspection of the changes that running commands have made so far; see
    /// [`cleanup_done`](crate::cleanup_done).
    pub fn inspect(&self) {
        for terminal in lock(&self.inner).all.values().filter(|it| lock(&it.state).exit.is_none()) {
            terminal.inspection.inspect();
        }
    }

    /// All terminals, oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<TerminalInfo> {
        let info = |(id, it): (&u64, &Arc<Terminal>)| TerminalInfo {
            id: *id,
            command: it.command.clone(),
            exit: lock(&it.state).exit,
        };
        lock(&self.inner).all.iter().map(info).collect()
    }

    fn find(&self, id: u64) -> Result<Arc<Terminal>, TerminalError> {
        lock(&self.inner).all.get(&id).cloned().ok_or(TerminalError::Unknown { id })
    }
}

/// The state of one terminal's task.
struct TerminalTask {
    running: Running,
    pty: Pty,
    terminal: Weak<Terminal>,
    input: mpsc::Receiver<Vec<u8>>,
    unwanted: Arc<Notify>,
}

/// Reads and writes one terminal until its command has ended or nobody holds the terminal any longer.
async fn serve(served: TerminalTask) {
    let TerminalTask { mut running, pty, terminal, mut input, unwanted } = served;
    let (mut shown, mut keyboard) = (pty.clone(), pty);
    let mut buffer = vec![0; READ_SIZE];
    let (mut is_open, mut typed) = (true, Vec::new());
    let exit = loop {
        tokio::select! {
            read = shown.read(&mut buffer), if is_open => is_open = take(&terminal, &buffer, read),
            written = keyboard.write(&typed), if !typed.is_empty() => {
                let written = written.unwrap_or(typed.len());
                typed.drain(..written);
            }
            more = input.recv(), if typed.is_empty() => match more {
                Some(more) => typed = more,
                None => return,
            },
            () = unwanted.notified() => running.kill(),
            exit = running.wait() => break exit,
        }
    };
    drain(&terminal, &mut shown, &mut buffer).await;
    if let Some(reason) = why_ended(&running) {
        take(&terminal, reason.as_bytes(), Ok(reason.len()));
    }
    if let Some(terminal) = terminal.upgrade() {
        lock(&terminal.state).exit = Some(exit);
        terminal.changed.notify_waiters();
    }
}

/// Reads the output from before the end of the command.
async fn drain(terminal: &Weak<Terminal>, shown: &mut Pty, buffer: &mut [u8]) {
    let until = Instant::now() + SETTLE;
    while let Ok(read) = timeout_at(until, shown.read(buffer)).await {
        if !take(terminal, buffer, read) {
            return;
        }
    }
}

fn take(terminal: &Weak<Terminal>, buffer: &[u8], read: std::io::Result<usize>) -> bool {
    let shown = buffer.get(..read.unwrap_or(0)).unwrap_or_default();
    let Some(terminal) = terminal.upgrade().filter(|_| !shown.is_empty()) else { return false };
    let mut state = lock(&terminal.state);
    state.output.push(shown);
    state.is_fresh = true;
    drop(state);
    terminal.changed.notify_waiters();
    true
}

/// Shortens the kept output to `limit` bytes by cutting the middle.
fn shortened(kept: Captured, limit: usize) -> Captured {
    if kept.head.len() + kept.tail.len() <= limit {
        return kept;
    }
    let omitted = kept.omitted_bytes();
    let mut keeper = BoundedBuffer::new(limit);
    keeper.push(&kept.head);
    keeper.push(&kept.tail);
    let mut cut = keeper.finish();
    cut.total_bytes += omitted;
    cut
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
