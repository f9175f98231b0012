//! The turns of a thread as its file tells them.

use std::borrow::Cow;

use codex_log::line::Line;
use codex_log::{StoredItem, review};
use codex_protocol::v2::item::{InputItem, ThreadItem, TimedItem};
use codex_protocol::v2::turn::{ItemsView, Turn, TurnError, TurnStatus};
use codex_wire::error_info::CodexErrorInfo;
use codex_wire::event::UserMessageEvent;
use codex_wire::input::TextElement;
use codex_wire::review::ReviewOutputEvent;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::items::thread_item;
use crate::Vintage;

/// What a line says, as far as it is shown. One pass over the text is all it costs.
#[derive(Deserialize)]
struct Payload<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    turn_id: Option<String>,
    #[serde(default)]
    item_id: Option<String>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    images: Option<Vec<String>>,
    #[serde(default)]
    text_elements: Vec<TextElement>,
    #[serde(default)]
    user_facing_hint: Option<String>,
    /// What a reviewer was asked.
    #[serde(default)]
    prompt: Option<String>,
    #[serde(default)]
    review_output: Option<ReviewOutputEvent>,
    #[serde(default)]
    codex_error_info: Option<CodexErrorInfo>,
    #[serde(default)]
    num_turns: Option<usize>,
    #[serde(default, borrow)]
    item: Option<&'a RawValue>,
    #[serde(default)]
    started_at_ms: Option<i64>,
    /// The client's own name for what the user said.
    #[serde(default)]
    client_id: Option<String>,
}

/// Where in a line the type of its item stands, at the latest.
const HEAD_BYTES: usize = 256;

/// Puts the turns of a thread together from its lines.
#[derive(Debug)]
pub struct TurnReader {
    vintage: Vintage,
    turns: Vec<Turn>,
    /// How many items were found, for names where the file gives none.
    items: usize,
}

impl TurnReader {
    /// Reads for clients of a release.
    #[must_use]
    pub fn new(vintage: Vintage) -> Self {
        Self { vintage, turns: Vec::new(), items: 0 }
    }

    /// The turns that the lines so far tell.
    #[must_use]
    pub fn into_turns(self) -> Vec<Turn> {
        self.turns
    }

    /// Takes the next line.
    pub fn take(&mut self, line: &Line<'_>) {
        if line.kind != "event_msg" || self.is_never_shown(line.payload.get()) {
            return;
        }
        let Ok(mut payload) = serde_json::from_str::<Payload<'_>>(line.payload.get()) else { return };
        let at_ms = milliseconds(&line.timestamp);
        let text = payload.message.take().or(payload.text.take()).unwrap_or_default();
        match &*payload.kind {
            "task_started" | "turn_started" => self.begin(payload.turn_id, at_ms),
            "item_completed" => self.completed(payload, at_ms),
            "user_message" => {
                self.begin_unless_running(payload.turn_id, at_ms);
                let Payload { images, text_elements, .. } = payload;
                let content = InputItem::all_of(UserMessageEvent { message: text, images, text_elements });
                let id = self.item_name(payload.item_id);
                let client_id = payload.client_id;
                self.add(ThreadItem::UserMessage { id, client_id, content }, at_ms, at_ms);
            }
            "agent_message" => {
                let id = self.item_name(payload.item_id);
                self.add(ThreadItem::agent_message(id, text), at_ms, at_ms);
            }
            "agent_reasoning" => self.think(payload.item_id, Some(text), None, at_ms),
            "agent_reasoning_raw_content" => self.think(payload.item_id, None, Some(text), at_ms),
            "entered_review_mode" => {
                let id = self.item_name(payload.item_id);
                let review = payload.user_facing_hint.unwrap_or_default();
                self.add(ThreadItem::EnteredReviewMode { id, review }, at_ms, at_ms);
                if let Some(text) = payload.prompt {
                    let (id, client_id) = (self.item_name(None), None);
                    let content = vec![InputItem::Text { text, text_elements: Vec::new() }];
                    self.add(ThreadItem::UserMessage { id, client_id, content }, at_ms, at_ms);
                }
            }
            "exited_review_mode" => {
                let id = self.item_name(payload.item_id);
                let review = payload.review_output.as_ref().map(review::describe).unwrap_or_default();
                self.add(ThreadItem::ExitedReviewMode { id, review }, at_ms, at_ms);
            }
            "context_compacted" if self.vintage == Vintage::V0166 => {
                let id = self.item_name(payload.item_id);
                self.add(ThreadItem::ContextCompaction { id }, at_ms, at_ms);
            }
            "turn_aborted" => self.end(TurnStatus::Interrupted, None, at_ms),
            "error" => {
                let codex_error_info = payload.codex_error_info.as_ref().map(Into::into);
                let failed = TurnError { message: text, codex_error_info, additional_details: None, misalignment: () };
                self.end(TurnStatus::Failed, Some(failed), at_ms);
            }
            "task_complete" | "turn_complete" => {
                let is_failed = self.turns.last().is_some_and(|turn| turn.status == TurnStatus::Failed);
                if !is_failed {
                    self.end(TurnStatus::Completed, None, at_ms);
                }
            }
            "thread_rolled_back" => self.take_back(payload.turn_id.as_deref(), payload.num_turns.unwrap_or(0)),
            _ => {}
        }
    }

