//! The ignore rules of a project, from `.ignore`, `.gitignore`, `.git/info/exclude` and the user's own file.
//!
//! The walker could read these files itself, but it would block forever on a pipe with such a name. So they are read
//! here, and matched as the walker would: nearer folders before outer ones, and the kinds of files in the order above.
//!
//! Invariant: a file that is not regular, too long or unreadable has no rules. Nothing blocks on it.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::{DirEntry, Match};

use super::global;

/// The maximum size of an ignore file.
pub(crate) const MOST_BYTES: u64 = 256 * 1024;

/// The rules below one root.
pub(crate) struct Ignored {
    /// The root without links, against which rules of outer folders are matched.
    real_root: PathBuf,
    root: PathBuf,
    /// The rules of the folders above the root, the nearest first.
    above: Vec<FolderRules>,
    /// The user's rules for all repositories.
    global: Gitignore,
    /// The folders from the root down to the current one.
    within: Mutex<Vec<FolderRules>>,
}

impl Ignored {
    /// Reads the user's rules, and those above a root if they apply.
    pub(crate) fn new(root: &Path, with_parents: bool) -> Self {
        let real_root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let above = real_root.ancestors().skip(1).filter(|_| with_parents);
        Self {
            above: above.map(FolderRules::read).filter(|rules| !rules.is_empty()).collect(),
            global: global::rules(),
            within: Mutex::default(),
            root: root.to_owned(),
            real_root,
        }
    }

    /// Whether the walk skips an entry. Entries come in the order of the walk, each folder before its contents.
    pub(crate) fn is_ignored(&self, entry: &DirEntry) -> bool {
        let (path, is_folder) = (entry.path(), entry.file_type().is_some_and(|kind| kind.is_dir()));
        let Some(folder) = path.parent() else { return false };
        let mut within = self.within.lock().unwrap_or_else(PoisonError::into_inner);
        // The folder of an entry at depth 1 is the root, which is the first of the list.
        within.truncate(entry.depth());
        if within.len() == entry.depth() && within.last().is_none_or(|last| last.folder != folder) {
            within.pop();
        }
        if within.len() < entry.depth() {
            within.push(FolderRules::read(folder));
        }
        self.matched(&within, path, is_folder).is_ignore()
    }

    fn matched(&self, within: &[FolderRules], path: &Path, is_folder: bool) -> Match<()> {
        let real = if self.above.is_empty() { PathBuf::new() } else { self.real(path) };
        let of_kind = |kind: fn(&FolderRules) -> &Gitignore| {
            let near = within.iter().rev().map(|rules| kind(rules).matched(path, is_folder));
            let far = self.above.iter().map(|rules| kind(rules).matched(&real, is_folder));
            near.chain(far).find(|found| !found.is_none()).map_or(Match::None, |found| found.map(drop))
        };
        of_kind(|rules| &rules.ignore)
            .or(of_kind(|rules| &rules.gitignore))
            .or(of_kind(|rules| &rules.exclude))
            .or(self.global.matched(path, is_folder).map(drop))
    }

    /// A path of the walk relative to folders above the root.
    fn real(&self, path: &Path) -> PathBuf {
        self.real_root.join(path.strip_prefix(&self.root).unwrap_or(path))
    }
}

/// The rules in the files of one folder.
struct FolderRules {
    folder: PathBuf,
    ignore: Gitignore,
    gitignore: Gitignore,
    exclude: Gitignore,
}

impl FolderRules {
    fn read(folder: &Path) -> Self {
        let exclude = common_git_folder(folder).map(|git| read(folder, &git.join("info/exclude")));
        Self {
            ignore: read(folder, &folder.join(".ignore")),
            gitignore: read(folder, &folder.join(".gitignore")),
            exclude: exclude.unwrap_or_else(Gitignore::empty),
            folder: folder.to_owned(),
        }
    }

    fn is_empty(&self) -> bool {
        self.ignore.is_empty() && self.gitignore.is_empty() && self.exclude.is_empty()
    }
}

/// The rules of one file, relative to a folder.
pub(crate) fn read(folder: &Path, file: &Path) -> Gitignore {
    let Ok(text) = codex_files::read(file, MOST_BYTES) else { return Gitignore::empty() };
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&text);
    let mut rules = GitignoreBuilder::new(folder);
    for line in text.split(|byte| *byte == b'\n') {
        // Reading stops at a line that is not text, and a malformed rule is ignored.
        let Ok(line) = str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line)) else { break };
        let _: Result<_, ignore::Error> = rules.add_line(None, line).map(drop);
    }
    rules.build().unwrap_or_else(|_| Gitignore::empty())
}

/// The git folder that a checkout shares with its linked worktrees.
fn common_git_folder(checkout: &Path) -> Option<PathBuf> {
    let git = checkout.join(".git");
    if !git.metadata().ok()?.is_file() {
        return Some(git);
    }
    let own = PathBuf::from(first_line(&git)?.strip_prefix("gitdir: ")?);
    let common = first_line(&own.join("commondir"))?;
    Some(own.join(common))
}

fn first_line(path: &Path) -> Option<String> {
    let text = codex_files::read_text(path, MOST_BYTES).ok()?;
    text.lines().next().map(str::to_owned)
}
