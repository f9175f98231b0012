//! The log of a thread as `item/created` and `item/delta`.
//!
//! No release has sent these; clients were written to a description of them, and take whatever is no reasoning and no
//! plan for something that the model says. So only what the model says, thinks, plans and looks at is an item here.
//! An item is created with its first piece; one that came in no pieces is created whole.

use std::collections::HashSet;

use codex_engine::log::{Body, Delta, Event, Item, ItemId, TurnId};
use codex_wire::v2::created::{CreatedItem, CreatedItemDelta, CreatedText, ItemCreated};
use codex_wire::v2::notification::{ServerNotification, TurnPlanStep};

/// The items of one thread that a client knows and that are not whole yet.
#[derive(Debug, Default)]
pub(crate) struct CreatedItems {
    created: HashSet<ItemId>,
}

impl CreatedItems {
    /// The notification that an event gives.
    pub(crate) fn project(&mut self, event: &Event) -> Option<ServerNotification> {
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
                let whole = match item {
                    Item::AgentMessage { id: name, text } => said(id(name), CreatedText::Whole(text.clone())),
                    Item::Reasoning { id: name, summary, .. } if !summary.is_empty() => {
                        thought(id(name), CreatedText::Whole(summary.join("\n\n")))
                    }
                    _ => return None,
                };
                Some(created(event, whole))
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

fn said(id: String, text: CreatedText) -> CreatedItem {
    CreatedItem::Assistant { id, text }
}

fn thought(id: String, text: CreatedText) -> CreatedItem {
    CreatedItem::Reasoning { id, purpose: "reasoning", text }
}
