//! The turns of a thread that is opened: the latest first, so that they are on the screen at once, and earlier ones page by
//! page behind them.

use serde_json::{Value, json};

use super::app::{App, Effect, When};
use super::calls::Pending;
use crate::Style;

/// The number of turns that come with a thread, and of those on a page.
const FIRST_TURNS: usize = 20;
const PAGE_TURNS: usize = 100;
/// The most items that are kept.
const MOST_ITEMS: usize = 20_000;

/// The parameters that ask for the latest turns of a thread along with it.
pub(super) fn latest() -> Value {
    json!({"limit": FIRST_TURNS, "sortDirection": "desc", "itemsView": "full"})
}

/// The turns of an opened thread, oldest first, and the cursor of earlier ones.
pub(super) fn turns_of(answer: &mut Value) -> (Vec<Value>, Option<String>) {
    let page = &mut answer["initialTurnsPage"];
    if page.is_object() {
        let cursor = page["nextCursor"].as_str().map(str::to_owned);
        let mut turns = page["data"].as_array_mut().map(std::mem::take).unwrap_or_default();
        turns.reverse();
        return (turns, cursor);
    }
    // A server that knows no pages sends all turns.
    (answer["thread"]["turns"].as_array_mut().map(std::mem::take).unwrap_or_default(), None)
}

impl App {
    /// Shows the turns that came with a thread, or asks for them.
    pub(super) fn load(&mut self, turns: Vec<Value>, cursor: Option<String>) {
        if !turns.is_empty() {
            self.take_latest(turns, cursor);
        } else if let Some(thread) = self.thread.as_ref().filter(|thread| thread.has_turns) {
            let mut params = latest();
            params["threadId"] = thread.id.clone().into();
            self.call("thread/turns/list", params, Pending::Turns);
        } else {
            self.effect(Effect::Rest(When::Later));
        }
    }

    /// Shows the latest turns, and asks for earlier ones.
    pub(super) fn take_latest(&mut self, turns: Vec<Value>, cursor: Option<String>) {
        let Some(id) = self.thread_id().filter(|_| !turns.is_empty()) else { return };
        self.calls.agents.earlier(&turns);
        let last = turns.last().map(|turn| (turn["status"].clone(), turn["error"].clone()));
        let mut value = codex_client::event::Members::new();
        value.insert("turns".to_owned(), Value::Array(turns));
        self.update_thread(codex_client::Event::Thread { id, value, whole: true });
        // The end of the latest turn is why the thread stands where it does.
        if let Some((status, error)) = last {
            self.tell_end(status.as_str().unwrap_or_default(), &error);
        }
        self.ask_earlier(cursor);
    }

    /// Asks for the next page of turns.
    pub(super) fn ask_earlier(&mut self, cursor: Option<String>) {
        let Some(cursor) = cursor else { return self.effect(Effect::Rest(When::Later)) };
        if self.transcript.count() >= MOST_ITEMS {
            self.effect(Effect::Rest(When::Later));
            return self.remark(Style::Dim, "… earlier turns are left out; `codex threads show` has all of them");
        }
        let params = json!({"threadId": self.thread_id(), "itemsView": "full", "limit": PAGE_TURNS, "cursor": cursor,
            "sortDirection": "desc"});
        self.call("thread/turns/list", params, Pending::Turns);
    }

    /// A page of earlier turns, or the first one of a thread that came without.
    pub(super) fn take_turns(&mut self, mut answer: Value) {
        let cursor = answer["nextCursor"].as_str().map(str::to_owned);
        let mut turns = answer["data"].as_array_mut().map(std::mem::take).unwrap_or_default();
        turns.reverse();
        if self.transcript.count() == 0 {
            return self.take_latest(turns, cursor);
        }
        let Some(id) = self.thread_id() else { return };
        let count = self.client.prepend(&id, turns);
        if let Some(thread) = self.client.thread(&id) {
            self.transcript.take_earlier(thread, count);
        }
        // A page leaves holes behind, which the next one does not fill.
        self.effect(Effect::Rest(When::Now));
        self.ask_earlier(cursor);
    }
}
