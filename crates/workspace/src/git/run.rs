//! A single run of `git`: with nothing inherited, a deadline and an output limit.

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Instant,
};

/// The reason why a run failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error("git could not be run")]
    Start(#[source] io::Error),
    #[error("git took too long")]
    Late,
    #[error("git wrote more than {0} bytes")]
    TooMuch(usize),
    #[error("git {command} failed{}", .said.as_ref().map(|said| format!(": {said}")).unwrap_or_default())]
    Failed {
        command: String,
        /// The beginning of its error message.
        said: Option<String>,
    },
}

/// Variables that every run sets. The first ones keep configuration out, the next ones keep git from waiting, fetching
/// and writing, and the last ones name the author of commits that this program makes.
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
    ("GIT_AUTHOR_NAME", "Codex"),
    ("GIT_AUTHOR_EMAIL", "codex@localhost"),
    ("GIT_COMMITTER_NAME", "Codex"),
    ("GIT_COMMITTER_EMAIL", "codex@localhost"),
    ("LC_ALL", "C"),
];

/// Variables that name folders: where git looks for user settings and creates temporary files.
const OWN_FOLDER: &[&str] = &["HOME", "XDG_CONFIG_HOME", "TMPDIR"];

/// Also on every command line, in case a private folder is not enough one day.
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

/// The file for the error messages of a run, and the size up to which it is read.
const ERRORS: &str = "errors";
const MAX_ERRORS: u64 = 64 * 1024;

/// Everything that `git` gets from this machine.
#[derive(Debug, Clone)]
pub struct Runner {
    /// The absolute path of the program. No confined process may be able to write it.
    pub program: PathBuf,
    /// The value of `PATH` for the program. The same requirement applies to its folders.
    pub path: OsString,
    /// A folder that nobody else can write, for the duration of the runs.
    pub folder: PathBuf,
    /// The user's own list of files to ignore.
    pub excludes: Option<PathBuf>,
}

/// A configured `git` for one checkout.
pub(crate) struct Git<'a> {
    pub(crate) runner: &'a Runner,
    /// The git folder. Git starts here, so that nothing in the checkout takes effect first.
    pub(crate) folder: &'a Path,
    /// The folder of the checkout.
    pub(crate) checkout: &'a Path,
    pub(crate) deadline: Instant,
}

/// The result of a run.
pub(crate) struct Ended {
    pub(crate) is_success: bool,
    pub(crate) output: Vec<u8>,
}

impl Git<'_> {
    /// Runs a command to its end and returns its output.
    pub(crate) fn run(&self, arguments: &[&str], input: Option<&Path>, most: usize) -> Result<Vec<u8>, RunError> {
        let mut command = self.command(input)?;
        let errors = self.folder.join(ERRORS);
        let writer = fs::File::create(&errors).map_err(RunError::Start)?;
        command.args(arguments).stdout(Stdio::piped()).stderr(writer);
        let mut running = Running(command.spawn().map_err(RunError::Start)?);
        let Some(stdout) = running.0.stdout.take() else { return Ok(Vec::new()) };
        let ended = running.end(stdout, most, self.deadline)?;
        if ended.is_success {
            Ok(ended.output)
        } else {
            let command = arguments.first().copied().unwrap_or_default().to_owned();
            Err(RunError::Failed { command, said: said(&errors) })
        }
    }

    /// Runs a command to its end and returns its output, including stderr.
    pub(crate) fn run_aloud(&self, arguments: &[&OsStr], input: &Path, most: usize) -> Result<Ended, RunError> {
        let (reader, writer) = io::pipe().map_err(RunError::Start)?;
        let mut command = self.command(Some(input))?;
        command.args(arguments).stdout(writer.try_clone().map_err(RunError::Start)?).stderr(writer);
        let running = command.spawn().map_err(RunError::Start)?;
        // It holds the pipe open too.
        drop(command);
        Running(running).end(reader, most, self.deadline)
    }

    fn command(&self, input: Option<&Path>) -> Result<Command, RunError> {
        let mut command = Command::new(&self.runner.program);
        command.current_dir(self.folder).arg("-C").arg(self.checkout).args(OPTIONS);
        if let Some(excludes) = &self.runner.excludes {
            let mut setting = OsString::from("core.excludesFile=");
            setting.push(excludes);
            command.arg("-c").arg(setting);
        }
        command.env_clear().envs(SET.iter().copied()).env("PATH", &self.runner.path);
        command.envs(OWN_FOLDER.iter().map(|name| (name, self.folder)));
        command.env("GIT_DIR", self.folder).env("GIT_WORK_TREE", self.checkout);
        let input = input.map(fs::File::open).transpose().map_err(RunError::Start)?;
        command.stdin(input.map_or_else(Stdio::null, Stdio::from));
        Ok(command)
    }
}

/// The beginning of an error message. Names in it come from the repository, so it is kept short.
fn said(errors: &Path) -> Option<String> {
    let text = super::file::read_up_to(errors, MAX_ERRORS)?;
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).take(3).collect();
    let text: String = lines.join("; ").chars().take(400).collect();
    (!text.is_empty()).then_some(text)
}

/// A process that does not outlive its owner.
struct Running(Child);

impl Running {
    /// Waits for the end, and returns the output up to the limit.
    fn end(&mut self, output: impl Read + Send + 'static, most: usize, deadline: Instant) -> Result<Ended, RunError> {
        let (sender, receiver) = mpsc::channel();
        let reader = move || {
            let mut bytes = Vec::new();
            let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
            let read = output.take(limit).read_to_end(&mut bytes);
            // The receiver is gone if the deadline has passed.
            let _ = sender.send(read.map(|_| bytes));
        };
        thread::Builder::new().name("git-output".to_owned()).spawn(reader).map_err(RunError::Start)?;
        let left = deadline.saturating_duration_since(Instant::now());
        let output = receiver.recv_timeout(left).map_err(|_| RunError::Late)?.map_err(RunError::Start)?;
        if output.len() > most {
            return Err(RunError::TooMuch(most));
        }
        Ok(Ended { is_success: self.succeeds(deadline)?, output })
    }

    /// Whether it succeeded. Its output has ended, so it will exit in a moment.
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
        // Neither call affects a process that has already been reaped.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
