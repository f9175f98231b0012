//! A patch the model applies.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use codex_wire::change::FileChange;
use serde::{Deserialize, Serialize};

use super::{BROKEN_OFF, ItemId, Status};

/// A patch of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct PatchItem {
    /// The id of the model's call.
    pub id: ItemId,
    /// The change of each file.
    pub changes: Arc<BTreeMap<PathBuf, FileChange>>,
    /// Whether no approval was needed.
    pub is_auto_approved: bool,
    pub status: PatchStatus,
    /// Its result, once it has ended.
    pub end: Option<PatchEnd>,
}

/// The status of a patch.
pub type PatchStatus = Status;

/// The result of a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchEnd {
    /// The changed files.
    pub stdout: String,
    pub stderr: String,
}

impl PatchItem {
    pub(super) fn begun(&self) -> Self {
        let changes = Arc::clone(&self.changes);
        Self { id: self.id.clone(), changes, is_auto_approved: true, status: Status::Running, end: None }
    }

    pub(super) fn ended(&self) -> Self {
        let end = PatchEnd { stdout: String::new(), stderr: BROKEN_OFF.to_owned() };
        Self { status: Status::Failed, end: self.end.clone().or(Some(end)), ..self.clone() }
    }

    pub(super) fn title(&self) -> String {
        let paths: Vec<_> = self.changes.keys().map(|path| path.display().to_string()).collect();
        paths.join(", ")
    }

    pub(super) fn weight(&self) -> usize {
        let change = |change: &FileChange| match change {
            FileChange::Add { content } | FileChange::Delete { content } => content.len(),
            FileChange::Update { unified_diff, .. } => unified_diff.len(),
        };
        self.changes.values().map(change).sum()
    }

    pub(super) fn stored_form(&self) -> StoredForm<'_> {
        StoredForm { id: self.id.as_str(), changes: &self.changes, status: self.status.word() }
    }
}

#[derive(Serialize)]
pub(crate) struct StoredForm<'a> {
    id: &'a str,
    changes: &'a BTreeMap<PathBuf, FileChange>,
    status: &'static str,
}

#[derive(Deserialize)]
pub struct Stored {
    id: String,
    changes: BTreeMap<PathBuf, FileChange>,
    #[serde(default)]
    status: String,
}

impl From<Stored> for PatchItem {
    fn from(stored: Stored) -> Self {
        Self {
            id: ItemId::new(stored.id),
            changes: Arc::new(stored.changes),
            is_auto_approved: true,
            status: Status::of_ended(&stored.status),
            end: Some(PatchEnd { stdout: String::new(), stderr: String::new() }),
        }
    }
}
