//! What a thread needs to go on: the conversation since its last compaction, and what was in force.

use std::collections::HashMap;
use std::sync::Arc;

use codex_wire::event::TokenCountEvent;
use codex_wire::goal::Goal;
use codex_wire::rollout::{SessionMeta, TurnContextItem};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::line::{BadLine, EventHead, Head, ItemHead, Line, Text};
use crate::request_item;

/// What a thread needs to go on.
#[derive(Debug)]
pub struct History {
    /// Which thread it is.
    pub meta: SessionMeta,
    /// What the last request ran under.
    pub context: Option<TurnContextItem>,
    /// What the thread has cost.
    pub tokens: Option<TokenCountEvent>,
    /// What the items begin with.
    pub beginning: HistoryStart,
    /// The conversation, item by item as it goes into a request.
    pub items: Vec<Arc<RawValue>>,
    /// How many of the items a compaction put there.
    pub replaced: usize,
    /// The places of what the user said since then.
    pub said: Vec<usize>,
    /// Where the turns since then begin, those included in which nobody said anything.
    pub turns: Vec<TurnBegin>,
    /// What the user said last under keys of the client's, oldest first.
    pub keys: Vec<Said>,
    /// Whether the last turn has no end. Files without the words for it are judged by their last item.
    pub unfinished: bool,
    /// The name of that turn, where the file gives it.
    pub unfinished_turn: Option<String>,
    /// What the thread works towards.
    pub goal: Option<Goal>,
    /// Calls without an output, in order.
    pub open_calls: Vec<OpenCall>,
    /// Lines that were passed over, the first hundred of them.
    pub bad_lines: Vec<BadLine>,
}

/// Something the user said under a key of the client's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The key.
    pub key: String,
    /// The turn that took it in.
    pub turn: String,
}

/// Where a turn begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnBegin {
    /// The place of its first item.
    pub item: usize,
    /// Its name, where the file gives it.
    pub id: Option<String>,
}

/// What the items of a history begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryStart {
    /// The beginning of the thread.
    Start,
    /// What the last compaction left, complete.
    Replacement,
    /// A summary by a release that did not record what else it left: what the user had said, and the summary. What a
    /// conversation begins with, before anything is said, has to be put in front.
    Summary,
}

/// A call of the model that got no output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenCall {
    /// The name that its output must bear.
    pub call_id: String,
    /// The type of its item.
    pub kind: String,
    /// What was called.
    pub name: Option<String>,
    /// Its place among the items.
    pub item: usize,
    /// Whether a person had been asked about it and had not answered.
    pub is_asked: bool,
}

/// Up to where a thread is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForkPoint {
    /// All of it.
    End,
    /// The first turns, so many.
    Turns(usize),
}

/// The newest lines of their kind, of which a history needs only the last.
#[derive(Debug, Default)]
pub struct NewestLines {
    /// The newest `turn_context` line.
    pub turn_context: Option<String>,
    /// The newest token count that has figures.
    pub token_count: Option<String>,
}

/// What a `compacted` line says.
#[derive(Deserialize)]
struct CompactedLine<'a> {
    #[serde(default)]
    message: String,
    #[serde(borrow, default)]
    replacement_history: Option<Vec<&'a RawValue>>,
}

/// Whether a line of the type `compacted` says what one says, so that a history can start from it.
#[must_use]
pub fn is_compaction(line: &Line<'_>) -> bool {
    serde_json::from_str::<CompactedLine<'_>>(line.payload.get()).is_ok()
}

/// A conversation while it is put together again.
#[derive(Debug, Default)]
pub struct Rebuild {
    items: Vec<Arc<RawValue>>,
    beginning: Option<HistoryStart>,
    replaced: usize,
    said: Vec<usize>,
    turns: Vec<TurnBegin>,
    keys: Vec<Said>,
    /// The newest message in the user's name that no event has claimed yet.
    unclaimed: Option<usize>,
    goal: Option<Goal>,
    open: HashMap<String, OpenCall>,
    /// Whether a turn runs.
    running: bool,
    /// The name of the turn that began last, where the file gives it.
    turn: Option<String>,
    /// Whether a line said that it started, so that only a line can say that it ended.
    announced: bool,
}

impl Rebuild {
    /// Takes in a line that is no compaction.
    pub fn see(&mut self, line: &Line<'_>) {
        match &*line.kind {
            "response_item" => self.see_item(line.payload),
            "event_msg" => self.see_event(line),
            _ => {}
        }
    }

    fn see_item(&mut self, payload: &RawValue) {
        let Some(head) = ItemHead::of(payload) else { return };
        let Some(item) = request_item::for_request(payload, &head) else { return };
        let place = self.items.len();
        self.items.push(item);
        if head.is_message_of("user") {
            self.unclaimed = Some(place);
        } else if !self.announced && (head.kind != "message" || head.is_message_of("assistant")) {
            // Without words for it, a turn is over when the model has said something and called nothing after it.
            self.running = head.kind != "message";
        }
        let Some(call_id) = head.call_id else { return };
        if head.kind.ends_with("_output") {
            self.open.remove(&*call_id.0);
        } else if head.kind.ends_with("_call") {
            let call_id = call_id.0.into_owned();
            let name = head.name.map(|name| name.0.into_owned());
            let call =
                OpenCall { call_id: call_id.clone(), kind: head.kind.into_owned(), name, item: place, is_asked: false };
            self.open.insert(call_id, call);
        }
    }

