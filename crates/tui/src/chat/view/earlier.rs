//! Shows earlier turns of a resumed thread.

use codex_protocol::v2::item::ThreadItem;
use serde::Deserialize;
use serde_json::Value;

use super::View;
use crate::transcript::{Style, TextKind};

/// The maximum number of bytes shown of earlier turns; the newest ones are kept.
const EARLIER_BYTES: usize = 8 * 1024 * 1024;

impl View {
    /// Shows the turns of a resumed thread: all of them, or the newest if there are too many or `has_more`.
    pub fn earlier(&mut self, turns: &[Value], has_more: bool) {
        let mut room = EARLIER_BYTES;
        let fits = |turn: &&Value| {
            let size = turn.to_string().len();
            room = room.saturating_sub(size);
            room > 0
        };
        let hidden = turns.len() - turns.iter().rev().take_while(fits).count();
        if hidden > 0 || has_more {
            self.line("… earlier turns are left out; `codex threads show` has all of them\n");
        }
        for turn in turns.iter().skip(hidden) {
            let items = turn.get("items").and_then(Value::as_array).into_iter().flatten();
            items.filter_map(|item| ThreadItem::deserialize(item).ok()).for_each(|item| self.earlier_item(&item));
            if turn.get("status").is_some_and(|status| status == "interrupted") {
                self.remark(Style::Yellow, "Interrupted\n");
            }
        }
    }

    fn earlier_item(&mut self, item: &ThreadItem) {
        match item {
            ThreadItem::AgentMessage { text, .. } => self.more(TextKind::Message, text),
            ThreadItem::Reasoning { summary, .. } => self.more(TextKind::Reasoning, &summary.join("\n")),
            ThreadItem::CommandExecution(command) => {
                self.started(item);
                let output = command.aggregated_output.as_deref().unwrap_or_default();
                self.output(&command.id, output);
                self.command_end(command);
                return;
            }
            item => {
                self.started(item);
                self.completed(item);
                return;
            }
        }
        self.write(|transcript| transcript.enter(TextKind::Nothing));
    }
}
