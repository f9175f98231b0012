//! What was said in a conversation before it was resumed.

use std::path::Path;

use codex_store::{Entry, Line, ReadError, RolloutLines};
use codex_wire::event::{
    AgentMessageContent, AgentMessageEvent, AgentReasoningEvent, EventMsg, ItemCompletedEvent, TurnItem,
    UserMessageEvent,
};
use codex_wire::input::UserInput;
use codex_wire::rollout::RolloutItem;
use serde::Deserialize;

/// Reads the messages of a file that a client shows again. It blocks; run it off the async threads.
pub(super) fn messages(path: &Path, with_thoughts: bool) -> Result<Vec<EventMsg>, ReadError> {
    let mut lines = RolloutLines::open(path)?;
    let mut reader = MessageReader { with_thoughts, ..MessageReader::default() };
    while let Some(entry) = lines.next_entry()? {
        if let Entry::Line(line) = entry
            && line.kind == "event_msg"
        {
            reader.take(&line);
        }
    }
    Ok(reader.messages)
}

#[derive(Default)]
struct MessageReader {
    /// Whether the model's thoughts themselves are shown.
    with_thoughts: bool,
    messages: Vec<EventMsg>,
    /// Where in the messages each turn begins.
    turns: Vec<usize>,
    is_running: bool,
}

impl MessageReader {
    fn take(&mut self, line: &Line<'_>) {
        let Some(RolloutItem::EventMsg(message)) = line.decode().map(|line| line.item) else { return };
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
            // The others tell what the ones above say as a whole.
            _ => {}
        }
    }

    fn user_said(&mut self, message: EventMsg) {
        // Older files do not say where turns begin: each thing said is one.
        if !self.is_running {
            self.turns.push(self.messages.len());
        }
        self.messages.push(message);
    }

    /// The newest releases keep items in place of messages.
    fn completed(&mut self, completed: ItemCompletedEvent) {
        match completed.item {
            TurnItem::UserMessage(item) => {
                let (mut message, mut images) = (String::new(), Vec::new());
                for part in item.content {
                    match part {
                        UserInput::Text { text } => message.push_str(&text),
                        UserInput::Image { image_url } => images.push(image_url),
                        UserInput::LocalImage { .. } | UserInput::Skill { .. } | UserInput::Mention { .. } => {}
                    }
                }
                self.user_said(EventMsg::UserMessage(UserMessageEvent { message, images: Some(images) }));
            }
            TurnItem::AgentMessage(item) => {
                let text = item.content.into_iter().map(|part| match part {
                    AgentMessageContent::Text(part) => part.text,
                    AgentMessageContent::Other(_) => String::new(),
                });
                self.messages.push(EventMsg::AgentMessage(AgentMessageEvent { message: text.collect() }));
            }
            TurnItem::Reasoning(item) => {
                let parts = item.summary_text.into_iter();
                self.messages.extend(parts.map(|text| EventMsg::AgentReasoning(AgentReasoningEvent { text })));
            }
            TurnItem::WebSearch(_) | TurnItem::Other(_) => {}
        }
    }

    /// Forgets turns that were rolled back.
    fn roll_back(&mut self, line: &Line<'_>) {
        #[derive(Deserialize)]
        struct Payload {
            #[serde(rename = "type")]
            kind: String,
            num_turns: usize,
        }
        let Ok(payload) = serde_json::from_str::<Payload>(line.payload.get()) else { return };
        if payload.kind == "thread_rolled_back" {
            let kept = self.turns.len().saturating_sub(payload.num_turns);
            self.messages.truncate(self.turns.get(kept).copied().unwrap_or(self.messages.len()));
            self.turns.truncate(kept);
        }
    }
}