    fn see_event(&mut self, line: &Line<'_>) {
        // Most events say nothing here, and their head tells without parsing them.
        let inner = Head::of(line.text.as_bytes()).map_or("", |head| head.inner);
        match inner {
            "" | "user_message" | "item_completed" | "thread_rolled_back" => {}
            "task_started" | "turn_started" | "task_complete" | "turn_complete" | "turn_aborted" => {}
            "approval_asked" | "approval_answered" => {}
            "goal_changed" | "goal_cleared" => return self.see_goal(line),
            _ => return,
        }
        let Some(event) = line.event() else { return };
        if event.is_user_message() {
            if let Some(place) = self.unclaimed.take() {
                if !self.announced {
                    self.begin_turn(place, event.turn_id.as_ref());
                }
                self.said.push(place);
            }
            self.running = true;
            if let (Some(key), Some(turn)) = (event.client_id, event.turn_id) {
                self.keys.push(Said { key: key.0.into_owned(), turn: turn.0.into_owned() });
            }
            return;
        }
        match &*event.kind {
            "task_started" | "turn_started" => {
                (self.running, self.announced) = (true, true);
                self.begin_turn(self.items.len(), event.turn_id.as_ref());
                self.turn = event.turn_id.map(|turn| turn.0.into_owned());
            }
            "approval_asked" | "approval_answered" => {
                let call = event.call_id.and_then(|call| self.open.get_mut(&*call.0));
                if let Some(call) = call {
                    call.is_asked = event.kind == "approval_asked";
                }
            }
            "task_complete" | "turn_complete" | "turn_aborted" => (self.running, self.announced) = (false, false),
            "thread_rolled_back" => self.take_back(&event),
            _ => {}
        }
    }

    /// A goal stays whatever turns are taken back: it is the user's. One that cannot be read is none.
    fn see_goal(&mut self, line: &Line<'_>) {
        #[derive(Deserialize)]
        struct Told {
            goal: Option<Goal>,
        }
        self.goal = line.payload_as::<Told>().and_then(|told| told.goal);
    }

    fn begin_turn(&mut self, item: usize, id: Option<&Text<'_>>) {
        self.turns.push(TurnBegin { item, id: id.map(|id| id.0.clone().into_owned()) });
    }

    /// Forgets the last turns: from the one that is named, or from the last so many things that the user said.
    fn take_back(&mut self, event: &EventHead<'_>) {
        let named = event.turn_id.as_ref().and_then(|id| {
            let turn = self.turns.iter().rev().find(|turn| turn.id.as_deref() == Some(&*id.0));
            turn.map(|turn| turn.item)
        });
        let kept = match (named, event.turns_taken_back()) {
            (Some(place), _) => place,
            (None, 0) => return,
            (None, turns) => self.said.len().checked_sub(turns).map_or(self.replaced, |left| self.said[left]),
        };
        self.said.retain(|place| *place < kept);
        self.turns.retain(|turn| turn.item < kept);
        self.items.truncate(kept);
        self.open.retain(|_, call| call.item < kept);
        self.unclaimed = None;
        self.running = false;
    }

    /// Starts from what a compaction left. What the user had said before it is asked for where the line does not tell what
    /// remains.
    ///
    /// # Errors
    /// When that cannot be told.
    pub fn compact<E>(
        &mut self,
        line: &Line<'_>,
        said_before: impl FnOnce() -> Result<Vec<String>, E>,
    ) -> Result<(), E> {
        let Ok(compacted) = serde_json::from_str::<CompactedLine<'_>>(line.payload.get()) else { return Ok(()) };
        if let Some(replacement) = compacted.replacement_history {
            self.beginning = Some(HistoryStart::Replacement);
            for item in replacement {
                self.see_item(item);
            }
        } else {
            self.beginning = Some(HistoryStart::Summary);
            let said = said_before()?;
            let texts = said.iter().map(String::as_str).chain([&*compacted.message]);
            self.items.extend(texts.filter_map(request_item::user_message));
        }
        self.replaced = self.items.len();
        self.unclaimed = None;
        self.running = false;
        Ok(())
    }

    /// The history of a thread, with the newest lines of those kinds and the lines that were passed over.
    #[must_use]
    pub fn finish(self, meta: SessionMeta, newest: &NewestLines, bad_lines: Vec<BadLine>) -> History {
        let mut open_calls: Vec<OpenCall> = self.open.into_values().collect();
        open_calls.sort_by_key(|call| call.item);
        History {
            meta,
            context: newest.turn_context.as_deref().and_then(|text| Line::parse(text).ok()?.payload_as()),
            tokens: newest.token_count.as_deref().and_then(|text| Line::parse(text).ok()?.payload_as()),
            beginning: self.beginning.unwrap_or(HistoryStart::Start),
            items: self.items,
            replaced: self.replaced,
            said: self.said,
            turns: self.turns,
            keys: self.keys,
            unfinished: self.running,
            unfinished_turn: self.turn.filter(|_| self.running),
            goal: self.goal,
            open_calls,
            bad_lines,
        }
    }
}
