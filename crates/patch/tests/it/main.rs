//! The crate tested from outside: what it accepts as a patch, what the patch does to files, and what it never does.
#![allow(clippy::needless_raw_string_hashes, reason = "expect-test writes its snapshots with them")]
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]
#![expect(clippy::format_push_string, clippy::format_collect, reason = "plain words are worth more here than speed")]

mod atomic;
mod command;
mod escape;
mod fidelity;
mod grammar;
mod large;
mod matching;
mod properties;
mod recorded;
mod turn;

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use codex_patch::{Applied, Guard, Plan, parse};
use codex_wire::change::FileChange;
use expect_test::Expect;
use tempfile::TempDir;

/// A folder with files to patch.
struct Folder {
    temp: TempDir,
    path: PathBuf,
}

impl Folder {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().canonicalize().unwrap();
        Self { temp, path }
    }

    fn with<T: AsRef<[u8]>>(files: &[(&str, T)]) -> Self {
        let folder = Self::new();
        for (name, content) in files {
            folder.write(name, content);
        }
        folder
    }

    fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::create_dir_all(self.at(name).parent().unwrap()).unwrap();
        fs::write(self.at(name), content).unwrap();
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.at(name)).unwrap()
    }

    /// Everything below the folder: files with their content, links with their targets.
    fn tree(&self) -> BTreeMap<String, Vec<u8>> {
        let mut tree = BTreeMap::new();
        let mut folders = vec![self.path.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(self.temp.path()).unwrap_or(&path).display().to_string();
                if path.is_symlink() {
                    tree.insert(name, fs::read_link(&path).unwrap().display().to_string().into_bytes());
                } else if path.is_dir() {
                    tree.insert(format!("{name}/"), Vec::new());
                    folders.push(path);
                } else {
                    let content = if path.is_file() { fs::read(&path).unwrap() } else { b"special".to_vec() };
                    tree.insert(name, content);
                }
            }
        }
        tree
    }

    fn plan(&self, patch: &str) -> Result<Plan, String> {
        let patch = parse(patch).map_err(|error| self.told(&error, None))?;
        patch.plan(&self.path).map_err(|error| self.told(&error, error.hint()))
    }

    /// A plan that must succeed.
    fn planned(&self, patch: &str) -> Plan {
        self.plan(patch).unwrap()
    }

    fn apply(&self, patch: &str) -> Result<Applied, String> {
        self.plan(patch)?.apply(&self.guard()).map_err(|error| self.told(&error, None))
    }

    /// Allows patches to write only in this folder.
    fn guard(&self) -> Guard {
        Guard { roots: Some(vec![self.path.clone()]), forbidden: Vec::new(), names: Vec::new() }
    }

    /// An error with its causes and hint, without the name of the folder.
    fn told(&self, error: &dyn Error, hint: Option<&str>) -> String {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text += &format!("\n  because {error}");
            cause = error.source();
        }
        text += &hint.map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
        text.replace(self.path.to_str().unwrap(), "/w")
    }
}

/// Wraps operations in a patch.
fn patch(operations: &str) -> String {
    format!("*** Begin Patch\n{}\n*** End Patch\n", operations.trim_matches('\n'))
}

/// The change of the only file of a plan.
fn only_change(plan: &Plan) -> FileChange {
    let changes = plan.changes();
    assert_eq!(changes.len(), 1, "{changes:?}");
    changes.into_values().next().unwrap()
}

fn diff_of(plan: &Plan) -> String {
    match only_change(plan) {
        FileChange::Update { unified_diff, .. } => unified_diff,
        other => panic!("{other:?}"),
    }
}

/// Applies a patch to files, and prints the result. A failure must leave everything unchanged.
#[track_caller]
fn check<T: AsRef<[u8]>>(files: &[(&str, T)], operations: &str, expected: Expect) {
    let folder = Folder::with(files);
    let before = folder.tree();
    let shown = match folder.apply(&patch(operations)) {
        Ok(applied) => {
            let files = folder.tree().into_iter().filter(|(name, _)| !name.ends_with('/'));
            let show =
                |(name, content): (String, Vec<u8>)| format!("{name}: {:?}\n", String::from_utf8_lossy(&content));
            applied.summary + &files.map(show).collect::<String>()
        }
        Err(error) => {
            assert_eq!(folder.tree(), before);
            error + "\n"
        }
    };
    expected.assert_eq(&shown);
}

/// Files that a patch may have left behind.
fn leftovers(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(".codex-patch")).collect()
}
