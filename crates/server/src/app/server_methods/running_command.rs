//! One running command of a client: its output, its input, and its end.

use std::sync::Arc;

use codex_protocol::rpc::{ErrorObject, Notification};
use codex_protocol::v2::command_exec::{
    CommandExecOutputDeltaNotification, CommandExecOutputStream, CommandExecResponse, CommandExecTerminalSize,
};
use codex_protocol::v2::notification::ServerNotification;
use codex_tools::one_off::{Input, Process, Pty, Step, Stream};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;

use super::commands::Phase;
use crate::app::connection::Connection;
use crate::app::outbox::add_line;
use codex_dialects::ProtocolRelease;

/// The maximum number of input bytes that may wait for the command.
const TYPED_BYTES: usize = 1024 * 1024;
/// The character that ends the input of a terminal.
const END_OF_TRANSMISSION: u8 = 4;
/// The exit code of a command that timed out, in releases that answer with its output.
const TIMED_OUT: i32 = 124;

/// A request about a running command.
#[derive(Debug)]
pub(super) enum Control {
    /// Writes to its input.
    Type {
        bytes: Vec<u8>,
        /// Whether the input ends here.
        is_last: bool,
    },
    /// Resizes the terminal.
    Resize(CommandExecTerminalSize),
}

pub(super) struct RunningCommand {
    pub(super) connection: Arc<Connection>,
    pub(super) process: Process,
    pub(super) input: Option<Input>,
    pub(super) terminal: Option<Pty>,
    pub(super) controls: mpsc::Receiver<Control>,
    /// Signals that the client wants the command to end.
    pub(super) stop: Arc<Notify>,
    /// The deadline.
    pub(super) deadline: Option<Instant>,
    /// Input that the command has not read yet.
    pub(super) typed: Vec<u8>,
    /// Whether the client sends no more input.
    pub(super) is_input_over: bool,
    pub(super) printed: Printed,
}

/// The output of a command: kept for the response, or sent while it runs.
#[derive(Debug)]
pub(super) struct Printed {
    /// The id of the command, if its output is sent while it runs.
    streamed_as: Option<String>,
    /// The maximum number of bytes of each stream that are kept or sent.
    cap: usize,
    out: Counted,
    err: Counted,
    /// Lines that wait to be sent.
    unsent: Vec<u8>,
}

/// One of the streams.
#[derive(Debug, Default)]
struct Counted {
    kept: Vec<u8>,
    /// The number of bytes that were kept or sent.
    taken: usize,
    is_cut: bool,
}

impl Printed {
    /// Creates an output that keeps a number of bytes of each stream, or sends them under an id.
    pub(super) fn new(streamed_as: Option<String>, cap: usize) -> Self {
        Self { streamed_as, cap, out: Counted::default(), err: Counted::default(), unsent: Vec::new() }
    }

    /// Adds a chunk of output up to the limit; the rest is dropped.
    fn take(&mut self, stream: Stream, bytes: &[u8], is_unwanted: bool) {
        let (counted, stream) = match stream {
            Stream::Stdout => (&mut self.out, CommandExecOutputStream::Stdout),
            Stream::Stderr => (&mut self.err, CommandExecOutputStream::Stderr),
        };
        let fits = bytes.len().min(self.cap - counted.taken);
        counted.taken += fits;
        let bytes = bytes.get(..fits).unwrap_or_default();
        let Some(name) = &self.streamed_as else { return counted.kept.extend_from_slice(bytes) };
        if counted.is_cut || is_unwanted {
            return;
        }
        counted.is_cut = counted.taken == self.cap;
        let delta = CommandExecOutputDeltaNotification {
            process_id: name.clone(),
            stream,
            delta: bytes.to_vec(),
            cap_reached: counted.is_cut,
        };
        let notification = ServerNotification::CommandExecOutputDelta(delta);
        let (method, emitted_at_ms) = (notification.method(), crate::app::now_ms());
        add_line(&mut self.unsent, &Notification { method, params: &notification, emitted_at_ms });
    }

