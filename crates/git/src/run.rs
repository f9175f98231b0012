//! One run of `git`: found on the path, with nothing inherited, a deadline and a limit.

use std::{
    env, fs,
    io::{self, Read},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Instant,
};

/// Why a run gave nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error("git is not installed")]
    NoGit,
    #[error("git could not be run")]
    Start(#[source] io::Error),
    #[error("git took too long")]
    Late,
    #[error("git wrote more than {0} bytes")]
    TooMuch(usize),
    #[error("git {0} failed")]
    Failed(String),
}

/// Variables that are handed on: where to find programs, and the user's own ignore file.
const HANDED_ON: &[&str] = &["PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR"];

/// What every run sets. The first ones keep configuration out, the others keep git from waiting, fetching and writing.
const SET: &[(&str, &str)] = &[
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", ""),
    ("GIT_PAGER", "cat"),
    ("LC_ALL", "C"),
];

/// Said on every command line besides, in case that a folder of its own is not enough one day.
const OPTIONS: &[&str] = &[
    "--no-pager",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.attributesFile=/dev/null",
    "-c",
    "safe.bareRepository=explicit",
];

/// How to run `git`.
pub(crate) struct Git<'a> {
    /// Where it starts.
    pub(crate) folder: &'a Path,
    /// Variables that say which repository is meant.
    pub(crate) variables: Vec<(&'static str, PathBuf)>,
    /// When it must be done.
    pub(crate) deadline: Instant,
}

impl Git<'_> {
    /// Runs a command to its end and returns what it wrote.
    pub(crate) fn run(&self, arguments: &[&str], input: Option<&Path>, most: usize) -> Result<Vec<u8>, RunError> {
        let mut command = Command::new(find_git().ok_or(RunError::NoGit)?);
        command.args(OPTIONS).args(arguments).current_dir(self.folder).env_clear().envs(SET.iter().copied());
        command.envs(HANDED_ON.iter().filter_map(|name| Some((*name, env::var_os(name)?))));
        command.envs(self.variables.iter().map(|(name, value)| (*name, value)));
        let input = input.map(fs::File::open).transpose().map_err(RunError::Start)?;
        command.stdin(input.map_or_else(Stdio::null, Stdio::from)).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut running = Running(command.spawn().map_err(RunError::Start)?);
        let output = running.output(most, self.deadline)?;
        if running.succeeds(self.deadline)? {
            Ok(output)
        } else {
            Err(RunError::Failed(arguments.first().copied().unwrap_or_default().to_owned()))
        }
    }
}

/// A process that does not outlive its owner.
struct Running(Child);

impl Running {
    /// Everything that is written until the end or the limit.
    fn output(&mut self, most: usize, deadline: Instant) -> Result<Vec<u8>, RunError> {
        let Some(stdout) = self.0.stdout.take() else { return Ok(Vec::new()) };
        let (sender, receiver) = mpsc::channel();
        let reader = move || {
            let mut output = Vec::new();
            let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
            let read = stdout.take(limit).read_to_end(&mut output);
            // Nobody listens any more if the deadline has passed.
            let _ = sender.send(read.map(|_| output));
        };
        thread::Builder::new().name("git-output".to_owned()).spawn(reader).map_err(RunError::Start)?;
        let left = deadline.saturating_duration_since(Instant::now());
        let output = receiver.recv_timeout(left).map_err(|_| RunError::Late)?.map_err(RunError::Start)?;
        if output.len() > most { Err(RunError::TooMuch(most)) } else { Ok(output) }
    }

    /// Whether it ended well. Its output has ended, so the end is a moment away.
    fn succeeds(&mut self, deadline: Instant) -> Result<bool, RunError> {
        while Instant::now() < deadline {
            match self.0.try_wait().map_err(RunError::Start)? {
                Some(status) => return Ok(status.success()),
                None => thread::yield_now(),
            }
        }
        Err(RunError::Late)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Neither does anything to a process that has ended and been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program, on absolute folders of the path only: a relative one would find it in the checkout.
fn find_git() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let folders: Vec<_> = env::split_paths(&path).filter(|folder| folder.is_absolute()).collect();
    folders.into_iter().map(|folder| folder.join("git")).find(|program| program.is_file())
}