    /// Whether a line can be passed over without reading it: a thread has many of these, and they are long.
    fn is_never_shown(&self, payload: &str) -> bool {
        const CALLS: [&str; 3] =
            [r#""item":{"type":"CommandExecution""#, r#""item":{"type":"FileChange""#, r#""item":{"type":"WebSearch""#];
        if payload.starts_with(r#"{"type":"token_count""#) {
            return true;
        }
        // Clients of older releases were never shown calls again.
        self.vintage != Vintage::V0166
            && payload.starts_with(r#"{"type":"item_completed""#)
            && payload.get(..HEAD_BYTES).is_some_and(|head| CALLS.iter().any(|call| head.contains(call)))
    }

    /// Forgets the last turns: from the one that is named, or so many.
    fn take_back(&mut self, first: Option<&str>, count: usize) {
        let named = first.and_then(|first| self.turns.iter().rposition(|turn| turn.id == first));
        self.turns.truncate(named.unwrap_or(self.turns.len().saturating_sub(count)));
    }

    fn begin(&mut self, turn: Option<String>, at_ms: i64) {
        // A turn that nobody ended belongs to a program that is gone.
        let id = turn.unwrap_or_else(|| format!("turn-{}", self.turns.len() + 1));
        let status = TurnStatus::Completed;
        let begun = Turn { items_view: ItemsView::Full, status, started_at: Some(at_ms / 1000), ..Turn::begun(id) };
        self.turns.push(begun);
    }

    fn begin_unless_running(&mut self, turn_id: Option<String>, at_ms: i64) {
        let runs = self.turns.last().is_some_and(|turn| match &turn_id {
            Some(id) => turn.id == *id,
            // Old files say only what was said: each thing said is a turn.
            None => turn.items.is_empty(),
        });
        if !runs {
            self.begin(turn_id, at_ms);
        }
    }

    fn item_name(&mut self, name: Option<String>) -> String {
        self.items += 1;
        name.unwrap_or_else(|| format!("item-{}", self.items))
    }

    fn add(&mut self, item: ThreadItem, began_ms: i64, at_ms: i64) {
        if let Some(turn) = self.turns.last_mut() {
            turn.items.push(TimedItem { item, started_at_ms: Some(began_ms), completed_at_ms: Some(at_ms) });
        }
    }

    fn think(&mut self, name: Option<String>, summary: Option<String>, content: Option<String>, at_ms: i64) {
        let last = self.turns.last_mut().and_then(|turn| turn.items.last_mut());
        if let Some(TimedItem { item: ThreadItem::Reasoning { id, summary: parts, content: thoughts }, .. }) = last
            && name.as_ref().is_none_or(|name| name == id)
        {
            parts.extend(summary);
            thoughts.extend(content);
            return;
        }
        let id = self.item_name(name);
        let (summary, content) = (summary.into_iter().collect(), content.into_iter().collect());
        self.add(ThreadItem::Reasoning { id, summary, content }, at_ms, at_ms);
    }

    fn completed(&mut self, payload: Payload<'_>, at_ms: i64) {
        let Some(text) = payload.item.map(RawValue::get) else { return };
        let began = payload.started_at_ms.unwrap_or(at_ms);
        let Some(item) = serde_json::from_str::<StoredItem>(text).ok().and_then(StoredItem::item) else { return };
        if item.said().is_some() {
            self.begin_unless_running(payload.turn_id, at_ms);
        }
        // Clients of older releases were never shown calls again.
        if self.vintage == Vintage::V0166 || !item.is_call() {
            self.add(thread_item(&item, self.vintage), began, at_ms);
        }
    }

    fn end(&mut self, status: TurnStatus, error: Option<TurnError>, at_ms: i64) {
        if let Some(turn) = self.turns.last_mut() {
            turn.status = status;
            turn.error = error;
            turn.completed_at = Some(at_ms / 1000);
            turn.duration_ms = turn.started_at.map(|started| (at_ms - started * 1000).max(0));
        }
    }
}

/// A time of a rollout in milliseconds of Unix time; 0 if it is none.
fn milliseconds(timestamp: &str) -> i64 {
    chrono::DateTime::parse_from_rfc3339(timestamp).map(|time| time.timestamp_millis()).unwrap_or_default()
}
