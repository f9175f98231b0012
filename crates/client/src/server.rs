//! The places where a server can be, and how it is reached: as a child process, at an address, or at the other end of a
//! pipe.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use codex_transport::{Address, Reader, Token, Writer};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::timeout;

use crate::approvals::Approvals;
use crate::connection::{Client, GRACE, Options, connect};
use crate::error::ConnectError;
use crate::feed::Events;

/// The longest line of standard error that is passed on as one.
const STDERR_LINE_BYTES: u64 = 64 * 1024;

/// A server, wherever it is.
pub enum Server {
    /// A program that is run as a child process.
    Program(Launch),
    /// A server that listens on a socket, and the token if it needs one.
    At(Address, Option<Token>),
    /// The other end of a pipe. When it ends, it cannot be reached again.
    Pipe(Reader, Writer),
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(launch) => f.debug_tuple("Program").field(launch).finish(),
            Self::At(address, _) => f.debug_tuple("At").field(address).finish_non_exhaustive(),
            Self::Pipe(..) => f.debug_tuple("Pipe").finish_non_exhaustive(),
        }
    }
}

impl From<Launch> for Server {
    fn from(launch: Launch) -> Self {
        Self::Program(launch)
    }
}

/// The server's program and its arguments.
#[derive(Debug, Clone)]
pub struct Launch {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// Variables besides those of this program.
    pub env: Vec<(OsString, OsString)>,
    /// Its working directory, if it is another than this program's.
    pub cwd: Option<PathBuf>,
}

impl Launch {
    /// `codex app-server`, found by `PATH`.
    #[must_use]
    pub fn codex() -> Self {
        Self { program: "codex".into(), args: vec!["app-server".into()], env: Vec::new(), cwd: None }
    }
}

/// Connects to a server that listens on a socket.
///
/// # Errors
/// If it cannot be reached, or does not complete the handshake within the deadline.
pub async fn dial(
    address: &Address,
    token: Option<&Token>,
    options: Options,
    approvals: Approvals,
) -> Result<(Client, Events), ConnectError> {
    let (input, output) = codex_transport::dial(address, token).await?;
    connect(input, output, options, approvals).await
}

/// A line of the server's standard error.
pub(crate) type Sink = Arc<dyn Fn(&str) + Send + Sync>;

impl Launch {
    /// The program with its variables and its folder, but without arguments and input. It is killed when it is dropped.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        command
    }

    /// The reason why the program cannot be started. The system does not tell a missing program from a missing folder.
    pub(crate) fn failed(&self, source: io::Error) -> ConnectError {
        let missing = (source.kind() == io::ErrorKind::NotFound).then(|| match &self.cwd {
            Some(cwd) if !cwd.is_dir() => format!("there is no folder {}", cwd.display()),
            _ => "there is no such program".to_owned(),
        });
        let source = missing.map_or(source, |why| io::Error::new(io::ErrorKind::NotFound, why));
        ConnectError::Start { program: self.program.display().to_string(), source }
    }

    /// Starts the program and connects to it.
    pub(crate) async fn connect(
        &self,
        options: Options,
        approvals: Approvals,
        sink: Sink,
    ) -> Result<(Client, Events, Tree), ConnectError> {
        let mut command = self.command();
        command.args(&self.args).stdin(Stdio::piped());
        let failed = |source| self.failed(source);
        let mut tree = Tree::new(command.spawn().map_err(failed)?);
        let lost = || failed(io::Error::other("its streams are missing"));
        let input = tree.child.stdin.take().ok_or_else(lost)?;
        let output = tree.child.stdout.take().ok_or_else(lost)?;
        if let Some(stderr) = tree.child.stderr.take() {
            tokio::spawn(pass_on(stderr, sink));
        }
        let (client, events) = connect(output, input, options, approvals).await?;
        Ok((client, events, tree))
    }
}

/// A child and all that it has started in its process group.
pub(crate) struct Tree {
    pub(crate) child: Child,
    group: Option<Pid>,
}

impl Tree {
    pub(crate) fn new(child: Child) -> Self {
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Self { child, group }
    }

    /// Waits for its end, for a little while, and then kills it and all that it has left. Its input has ended.
    pub(crate) async fn end(&mut self) {
        let has_ended = timeout(GRACE, self.child.wait()).await.is_ok();
        self.kill();
        if !has_ended {
            let _: std::io::Result<_> = self.child.wait().await;
        }
    }

    /// Kills the group, whether its first process has ended or not.
    fn kill(&mut self) {
        // Only once: later its number may belong to others.
        if let Some(group) = self.group.take() {
            let _: rustix::io::Result<()> = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn pass_on(stderr: ChildStderr, sink: Sink) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    while matches!((&mut stderr).take(STDERR_LINE_BYTES).read_until(b'\n', &mut line).await, Ok(count) if count > 0) {
        // A sink that panics loses its line; the server must not wait for somebody to read it.
        let give = AssertUnwindSafe(|| sink(String::from_utf8_lossy(&line).trim_end()));
        let _: std::thread::Result<()> = catch_unwind(give);
        line.clear();
    }
}
