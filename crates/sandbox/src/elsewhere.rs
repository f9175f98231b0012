//! Hosts without sandbox support: every launch is refused, with a reason.

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

/// The level that this host offers: none.
pub fn level() -> &'static SandboxLevel {
    LEVEL.get_or_init(nothing)
}

/// Sets the level before anything runs, for tests. Returns whether it was still unset.
pub fn force_level(level: SandboxLevel) -> bool {
    LEVEL.set(level).is_ok()
}

/// Landlock is a part of Linux.
#[must_use]
pub fn landlock_level() -> SandboxLevel {
    nothing()
}

/// Hardens the process on Linux; a no-op here.
pub fn harden() {}

/// Sets a deadline for all commands on Linux; there are none here.
pub fn set_command_deadline(_after: Option<std::time::Duration>) {}

/// Raises the descriptor limit on Linux; a no-op here.
pub fn raise_descriptor_limit() {}

/// Starts a program with the descriptor limit that this process was started with, which never changes here.
pub fn with_first_descriptor_limit(command: &mut std::process::Command) -> &mut std::process::Command {
    command
}

/// The reason why a memory limit cannot be enforced here, if one is requested.
#[must_use]
pub fn unenforced_memory_limit(limit: Option<u64>) -> Option<String> {
    limit.map(|_| format!("there are no cgroups on {}", std::env::consts::OS))
}

/// Removes leftover placeholders; there are none here.
pub fn remove_left_placeholders(_: &std::path::Path, _: &codex_guard::names::Names) {}

/// Refuses: commands can be neither sandboxed nor supervised here.
pub fn spawn(_: Launch) -> Result<Running, SpawnError> {
    Err(SpawnError::CannotConfine { why: format!("there is no sandbox for {} yet", std::env::consts::OS) })
}

/// Cleans up after a command; there are none here.
pub(crate) fn clean_up_aside(running: Running) {
    match running.0 {}
}

/// The pending inspection of a command; there are none here.
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

/// The inspection of changes that this program makes by itself; there is none here.
#[derive(Debug)]
pub struct OwnChanges(());

impl OwnChanges {
    /// Records what is there before the changes.
    #[must_use]
    pub fn expected(_: &Profile) -> Self {
        Self(())
    }

    /// Disarms what the changes would make other programs run.
    pub fn inspect(self) {}
}

/// Whether git commands in a folder may run programs that its repository names; nobody has looked here.
#[must_use]
pub fn names_programs(_: &std::path::Path) -> bool {
    true
}

/// Waits until commands are cleaned up; there are none here.
pub async fn cleanup_done() {}

/// A running command; there are none here.
#[derive(Debug)]
pub struct Running(Infallible);

/// The stdin of a command; there is none here.
#[derive(Debug)]
pub struct Input(Infallible);

/// The stdout or stderr of a command; there is none here.
#[derive(Debug)]
pub struct Output(Infallible);

/// A terminal; there is none here.
#[derive(Debug, Clone)]
pub struct Pty(Infallible);

impl Running {
    /// The process that represents the command.
    #[must_use]
    pub fn pid(&self) -> u32 {
        match self.0 {}
    }

    /// The stdin pipe, unless it was taken before.
    pub fn take_stdin(&mut self) -> Option<Input> {
        match self.0 {}
    }

    /// The stdout pipe, unless it was taken before.
    pub fn take_stdout(&mut self) -> Option<Output> {
        match self.0 {}
    }

    /// The stderr pipe, unless it was taken before.
    pub fn take_stderr(&mut self) -> Option<Output> {
        match self.0 {}
    }

    /// The terminal, if there is one.
    pub fn pty(&mut self) -> Option<&mut Pty> {
        match self.0 {}
    }

    /// The terminal, for use alongside [`Self::wait`].
    pub fn take_pty(&mut self) -> Option<Pty> {
        match self.0 {}
    }

    /// Waits for the command to end.
    #[expect(clippy::unused_async, reason = "as on Linux")]
    pub async fn ended(&mut self) -> Exit {
        match self.0 {}
    }

    /// Waits for the command to end.
    #[expect(clippy::unused_async, reason = "as on Linux")]
    pub async fn wait(&mut self) -> Exit {
        match self.0 {}
    }

    /// The memory limit, if the command exceeded it.
    #[must_use]
    pub fn exceeded_memory(&self) -> Option<u64> {
        match self.0 {}
    }

    pub fn kill(&mut self) {
        match self.0 {}
    }
}

impl Pty {
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
