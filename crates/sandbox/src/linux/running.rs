//! A running command, as the server sees it.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::net::unix::pipe::{Receiver, Sender};

use super::cleanup::PendingCleanup;
use super::messages::End;
use super::pty::Pty;
use super::replaced::{Guarded, Lifeline};
use super::supervisor::Supervisor;
use crate::inspect::{Due, Ticker, inspect_aside};
use crate::launch::Exit;

/// The server's parts of a launch.
pub(super) struct Parts {
    pub(super) supervisor: Supervisor,
    pub(super) life: Arc<Lifeline>,
    pub(super) guarded: Option<Guarded>,
    pub(super) end: OwnedFd,
    pub(super) input: Option<OwnedFd>,
    pub(super) out: Option<OwnedFd>,
    pub(super) err: Option<OwnedFd>,
    pub(super) control: Option<OwnedFd>,
    /// The memory limit in bytes.
    pub(super) memory: Option<u64>,
}

/// A running command. Dropping it kills all of its processes.
#[derive(Debug)]
pub struct Running {
    pid: u32,
    supervisor: Option<AsyncFd<Supervisor>>,
    life: Arc<Lifeline>,
    /// Notices when a protected file is replaced.
    _guarded: Option<Guarded>,
    end: Receiver,
    /// Whether the end pipe is closed.
    is_closed: bool,
    told: Vec<u8>,
    input: Option<Input>,
    out: Option<Output>,
    err: Option<Output>,
    pty: Option<Pty>,
    /// The memory limit in bytes.
    memory: Option<u64>,
    /// Inspects what it leaves while it runs.
    ticker: Option<Ticker>,
    /// The inspection to run when it has ended.
    inspection: Option<Box<Due>>,
}

/// The stdin of a command. Dropping it closes the pipe.
#[derive(Debug)]
pub struct Input(Sender);

impl AsyncWrite for Input {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// The stdout or stderr of a command.
#[derive(Debug)]
pub struct Output(Receiver);

impl AsyncRead for Output {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl Running {
    pub(super) fn new(parts: Parts, inspection: Option<Due>) -> io::Result<Self> {
        let output = |fd: Option<OwnedFd>| fd.map(|fd| Receiver::from_owned_fd(fd).map(Output)).transpose();
        let pid = parts.supervisor.pid();
        // SAFETY: the supervisor owns its descriptor, which stays open for as long as it is registered.
        let supervisor = unsafe { AsyncFd::register(parts.supervisor) }.map_err(io::Error::from)?;
        Ok(Self {
            pid,
            supervisor: Some(supervisor),
            life: parts.life,
            _guarded: parts.guarded,
            end: Receiver::from_owned_fd(parts.end)?,
            is_closed: false,
            told: Vec::with_capacity(2 * End::SIZE),
            input: parts.input.map(|fd| Sender::from_owned_fd(fd).map(Input)).transpose()?,
            out: output(parts.out)?,
            err: output(parts.err)?,
            pty: parts.control.map(Pty::new).transpose()?,
            memory: parts.memory,
            ticker: inspection.as_ref().map(Ticker::start),
            inspection: inspection.map(Box::new),
        })
    }

    /// The process that represents the command in this process's view: its supervisor.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The stdin pipe, if there is one and it was not taken yet.
    pub fn take_stdin(&mut self) -> Option<Input> {
        self.input.take()
    }

    /// The stdout pipe, if there is one and it was not taken yet.
    pub fn take_stdout(&mut self) -> Option<Output> {
        self.out.take()
    }

    /// The stderr pipe, if there is one and it was not taken yet.
    pub fn take_stderr(&mut self) -> Option<Output> {
        self.err.take()
    }

    /// The terminal, if the command has one and it was not taken.
    pub fn pty(&mut self) -> Option<&mut Pty> {
        self.pty.as_mut()
    }

    /// The terminal, for use alongside [`Self::wait`].
    pub fn take_pty(&mut self) -> Option<Pty> {
        self.pty.take()
    }

    /// Waits until the command and all processes that it left behind have ended.
    ///
    /// May be dropped and called again. Returns the same every time.
    pub async fn ended(&mut self) -> Exit {
        while self.end().is_none() && !self.is_closed {
            self.hear().await;
        }
        self.ticker = None;
        // Another process has killed the supervisor; the kernel then kills the command.
        self.end().map_or(Exit::Signal(libc::SIGKILL), |end| end.exit)
    }

    /// The end is reported through a pipe, which closes when nothing of the command is left.
    async fn hear(&mut self) {
        self.is_closed = matches!(self.end.read_buf(&mut self.told).await, Ok(0) | Err(_));
    }

    /// Like [`Self::ended`], and also waits until the placeholders are removed. The inspection of the command's changes
    /// starts then; [`cleanup_done`](crate::cleanup_done) waits for it.
    pub async fn wait(&mut self) -> Exit {
        let exit = self.ended().await;
        while !self.is_all() && !self.is_closed {
            self.hear().await;
        }
        match self.supervisor.take() {
            Some(supervisor) if self.is_all() => Supervisor::wait_aside(supervisor, || {}),
            supervisor => {
                self.supervisor = supervisor;
                self.wait_for_supervisor().await;
            }
        }
        if let Some(due) = self.inspection.take() {
            inspect_aside(*due, PendingCleanup::new());
        }
        exit
    }

    /// The outcome of the command: the first message.
    fn end(&self) -> Option<End> {
        self.told.first_chunk().map(|bytes| End::from_bytes(*bytes))
    }

    /// Whether nothing of it is left: the last message, at once or after some cleaning up.
    pub(super) fn is_all(&self) -> bool {
        self.told.chunks_exact(End::SIZE).filter_map(<[u8]>::first_chunk).any(|bytes| End::from_bytes(*bytes).is_all)
    }

    async fn wait_for_supervisor(&mut self) {
        if let Some(supervisor) = &self.supervisor {
            let _ = supervisor.readable().await.map(drop);
        }
        if let Some(supervisor) = self.supervisor.take() {
            supervisor.into_inner().wait();
        }
    }

    /// The pending inspection of a running command.
    pub(crate) fn inspection(&self) -> Option<Due> {
        self.inspection.as_deref().cloned()
    }

    /// Takes the pending inspection, which the caller runs when the command has ended.
    pub(super) fn take_inspection(&mut self) -> Option<Due> {
        self.inspection.take().map(|due| *due)
    }

    /// Kills all processes of the command. [`Self::wait`] waits for that.
    pub fn kill(&mut self) {
        self.life.let_go();
    }

    /// The memory limit in bytes, if the command was killed because it used more.
    #[must_use]
    pub fn exceeded_memory(&self) -> Option<u64> {
        self.memory.filter(|_| self.end().is_some_and(|end| end.is_out_of_memory))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.life.let_go();
        let inspection = self.inspection.take().map(|due| (due, PendingCleanup::new()));
        let inspect = move || {
            if let Some((due, pending)) = inspection {
                inspect_aside(*due, pending);
            }
        };
        match self.supervisor.take() {
            Some(supervisor) => Supervisor::wait_aside(supervisor, inspect),
            None => inspect(),
        }
    }
}
