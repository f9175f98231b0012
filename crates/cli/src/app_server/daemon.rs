//! `codex app-server daemon`: a server in the background, on the Unix socket in the home folder.

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use codex_config::{Env, Home};
use codex_transport::{Address, dial, listening, owner};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::time::{Instant, sleep, timeout};

use super::args::{DaemonArgs, DaemonCommand};
use crate::app_server::args::AppServerArgs;
use crate::args::Shared;
use crate::console;
use crate::failure::ErrorWithHint;

/// The time limit for a server to start.
const START: Duration = Duration::from_secs(15);
/// The time limits for a server to stop by itself, and after it is killed.
const STOP: Duration = Duration::from_secs(40);
const KILL: Duration = Duration::from_secs(5);
/// The time limit for a running server to answer.
const ANSWER: Duration = Duration::from_secs(5);
/// The maximum number of bytes shown of a failed server's output.
const COMPLAINT_BYTES: u64 = 4096;
/// The polling interval.
const LOOK: Duration = Duration::from_millis(20);

/// The background server, whether it is running or not.
struct Daemon {
    socket: PathBuf,
    log: PathBuf,
}

/// Starts it, stops it, or prints its status.
pub(crate) fn run(shared: &Shared, args: &AppServerArgs, command: DaemonCommand) -> anyhow::Result<ExitCode> {
    let home = Home::find(&Env::process())?;
    home.ensure()?;
    let daemon = Daemon { socket: home.server_socket(), log: home.server_log() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match command {
            DaemonCommand::Start(DaemonArgs { json }) => daemon.start(program(shared, args)?, json).await,
            DaemonCommand::Stop(DaemonArgs { json }) => daemon.stop(json).await,
            DaemonCommand::Status(DaemonArgs { json }) => daemon.status(json).await,
        }
    })
}

/// The command line of the background server, with the options that were given here.
fn program(shared: &Shared, args: &AppServerArgs) -> anyhow::Result<Command> {
    let mut program = Command::new(std::env::current_exe().context("this program has no path")?);
    program.args(["app-server", "--listen", "unix://", "--detached"]);
    let listening = &args.listening;
    program.arg(format!("--unload-after={}ms", listening.unload_after.as_millis()));
    program.arg(format!("--max-connections={}", listening.max_connections));
    if let Some(emulated) = args.emulate.and_then(|it| clap::ValueEnum::to_possible_value(&it)) {
        program.arg(format!("--emulate={}", emulated.get_name()));
    }
    if let Some(dialect) = args.dialect.and_then(|it| clap::ValueEnum::to_possible_value(&it)) {
        program.arg(format!("--dialect={}", dialect.get_name()));
    }
    let overrides = shared.overrides();
    for value in &overrides.values {
        program.arg(format!("--config={value}"));
    }
    if let Some(profile) = &overrides.profile {
        program.arg(format!("--profile={profile}"));
    }
    if let Some(cwd) = &shared.cwd {
        program.arg("--cd").arg(cwd);
    }
    program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    Ok(program)
}

impl Daemon {
    async fn start(&self, mut program: Command, json: bool) -> anyhow::Result<ExitCode> {
        if let Some(pid) = owner(&self.socket)
            && self.answers(pid).await?
        {
            return self.tell(json, &format!("already running (pid {pid})"), &json!({"started": false}));
        }
        let mut child = program.spawn().context("the server could not be started")?;
        match self.wait_for_answer(&mut child).await {
            Ok(()) => {}
            Err(error) => {
                // An unresponsive server is useless, and would block the next one.
                let _: std::io::Result<()> = child.kill();
                let _: std::io::Result<std::process::ExitStatus> = child.wait();
                return Err(error);
            }
        }
        let pid = owner(&self.socket).context("the server has just ended")?;
        let started = u32::try_from(pid).is_ok_and(|pid| pid == child.id());
        if !started {
            // Another one was faster. Ours would take its place when that one stops.
            let _: std::io::Result<()> = child.kill();
            let _: std::io::Result<std::process::ExitStatus> = child.wait();
        }
        self.tell(json, &format!("running (pid {pid})"), &json!({"started": started}))
    }

    /// Waits until the running server answers; false if it was about to exit and has.
    async fn answers(&self, pid: i32) -> anyhow::Result<bool> {
        let begun = Instant::now();
        while begun.elapsed() < START {
            if owner(&self.socket) != Some(pid) {
                return Ok(false);
            }
            if greet(&self.socket).await.is_some() {
                return Ok(true);
            }
            sleep(LOOK).await;
        }
        Err(self.no_answer())
    }

