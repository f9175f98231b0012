//! Terminals that outlive the calls that started them.
//!
//! A terminal is looked at when the model looks, and when a turn ends; what it shows goes into the log then.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use codex_log::{Body, CommandEnd, CommandItem, CommandStatus, Delta, Item, ItemId};
use codex_sandbox::terminal::Terminals;
use codex_shell::{Answer, SandboxState};
use codex_wire::event::ExecOutputStream;
use codex_wire::response::FunctionCallOutputPayload;
use tokio::time::Instant;

use super::Session;
use super::calls::refused;
use crate::turn::Input;
use crate::work::Doing;
use codex_tools::command::{CommandRequest, Looking, Shown, TerminalPoll, WriteRequest, look};
use codex_tools::full_message;

/// How much of what a terminal has shown is kept for the end of its item.
const KEPT_BYTES: usize = 256 * 1024;

/// The terminals of a thread.
pub(super) struct OpenTerminals {
    pub(super) all: Arc<Terminals>,
    /// The number that the next one is called by.
    pub(super) next: u64,
    open: BTreeMap<u64, OpenTerminal>,
}

/// A terminal that goes on after the call that started it.
struct OpenTerminal {
    /// Its number in the sandbox.
    id: u64,
    item: Arc<CommandItem>,
    /// Whether its command runs inside the sandbox.
    is_sandboxed: bool,
    /// Whether a rule or a person has allowed its command, or typing into it for the session.
    is_vouched: bool,
    since: Instant,
    /// What it has shown, up to a limit.
    shown: String,
    /// How many bytes were left out after that.
    left_out: usize,
}

/// A look at a terminal that the model waits for.
pub(crate) struct PollingTerminal {
    pub(crate) look: TerminalPoll,
    pub(crate) looking: Looking,
}

impl OpenTerminals {
    pub(super) fn new() -> Self {
        Self { all: Arc::default(), next: 1, open: BTreeMap::new() }
    }
}

impl OpenTerminal {
    fn take(&mut self, shown: &Shown) {
        let text = String::from_utf8_lossy(&shown.bytes);
        let room = KEPT_BYTES.saturating_sub(self.shown.len());
        let fits = (0..=room.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        self.shown.push_str(&text[..fits]);
        self.left_out += text.len() - fits;
    }

    fn end(self, exit_code: i32) -> Item {
        let text = match self.left_out {
            0 => self.shown,
            more => format!("{}\n[{more} more bytes]", self.shown),
        };
        let end = CommandEnd {
            exit_code,
            duration: self.since.elapsed(),
            stdout: text.clone(),
            stderr: String::new(),
            aggregated: text.clone(),
            formatted: text,
        };
        let status = if exit_code == 0 { CommandStatus::Completed } else { CommandStatus::Failed };
        Item::Command(Arc::new(CommandItem { status, end: Some(end), ..(*self.item).clone() }))
    }
}

impl Session {
    /// Keeps a terminal whose call is over.
    pub(super) fn keep_terminal(&mut self, call: &ItemId, item: Arc<CommandItem>, shown: &Shown) {
        let Some(command) = self.running_command(call) else { return };
        let (since, id) = (command.since, command.terminal);
        let (is_sandboxed, is_vouched) = (command.call.is_sandboxed(), command.call.is_vouched());
        if let (Some(process), Some(id)) = (item.terminal, id) {
            let mut open =
                OpenTerminal { id, item, is_sandboxed, is_vouched, since, shown: String::new(), left_out: 0 };
            open.take(shown);
            self.terminals.open.insert(process, open);
        }
    }

    /// Begins a call of `write_stdin`. Returns what the turn is told when that is already its end.
    pub(super) fn write_terminal(&mut self, call: &ItemId, arguments: &str) -> Option<Input> {
        let refuse = |why: String| Some(refused(call, why));
        let request = match WriteRequest::read(arguments) {
            Ok(request) => request,
            Err(error) => return refuse(format!("failed to parse function arguments: {error}")),
        };
        let process = request.look().process;
        let Some(open) = self.terminals.open.get(&process) else { return Some(no_such_process(call, process)) };
        if let Some(judged) = self.judge_typing(open, request.chars()) {
            let request = CommandRequest::to_type(call, request, &open.item);
            return self.begin_command(request, judged);
        }
        self.type_into(call, &request)
    }

