//! The conversation with the model: what it remembers, what was said under keys of the client's, the points that a client
//! may go back to, and what is put aside while a review runs.

use std::sync::Arc;

use codex_log::keys::IdempotencyKeys;
use codex_log::{Body, Compacted, Delta, Outcome, Record};
use codex_thread::HistoryMode;
use codex_wire::conversation_item::ConversationItem;
use codex_wire::plan::UpdatePlanArgs;
use codex_wire::response::{Message, ResponseItem};
use codex_wire::tokens::BYTES_PER_TOKEN;

use crate::compaction::{self, Summary};
use crate::context::{Context, Point};
use crate::environment::Environment;
use crate::review;

/// How many bookmarks are kept, the newest ones.
const MOST_KEPT: usize = 1000;

/// A point of the conversation that a client may go back to, and what the model knew there. Only sessions that a client has
/// configured as the earliest clients did have them.
pub(super) struct Bookmark {
    /// The provider's name for the answer before it.
    response: String,
    point: Point,
    plan: Option<UpdatePlanArgs>,
    environment: Environment,
}

/// What is put aside while a review runs: a turn with a conversation of its own, which the thread's does not see.
struct Review {
    context: Context,
    instructions: Arc<str>,
}

/// The conversation with the model.
#[derive(Default)]
pub(super) struct Conversation {
    pub(super) context: Context,
    /// What was said last under keys of the client's.
    pub(super) heard: IdempotencyKeys,
    /// The ends of turns, in a session whose client may go back to them.
    bookmarks: Option<Vec<Bookmark>>,
    reviewing: Option<Review>,
}

impl Conversation {
    /// Goes on by one event of the log.
    pub(super) fn observe(&mut self, body: &Body) {
        match body {
            Body::Recorded(record) => self.context.record(record),
            Body::ItemStarted(item) if item.said().is_some() => self.context.credit_user(),
            _ => {}
        }
    }

    /// Whether the ends of turns are bookmarks.
    pub(super) fn has_bookmarks(&self) -> bool {
        self.bookmarks.is_some()
    }

    /// From here on the ends of turns are bookmarks.
    pub(super) fn keep_bookmarks(&mut self) {
        self.bookmarks.get_or_insert_default();
        self.context.keep_past();
    }

    /// Notes where a turn has ended, in sessions that have bookmarks. In others the end names no answer.
    pub(super) fn bookmark(
        &mut self,
        outcome: Outcome,
        plan: Option<&UpdatePlanArgs>,
        environment: &Environment,
    ) -> Outcome {
        let Outcome::Completed { last_message, bookmark } = outcome else { return outcome };
        let bookmark = bookmark.filter(|_| self.bookmarks.is_some());
        if let (Some(kept), Some(response)) = (&mut self.bookmarks, &bookmark) {
            let (point, environment) = (self.context.point(), environment.clone());
            kept.push(Bookmark { response: response.clone(), point, plan: plan.cloned(), environment });
            let surplus = kept.len().saturating_sub(MOST_KEPT);
            kept.drain(..surplus);
        }
        Outcome::Completed { last_message, bookmark }
    }

    /// Where the bookmark of an answer is.
    pub(super) fn find_bookmark(&self, response: &str) -> Option<usize> {
        self.bookmarks.as_ref()?.iter().rposition(|bookmark| bookmark.response == response)
    }

    /// Takes the conversation back to a bookmark, and returns what is left of it with what the model knew there.
    pub(super) fn go_back(
        &mut self,
        place: usize,
    ) -> Option<(Vec<ConversationItem>, Option<UpdatePlanArgs>, Environment)> {
        let bookmark = self.bookmarks.as_ref()?.get(place)?;
        let replacement = self.context.go_back(&bookmark.point);
        Some((replacement, bookmark.plan.clone(), bookmark.environment.clone()))
    }

    /// Whether a review runs.
    pub(super) fn is_review(&self) -> bool {
        self.reviewing.is_some()
    }

    /// Puts the conversation aside for a review.
    pub(super) fn begin_review(&mut self, instructions: &mut Arc<str>) {
        let fresh = self.context.fresh();
        let context = std::mem::replace(&mut self.context, fresh);
        let instructions = std::mem::replace(instructions, review::INSTRUCTIONS.into());
        self.reviewing = Some(Review { context, instructions });
    }

    /// Takes the conversation up again after a review; false if there was none.
    pub(super) fn end_review(&mut self, instructions: &mut Arc<str>) -> bool {
        let Some(Review { mut context, instructions: before }) = self.reviewing.take() else { return false };
        context.take_costs(&self.context);
        self.context = context;
        *instructions = before;
        true
    }

    /// Whether an event belongs to the reviewer alone. What it says becomes the review; its conversation is not ours.
    pub(super) fn is_private(&self, body: &Body) -> bool {
        let is_said = match body {
            Body::Recorded(_) | Body::ItemDelta { delta: Delta::Text(_), .. } => true,
            Body::ItemStarted(item) | Body::ItemCompleted(item) => item.answer().is_some(),
            _ => false,
        };
        is_said && self.reviewing.is_some()
    }

    /// What is asked for a summary, of which so many halves are left out at the beginning.
    pub(super) fn input_for_summary(&self, halvings: u32) -> Vec<ConversationItem> {
        let mut input = self.context.input_without(halvings);
        input.extend(Record::new(ResponseItem::Message(Message::user(compaction::PROMPT))).map(|record| record.json));
        input
    }

    /// Puts a summary in the place of the conversation.
    pub(super) fn compact(
        &mut self,
        summary: String,
        plan: Option<&UpdatePlanArgs>,
        history: HistoryMode,
    ) -> Arc<Compacted> {
        let said = self.context.said();
        let messages = Summary { text: &summary, said: &said, plan, history }.messages();
        let replacement: Vec<Record> = messages.into_iter().filter_map(|item| Record::new(item).ok()).collect();
        let (before, after) = self.context.replace(&replacement);
        let (before, after) = (before / BYTES_PER_TOKEN, after / BYTES_PER_TOKEN);
        Arc::new(Compacted { summary, replacement: Some(self.context.input()), before, after })
    }
}
