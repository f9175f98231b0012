//! The record of a worktree, next to its checkout.

use std::fs;
use std::path::{Path, PathBuf};

use codex_workspace::git::Worktree;
use serde::{Deserialize, Serialize};

const FILE: &str = "record.json";
/// The size up to which a record is read.
const MOST_BYTES: u64 = 64 * 1024;

/// A worktree and the folder in it that corresponds to the parent's.
#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) worktree: Worktree,
    pub(super) below: PathBuf,
    /// Whether the checkout was completed. Before that no agent works in it.
    pub(super) is_whole: bool,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    origin: PathBuf,
    folder: PathBuf,
    branch: String,
    base: String,
    below: PathBuf,
    is_whole: bool,
}

impl Record {
    /// The record in the folder of an agent.
    pub(super) fn read(place: &Path) -> Option<Self> {
        let text = codex_files::read_text(&place.join(FILE), MOST_BYTES).ok()?;
        let Stored { origin, folder, branch, base, below, is_whole } = serde_json::from_str(&text).ok()?;
        // The folder is removed one day, so it must be ours.
        let is_ours = folder.parent().is_some_and(|parent| parent == place) && below.is_relative();
        is_ours.then_some(Self { worktree: Worktree { origin, folder, branch, base }, below, is_whole })
    }

    pub(super) fn write(&self, place: &Path) -> Result<(), String> {
        let Worktree { origin, folder, branch, base } = self.worktree.clone();
        let (below, is_whole) = (self.below.clone(), self.is_whole);
        let stored = Stored { origin, folder, branch, base, below, is_whole };
        let text = serde_json::to_string(&stored).map_err(|error| error.to_string())?;
        let (path, new) = (place.join(FILE), place.join("record.json.new"));
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, &path));
        written.map_err(|error| format!("could not write {}: {error}", path.display()))
    }

    /// The folder that the agent works in.
    pub(super) fn cwd(&self) -> PathBuf {
        let folder = &self.worktree.folder;
        if self.below.as_os_str().is_empty() { folder.clone() } else { folder.join(&self.below) }
    }
}