    fn response(&self, exit_code: i32) -> CommandExecResponse {
        let text = |counted: &Counted| String::from_utf8_lossy(&counted.kept).into_owned();
        CommandExecResponse { exit_code, stdout: text(&self.out), stderr: text(&self.err) }
    }
}

impl RunningCommand {
    /// Runs the command until it ends.
    pub(super) async fn run(
        mut self,
        mut phase: watch::Receiver<Phase>,
        ends_at: Phase,
    ) -> Result<CommandExecResponse, ErrorObject> {
        let connection = Arc::clone(&self.connection);
        let method = "command/exec/outputDelta";
        let is_unwanted = connection.client().is_some_and(|client| client.is_unwanted(method));
        let (mut timed_out, mut is_ending) = (false, false);
        let exit_code = loop {
            // While output waits for room, no more is read, so the command waits too.
            let has_unsent = !self.printed.unsent.is_empty();
            let (deadline, can_write) = (self.deadline, !self.typed.is_empty() && self.input.is_some());
            tokio::select! {
                step = self.process.next(), if !has_unsent => match step {
                    Step::Printed(stream, bytes) => self.printed.take(stream, &bytes, is_unwanted),
                    Step::Ended(code) => break code,
                },
                room = connection.outbox.room(self.printed.unsent.len()), if has_unsent => {
                    connection.outbox.send_notification(std::mem::take(&mut self.printed.unsent), room);
                }
                Some(control) = self.controls.recv(), if self.typed.len() < TYPED_BYTES => self.obey(control),
                written = write_some(&mut self.input, &self.typed), if can_write => self.wrote(written),
                () = self.stop.notified() => self.process.kill(),
                () = reach(&mut phase, if is_ending { Phase::Gone } else { ends_at }) => {
                    if is_ending {
                        return Err(ErrorObject::internal("the connection has ended"));
                    }
                    is_ending = true;
                    self.process.kill();
                }
                () = sleep_until(deadline), if deadline.is_some() => {
                    timed_out = true;
                    self.deadline = None;
                    self.process.kill();
                }
            }
        };
        match (timed_out, self.connection.release()) {
            (false, _) => Ok(self.printed.response(exit_code)),
            (true, ProtocolRelease::V0166) => Ok(self.printed.response(TIMED_OUT)),
            (true, ProtocolRelease::V058 | ProtocolRelease::V077) => {
                Err(ErrorObject::internal("exec failed: command timed out"))
            }
        }
    }

    fn obey(&mut self, control: Control) {
        match control {
            Control::Type { bytes, is_last } => {
                if self.is_input_over {
                    return;
                }
                self.typed.extend_from_slice(&bytes);
                self.is_input_over = is_last;
                if is_last && self.terminal.is_some() {
                    self.typed.push(END_OF_TRANSMISSION);
                }
                self.close_input();
            }
            Control::Resize(size) => {
                if let Some(terminal) = &self.terminal {
                    // The size of a terminal whose command has just ended does not matter.
                    let _: std::io::Result<()> = terminal.resize(size.rows, size.cols);
                }
            }
        }
    }

    fn wrote(&mut self, written: std::io::Result<usize>) {
        if let Ok(length) = written {
            self.typed.drain(..length.min(self.typed.len()));
        } else {
            // The command no longer reads.
            (self.is_input_over, self.typed) = (true, Vec::new());
        }
        self.close_input();
    }

    /// Closes the input once all of it has been written.
    fn close_input(&mut self) {
        if self.is_input_over && self.typed.is_empty() {
            self.input = None;
        }
    }
}

async fn write_some(input: &mut Option<Input>, bytes: &[u8]) -> std::io::Result<usize> {
    match input {
        Some(input) => input.write(bytes).await,
        None => Ok(0),
    }
}

async fn reach(phase: &mut watch::Receiver<Phase>, wanted: Phase) {
    // The connection outlives its commands, and so does the channel of its phases.
    let _: Result<_, _> = phase.wait_for(|phase| *phase >= wanted).await.map(drop);
}

async fn sleep_until(deadline: Option<Instant>) {
    if let Some(deadline) = deadline {
        tokio::time::sleep_until(deadline).await;
    }
}
