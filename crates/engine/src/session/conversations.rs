//! The part of the conversation with the model that is not in the log: the bookmarks that a client may return to, the
//! conversation of a reviewer, and the keys of client messages that are not in the log yet.

use std::sync::Arc;

use codex_log::state::{Conversation, ThreadState};
use codex_log::{Body, Compacted, Delta, Outcome, Record, TurnId};
use codex_thread::HistoryMode;
use codex_wire::conversation_item::ConversationItem;
use codex_wire::plan::UpdatePlanArgs;
use codex_wire::response::{Message, ResponseItem};
use codex_wire::tokens::BYTES_PER_TOKEN;

use crate::compaction::{self, Summary};
use crate::environment::Environment;
use crate::review;

/// The maximum number of bookmarks; the oldest are dropped.
const MOST_KEPT: usize = 1000;

/// A point of the conversation that a client may return to, and the state of the model there. Only sessions that a
/// client has configured with `configure_session` have bookmarks.
struct Bookmark {
    /// The provider's id of the answer before it.
    response: String,
    /// The number of replaced conversations at that time, which is the index of its own conversation once that is
    /// replaced too.
    branch: usize,
    /// The number of items at that time.
    items: usize,
    window_used: i64,
    environment: Environment,
}

/// The bookmarks of a session, and earlier states of its conversation.
#[derive(Default)]
struct Bookmarks {
    kept: Vec<Bookmark>,
    /// Replaced conversations, oldest first.
    past: Vec<Vec<ConversationItem>>,
}

/// A running review: a turn with its own conversation, which is not part of the thread's.
struct Review {
    conversation: Conversation,
    /// Instructions that replace the usual ones.
    instructions: Arc<str>,
    /// The number of tokens in the window after the last answer of the thread itself.
    window_used: i64,
}

/// The conversations of a session.
#[derive(Default)]
pub(super) struct Conversations {
    /// The number of tokens in the window after the last answer.
    pub(super) window_used: i64,
    /// Keys of accepted client messages that are not in the log yet.
    expected_keys: Vec<(Arc<str>, TurnId)>,
    /// The ends of turns, in a session whose client may return to them.
    bookmarks: Option<Bookmarks>,
    reviewing: Option<Review>,
    /// The number of items of another conversation that the thread's own began with, as that of an agent.
    pub(super) inherited: usize,
}

impl Conversations {
    /// The conversation of the running turn: the reviewer's, or the thread's own.
    pub(super) fn current<'a>(&'a self, state: &'a ThreadState) -> &'a Conversation {
        self.reviewing.as_ref().map_or(&state.conversation, |review| &review.conversation)
    }

    /// Updates the conversations before an event is logged.
    pub(super) fn observe(&mut self, body: &Body, state: &ThreadState) {
        match body {
            Body::ItemCompleted(item) => {
                let Some(said) = item.said() else { return };
                self.expected_keys.retain(|(key, _)| said.key.as_ref() != Some(key));
                if let Some(review) = &mut self.reviewing {
                    review.conversation.claim();
                }
            }
            Body::Compacted(_) | Body::WentBack { .. } => {
                if let Some(bookmarks) = &mut self.bookmarks {
                    bookmarks.past.push(state.conversation.items().to_vec());
                }
            }
            _ => {}
        }
    }

    /// Passes an event to the review; false if it does not belong there. The reviewer's output becomes the review, and
    /// its conversation is not the thread's.
    pub(super) fn keep_private(&mut self, body: &Body) -> bool {
        let Some(review) = &mut self.reviewing else { return false };
        match body {
            Body::Recorded(record) => review.conversation.record(record),
            Body::Compacted(compacted) => review.conversation.compact(compacted),
            Body::ItemStarted(item) | Body::ItemCompleted(item) => return item.answer().is_some(),
            Body::ItemDelta { delta: Delta::Text(_), .. } => {}
            _ => return false,
        }
        true
    }

    /// The turn that accepted the input with this key.
    pub(super) fn turn_of(&self, key: &str, state: &ThreadState) -> Option<TurnId> {
        let expected = || self.expected_keys.iter().find(|(expected, _)| **expected == *key).map(|(_, turn)| turn);
        state.keys.turn_of(key).or_else(expected).cloned()
    }

    /// Records that a turn accepted the input with this key, until the log knows it.
    pub(super) fn expect_key(&mut self, key: Arc<str>, turn: TurnId, state: &ThreadState) {
        if state.keys.turn_of(&key).is_none() {
            self.expected_keys.push((key, turn));
        }
    }

    /// Whether the ends of turns are bookmarks.
    pub(super) fn has_bookmarks(&self) -> bool {
        self.bookmarks.is_some()
    }

