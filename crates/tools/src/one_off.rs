//! Commands that a person runs outside of all threads.
//!
//! They need no approval: the client that sends one has decided. They run in the same sandbox and with the same
//! variables as the model's commands.
//!
//! Invariant: a command ends, with all of its processes, when its handle is dropped.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use codex_config::{Config, Home, Runner};
use codex_sandbox::{Confinement, Findings, Launch, Names, Profile, Running, SandboxContext, Stdio, spawn, why_ended};
pub use codex_sandbox::{Pty, SpawnError, Stream};
use codex_wire::policy::SandboxPolicy;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::time::Instant;

use crate::command::variables;

/// The size of the read buffer.
const READ_BYTES: usize = 32 * 1024;
/// The time to wait for output after the end, in case a process of another user holds the pipe.
const GRACE: Duration = Duration::from_secs(2);

/// A command to run.
#[derive(Debug, Clone)]
pub struct OneOff {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The working directory, which is also the workspace under a policy that allows writing.
    pub cwd: PathBuf,
    /// Variables to set, or to remove if there is no value.
    pub env: BTreeMap<String, Option<String>>,
    /// The sandbox policy; the configured one if unset.
    pub policy: Option<SandboxPolicy>,
    pub streams: Streams,
}

/// The streams of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// No input.
    Output,
    /// Input and output.
    InputAndOutput,
    /// A terminal for all.
    Terminal {
        /// The height in characters.
        rows: u16,
        /// The width in characters.
        cols: u16,
    },
}

/// The input of a command.
pub type Input = Box<dyn AsyncWrite + Send + Unpin>;

/// The output of a command.
type Output = Box<dyn AsyncRead + Send + Unpin>;

pub struct Started {
    pub process: Process,
    /// Its input, if it has any. Dropping it closes the input, but not that of a terminal.
    pub input: Option<Input>,
    /// Its terminal, if it has one.
    pub terminal: Option<Pty>,
}

/// A running command. Dropping it kills all of its processes.
pub struct Process {
    running: Running,
    out: Source,
    err: Source,
    exit: Option<i32>,
    /// The reason why it was killed without a request.
    reason: Option<String>,
    /// The time until which output is awaited.
    until: Option<Instant>,
    findings: Findings,
}

/// The next step of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Printed(Stream, Vec<u8>),
    /// It ended, with the code that a shell would report.
    Ended(i32),
}

/// A buffered stream.
struct Source {
    reader: Option<Output>,
    buffer: Vec<u8>,
}

impl OneOff {
    /// Starts the command. Blocks for about as long as a fork and an exec take, and needs a tokio runtime.
    pub fn start(self, config: &Config, home: &Home, programs: Option<&Path>) -> Result<Started, SpawnError> {
        let policy = self.policy.unwrap_or_else(|| config.sandbox_policy());
        let env = with_changes(variables(config, programs, Runner::Client), self.env);
        let findings = Findings::default();
        let names = Names::new(&config.sandbox.protected_names, &config.sandbox.unprotected_names);
        let sandbox_context = SandboxContext { names, ..SandboxContext::of(home.path(), &env) };
        let profile = Profile::new(&policy, &self.cwd, &sandbox_context);
        let profile = profile.map(|profile| profile.reporting_to(&findings));
        let running = spawn(Launch {
            argv: self.argv.iter().map(Into::into).collect(),
            cwd: self.cwd,
            env,
            confinement: Confinement::from(profile),
            stdio: match self.streams {
                Streams::Output => Stdio::Pipes,
                Streams::InputAndOutput => Stdio::PipesWithInput,
                Streams::Terminal { rows, cols } => Stdio::Pty { rows, cols, is_verbatim: false },
            },
            most_processes: Some(config.sandbox.most_processes),
            most_memory: config.sandbox.most_memory,
        })?;
        Ok(Started::new(running, findings))
    }
}

fn with_changes(
    mut variables: Vec<(OsString, OsString)>,
    changes: BTreeMap<String, Option<String>>,
) -> Vec<(OsString, OsString)> {
    for (name, value) in changes {
        variables.retain(|(other, _)| *other != *name);
        variables.extend(value.map(|value| (name.into(), value.into())));
    }
    variables
}

impl Started {
    fn new(mut running: Running, findings: Findings) -> Self {
        let terminal = running.take_pty();
        let (input, out): (Option<Input>, Option<Output>) = match &terminal {
            Some(pty) => (Some(Box::new(pty.clone())), Some(Box::new(pty.clone()))),
            None => (
                running.take_stdin().map(|pipe| Box::new(pipe) as _),
                running.take_stdout().map(|pipe| Box::new(pipe) as _),
            ),
        };
        let err = running.take_stderr().map(|pipe| Box::new(pipe) as _);
        let (out, err) = (Source::new(out), Source::new(err));
        let process = Process { running, out, err, exit: None, reason: None, until: None, findings };
        Self { process, input, terminal }
    }
}

impl Process {
    /// Waits for output, and after that for the end. Cancel safe.
    pub async fn next(&mut self) -> Step {
        while self.exit.is_none() || self.out.is_open() || self.err.is_open() {
            let until = self.until;
            tokio::select! {
                bytes = self.out.read(), if self.out.is_open() => if let Some(bytes) = bytes {
                    return Step::Printed(Stream::Stdout, bytes);
                },
                bytes = self.err.read(), if self.err.is_open() => if let Some(bytes) = bytes {
                    return Step::Printed(Stream::Stderr, bytes);
                },
                exit = self.running.wait(), if self.exit.is_none() => {
                    self.exit = Some(exit.shell_code());
                    self.reason = why_ended(&self.running);
                    self.until = Some(Instant::now() + GRACE);
                }
                () = sleep_until(until), if until.is_some() => break,
            }
        }
        codex_sandbox::cleanup_done().await;
        if let Some(reason) = self.reason.take() {
            return Step::Printed(Stream::Stderr, reason.into_bytes());
        }
        if let Some(warning) = self.findings.take().warning() {
            return Step::Printed(Stream::Stderr, format!("\n{warning}\n").into_bytes());
        }
        Step::Ended(self.exit.unwrap_or_default())
    }

    /// Kills all processes of the command. Its earlier output still arrives.
    pub fn kill(&mut self) {
        self.running.kill();
    }
}

async fn sleep_until(until: Option<Instant>) {
    if let Some(until) = until {
        tokio::time::sleep_until(until).await;
    }
}

impl Source {
    fn new(reader: Option<Output>) -> Self {
        Self { reader, buffer: Vec::new() }
    }

    fn is_open(&self) -> bool {
        self.reader.is_some()
    }

    /// The next chunk; `None` at the end.
    async fn read(&mut self) -> Option<Vec<u8>> {
        let reader = self.reader.as_mut()?;
        self.buffer.reserve(READ_BYTES);
        // A cancelled read has put nothing into the buffer.
        let length = reader.read_buf(&mut self.buffer).await.unwrap_or(0);
        if length == 0 {
            self.reader = None;
            return None;
        }
        Some(std::mem::take(&mut self.buffer))
    }
}
