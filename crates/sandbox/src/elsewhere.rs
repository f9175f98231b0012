//! Hosts where commands cannot be confined yet: everything is refused, with a reason.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::error::SpawnError;
use crate::launch::{Exit, Launch, SandboxLevel};

static LEVEL: OnceLock<SandboxLevel> = OnceLock::new();

fn nothing() -> SandboxLevel {
    SandboxLevel::Nothing { why: format!("there is no sandbox for {} yet", std::env::consts::OS) }
}

/// What this host offers: nothing.
pub fn level() -> &'static SandboxLevel {
    LEVEL.get_or_init(nothing)
}

/// Settles the level before anything is run, for tests. Says whether it was not settled yet.
pub fn force_level(level: SandboxLevel) -> bool {
    LEVEL.set(level).is_ok()
}

/// Landlock is a part of Linux.
#[must_use]
pub fn landlock_level() -> SandboxLevel {
    nothing()
}

/// Closes this process to onlookers, on Linux; here it stays as it is.
pub fn harden() {}

/// Lets this process have more descriptors, on Linux; here it has what it has.
pub fn raise_descriptor_limit() {}

/// Gives a program the limit on descriptors that this process was started with, which is the present one.
pub fn with_first_descriptor_limit(command: &mut std::process::Command) -> &mut std::process::Command {
    command
}

/// Why a limit on memory cannot be enforced here, if one is wanted.
#[must_use]
pub fn unenforced_memory_limit(limit: Option<u64>) -> Option<String> {
    limit.map(|_| format!("there are no cgroups on {}", std::env::consts::OS))
}

/// Removes what commands have left; there are none.
pub fn remove_left_placeholders(_: &std::path::Path, _: &codex_guard::names::Names) {}

/// Refuses: neither confined nor supervised commands can be run here.
pub fn spawn(_: Launch) -> Result<Running, SpawnError> {
    Err(SpawnError::CannotConfine { why: format!("there is no sandbox for {} yet", std::env::consts::OS) })
}

/// Tidies up after a command; there are none.
pub(crate) fn clean_up_aside(running: Running) {
    match running.0 {}
}

/// What can be inspected of a command; there are none.
#[derive(Debug)]
pub(crate) struct Inspection(Infallible);

impl Inspection {
    pub(crate) fn of(running: &Running) -> Self {
        match running.0 {}
    }

    pub(crate) fn inspect(&self) {
        match self.0 {}
    }
}

/// Waits until commands have left nothing behind, which they cannot.
pub async fn cleanup_done() {}

/// A running command; there are none.
#[derive(Debug)]
pub struct Running(Infallible);

/// The input of a command; there is none.
#[derive(Debug)]
pub struct Input(Infallible);

/// The output of a command; there is none.
#[derive(Debug)]
pub struct Output(Infallible);

/// A terminal; there is none.
#[derive(Debug, Clone)]
pub struct Pty(Infallible);

impl Running {
    /// The process that stands for the command.
    #[must_use]
    pub fn pid(&self) -> u32 {
        match self.0 {}
    }

    /// The input, if it was not taken yet.
    pub fn take_stdin(&mut self) -> Option<Input> {
        match self.0 {}
    }

    /// The output, if it was not taken yet.
    pub fn take_stdout(&mut self) -> Option<Output> {
        match self.0 {}
    }

    /// The errors, if they were not taken yet.
    pub fn take_stderr(&mut self) -> Option<Output> {
        match self.0 {}
    }

    /// The terminal, if there is one.
    pub fn pty(&mut self) -> Option<&mut Pty> {
        match self.0 {}
    }

    /// The terminal, to be used beside [`Self::wait`].
    pub fn take_pty(&mut self) -> Option<Pty> {
        match self.0 {}
    }

    /// Waits for the end.
    #[expect(clippy::unused_async, reason = "as on Linux")]
    pub async fn ended(&mut self) -> Exit {
        match self.0 {}
    }

    /// Waits for the end.
    #[expect(clippy::unused_async, reason = "as on Linux")]
    pub async fn wait(&mut self) -> Exit {
        match self.0 {}
    }

    /// How much memory it was allowed.
    #[must_use]
    pub fn exceeded_memory(&self) -> Option<u64> {
        match self.0 {}
    }

    /// The protected file that was replaced, if the command was ended because of that.
    #[must_use]
    pub fn replaced(&self) -> Option<&std::path::Path> {
        match self.0 {}
    }

    /// Ends the command.
    pub fn kill(&mut self) {
        match self.0 {}
    }
}

impl Pty {
    /// Changes the size.
    pub fn resize(&self, _: u16, _: u16) -> io::Result<()> {
        match self.0 {}
    }
}

impl AsyncRead for Output {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.0 {}
    }
}

impl AsyncRead for Pty {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.0 {}
    }
}

impl AsyncWrite for Pty {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        match self.0 {}
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.0 {}
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.0 {}
    }
}

impl AsyncWrite for Input {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        match self.0 {}
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.0 {}
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.0 {}
    }
}
