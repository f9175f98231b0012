//! A recorded thread, replayed without a model: for authors of clients, and for bug reports.
//!
//! The file is decoded to the log, and the log goes through the same projections as that of a running thread. Data that
//! no file stores, such as the deltas of a text, is replayed as one piece.

pub mod missed;
mod player;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use codex_log::decode::{Decoder, Wanted};
use codex_log::settings::Settings;
use codex_log::store::{Entry, LineSource, StoreError};
use codex_log::{Body, Event, TurnId};
use codex_protocol::rpc::Notification;
use codex_protocol::v2::notification::{ServerNotification, ThreadStarted};
use codex_protocol::v2::thread::ThreadStatus;
use serde::Serialize;
use serde_json::json;

pub use self::player::Player;
use crate::eq::{self, Vocabulary};
use crate::v2::project::{ProjectionOptions, Projector};
use crate::v2::thread;
use crate::{ProtocolRelease, exec};

/// The dialect of a replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Dialect {
    /// The lines of `codex proto`.
    #[default]
    Eq,
    /// The notifications of `codex app-server`.
    V2,
    /// The lines of `codex exec --json`.
    Exec,
}

/// A line, and its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimedLine {
    /// In milliseconds of Unix time.
    pub at_ms: i64,
    /// The line, with its end.
    pub line: String,
}

/// Replays a stored thread. This blocks; call it off the async threads.
#[derive(Debug)]
pub struct Replay {
    lines: Box<dyn LineSource>,
    player: Player,
    voice: Projection,
    waiting: VecDeque<TimedLine>,
    is_over: bool,
}

#[derive(Debug)]
enum Projection {
    Eq,
    V2(Option<Projector>),
    Exec(exec::Projector),
}

impl Replay {
    /// Opens a thread whose lines can be read more than once.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(
        place: &Path,
        read: impl Fn() -> Result<Box<dyn LineSource>, StoreError>,
        dialect: Dialect,
    ) -> Result<Self, StoreError> {
        let voice = match dialect {
            Dialect::Eq => Projection::Eq,
            Dialect::V2 => Projection::V2(None),
            Dialect::Exec => Projection::Exec(exec::Projector::default()),
        };
        let player = Player::new(place, first_settings(&mut *read()?)?);
        let lines = read()?;
        Ok(Self { lines, player, voice, waiting: VecDeque::new(), is_over: false })
    }

    /// The next line; `None` at the end.
    ///
    /// # Errors
    /// When the rest of the file cannot be read.
    pub fn next_line(&mut self) -> Result<Option<TimedLine>, StoreError> {
        while self.waiting.is_empty() && !self.is_over {
            let mut events = Vec::new();
            match self.lines.next_entry()? {
                Some(Entry::Line(line)) => self.player.take(&line, &mut events),
                // An unreadable line cannot be replayed.
                Some(Entry::Bad(_)) => {}
                None => {
                    self.is_over = true;
                    self.player.finish(&mut events);
                }
            }
            for event in events {
                self.voice.say(&event, &mut self.waiting);
            }
        }
        Ok(self.waiting.pop_front())
    }
}

/// The settings of the first turn: clients get them before the turn starts, files after.
fn first_settings(lines: &mut dyn LineSource) -> Result<Option<Arc<Settings>>, StoreError> {
    let (mut decoder, mut events) = (Decoder::new(Wanted::SETTINGS), Vec::new());
    while let Some(entry) = lines.next_entry()? {
        let Entry::Line(line) = entry else { continue };
        decoder.line(&line, &mut events);
        if let Some(Event { body: Body::ModelAsked(settings), .. }) = events.pop() {
            return Ok(Some(settings));
        }
    }
    Ok(None)
}

impl Projection {
    fn say(&mut self, event: &Event, out: &mut VecDeque<TimedLine>) {
        let at_ms = event.at_ms;
        match self {
            Self::Eq => {
                let mut messages = Vec::new();
                eq::project(event, Vocabulary::default(), &mut messages);
                let id = event.turn.as_ref().map(TurnId::as_str).unwrap_or_default();
                out.extend(messages.iter().filter_map(|msg| due(at_ms, &json!({"id": id, "msg": msg}))));
            }
            Self::V2(projector) => {
                let projector = projector.get_or_insert_with(|| {
                    Projector::new(event.thread.to_string(), ProtocolRelease::V0166, ProjectionOptions::default())
                });
                let mut notifications = Vec::new();
                // A server tells the client that started the thread, whose log says it to all.
                if let Body::ThreadStarted(started) = &event.body {
                    let thread = thread::loaded(started, &started.settings, ThreadStatus::Idle);
                    notifications.push(ServerNotification::ThreadStarted(Box::new(ThreadStarted { thread })));
                }
                projector.project(event, &mut notifications);
                out.extend(notifications.iter().filter_map(|params| {
                    due(at_ms, &Notification { method: params.method(), params, emitted_at_ms: at_ms })
                }));
            }
            Self::Exec(projector) => {
                let mut events = Vec::new();
                projector.project(event, &mut events);
                out.extend(events.iter().filter_map(|event| due(at_ms, event)));
            }
        }
    }
}

fn due(at_ms: i64, line: &impl Serialize) -> Option<TimedLine> {
    let line = serde_json::to_string(line).ok()? + "\n";
    Some(TimedLine { at_ms, line })
}

#[cfg(test)]
mod tests;
