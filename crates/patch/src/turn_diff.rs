//! The combined changes of all patches of a turn, as one diff in git's format.
//!
//! Invariant: a file is compared with its state before the first patch of the turn that touched it. Memory is bounded:
//! files beyond the budget are only reported as different.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha1::{Digest, Sha1};

use crate::apply::Applied;
use crate::ledger::{Ledger, Net};
use crate::snapshot::Snapshot;
use crate::text::not_text;
use crate::unified::{between, deadline};

/// The maximum number of bytes of file contents kept in one turn.
const REMEMBERED_BYTES: usize = 64 * 1024 * 1024;
/// Git's id for a missing file.
const NOTHING: &str = "0000000000000000000000000000000000000000";

/// The diff of all changes of a turn.
#[derive(Debug)]
pub struct TurnDiff {
    /// The folder that paths are relative to.
    root: PathBuf,
    ledger: Ledger<FileVersion>,
    /// Cached diffs, by the ids of the contents before and after.
    bodies: HashMap<(String, String), String>,
    text: String,
}

/// A file, as far as it is kept.
#[derive(Debug, Clone)]
struct FileVersion {
    /// The git object id of the content.
    id: String,
    /// The content; `None` if there was no room for it.
    bytes: Option<Arc<[u8]>>,
    executable: bool,
}

impl TurnDiff {
    /// Starts empty. Paths are relative to the repository that contains `cwd`, or else to `cwd`.
    #[must_use]
    pub fn new(cwd: &Path) -> Self {
        let root = cwd.ancestors().find(|folder| codex_files::is_checkout(folder)).unwrap_or(cwd);
        Self { root: root.to_owned(), ledger: Ledger::default(), bodies: HashMap::new(), text: String::new() }
    }

    /// Adds an applied patch.
    pub fn note(&mut self, applied: &Applied) {
        for change in &applied.before_after {
            let before = change.before.as_ref().map(|(path, snapshot)| (path, self.hold(snapshot)));
            let after = change.after.as_ref().map(|(path, snapshot)| (path, self.hold(snapshot)));
            if let (Some((_, before)), Some((_, after)), Some(diff)) = (&before, &after, &change.diff) {
                self.bodies.insert((before.id.clone(), after.id.clone()), diff.clone());
            }
            match (before, after) {
                (Some((path, before)), Some((to, after))) if path != to => {
                    self.ledger.look(path, Some(before));
                    self.ledger.look(to, None);
                    self.ledger.shift(path, to, after);
                }
                (Some((path, before)), after) => {
                    self.ledger.look(path, Some(before));
                    self.ledger.set(path, after.map(|(_, after)| after));
                }
                (None, Some((path, after))) => {
                    self.ledger.look(path, None);
                    self.ledger.set(path, Some(after));
                }
                (None, None) => {}
            }
        }
        self.write();
    }

    /// The diff, if anything differs.
    #[must_use]
    pub fn unified(&self) -> Option<String> {
        (!self.text.is_empty()).then(|| self.text.clone())
    }

    fn hold(&self, snapshot: &Snapshot) -> FileVersion {
        let entries = self.ledger.entries().flat_map(|(_, entry)| [&entry.before, &entry.after]).flatten();
        let version: usize = entries.filter_map(|version| version.bytes.as_ref()).map(|bytes| bytes.len()).sum();
        let room = version + snapshot.bytes.len() <= REMEMBERED_BYTES;
        let bytes = room.then(|| Arc::clone(&snapshot.bytes));
        FileVersion { id: blob_id(&snapshot.bytes), bytes, executable: snapshot.is_executable() }
    }

