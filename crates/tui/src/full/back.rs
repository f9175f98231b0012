//! Going back to an earlier message, and forward again.
//!
//! The conversation before the message is continued in a copy, so the way back loses nothing: the thread that was left is
//! unchanged, and going forward opens it again.

use serde_json::{Value, json};

use super::app::{App, Effect, Overlay};
use super::calls::Pending;
use super::choices::Choice;
use crate::Style;
use crate::chat::ThreadToOpen;
use crate::picker::Entry;
use codex_dialogue::message::Message;
use codex_views::list::List;

/// A thread that was left by going back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Left {
    thread: String,
    /// The copy that was made of it, and its number of turns.
    copy: String,
    turns: usize,
}

impl App {
    /// Offers earlier messages to go back to.
    pub(super) fn offer_earlier(&mut self) {
        let Some(thread) = self.open_thread() else { return };
        let mut entries = Vec::new();
        for (back, turn) in thread.turns().iter().rev().enumerate() {
            let Some(item) = turn.items().iter().find(|item| item.kind() == "userMessage") else { continue };
            let message = item.members().get("content").map(Message::from_input).unwrap_or_default();
            let value = json!({"back": back + 1, "input": message.input()}).to_string();
            let note = format!("{} back", back + 1);
            entries.push((value, Entry { note, title: message.text, ..Entry::default() }));
        }
        if entries.is_empty() {
            self.hint = Some("There is no earlier message".to_owned());
            return;
        }
        self.overlay = Some(Overlay::Choice(Choice::Earlier, List::new("Go back to before a message", entries)));
    }

    /// Continues before a message, whose text can be changed and sent again.
    pub(super) fn go_back(&mut self, value: &str) {
        let Some(thread) = self.open_thread() else { return };
        let chosen: Value = serde_json::from_str(value).unwrap_or_default();
        let message = Message::from_input(&chosen["input"]);
        let back = chosen["back"].as_u64().and_then(|back| usize::try_from(back).ok()).unwrap_or(1);
        let turns = thread.turns();
        let kept = turns.len().saturating_sub(back);
        let last = kept.checked_sub(1).and_then(|at| turns.get(at)).map(|turn| turn.id().to_owned());
        let mut params = self.settings.named.clone();
        let cwd = self.transcript.cwd.to_string_lossy().into_owned();
        params.insert("cwd".to_owned(), cwd.into());
        let method = match last {
            Some(last) => {
                params.insert("threadId".to_owned(), self.thread_id().into());
                params.insert("lastTurnId".to_owned(), last.into());
                "thread/fork"
            }
            // Nothing is left of it.
            None => "thread/start",
        };
        self.call(method, params.into(), Pending::Back { message, turns: kept });
    }

    /// The copy is there, or not.
    pub(super) fn went_back(&mut self, message: &Message, turns: usize, answer: Result<Value, String>) {
        let answer = match answer {
            Ok(answer) => answer,
            Err(why) => return self.say(Style::Red, "error", &why),
        };
        let copy = answer.pointer("/thread/id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let Some(thread) = self.thread_id() else { return };
        let mut left = std::mem::take(&mut self.calls.left);
        left.push(Left { thread: thread.clone(), copy, turns });
        self.call("thread/unsubscribe", json!({"threadId": thread}), Pending::Nothing);
        self.opened(Ok(answer), false);
        (self.calls.left, self.hint) = (left, None);
        self.composer.editor.restore(&message.parts());
        let key = self.settings.keymap.key_of("forward");
        self.say(Style::Dim, "back", &format!("this is a copy; {key} returns to the conversation that you left"));
    }

    /// Returns to the conversation that was left last. A copy in which nothing was said is removed.
    pub(super) fn go_forward(&mut self) {
        if self.running.is_some() {
            return self.remark(Style::Yellow, "Busy: a turn is running. Esc stops it");
        }
        let here = self.thread_id();
        let Some(left) = self.calls.left.pop().filter(|left| Some(&left.copy) == here.as_ref()) else {
            self.hint = Some("There is nothing to return to".to_owned());
            return;
        };
        let turns = self.open_thread().map_or(0, |thread| thread.turns().len());
        if turns <= left.turns {
            self.call("thread/delete", json!({"threadId": left.copy}), Pending::Nothing);
        }
        let rest = std::mem::take(&mut self.calls.left);
        self.calls.returning = Some(rest);
        self.effect(Effect::Open(ThreadToOpen::Resume(left.thread)));
    }
}
