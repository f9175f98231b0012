//! The only place where an approved command becomes a process.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use codex_config::{Config, Runner};
use codex_log::permissions::Permissions;
use codex_sandbox::terminal::Terminals;
use codex_sandbox::{
    Captured, Chunk, Confinement, Findings, Finished, Launch, Limits, Names, Profile, ResolvedRoots, SandboxContext,
    SpawnError, Stdio, Stream,
};
use codex_wire::event::ExecOutputStream;
use codex_wire::policy::SandboxPolicy;
use tokio::sync::mpsc;

use super::terminal::Starting;
use super::{CommandOutcome, CommandRequest, Input, Permit};
use crate::context::ToolContext;
use crate::permissions::GrantedPermissions;

/// The number of bytes of each stream kept for the client and the model.
const KEPT_BYTES: usize = 256 * 1024;

/// The maximum number of output bytes streamed to the client while the command runs. Together with the report at the
/// end, in all dialects at once, a flood of output costs a client less than two megabytes.
const STREAMED_BYTES: usize = 448 * 1024;

/// The capacity of the queue of output chunks.
const WAITING_CHUNKS: usize = 64;

/// The default search path for programs.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The variables of a command, with our own programs first on its path.
pub(crate) fn variables(config: &Config, programs: Option<&Path>, runner: Runner) -> Vec<(OsString, OsString)> {
    let mut variables = config.shell_environment.apply(std::env::vars_os(), runner);
    let Some(programs) = programs else { return variables };
    let place = variables.iter().position(|(name, _)| name == "PATH");
    let path = place.map_or_else(|| OsString::from(DEFAULT_PATH), |place| variables.swap_remove(place).1);
    let folders = std::iter::once(programs.to_owned()).chain(std::env::split_paths(&path));
    // A folder that cannot be part of a path is left out.
    variables.push(("PATH".into(), std::env::join_paths(folders).unwrap_or(path)));
    variables
}

/// Removes relative folders from the path. A command outside the sandbox must not run a program that another command
/// has put into its working directory.
fn find_nothing_here(env: &mut [(OsString, OsString)]) {
    for (_, path) in env.iter_mut().filter(|(name, _)| name == "PATH") {
        let folders: Vec<_> = std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect();
        if let Ok(absolute) = std::env::join_paths(folders) {
            *path = absolute;
        }
    }
}

/// The environment of a command, from the session and never from the model.
#[derive(Debug, Clone)]
pub(crate) struct LaunchContext {
    pub(crate) policy: SandboxPolicy,
    /// The working directory of the turn, whatever folder the model names for one command.
    pub(crate) workspace: PathBuf,
    /// The home folder of the program, never writable.
    pub(crate) codex_home: PathBuf,
    pub(crate) most_processes: u32,
    pub(crate) most_memory: Option<u64>,
    pub(crate) env: Vec<(OsString, OsString)>,
    /// The writable folders as they were when the thread named them.
    pub(crate) roots: ResolvedRoots,
    pub(crate) terminals: Arc<Terminals>,
    pub(crate) names: Names,
    /// The files that the user's configuration names.
    pub(crate) named_files: Vec<PathBuf>,
    /// The collector for findings after commands.
    pub(crate) findings: Findings,
    /// The permissions that people have granted beyond the policy.
    pub(crate) granted: GrantedPermissions,
}

impl LaunchContext {
    /// The sandbox profile; `None` if the policy wants no sandbox.
    pub(crate) fn profile(&self) -> Option<Profile> {
        self.profile_with(Vec::new())
    }

    /// The same with more writable folders.
    pub(crate) fn profile_with(&self, more_roots: Vec<PathBuf>) -> Option<Profile> {
        let (roots, names) = (self.roots.clone(), self.names.clone());
        let Permissions { write: mut granted_roots, network: granted_network } = self.granted.current();
        granted_roots.extend(more_roots);
        let around = SandboxContext::of(&self.codex_home, &self.env);
        let named_files = self.named_files.clone();
        let sandbox_context = SandboxContext { roots, names, granted_roots, granted_network, named_files, ..around };
        let profile = Profile::new(&self.policy, &self.workspace, &sandbox_context)?;
        Some(profile.reporting_to(&self.findings))
    }
}

impl LaunchContext {
    fn read_only(&self) -> Option<Profile> {
        Profile::new(&SandboxPolicy::ReadOnly, &self.workspace, &SandboxContext::of(&self.codex_home, &self.env))
    }
}

