//! The log of a thread as `item/created` and `item/delta`.
//!
//! No release has sent these; clients were written from a description of them, and treat everything except reasoning
//! and plans as text of the model. So only messages, reasoning, plans and viewed images are items here. An item is
//! created with its first delta; one without deltas is created complete.

use std::collections::HashSet;

use codex_log::{Body, Delta, Event, ItemId, TurnId};
use codex_protocol::v2::created::{CreatedItem, CreatedItemDelta, CreatedText, ItemCreated};
use codex_protocol::v2::notification::{ServerNotification, TurnPlanStep};

use super::items::{created_item, said, thought};

/// The open items of one thread that a client knows.
#[derive(Debug, Default)]
pub struct CreatedItems {
    created: HashSet<ItemId>,
}

impl CreatedItems {
    /// The notification of an event.
    pub fn project(&mut self, event: &Event) -> Option<ServerNotification> {
        let id = |item: &ItemId| item.as_str().to_owned();
        match &event.body {
            Body::ItemDelta { item, delta } => {
                let (make, text): (fn(_, _) -> _, _) = match delta {
                    Delta::Text(text) => (said, text),
                    Delta::Summary { text, .. } => (thought, text),
                    Delta::SummaryPart { .. } | Delta::Raw { .. } | Delta::Output { .. } => return None,
                };
                let piece = make(id(item), CreatedText::Piece(text.clone()));
                if self.created.insert(item.clone()) {
                    return Some(created(event, piece));
                }
                let (thread_id, turn_id) = names(event);
                let (item_id, delta) = (id(item), text.clone());
                let delta = CreatedItemDelta { thread_id, turn_id, item_id, delta, item: piece };
                Some(ServerNotification::CreatedItemDelta(Box::new(delta)))
            }
            Body::ItemCompleted(item) => {
                if self.created.remove(item.id()) {
                    return None;
                }
                created_item(item).map(|whole| created(event, whole))
            }
            Body::PlanUpdated(plan) => {
                let steps = plan.plan.iter().map(|step| TurnPlanStep::new(step.step.clone(), step.status));
                let (id, explanation) = (format!("plan-{}", event.seq), plan.explanation.clone());
                Some(created(event, CreatedItem::Plan { id, explanation, plan: steps.collect() }))
            }
            Body::ImageViewed { item, path } => {
                Some(created(event, CreatedItem::Image { id: id(item), path: path.clone() }))
            }
            Body::TurnEnded(_) => {
                self.created.clear();
                None
            }
            _ => None,
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

#[cfg(test)]
mod tests {
    use codex_log::{AgentMessage, Item, UserMessage};
    use codex_wire::ids::ThreadId;
    use serde_json::{Value, json};

    use super::*;

    fn told(items: &mut CreatedItems, body: Body) -> Option<(&'static str, Value)> {
        let event = Event {
            thread: ThreadId::fresh(),
            seq: codex_log::Seq::new(7),
            at_ms: 0,
            turn: Some(TurnId::new("t")),
            body,
        };
        let notification = items.project(&event)?;
        let mut told = serde_json::to_value(&notification).unwrap();
        Some((notification.method(), told["item"].take()))
    }

    fn message(text: &str) -> Item {
        Item::AgentMessage(AgentMessage { id: ItemId::new("m"), text: text.into() })
    }

    #[test]
    fn an_item_without_deltas_is_created_complete() {
        let mut items = CreatedItems::default();
        assert_eq!(told(&mut items, Body::ItemStarted(message(""))), None);
        let whole = json!({"type": "assistant", "id": "m", "text": "Hi"});
        assert_eq!(told(&mut items, Body::ItemCompleted(message("Hi"))), Some(("item/created", whole)));
    }

    #[test]
    fn an_item_with_deltas_is_reported_once() {
        let mut items = CreatedItems::default();
        let piece = |text: &str| Body::ItemDelta { item: ItemId::new("m"), delta: Delta::Text(text.into()) };
        let first = json!({"type": "assistant", "id": "m", "textDelta": "H"});
        assert_eq!(told(&mut items, piece("H")), Some(("item/created", first)));
        let second = json!({"type": "assistant", "id": "m", "textDelta": "i"});
        assert_eq!(told(&mut items, piece("i")), Some(("item/delta", second)));
        assert_eq!(told(&mut items, Body::ItemCompleted(message("Hi"))), None);
    }

    #[test]
    fn user_messages_are_no_items_here() {
        let said = Item::UserMessage(UserMessage { id: ItemId::new("u"), key: None, content: Vec::new() });
        assert_eq!(told(&mut CreatedItems::default(), Body::ItemCompleted(said)), None);
    }
}
