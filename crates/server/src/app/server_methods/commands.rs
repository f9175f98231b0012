//! `command/exec` and the requests about a running command.
//!
//! Invariant: every command ends with the connection that started it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use codex_protocol::methods::call;
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::command_exec::{
    CommandExecParams, CommandExecResizeParams, CommandExecResponse, CommandExecTerminalSize,
    CommandExecTerminateParams, CommandExecWriteParams,
};
use codex_protocol::v2::empty::Empty;
use codex_tools::one_off::{OneOff, Streams};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;

use super::running_command::{Control, Printed, RunningCommand};
use super::{explain, with_host};
use crate::app::connection::{Connection, lock, overloaded};
use crate::app::dispatch::{Request, Serve, serve};
use crate::app::host::Host;

/// The maximum number of commands that a client may run at once.
const MOST_COMMANDS: usize = 64;
/// The time limit of a command that names none.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The number of bytes kept of each stream when the client names no limit.
const KEPT_BYTES: usize = 1024 * 1024;
/// The maximum number of bytes kept of each stream, because a response is one line.
const MOST_KEPT_BYTES: usize = 24 * 1024 * 1024;
/// The size of a terminal when the client names none.
const TERMINAL: CommandExecTerminalSize = CommandExecTerminalSize { rows: 24, cols: 80 };
/// The maximum number of requests that may wait for a command.
const WAITING_CONTROLS: usize = 64;

/// The phases of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// The client sends requests and receives answers.
    #[default]
    Open,
    /// The client can send no more requests.
    HungUp,
    /// The client receives no more answers.
    Gone,
}

/// The running commands of a client.
#[derive(Debug, Default)]
pub(super) struct Commands {
    phase: watch::Sender<Phase>,
    count: AtomicUsize,
    /// Those that the client has given an id.
    named: Mutex<HashMap<String, Handle>>,
}

/// The channel to a running command.
#[derive(Debug, Clone)]
struct Handle {
    controls: mpsc::Sender<Control>,
    stop: Arc<Notify>,
    has_input: bool,
    has_terminal: bool,
}

impl Commands {
    /// Sets the phase of the connection.
    pub(super) fn enter(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }

    fn find(&self, name: &str) -> Result<Handle, ErrorObject> {
        let found = lock(&self.named).get(name).cloned();
        found.ok_or_else(|| ErrorObject::invalid(format!("no active command/exec for process id {name:?}")))
    }
}

serve! {
    plain {
        CommandExecWrite => write,
        CommandExecResize => resize,
        CommandExecTerminate => terminate,
    }
}

impl Serve for call::CommandExec {
    async fn serve(request: Request<Self>, params: CommandExecParams) {
        // The command is registered before the next line is read, which may be about it.
        match admit(&request.connection, params) {
            Ok(admitted) => drop(tokio::spawn(run(request, admitted))),
            Err(error) => request.answer(Err(error)).await,
        }
    }
}

/// A command that may run, and the channel to it.
struct Admitted {
    command: OneOff,
    controls: mpsc::Receiver<Control>,
    stop: Arc<Notify>,
    timeout: Option<Duration>,
    printed: Printed,
    /// The phase of the connection in which the command ends.
    ends_at: Phase,
    _place: Place,
}

/// The slot of a running command. Dropping it frees the slot and the id.
struct Place {
    connection: Arc<Connection>,
    name: Option<String>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let commands = &self.connection.resources.commands;
        commands.count.fetch_sub(1, Ordering::Relaxed);
        if let Some(name) = &self.name {
            lock(&commands.named).remove(name);
        }
    }
}

fn admit(connection: &Arc<Connection>, params: CommandExecParams) -> Result<Admitted, ErrorObject> {
    check(&params)?;
    let CommandExecParams { tty, stream_stdin, stream_stdout_stderr, .. } = params;
    let size = params.size.unwrap_or(TERMINAL);
    let streams = match (tty, stream_stdin) {
        (true, _) => Streams::Terminal { rows: size.rows, cols: size.cols },
        (false, true) => Streams::InputAndOutput,
        (false, false) => Streams::Output,
    };
    let (sender, controls) = mpsc::channel(WAITING_CONTROLS);
    let stop = Arc::new(Notify::new());
    let has_input = tty || stream_stdin;
    let handle = Handle { controls: sender, stop: Arc::clone(&stop), has_input, has_terminal: tty };
    let place = take_place(connection, params.process_id.clone(), handle)?;
    let cap = match (params.output_bytes_cap, params.disable_output_cap) {
        (_, true) => MOST_KEPT_BYTES,
        (None, false) => KEPT_BYTES,
        (Some(cap), false) => usize::try_from(cap).unwrap_or(MOST_KEPT_BYTES).min(MOST_KEPT_BYTES),
    };
    let limit = params.timeout_ms.and_then(|limit| u64::try_from(limit).ok()).map_or(TIMEOUT, Duration::from_millis);
    let start = &connection.host.start;
    Ok(Admitted {
        command: OneOff {
            argv: params.command,
            cwd: params.cwd.map_or_else(|| start.cwd.clone(), |cwd| start.cwd.join(cwd)),
            env: params.env.unwrap_or_default(),
            policy: params.sandbox_policy,
            streams,
        },
        printed: Printed::new(params.process_id.filter(|_| tty || stream_stdout_stderr), cap),
        controls,
        stop,
        timeout: (!params.disable_timeout).then_some(limit),
        // A command that waits for input, or has no timeout, would never end once the client disconnects.
        ends_at: if has_input || params.disable_timeout { Phase::HungUp } else { Phase::Gone },
        _place: place,
    })
}

