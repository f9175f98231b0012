//! The texts, plans and images of a turn as `item/created` and `item/delta`.
//!
//! Readers treat everything except reasoning and plans as text of the model, so only messages, reasoning, plans and
//! viewed images are items here. An item is created with its first piece; its whole text is an event at its end.

use std::collections::HashMap;

use codex_log::{Body, Delta, Event, ItemId, TurnId};
use codex_protocol::v2::created::{CreatedItem, CreatedItemDelta, CreatedText, ItemCreated};
use codex_protocol::v2::notification::{ServerNotification, TurnPlanStep};
use codex_wire::text::Text;

/// The open items of one thread that a client knows, with the part of the summary that each has reached.
#[derive(Debug, Default)]
pub(super) struct CreatedItems {
    created: HashMap<ItemId, i64>,
}

/// The two kinds of texts.
#[derive(Clone, Copy)]
enum TextKind {
    Message,
    Thought,
}

impl CreatedItems {
    /// The notification of an event.
    pub(super) fn project(&mut self, event: &Event) -> Option<ServerNotification> {
        match &event.body {
            Body::ItemDelta { item, delta: Delta::Text(text) } => {
                Some(self.piece(event, item, TextKind::Message, 0, text))
            }
            Body::ItemDelta { item, delta: Delta::Summary { index, text } } => {
                Some(self.piece(event, item, TextKind::Thought, *index, text))
            }
            Body::ItemDelta { .. } => None,
            Body::ItemCompleted(item) if self.created.remove(item.id()).is_some() => None,
            Body::ItemCompleted(item) => {
                let (kind, text) = match item.answer() {
                    Some(text) => (TextKind::Message, text.clone()),
                    None if item.is_thought() => (TextKind::Thought, item.title().into_owned().into()),
                    None => return None,
                };
                (!text.is_empty()).then(|| created(event, kind.item(item.id(), text)))
            }
            Body::PlanUpdated(plan) => {
                let steps = plan.plan.iter().map(|step| TurnPlanStep::new(step.step.clone(), step.status));
                let (id, explanation) = (format!("plan-{}", event.seq), plan.explanation.clone());
                Some(created(event, CreatedItem::Plan { id, explanation, plan: steps.collect() }))
            }
            Body::ImageViewed { item, path } => {
                Some(created(event, CreatedItem::Image { id: item.as_str().to_owned(), path: path.clone() }))
            }
            Body::TurnEnded(_) => {
                self.created.clear();
                None
            }
            _ => None,
        }
    }

    /// A piece of a text: the first one creates its item.
    fn piece(&mut self, event: &Event, item: &ItemId, kind: TextKind, part: i64, text: &Text) -> ServerNotification {
        let Some(reached) = self.created.insert(item.clone(), part) else {
            return created(event, kind.item(item, text.clone()));
        };
        // The parts of a summary are paragraphs of one text.
        let delta = if part > reached { format!("\n\n{text}").into() } else { text.clone() };
        let (thread_id, turn_id) = names(event);
        let (item_id, item) = (item.as_str().to_owned(), kind.item(item, delta.clone()));
        ServerNotification::CreatedItemDelta(Box::new(CreatedItemDelta { thread_id, turn_id, item_id, delta, item }))
    }
}

impl TextKind {
    fn item(self, id: &ItemId, piece: Text) -> CreatedItem {
        let (id, text) = (id.as_str().to_owned(), CreatedText::Piece(piece));
        match self {
            Self::Message => CreatedItem::Assistant { id, text },
            Self::Thought => CreatedItem::Reasoning { id, purpose: "reasoning".into(), text },
        }
    }
}

fn names(event: &Event) -> (String, String) {
    let turn = event.turn.as_ref().map(TurnId::as_str).unwrap_or_default();
    (event.thread.to_string(), turn.to_owned())
}

fn created(event: &Event, item: CreatedItem) -> ServerNotification {
    let (thread_id, turn_id) = names(event);
    ServerNotification::ItemCreated(Box::new(ItemCreated { thread_id, turn_id, item }))
}
