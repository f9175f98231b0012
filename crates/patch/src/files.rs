//! Plans that replace whole files, whatever is in them.

use std::path::{Path, PathBuf};

use crate::error::PlanError;
use crate::plan::{Plan, Planner};
use crate::snapshot::Snapshot;

/// The bits that make a file executable.
const EXECUTABLE: u32 = 0o111;
/// The permissions of a new file that is executable.
const NEW_EXECUTABLE: u32 = 0o755;

/// The new content of a file, or its removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEdit {
    /// Its absolute path.
    pub path: PathBuf,
    /// The bytes, and whether it is executable; `None` if it is removed.
    pub content: Option<(Vec<u8>, bool)>,
}

impl Plan {
    /// Reads the files and plans their replacement. Nothing is written. Paths are shown as they are below `root`.
    pub fn of_files(root: &Path, edits: Vec<FileEdit>) -> Result<Self, PlanError> {
        let mut planner = Planner::new(root);
        for FileEdit { path, content } in edits {
            let shown = path.strip_prefix(root).map_or_else(|_| path.clone(), Path::to_owned);
            planner.replace(&shown, content)?;
        }
        Ok(planner.finish())
    }
}

impl Planner<'_> {
    fn replace(&mut self, given: &Path, content: Option<(Vec<u8>, bool)>) -> Result<(), PlanError> {
        let path = self.look(given, false)?;
        self.refuse_link(&path)?;
        let before = self.plan.ledger.get(&path).and_then(|entry| entry.before.clone());
        let after = match (content, before) {
            (None, None) => return Err(PlanError::NoSuchFile { path }),
            (None, Some(_)) => None,
            (Some((bytes, is_executable)), None) => {
                let mode = is_executable.then_some(NEW_EXECUTABLE);
                Some(Snapshot { mode, ..Snapshot::new_file(bytes) })
            }
            (Some((bytes, is_executable)), Some(before)) => {
                let mode = match (is_executable, before.is_executable()) {
                    (true, false) => before.mode.map(|mode| mode | EXECUTABLE),
                    (false, true) => before.mode.map(|mode| mode & !EXECUTABLE),
                    (true, true) | (false, false) => before.mode,
                };
                Some(Snapshot { mode, ..before.with(bytes) })
            }
        };
        self.plan.ledger.set(&path, after);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use codex_wire::change::FileChange;

    use super::*;
    use crate::Guard;

    fn edit(path: PathBuf, content: Option<(&str, bool)>) -> FileEdit {
        FileEdit { path, content: content.map(|(text, is_executable)| (text.as_bytes().to_vec(), is_executable)) }
    }

    #[test]
    fn files_of_any_kind_are_replaced_and_removed() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        fs::write(at("old"), "\0old").unwrap();
        fs::write(at("gone"), "gone\n").unwrap();
        fs::write(at("text"), "one\n").unwrap();
        let edits = vec![
            edit(at("old"), Some(("\0new", true))),
            edit(at("gone"), None),
            edit(at("text"), Some(("two\n", false))),
            edit(at("sub/new"), Some(("new\n", true))),
        ];
        let plan = Plan::of_files(&root, edits).unwrap();
        let changes = plan.changes();
        let FileChange::Update { unified_diff, .. } = &changes[&at("old")] else { panic!("{changes:?}") };
        assert_eq!(unified_diff, "Binary files differ\n");
        let guard = Guard { roots: Some(vec![root.clone()]), ..Guard::default() };
        let applied = plan.apply(&guard).unwrap();
        assert_eq!(applied.summary, "Success. Updated the following files:\nA sub/new\nM old\nM text\nD gone\n");
        assert_eq!(fs::read(at("old")).unwrap(), b"\0new");
        assert!(!at("gone").exists());
        for name in ["old", "sub/new"] {
            assert_eq!(fs::metadata(at(name)).unwrap().permissions().mode() & 0o100, 0o100, "{name}");
        }
    }

    #[test]
    fn links_and_missing_files_are_refused() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        fs::write(root.join("file"), "").unwrap();
        std::os::unix::fs::symlink("file", root.join("link")).unwrap();
        for (name, content) in [("link", Some(("x", false))), ("link", None), ("missing", None)] {
            assert!(Plan::of_files(&root, vec![edit(root.join(name), content)]).is_err(), "{name}");
        }
    }
}
