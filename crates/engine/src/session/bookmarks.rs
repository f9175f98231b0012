//! Bookmarks: points of the conversation that a client may go back to, named by the answers that led there.
//!
//! Only sessions that a client has configured as the earliest clients did have them.

use codex_wire::plan::UpdatePlanArgs;

use super::Session;
use crate::context::Point;
use crate::environment::Environment;
use crate::log::{Abort, Body, Outcome};
use crate::thread::WayBack;

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
            return WayBack::Unknown;
        };
        self.stop(Abort::Replaced).await;
        let kept = self.bookmarks.as_ref().and_then(|kept| kept.get(place));
        let Some(bookmark) = kept else { return WayBack::Unknown };
        self.aims.plan.clone_from(&bookmark.plan);
        self.environment = bookmark.environment.clone();
        let replacement = self.context.go_back(&bookmark.point);
        self.emit(Body::WentBack { response_id: response.to_owned(), replacement });
        self.aims.goal.start_over();
        self.log_goal();
        self.publish().await;
        WayBack::Gone
    }
}