    /// Records the ends of turns as bookmarks from here on.
    pub(super) fn keep_bookmarks(&mut self) {
        self.bookmarks.get_or_insert_default();
    }

    /// Records the end of a turn, in sessions with bookmarks. In others the end names no answer.
    pub(super) fn bookmark(&mut self, outcome: Outcome, state: &ThreadState, environment: &Environment) -> Outcome {
        let Outcome::Completed { last_message, bookmark } = outcome else { return outcome };
        let bookmark = bookmark.filter(|_| self.bookmarks.is_some());
        if let (Some(bookmarks), Some(response)) = (&mut self.bookmarks, &bookmark) {
            bookmarks.kept.push(Bookmark {
                response: response.clone(),
                branch: bookmarks.past.len(),
                items: state.conversation.items().len(),
                window_used: self.window_used,
                environment: environment.clone(),
            });
            let surplus = bookmarks.kept.len().saturating_sub(MOST_KEPT);
            bookmarks.kept.drain(..surplus);
        }
        Outcome::Completed { last_message, bookmark }
    }

    /// The index of the bookmark of an answer.
    pub(super) fn find_bookmark(&self, response: &str) -> Option<usize> {
        self.bookmarks.as_ref()?.kept.iter().rposition(|bookmark| bookmark.response == response)
    }

    /// Rewinds the conversation to a bookmark, with the state of the model there.
    pub(super) fn go_back(
        &mut self,
        place: usize,
        state: &ThreadState,
    ) -> Option<(Vec<ConversationItem>, Environment)> {
        let bookmarks = self.bookmarks.as_ref()?;
        let bookmark = bookmarks.kept.get(place)?;
        let items = bookmarks.past.get(bookmark.branch).map_or(state.conversation.items(), Vec::as_slice);
        let left = items.get(..bookmark.items).unwrap_or(items).to_vec();
        self.window_used = bookmark.window_used;
        Some((left, bookmark.environment.clone()))
    }

    /// Whether a review is running.
    pub(super) fn is_review(&self) -> bool {
        self.reviewing.is_some()
    }

    /// Starts a review with its own conversation.
    pub(super) fn begin_review(&mut self, instructions: &mut Arc<str>) {
        let instructions = std::mem::replace(instructions, review::INSTRUCTIONS.into());
        let window_used = std::mem::take(&mut self.window_used);
        self.reviewing = Some(Review { conversation: Conversation::default(), instructions, window_used });
    }

    /// Ends the review and returns to the thread's conversation; false if there was none.
    pub(super) fn end_review(&mut self, instructions: &mut Arc<str>) -> bool {
        let Some(Review { instructions: before, window_used, .. }) = self.reviewing.take() else { return false };
        (*instructions, self.window_used) = (before, window_used);
        true
    }

    /// The conversation for a summary, with the oldest half left out this many times. The rest begins with a message of
    /// the user, so that it contains no output without its call.
    pub(super) fn input_for_summary(&self, halvings: u32, state: &ThreadState) -> Vec<ConversationItem> {
        let conversation = self.current(state);
        let (items, preface) = (conversation.items(), conversation.preface());
        let from = if halvings == 0 {
            preface.len()
        } else {
            let from = items.len() - (items.len() - preface.len()).checked_shr(halvings).unwrap_or(0);
            let said = conversation.said_messages();
            said.iter().map(|(place, _)| *place).find(|place| *place >= from).unwrap_or(from)
        };
        let mut input: Vec<_> = preface.iter().chain(&items[from..]).cloned().collect();
        input.extend(Record::new(ResponseItem::Message(Message::user(compaction::PROMPT))).map(|record| record.json));
        input
    }

    /// The event that replaces the conversation by a summary.
    pub(super) fn compact(
        &mut self,
        summary: String,
        state: &ThreadState,
        plan: Option<&UpdatePlanArgs>,
        history: HistoryMode,
    ) -> Arc<Compacted> {
        let size = |items: &[ConversationItem]| items.iter().map(ConversationItem::json_bytes).sum::<usize>();
        let conversation = self.current(state);
        let said = compaction::said(conversation.said_messages().into_iter().map(|(_, message)| message));
        let messages = Summary { text: &summary, said: &said, plan, history }.messages();
        let records = messages.into_iter().filter_map(|item| Some(Record::new(item).ok()?.json));
        let replacement: Vec<_> = conversation.preface().iter().cloned().chain(records).collect();
        let (before, after) = (size(conversation.items()) / BYTES_PER_TOKEN, size(&replacement) / BYTES_PER_TOKEN);
        self.window_used = 0;
        Arc::new(Compacted { summary, replacement: Some(replacement), before, after })
    }
}
