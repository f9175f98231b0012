//! Bookmarks: points of the conversation that a client may go back to, named by the answers that led there.
//!
//! Only sessions that a client has configured as the earliest clients did have them.

use std::sync::Arc;

use codex_log::settings::Settings;
use codex_log::{Abort, Body, Outcome};
use codex_wire::conversation_item::ConversationItem;
use codex_wire::plan::UpdatePlanArgs;
use codex_wire::rollout::TurnContextItem;

use super::Session;
use crate::beginning::Past;
use crate::context::Point;
use crate::environment::{Environment, shell_name};
use codex_thread::WayBack;
use codex_tools::images::read_beside;

/// How many bookmarks are kept, the newest ones.
const MOST_KEPT: usize = 1000;

/// A point of the conversation, and what the model knew there.
pub(super) struct Bookmark {
    /// The provider's name for the answer before it.
    response: String,
    point: Point,
    plan: Option<UpdatePlanArgs>,
    environment: Environment,
}

impl Session {
    /// Notes where a turn has ended, in sessions that have bookmarks. In others the end names no answer.
    pub(super) fn bookmark(&mut self, outcome: Outcome) -> Outcome {
        let Outcome::Completed { last_message, bookmark } = outcome else { return outcome };
        let bookmark = bookmark.filter(|_| self.bookmarks.is_some());
        if let (Some(kept), Some(response)) = (&mut self.bookmarks, &bookmark) {
            kept.push(Bookmark {
                response: response.clone(),
                point: self.context.point(),
                plan: self.aims.plan.clone(),
                environment: self.environment.clone(),
            });
            let surplus = kept.len().saturating_sub(MOST_KEPT);
            kept.drain(..surplus);
        }
        Outcome::Completed { last_message, bookmark }
    }

    /// From here on the ends of turns are bookmarks.
    pub(super) fn keep_bookmarks(&mut self) {
        self.bookmarks.get_or_insert_default();
        self.context.keep_past();
    }

    /// Takes the conversation back to where it was after an answer. What runs makes way, unless there is no such point.
    pub(super) async fn go_back(&mut self, response: &str) -> WayBack {
        let Some(kept) = &self.bookmarks else { return WayBack::NotKept };
        let Some(place) = kept.iter().rposition(|bookmark| bookmark.response == response) else {
            return self.go_to_earlier(response).await;
        };
        self.stop(Abort::Replaced).await;
        let kept = self.bookmarks.as_ref().and_then(|kept| kept.get(place));
        let Some(bookmark) = kept else { return WayBack::Unknown };
        self.aims.plan.clone_from(&bookmark.plan);
        self.environment = bookmark.environment.clone();
        let replacement = self.context.go_back(&bookmark.point);
        self.went_back(response, replacement).await
    }

    /// Goes on from an answer of an earlier thread, which ended in another run of the program perhaps.
    async fn go_to_earlier(&mut self, response: &str) -> WayBack {
        let (store, name) = (Arc::clone(&self.setup.store), response.to_owned());
        let found = read_beside(move || store.history_after_answer(&name)).await;
        let Some(mut history) = found.flatten() else { return WayBack::Unknown };
        self.stop(Abort::Replaced).await;
        // What the model was told of its surroundings there; a difference is told with the next turn.
        if let Some(TurnContextItem { cwd, approval_policy, sandbox_policy, .. }) = history.context.take() {
            let told = Settings { cwd, approval_policy, sandbox_policy, ..(*self.settings).clone() };
            self.environment = Environment::new(&told, shell_name(self.setup.shell.as_deref()));
        }
        self.aims.plan = None;
        let replacement = self.context.go_to(Past::of(&mut history, false));
        self.went_back(response, replacement).await
    }

    async fn went_back(&mut self, response: &str, replacement: Vec<ConversationItem>) -> WayBack {
        self.emit(Body::WentBack { response_id: response.to_owned(), replacement });
        self.aims.goal.start_over();
        self.log_goal();
        self.publish().await;
        WayBack::Gone
    }
}