/// A running command. Dropping it kills its whole process tree, except for a terminal that was polled.
pub(crate) enum Process {
    /// A command that ends with its call.
    Piped(Box<Piped>),
    /// A command in a terminal.
    Terminal(Box<Starting>),
}

/// A command that ends with its call.
pub(crate) struct Piped {
    run: Pin<Box<dyn Future<Output = Result<Finished, SpawnError>> + Send>>,
    chunks: mpsc::Receiver<Chunk>,
    ran: Option<CommandOutcome>,
}

impl Process {
    /// Starts a command that has a permit. There is no other way from a command to a process.
    pub(crate) fn start(request: &CommandRequest, permit: Permit, cx: &ToolContext) -> Self {
        let context = &cx.launch;
        let profile = context.profile();
        let mut env = if request.is_users_own { cx.users_env.clone() } else { context.env.clone() };
        if profile.is_some() && !permit.is_sandboxed() && !request.is_users_own {
            find_nothing_here(&mut env);
        }
        let is_voluntary = request.confinement == super::Confinement::Voluntary;
        let profile = if is_voluntary { context.read_only() } else { profile };
        let confinement = Confinement::from(profile.filter(|_| permit.is_sandboxed()));
        let launch = Launch {
            argv: request.argv.iter().map(Into::into).collect(),
            cwd: request.cwd.clone(),
            env,
            confinement,
            stdio: Stdio::Pipes,
            most_processes: Some(context.most_processes),
            most_memory: context.most_memory,
        };
        if let Some(look) = request.terminal {
            return Self::Terminal(Box::new(Starting::new(Arc::clone(&context.terminals), launch, look)));
        }
        let limits = Limits { timeout: Some(request.timeout), kept_bytes: KEPT_BYTES, streamed_bytes: STREAMED_BYTES };
        let (sender, chunks) = mpsc::channel(WAITING_CHUNKS);
        let run = Box::pin(codex_sandbox::run(launch, limits, sender));
        Self::Piped(Box::new(Piped { run, chunks, ran: None }))
    }

    /// Waits for output, and after that for the end. Cancel safe.
    pub(crate) async fn next(&mut self) -> Input {
        match self {
            Self::Piped(piped) => piped.next().await,
            Self::Terminal(starting) => match starting.next().await {
                Ok(shown) => Input::PollOutput(shown),
                Err(error) => Input::Ended(CommandOutcome::not_started(crate::full_message(&error))),
            },
        }
    }

    /// The terminal of the command, if it has one.
    pub(crate) fn terminal(&self) -> Option<u64> {
        match self {
            Self::Piped(_) => None,
            Self::Terminal(starting) => starting.terminal.as_ref().ok().copied(),
        }
    }
}

impl Piped {
    async fn next(&mut self) -> Input {
        loop {
            tokio::select! {
                biased;
                Some(chunk) = self.chunks.recv() => return Input::Printed(stream(chunk.stream), chunk.bytes),
                finished = &mut self.run, if self.ran.is_none() => self.ran = Some(ran(finished)),
                else => break,
            }
        }
        Input::Ended(
            self.ran.take().unwrap_or_else(|| CommandOutcome::not_started("the command has ended before".to_owned())),
        )
    }
}

fn stream(stream: Stream) -> ExecOutputStream {
    match stream {
        Stream::Stdout => ExecOutputStream::Stdout,
        Stream::Stderr => ExecOutputStream::Stderr,
    }
}

/// The number of kept lines, including an incomplete last one.
fn lines(captured: &Captured) -> usize {
    let kept = || captured.head.iter().chain(&captured.tail);
    let ends = kept().filter(|byte| **byte == b'\n').count();
    ends + usize::from(kept().last().is_some_and(|byte| *byte != b'\n'))
}

fn ran(finished: Result<Finished, SpawnError>) -> CommandOutcome {
    match finished {
        Ok(finished) => CommandOutcome {
            exit_code: finished.exit.shell_code(),
            is_timeout: finished.timed_out,
            duration: finished.duration,
            stdout: finished.stdout.text(),
            stderr: finished.stderr.text(),
            total_bytes: finished.aggregated.total_bytes,
            lines: lines(&finished.aggregated),
            aggregated: finished.aggregated.text(),
        },
        Err(error) => CommandOutcome::not_started(crate::full_message(&error)),
    }
}
