//! The files that calls have written, as far as their events tell.

use std::path::{Component, Path, PathBuf};

use codex_log::{Body, Item, PatchStatus};
use codex_wire::change::FileChange;

/// The files that an event tells were written or removed: those of a patch, and those that a command names. Other files of
/// commands are not known.
#[must_use]
pub fn written_files(body: &Body) -> Vec<PathBuf> {
    let Body::ItemCompleted(item) = body else { return Vec::new() };
    match item {
        Item::Patch(patch) if patch.status == PatchStatus::Completed => {
            let moved = |change: &FileChange| match change {
                FileChange::Update { move_path, .. } => move_path.clone(),
                FileChange::Add { .. } | FileChange::Delete { .. } => None,
            };
            patch.changes.iter().flat_map(|(path, change)| [Some(path.clone()), moved(change)]).flatten().collect()
        }
        Item::Command(command) if command.end.as_ref().is_some_and(|end| end.exit_code >= 0) => {
            let files = codex_shell::written_files(&command.argv);
            files.iter().map(|name| normal(&command.cwd.join(name))).collect()
        }
        _ => Vec::new(),
    }
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = normal.pop(),
            Component::CurDir => {}
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => normal.push(part),
        }
    }
    normal
}
