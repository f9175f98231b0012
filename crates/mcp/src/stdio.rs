//! A server that is a program: it is started outside of the sandbox, by the supervisor of `sandbox`, and ends with this
//! program.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use codex_config::{Env, McpProgram, Programs};
use codex_lines::{Line, LineReader};
use codex_sandbox::{Confinement, Input, Launch, Output, Running, Stdio};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::connection::{Connection, Notice, Outgoing, RequestError};
use crate::rpc;

/// The maximum length of a line on stdout.
const MOST_LINE: usize = 16 * 1024 * 1024;
/// The maximum number of messages that wait for a server that does not read its input.
const MOST_QUEUED: usize = 64;
/// The maximum number of lines of stderr that are kept, and the maximum length of each.
const STDERR_LINES: usize = 10;
const STDERR_LINE: usize = 500;
/// The time to wait for the last lines of stderr after the end of stdout.
const LAST_LINES: Duration = Duration::from_millis(200);
/// The time limit for a server to exit by itself.
const FAREWELL: Duration = Duration::from_millis(500);

/// The variables that every server receives. Others may contain keys, and are passed on only if the configuration names
/// them.
const VARIABLES: &[&str] = &[
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "USER",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TERM",
    "TMPDIR",
    "TZ",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
];

/// A running server. Dropping it kills all of its processes.
pub(crate) struct Process {
    running: Running,
    /// Its streams; dropping them closes its stdin.
    streams: JoinSet<()>,
    stderr: Arc<LastLines>,
}

/// The last lines of a server on stderr.
#[derive(Debug, Default)]
struct LastLines(Mutex<VecDeque<String>>);

impl LastLines {
    fn push(&self, line: &[u8]) {
        let text = String::from_utf8_lossy(&line[..line.len().min(STDERR_LINE)]).trim_end().to_owned();
        if text.is_empty() {
            return;
        }
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == STDERR_LINES {
            lines.pop_front();
        }
        lines.push_back(text);
    }

    /// The lines, to follow a reason; empty if there are none.
    fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.is_empty() {
            String::new()
        } else {
            format!(":\n{}", lines.iter().cloned().collect::<Vec<_>>().join("\n"))
        }
    }
}

struct Queue(mpsc::Sender<Vec<u8>>);

impl Outgoing for Queue {
    fn send(&self, message: Value) -> bool {
        self.0.try_send(codex_lines::encoded(&message)).is_ok()
    }
}

/// Starts a program. Blocks for about as long as a fork and an exec take, and needs a runtime.
pub(crate) fn start(
    program: &McpProgram,
    cwd: &Path,
    env: &Env,
) -> Result<(Process, Connection, mpsc::Receiver<Notice>), String> {
    let cwd = program.cwd.as_deref().unwrap_or(cwd);
    let launch = Launch {
        argv: argv(program, cwd, env)?,
        cwd: cwd.to_owned(),
        env: variables(program, cwd, env),
        confinement: Confinement::None,
        stdio: Stdio::PipesWithInput,
        most_processes: None,
        most_memory: None,
    };
    let mut running = codex_sandbox::spawn(launch).map_err(|error| codex_tools::full_message(&error))?;
    let (Some(input), Some(out), Some(err)) = (running.take_stdin(), running.take_stdout(), running.take_stderr())
    else {
        return Err("it has no streams".to_owned());
    };
    let (queue, queued) = mpsc::channel(MOST_QUEUED);
    let root =
        json!({"uri": format!("file://{}", cwd.display()), "name": cwd.file_name().map(|name| name.to_string_lossy())});
    let (connection, notices) = Connection::new(Box::new(Queue(queue)), Some(root));
    let (mut streams, stderr) = (JoinSet::new(), Arc::new(LastLines::default()));
    streams.spawn(write(queued, input));
    streams.spawn(read(connection.clone(), out, err, Arc::clone(&stderr)));
    Ok((Process { running, streams, stderr }, connection, notices))
}

impl Process {
    /// The end of its stderr, to follow a reason.
    pub(crate) fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Ends it: its input is closed first, and processes that still run after a moment are killed.
    pub(crate) async fn stop(mut self) {
        self.streams.shutdown().await;
        let _: Result<_, _> = timeout(FAREWELL, self.running.ended()).await;
    }
}

fn argv(program: &McpProgram, cwd: &Path, env: &Env) -> Result<Vec<OsString>, String> {
    let command = &program.command;
    let found = if command.contains('/') {
        cwd.join(command)
    } else {
        let programs = Programs::new(env, &[cwd.to_owned()]);
        let not_found = || format!("`{command}` was not found in the folders of PATH outside of the workspace");
        programs.find(command).ok_or_else(not_found)?
    };
    Ok(std::iter::once(found.into_os_string()).chain(program.args.iter().map(Into::into)).collect())
}

fn variables(program: &McpProgram, cwd: &Path, env: &Env) -> Vec<(OsString, OsString)> {
    let names = VARIABLES.iter().copied().chain(program.env_vars.iter().map(String::as_str));
    let mut variables: Vec<(OsString, OsString)> = names
        .filter(|name| !program.env.contains_key(*name))
        .filter_map(|name| Some((name.into(), env.get(name)?)))
        .collect();
    for (name, value) in variables.iter_mut().filter(|(name, _)| name == "PATH") {
        debug_assert_eq!(name, "PATH");
        *value = Programs::new(env, &[cwd.to_owned()]).path();
    }
    variables.extend(program.env.iter().map(|(name, value)| (name.into(), value.reveal().into())));
    variables
}

async fn write(mut queued: mpsc::Receiver<Vec<u8>>, mut input: Input) {
    while let Some(line) = queued.recv().await {
        // The end is noticed by the reader of its output.
        if input.write_all(&line).await.is_err() {
            return;
        }
    }
}

/// Reads both streams until stdout ends.
async fn read(connection: Connection, out: Output, err: Output, last: Arc<LastLines>) {
    let mut errors = LineReader::with_limit(err, STDERR_LINE * 4);
    let mut reading_errors = std::pin::pin!(async {
        while let Ok(Some(line)) = errors.next().await {
            match line {
                Line::Whole(line) => last.push(&line),
                Line::TooLong { head, .. } => last.push(&head),
            }
        }
    });
    let mut has_errors = true;
    let mut reading = std::pin::pin!(read_messages(&connection, out));
    loop {
        tokio::select! {
            () = &mut reading => break,
            () = &mut reading_errors, if has_errors => has_errors = false,
        }
    }
    if has_errors {
        let _: Result<(), _> = timeout(LAST_LINES, reading_errors).await;
    }
    connection.end(&last.text());
}

async fn read_messages(connection: &Connection, out: Output) {
    let mut lines = LineReader::with_limit(out, MOST_LINE);
    while let Ok(Some(line)) = lines.next().await {
        match line {
            // Anything else is ignored: programs greet, warn and log on stdout.
            Line::Whole(line) => {
                if let Some(message) = rpc::read(&line) {
                    connection.receive(message);
                }
            }
            Line::TooLong { bytes, head } => {
                if let Some(id) = rpc::answered_by(&head) {
                    connection.settle(id, Err(RequestError::TooLong { bytes, limit: MOST_LINE }));
                }
            }
        }
    }
}