    /// What is to be asked before something is typed. To look without typing is always free.
    fn judge_typing(&self, open: &OpenTerminal, text: &str) -> Option<Answer> {
        if text.is_empty() || open.is_vouched {
            return None;
        }
        let sandbox = match (open.is_sandboxed, self.sandbox_state()) {
            (true, _) => SandboxState::Confined,
            (false, SandboxState::Unconfined) => SandboxState::Unconfined,
            (false, SandboxState::Confined | SandboxState::CannotConfine) => SandboxState::CannotConfine,
        };
        let judged = codex_shell::judge_typed(text, self.turn_settings().approval_policy, sandbox);
        (!matches!(judged, Answer::Run { .. })).then_some(judged)
    }

    /// Lets anything be typed into a terminal from here on.
    pub(super) fn vouch_for_terminal(&mut self, process: u64) {
        if let Some(open) = self.terminals.open.get_mut(&process) {
            open.is_vouched = true;
        }
    }

    /// Types what was asked for, and begins to look at what comes of it.
    pub(super) fn type_into(&mut self, call: &ItemId, request: &WriteRequest) -> Option<Input> {
        let refuse = |why: String| Some(refused(call, why));
        let at = request.look();
        let Some(open) = self.terminals.open.get(&at.process) else { return Some(no_such_process(call, at.process)) };
        let (id, item) = (open.id, open.item.id.clone());
        if !request.chars().is_empty() {
            if let Err(error) = self.terminals.all.write(id, request.chars().as_bytes()) {
                return refuse(full_message(&error));
            }
            let stdin = request.chars().to_owned();
            self.emit(Body::TerminalWritten { item, terminal: at.process, stdin });
        }
        let looking = look(Arc::clone(&self.terminals.all), id, at);
        self.begin_call(call, Doing::Poll(Box::new(PollingTerminal { look: at, looking })));
        None
    }

    /// Takes what a look has shown, and returns what the turn is told.
    pub(super) fn looked(&mut self, call: &ItemId, look: TerminalPoll, shown: Result<Shown, String>) -> Input {
        let text = match shown {
            Ok(shown) => {
                let text = shown.for_model(look);
                self.take_shown(look.process, &shown);
                text
            }
            Err(problem) => problem,
        };
        self.end_call(call, FunctionCallOutputPayload::Text(text))
    }

    fn take_shown(&mut self, process: u64, shown: &Shown) {
        let Some(open) = self.terminals.open.get_mut(&process) else { return };
        open.take(shown);
        if !shown.bytes.is_empty() {
            let item = open.item.id.clone();
            let delta = Delta::Output { stream: ExecOutputStream::Stdout, bytes: shown.bytes.clone() };
            self.emit(Body::ItemDelta { item, delta });
        }
        if let Some(exit_code) = shown.exit_code
            && let Some(open) = self.terminals.open.remove(&process)
        {
            self.emit(Body::ItemCompleted(open.end(exit_code)));
        }
    }

    /// Completes the terminals whose commands have ended without anybody looking.
    pub(super) async fn look_after_terminals(&mut self) {
        let ended = self.terminals.all.list().into_iter().filter(|info| info.exit.is_some()).map(|info| info.id);
        let ended: Vec<u64> = ended.collect();
        let found = self.terminals.open.iter().filter(|(_, open)| ended.contains(&open.id));
        for (process, id) in found.map(|(process, open)| (*process, open.id)).collect::<Vec<_>>() {
            let at = TerminalPoll { process, patience: Duration::ZERO, limit: KEPT_BYTES, is_verbatim: false };
            if let Ok(shown) = look(Arc::clone(&self.terminals.all), id, at).await {
                self.take_shown(process, &shown);
            }
        }
    }

    /// Ends all terminals, because the thread ends.
    pub(super) fn end_terminals(&mut self) {
        for (_, open) in std::mem::take(&mut self.terminals.open) {
            // One that has ended by itself meanwhile needs no end.
            let _: Result<(), _> = self.terminals.all.kill(open.id);
            self.emit(Body::ItemCompleted(open.end(KILLED)));
        }
    }
}

fn no_such_process(call: &ItemId, process: u64) -> Input {
    refused(call, format!("there is no running process with session ID {process}"))
}

/// The exit status of a command that was killed.
const KILLED: i32 = 137;