/// Checks a request.
fn check(params: &CommandExecParams) -> Result<(), ErrorObject> {
    let complaint = if params.command.is_empty() {
        "command must not be empty".to_owned()
    } else if params.process_id.is_none() && (params.tty || params.stream_stdin || params.stream_stdout_stderr) {
        "command/exec with a terminal or with streams needs a processId".to_owned()
    } else if params.size.is_some() && !params.tty {
        "command/exec takes a size only with tty".to_owned()
    } else if params.size.is_some_and(|size| size.rows == 0 || size.cols == 0) {
        "the size of a terminal must not be zero".to_owned()
    } else if params.disable_timeout && params.timeout_ms.is_some() {
        "command/exec cannot take both timeoutMs and disableTimeout".to_owned()
    } else if params.disable_output_cap && params.output_bytes_cap.is_some() {
        "command/exec cannot take both outputBytesCap and disableOutputCap".to_owned()
    } else if let Some(limit) = params.timeout_ms.filter(|limit| *limit < 0) {
        format!("timeoutMs must not be negative, got {limit}")
    } else {
        return Ok(());
    };
    Err(ErrorObject::invalid(complaint))
}

fn take_place(connection: &Arc<Connection>, name: Option<String>, handle: Handle) -> Result<Place, ErrorObject> {
    let commands = &connection.resources.commands;
    let mut named = lock(&commands.named);
    if let Some(name) = name.as_ref().filter(|name| named.contains_key(*name)) {
        return Err(ErrorObject::invalid(format!("duplicate active command/exec process id: {name:?}")));
    }
    if commands.count.load(Ordering::Relaxed) >= MOST_COMMANDS {
        return Err(overloaded());
    }
    commands.count.fetch_add(1, Ordering::Relaxed);
    if let Some(name) = &name {
        named.insert(name.clone(), handle);
    }
    drop(named);
    Ok(Place { connection: Arc::clone(connection), name })
}

/// Runs a command and answers when it has ended. Its id is free again before the client receives the response.
async fn run(request: Request<call::CommandExec>, admitted: Admitted) {
    let result = run_to_end(&request.connection, admitted).await;
    request.answer(result).await;
}

async fn run_to_end(connection: &Arc<Connection>, admitted: Admitted) -> Result<CommandExecResponse, ErrorObject> {
    let Admitted { command, controls, stop, timeout, printed, ends_at, _place } = admitted;
    let config = with_host(connection, Host::config).await?;
    let start = &connection.host.start;
    let started = command.start(&config, start.config.home(), start.programs.as_deref());
    let started = started.map_err(|error| {
        let hint = error.hint().map(str::to_owned);
        ErrorObject::internal(format!("exec failed: {}", explain(&error, hint)))
    })?;
    let running = RunningCommand {
        connection: Arc::clone(connection),
        process: started.process,
        input: started.input,
        terminal: started.terminal,
        controls,
        stop,
        deadline: timeout.and_then(|limit| Instant::now().checked_add(limit)),
        typed: Vec::new(),
        is_input_over: false,
        printed,
    };
    running.run(connection.resources.commands.phase.subscribe(), ends_at).await
}

fn control(handle: &Handle, control: Control) -> Result<Empty, ErrorObject> {
    match handle.controls.try_send(control) {
        Ok(()) => Ok(Empty {}),
        Err(mpsc::error::TrySendError::Full(_)) => Err(overloaded()),
        Err(mpsc::error::TrySendError::Closed(_)) => Err(ErrorObject::invalid("the command has ended")),
    }
}

fn write(connection: &Arc<Connection>, params: CommandExecWriteParams) -> Result<Empty, ErrorObject> {
    let CommandExecWriteParams { process_id, delta, close_stdin } = params;
    let handle = connection.resources.commands.find(&process_id)?;
    if !handle.has_input {
        return Err(ErrorObject::invalid("the command was started without streamStdin and takes no input"));
    }
    if delta.is_none() && !close_stdin {
        return Err(ErrorObject::invalid("command/exec/write needs deltaBase64 or closeStdin"));
    }
    control(&handle, Control::Type { bytes: delta.unwrap_or_default(), is_last: close_stdin })
}

fn resize(connection: &Arc<Connection>, params: CommandExecResizeParams) -> Result<Empty, ErrorObject> {
    let handle = connection.resources.commands.find(&params.process_id)?;
    if !handle.has_terminal {
        return Err(ErrorObject::invalid("the command was started without tty and has no size"));
    }
    if params.size.rows == 0 || params.size.cols == 0 {
        return Err(ErrorObject::invalid("the size of a terminal must not be zero"));
    }
    control(&handle, Control::Resize(params.size))
}

fn terminate(connection: &Arc<Connection>, params: CommandExecTerminateParams) -> Result<Empty, ErrorObject> {
    connection.resources.commands.find(&params.process_id)?.stop.notify_one();
    Ok(Empty {})
}
