//! The messages of a conversation before it was resumed.

use codex_log::line::Line;
use codex_wire::event::{
    AgentMessageContent, AgentMessageEvent, AgentReasoningEvent, EventMsg, ItemCompletedEvent, TurnItem,
};
use codex_wire::input::UserInput;

/// Collects the messages of a thread that a client displays again from its lines.
#[derive(Debug, Default)]
pub struct MessageReader {
    /// Whether raw reasoning is shown.
    with_thoughts: bool,
    messages: Vec<EventMsg>,
    /// The index of the first message of each turn.
    turns: Vec<usize>,
    is_running: bool,
}

impl MessageReader {
    /// Creates a reader with or without raw reasoning.
    #[must_use]
    pub fn new(with_thoughts: bool) -> Self {
        Self { with_thoughts, ..Self::default() }
    }

    /// The messages of the lines so far.
    #[must_use]
    pub fn into_messages(self) -> Vec<EventMsg> {
        self.messages
    }

    /// Processes the next line.
    pub fn take(&mut self, line: &Line<'_>) {
        let Some(message) = line.message() else { return };
        match message {
            EventMsg::TaskStarted(_) => {
                self.turns.push(self.messages.len());
                self.is_running = true;
            }
            EventMsg::TaskComplete(_) => self.is_running = false,
            EventMsg::TurnAborted(_) => {
                self.is_running = false;
                self.messages.push(message);
            }
            EventMsg::UserMessage(_) => self.user_said(message),
            EventMsg::AgentReasoningRawContent(_) if !self.with_thoughts => {}
            EventMsg::AgentMessage(_)
            | EventMsg::AgentReasoning(_)
            | EventMsg::AgentReasoningRawContent(_)
            | EventMsg::TokenCount(_)
            | EventMsg::ContextCompacted
            | EventMsg::EnteredReviewMode(_)
            | EventMsg::ExitedReviewMode(_)
            | EventMsg::UndoCompleted(_)
            | EventMsg::Error(_) => self.messages.push(message),
            EventMsg::ItemCompleted(completed) => self.completed(completed),
            EventMsg::Other(_) => self.roll_back(line),
            // The other lines repeat parts of these.
            _ => {}
        }
    }

    fn user_said(&mut self, message: EventMsg) {
        // Older files do not record the starts of turns: each message of the user starts one.
        if !self.is_running {
            self.turns.push(self.messages.len());
        }
        self.messages.push(message);
    }

    /// The newest releases store items instead of messages.
    fn completed(&mut self, completed: ItemCompletedEvent) {
        match completed.item {
            TurnItem::UserMessage(item) => {
                self.user_said(EventMsg::UserMessage(UserInput::said(&item.content)));
            }
            TurnItem::AgentMessage(item) => {
                let texts = item.content.iter().filter_map(|part| match part {
                    AgentMessageContent::Text(part) => Some(part.text.as_str()),
                    AgentMessageContent::Other(_) => None,
                });
                let message = texts.collect::<String>().into();
                self.messages.push(EventMsg::AgentMessage(AgentMessageEvent { message }));
            }
            TurnItem::Reasoning(item) => {
                let parts = item.summary_text.into_iter();
                self.messages.extend(parts.map(|text| EventMsg::AgentReasoning(AgentReasoningEvent { text })));
            }
            TurnItem::WebSearch(_) | TurnItem::Other(_) => {}
        }
    }

    /// Removes turns that were rolled back.
    fn roll_back(&mut self, line: &Line<'_>) {
        let turns = line.event().map_or(0, |event| event.turns_taken_back());
        if turns > 0 {
            let kept = self.turns.len().saturating_sub(turns);
            self.messages.truncate(self.turns.get(kept).copied().unwrap_or(self.messages.len()));
            self.turns.truncate(kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The messages of a file with these events.
    fn read(events: &[Value], with_thoughts: bool) -> Vec<Value> {
        let line = |event: &Value| {
            json!({"timestamp": "2026-01-02T03:04:05.000Z", "type": "event_msg", "payload": event}).to_string()
        };
        let mut reader = MessageReader::new(with_thoughts);
        for text in events.iter().map(line) {
            reader.take(&Line::parse(&text).unwrap());
        }
        let messages = reader.into_messages();
        messages.iter().map(|message| serde_json::to_value(message).unwrap()).collect()
    }

    #[test]
    fn files_of_the_newest_release_are_reported_in_messages() {
        let thread = "01a1de25-2746-77a2-898a-88026f72a56b";
        let whole = |item: Value| json!({"type": "item_completed", "thread_id": thread, "turn_id": "t", "item": item});
        let events = [
            json!({"type": "task_started"}),
            whole(json!({"type": "UserMessage", "id": "1", "content": [
                {"type": "text", "text": "hi"}, {"type": "image", "image_url": "data:x"}]})),
            whole(json!({"type": "Reasoning", "id": "2", "summary_text": ["Hm.", "Well."], "raw_content": ["x"]})),
            whole(json!({"type": "AgentMessage", "id": "3", "content": [{"type": "Text", "text": "Hello"}]})),
            whole(json!({"type": "CommandExecution", "id": "4"})),
            json!({"type": "task_complete", "last_agent_message": "Hello"}),
        ];
        let expected = [
            json!({"type": "user_message", "message": "hi", "images": ["data:x"]}),
            json!({"type": "agent_reasoning", "text": "Hm."}),
            json!({"type": "agent_reasoning", "text": "Well."}),
            json!({"type": "agent_message", "message": "Hello"}),
        ];
        assert_eq!(read(&events, true), expected);
    }

    #[test]
    fn raw_reasoning_is_sent_only_on_request() {
        let events = [json!({"type": "agent_reasoning_raw_content", "text": "Hm."})];
        assert_eq!((read(&events, false).len(), read(&events, true).len()), (0, 1));
    }

    #[test]
    fn forgotten_turns_go_with_everything_in_them() {
        let say = |text: &str| json!({"type": "user_message", "message": text, "images": []});
        let back = |turns: u64| json!({"type": "thread_rolled_back", "num_turns": turns});
        let two = [say("a"), json!({"type": "turn_aborted", "reason": "interrupted"}), say("b"), back(1), say("c")];
        let texts: Vec<_> =
            read(&two, false).iter().filter_map(|it| it["message"].as_str().map(str::to_owned)).collect();
        assert_eq!(texts, ["a", "c"]);
        assert!(read(&[say("a"), back(9)], false).is_empty());
    }
}