    fn write(&mut self) {
        let mut bodies = HashMap::new();
        let mut text = String::new();
        let deadline = deadline();
        for net in self.ledger.net() {
            let (path, to, before, after) = match net {
                Net::Add { path, after } => (path, path, None, Some(after)),
                Net::Delete { path, before } => (path, path, Some(before), None),
                Net::Update { path, to, before, after } => (path, to, Some(before), Some(after)),
            };
            let ids = [before, after].map(|version| version.map_or(NOTHING, |version| &version.id).to_owned());
            let same_mode = before.map(|version| version.executable) == after.map(|version| version.executable);
            if path == to && ids[0] == ids[1] && same_mode {
                continue;
            }
            self.write_head(&mut text, (path, before), (to, after));
            if ids[0] == ids[1] {
                continue;
            }
            let key = ids.into();
            let body = self.bodies.remove(&key).or_else(|| body(before, after, deadline));
            let (old, new) = (self.side('a', before.map(|_| path)), self.side('b', after.map(|_| to)));
            let _ = match &body {
                Some(body) if body.is_empty() => Ok(()),
                Some(body) => write!(text, "--- {old}\n+++ {new}\n{body}"),
                None => writeln!(text, "Binary files {old} and {new} differ"),
            };
            bodies.extend(body.map(|body| (key, body)));
        }
        self.bodies = bodies;
        self.text = text;
    }

    /// Writes the header lines above the names of both sides.
    fn write_head(&self, out: &mut String, old: (&Path, Option<&FileVersion>), new: (&Path, Option<&FileVersion>)) {
        let mode = |version: &FileVersion| if version.executable { "100755" } else { "100644" };
        let (old_side, new_side) = (self.side('a', Some(old.0)), self.side('b', Some(new.0)));
        let _ = writeln!(out, "diff --git {old_side} {new_side}");
        let _ = match (old.1, new.1) {
            (None, Some(after)) => writeln!(out, "new file mode {}", mode(after)),
            (Some(before), None) => writeln!(out, "deleted file mode {}", mode(before)),
            (Some(before), Some(after)) if before.executable != after.executable => {
                writeln!(out, "old mode {}\nnew mode {}", mode(before), mode(after))
            }
            (_, _) => Ok(()),
        };
        let [old_id, new_id] = [old.1, new.1].map(|version| version.map_or(NOTHING, |version| version.id.as_str()));
        let _ = if old_id != new_id {
            writeln!(out, "index {old_id}..{new_id}")
        } else if old.0 != new.0 {
            let (from, to) = (self.name(old.0), self.name(new.0));
            writeln!(out, "similarity index 100%\nrename from {}\nrename to {}", quoted(&from), quoted(&to))
        } else {
            Ok(())
        };
    }

    /// One side of a diff, in git's notation.
    fn side(&self, letter: char, path: Option<&Path>) -> String {
        path.map_or_else(|| "/dev/null".to_owned(), |path| quoted(&format!("{letter}/{}", self.name(path))))
    }

    fn name(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }
}

/// The diff of two files; `None` if they are not kept or not text.
fn body(before: Option<&FileVersion>, after: Option<&FileVersion>, deadline: std::time::Instant) -> Option<String> {
    let bytes =
        |version: Option<&FileVersion>| version.map_or_else(|| Some(Arc::default()), |version| version.bytes.clone());
    let (old, new) = (bytes(before)?, bytes(after)?);
    let text = not_text(&old).is_none() && not_text(&new).is_none();
    text.then(|| between(&old, &new, deadline))
}

/// The git object id of a file's content.
fn blob_id(bytes: &[u8]) -> String {
    let mut hash = Sha1::new();
    hash.update(format!("blob {}\0", bytes.len()));
    hash.update(bytes);
    hash.finalize().iter().fold(String::with_capacity(40), |mut id, byte| {
        let _ = write!(id, "{byte:02x}");
        id
    })
}

/// A name in git's notation: quoted if it contains ambiguous characters.
fn quoted(name: &str) -> String {
    if !name.contains(|c: char| c.is_ascii_control() || c == '"' || c == '\\') {
        return name.to_owned();
    }
    let mut out = String::from("\"");
    for character in name.chars() {
        let _ = match character {
            '"' | '\\' => write!(out, "\\{character}"),
            '\t' => write!(out, "\\t"),
            c if c.is_ascii_control() => write!(out, "\\{:03o}", c as u32),
            c => write!(out, "{c}"),
        };
    }
    out.push('"');
    out
}