    /// Waits until the server answers. A child that exits first may have lost a race with another.
    async fn wait_for_answer(&self, child: &mut Child) -> anyhow::Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < START {
            if owner(&self.socket).is_some() && greet(&self.socket).await.is_some() {
                return Ok(());
            }
            if let Ok(Some(status)) = child.try_wait()
                && owner(&self.socket).is_none()
            {
                let what = format!("the server exited immediately ({status}){}", self.complaint(child));
                return Err(ErrorWithHint { what, hint: format!("see its log: {}", self.log.display()) }.into());
            }
            sleep(LOOK).await;
        }
        Err(self.no_answer())
    }

    fn no_answer(&self) -> anyhow::Error {
        let what = format!("the server did not answer within {} s", START.as_secs());
        ErrorWithHint { what, hint: format!("see its log: {}", self.log.display()) }.into()
    }

    async fn stop(&self, json: bool) -> anyhow::Result<ExitCode> {
        let Some(pid) = owner(&self.socket) else {
            return self.tell(json, "not running", &json!({"stopped": false, "forced": false}));
        };
        // The lock names a process, but only the system knows who listens.
        if listening(&self.socket).await != Some(pid) {
            let what =
                format!("process {pid} is said to be the server, but does not listen on {}", self.socket.display());
            let lock = format!("{}.lock", self.socket.display());
            return Err(ErrorWithHint { what, hint: format!("nothing was stopped; see who holds {lock}") }.into());
        }
        let process = Pid::from_raw(pid).context("the server has no process")?;
        // It may be exiting at this moment.
        let _: rustix::io::Result<()> = kill_process(process, Signal::TERM);
        let is_forced = !self.is_gone(pid, STOP).await;
        if is_forced {
            let _: rustix::io::Result<()> = kill_process(process, Signal::KILL);
            if !self.is_gone(pid, KILL).await {
                bail!("could not stop process {pid}");
            }
        }
        let how = if is_forced { "killed: it did not stop in time" } else { "stopped" };
        self.tell(json, how, &json!({"stopped": true, "forced": is_forced}))
    }

    async fn is_gone(&self, pid: i32, patience: Duration) -> bool {
        let begun = Instant::now();
        while owner(&self.socket) == Some(pid) {
            if begun.elapsed() > patience {
                return false;
            }
            sleep(LOOK).await;
        }
        true
    }

    async fn status(&self, json: bool) -> anyhow::Result<ExitCode> {
        let Some(pid) = owner(&self.socket) else {
            self.tell(json, "not running", &json!({}))?;
            return Ok(ExitCode::FAILURE);
        };
        let agent = greet(&self.socket).await;
        let text = match &agent {
            Some(agent) => format!("running (pid {pid}): {agent}"),
            None => format!("running (pid {pid}), but not answering"),
        };
        self.tell(json, &text, &json!({"userAgent": agent}))
    }

    /// The output of a child that has exited: on standard error before it had a log, and in the log afterwards.
    fn complaint(&self, child: &mut Child) -> String {
        let mut text = String::new();
        if let Some(stderr) = child.stderr.take() {
            // A partial message is still worth showing.
            let _: std::io::Result<usize> = stderr.take(COMPLAINT_BYTES).read_to_string(&mut text);
        }
        if text.is_empty()
            && let Ok(mut log) = codex_files::open(&self.log)
        {
            let end = log.seek(SeekFrom::End(0)).unwrap_or_default();
            let _: std::io::Result<u64> = log.seek(SeekFrom::Start(end.saturating_sub(COMPLAINT_BYTES)));
            let _: std::io::Result<usize> = log.take(COMPLAINT_BYTES).read_to_string(&mut text);
        }
        let last = text.lines().rev().find_map(|line| line.strip_prefix("error: "));
        last.map(|line| format!(": {line}")).unwrap_or_default()
    }

    /// Prints the status, for people or for programs.
    fn tell(&self, json: bool, text: &str, more: &Value) -> anyhow::Result<ExitCode> {
        let pid = owner(&self.socket);
        if json {
            let mut state = json!({"running": pid.is_some(), "pid": pid, "socket": self.socket, "log": self.log});
            if let (Some(state), Some(more)) = (state.as_object_mut(), more.as_object()) {
                state.extend(more.clone());
            }
            writeln!(console::json(), "{state}")?;
        } else {
            let mut out = console::out();
            writeln!(out, "{text}")?;
            if pid.is_some() {
                writeln!(out, "socket: {}\nlog: {}", self.socket.display(), self.log.display())?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The user agent of a server; `None` if it does not answer.
async fn greet(socket: &Path) -> Option<String> {
    let greeting = async {
        let (input, mut output) = dial(&Address::Unix(Some(socket.to_owned())), None).await.ok()?;
        let client = json!({"name": "codex_daemon", "version": env!("CARGO_PKG_VERSION")});
        let hello = json!({"id": 0, "method": "initialize", "params": {"clientInfo": client}});
        output.write_all(format!("{hello}\n").as_bytes()).await.ok()?;
        let answer = BufReader::new(input).lines().next_line().await.ok()??;
        let answer: Value = serde_json::from_str(&answer).ok()?;
        answer["result"]["userAgent"].as_str().map(str::to_owned)
    };
    timeout(ANSWER, greeting).await.ok()?
}
