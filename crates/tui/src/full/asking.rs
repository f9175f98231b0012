//! Requests of the server: their arrival, and their end without an answer.

use codex_wire::ids::RequestId;
use serde_json::Value;

use super::app::{App, Effect};
use super::approval::Asked;
use super::layout;
use crate::question::Question;
use crate::{Row, printable};

impl App {
    pub(super) fn asked(&mut self, thread: &str, id: RequestId, method: &str, params: &Value) {
        let is_child = !self.is_about_this(thread);
        let item = params.get("itemId").and_then(Value::as_str).unwrap_or_default().to_owned();
        let changes = self.changes_of(thread, &item);
        let question = match Question::read(id, method, params, |_| changes.is_some()) {
            Ok(question) => question,
            Err(id) => {
                self.effect(Effect::Refuse(id));
                return;
            }
        };
        // A server asks only about threads that this chat follows, and about their children.
        if is_child {
            self.calls.agents.asked(&question.id);
        }
        let mut lines = question.patch().and(changes).unwrap_or_default();
        lines.extend(layout::split_lines(&question.describe()));
        let from = is_child.then(|| crate::one_line(&printable(thread)));
        let (form, until) = (question.form(), question.patience().map(|patience| self.now + patience));
        self.panel.add(Asked { question, from, lines, form, until }, self.now);
        if self.calls.is_away {
            self.effect(Effect::Notify("an approval is needed".to_owned()));
        }
    }

    /// The whole changes of a patch, if they are known. They are shown line by line, because a view that compares words
    /// leaves out lines that it does not understand.
    fn changes_of(&self, thread: &str, item: &str) -> Option<Vec<Row>> {
        let thread = self.client.thread(thread)?;
        let mut items = thread.turns().iter().rev().flat_map(codex_client::state::Turn::items);
        let changes = items.find(|known| known.id() == item)?.members().get("changes")?.as_array()?;
        Some(changes.iter().flat_map(|change| layout::whole_change(change, &self.transcript.cwd)).collect())
    }

    pub(super) fn withdraw(&mut self, is_over: impl Fn(&Question) -> bool) {
        let now = self.now;
        for id in self.panel.withdraw(now, is_over) {
            self.effect(Effect::Refuse(id));
        }
    }
}
