//! A terminal that outlives the call that started it.
//!
//! It is polled when the model asks, and at the end of a turn; its output goes to the log then.

use std::sync::Arc;
use std::time::Duration;

use codex_log::{Body, CommandEnd, CommandItem, CommandStatus, Delta, Item};
use codex_wire::event::ExecOutputStream;
use tokio::time::Instant;

use super::terminal::{PollOutput, TerminalPoll, look};
use crate::context::ThreadTools;
use crate::grants::Grants;

/// The maximum number of output bytes kept for the end of its item.
const KEPT_BYTES: usize = 256 * 1024;

/// The exit status of a killed command.
const KILLED: i32 = 137;

/// A terminal that continues after the call that started it.
#[derive(Debug)]
pub struct OpenTerminal {
    /// Its number in the sandbox.
    pub(crate) id: u64,
    pub(crate) item: Arc<CommandItem>,
    /// Whether its command runs inside the sandbox.
    pub(crate) is_sandboxed: bool,
    /// Whether a rule or a person has allowed its command, or typing into it for the session.
    pub(crate) is_vouched: bool,
    pub(crate) since: Instant,
    /// Its output, up to a limit.
    pub(crate) shown: String,
    /// The number of omitted bytes.
    pub(crate) left_out: usize,
}

impl OpenTerminal {
    /// The number that the model uses for it.
    pub(crate) fn process(&self) -> Option<u64> {
        self.item.terminal
    }

    /// Allows typing anything into it from here on.
    pub(crate) fn vouch(&mut self) {
        self.is_vouched = true;
    }

    /// Keeps its output, up to the limit.
    pub(super) fn keep(&mut self, shown: &PollOutput) {
        let text = String::from_utf8_lossy(&shown.bytes);
        let room = KEPT_BYTES.saturating_sub(self.shown.len());
        let fits = (0..=room.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        self.shown.push_str(&text[..fits]);
        self.left_out += text.len() - fits;
    }

    /// Adds its output, and returns the event for the log.
    pub(crate) fn take(&mut self, shown: &PollOutput) -> Option<Body> {
        self.keep(shown);
        let delta = Delta::Output { stream: ExecOutputStream::Stdout, bytes: shown.bytes.clone() };
        (!shown.bytes.is_empty()).then(|| Body::ItemDelta { item: self.item.id.clone(), delta })
    }

    /// Its completed item.
    pub(crate) fn end(self, exit_code: i32) -> Item {
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

impl Grants {
    /// Polls the terminals whose commands have ended unnoticed, and returns the events for the log.
    pub(crate) async fn look_after_terminals(&mut self, thread: &ThreadTools) -> Vec<Body> {
        let ended = thread.terminals.list().into_iter().filter(|info| info.exit.is_some()).map(|info| info.id);
        let ended: Vec<u64> = ended.collect();
        let found = self.terminals.iter().filter(|(_, open)| ended.contains(&open.id));
        let mut told = Vec::new();
        for (process, id) in found.map(|(process, open)| (*process, open.id)).collect::<Vec<_>>() {
            let at = TerminalPoll { process, patience: Duration::ZERO, limit: KEPT_BYTES, is_verbatim: false };
            if let Ok(shown) = look(Arc::clone(&thread.terminals), id, at).await {
                told.extend(self.shown(process, &shown));
            }
        }
        told
    }

    /// The commands whose terminals are open, oldest first.
    pub(crate) fn open_terminals(&self) -> Vec<Item> {
        self.terminals.values().map(|open| Item::Command(Arc::clone(&open.item))).collect()
    }

    /// Ends a terminal, and returns the event for the log; `None` if there is no such terminal.
    pub(crate) fn end_terminal(&mut self, process: u64, thread: &ThreadTools) -> Option<Body> {
        let open = self.terminals.remove(&process)?;
        // A terminal that has ended by itself needs no kill.
        let _: Result<(), _> = thread.terminals.kill(open.id);
        Some(Body::ItemCompleted(open.end(KILLED)))
    }

    /// Ends all terminals, and returns the events for the log.
    pub(crate) fn end_terminals(&mut self, thread: &ThreadTools) -> Vec<Body> {
        let open: Vec<u64> = self.terminals.keys().copied().collect();
        open.into_iter().filter_map(|process| self.end_terminal(process, thread)).collect()
    }
}
