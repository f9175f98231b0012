//! The record of a worktree, next to its checkout.

use std::fs;
use std::path::{Path, PathBuf};

use codex_files::crash_point;
use codex_workspace::git::Worktree;
use serde::{Deserialize, Serialize};

const FILE: &str = "record.json";
const NEW_FILE: &str = "record.json.new";
/// The size up to which a record is read.
const MOST_BYTES: u64 = 64 * 1024;

/// A worktree and the folder in it that corresponds to the parent's.
#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) worktree: Worktree,
    pub(super) below: PathBuf,
    pub(super) stage: Stage,
}

/// The stage that a worktree has reached. It is recorded before anything is written that a later program may have to remove, and after
/// everything is written or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stage {
    /// It is being made. No agent has worked in it, and its branch has nothing of its own.
    Making,
    /// Its folder is being made again from its branch.
    Restoring,
    /// An agent may work in it.
    Open,
    /// Its folder is gone, and its branch has changes that were not applied.
    Saved,
    /// Its folder and its branch are gone.
    Closed,
}

impl Stage {
    /// Whether there are no files.
    pub(super) fn is_over(self) -> bool {
        matches!(self, Self::Saved | Self::Closed)
    }
}

#[derive(Serialize, Deserialize)]
struct Stored {
    origin: PathBuf,
    repository: PathBuf,
    folder: PathBuf,
    branch: String,
    base: String,
    below: PathBuf,
    stage: Stage,
}

impl Record {
    /// The record in the folder of an agent.
    pub(super) fn read(place: &Path) -> Option<Self> {
        let text = codex_files::read_text(&place.join(FILE), MOST_BYTES).ok()?;
        let Stored { origin, repository, folder, branch, base, below, stage } = serde_json::from_str(&text).ok()?;
        // The folder is removed one day, so it must be ours.
        let is_ours = folder.parent().is_some_and(|parent| parent == place) && below.is_relative();
        is_ours.then_some(Self { worktree: Worktree { origin, repository, folder, branch, base }, below, stage })
    }

    pub(super) fn write(&self, place: &Path) -> Result<(), String> {
        let Worktree { origin, repository, folder, branch, base } = self.worktree.clone();
        let (below, stage) = (self.below.clone(), self.stage);
        let stored = Stored { origin, repository, folder, branch, base, below, stage };
        let text = serde_json::to_string(&stored).map_err(|error| error.to_string())?;
        let (path, new) = (place.join(FILE), place.join(NEW_FILE));
        let write = || {
            fs::write(&new, text)?;
            crash_point();
            fs::rename(&new, &path)
        };
        let written = write();
        crash_point();
        written.map_err(|error| format!("could not write {}: {error}", path.display()))
    }

    /// Records how far the worktree is.
    pub(super) fn advance(&mut self, stage: Stage, place: &Path) -> Result<(), String> {
        self.stage = stage;
        self.write(place)
    }

    /// Removes a record that was not completed.
    pub(super) fn remove_draft(place: &Path) {
        let _ = fs::remove_file(place.join(NEW_FILE));
    }

    /// The folder that the agent works in.
    pub(super) fn cwd(&self) -> PathBuf {
        let folder = &self.worktree.folder;
        if self.below.as_os_str().is_empty() { folder.clone() } else { folder.join(&self.below) }
    }
}
