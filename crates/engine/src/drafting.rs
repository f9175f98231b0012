//! Schedules the writing of drafts next to the log.
//!
//! Invariants: nothing is encoded, written or waited for while no item grows. New text is written within [`PAUSE`], and
//! not more often than that.

use std::pin::Pin;
use std::time::Duration;

use codex_log::draft::Drafts;
use codex_log::store::LogWriter;
use codex_log::{Event, Item};
use tokio::time::{Sleep, sleep};

/// The maximum time between the publication of text and its write. A crash loses no more than that.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

/// The drafts of open items, and the time of their next write.
#[derive(Default)]
pub(crate) struct Drafting {
    drafts: Drafts,
    /// The time of the next write; `None` while nothing is pending.
    due: Option<Pin<Box<Sleep>>>,
}

impl Drafting {
    /// Processes one event, after which the log has this many bytes.
    pub(crate) fn take(&mut self, event: &Event, position: u64) {
        self.drafts.take(event, position);
    }

    /// The partial messages and reasoning of the model.
    pub(crate) fn broken_off(&self) -> Vec<Item> {
        self.drafts.broken_off()
    }

    /// Whether text is pending.
    pub(crate) fn has_unsaved(&self) -> bool {
        self.drafts.has_unsaved()
    }

    /// Waits until it is time to write. Cancelling it loses nothing.
    pub(crate) async fn due(&mut self) {
        self.due.get_or_insert_with(|| Box::pin(sleep(PAUSE))).as_mut().await;
    }

    /// Writes the pending text.
    pub(crate) fn write(&mut self, writer: &mut dyn LogWriter) {
        let mut lines = Vec::new();
        self.drafts.write(&mut lines);
        writer.partial(&lines);
        self.due = None;
    }

    /// Removes the draft file, unless an item in it is still open.
    pub(crate) fn settle(&mut self, writer: &mut dyn LogWriter) {
        if self.drafts.forget_lines() {
            writer.clear_partial();
        }
        if !self.drafts.has_unsaved() {
            self.due = None;
        }
    }
}
