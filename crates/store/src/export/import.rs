//! A bundle taken in: checked line by line, and never outside the home.

use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

use codex_log::line::Line;
use codex_log::store::Imported;
use codex_wire::ids::ThreadId;
use codex_wire::rollout::SessionMeta;
use serde_json::{Map, Value, json};

use super::bundle::{BUNDLE, Manifest, VERSION};
use crate::index::{IndexError, ShelfError, ThreadIndex};
use crate::rollout::LONGEST_LINE;
use crate::rollout_file::{RolloutError, RolloutFile};
use crate::threads::{RolloutName, SESSIONS, day_folder};

/// How long the first line of a bundle may be.
const LONGEST_MANIFEST: usize = 64 << 10;

/// After so many bytes the lines that were read are written.
const WRITE_BYTES: usize = 1 << 20;

/// Why a bundle could not be taken in.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It could not be read.
    #[error("could not read the bundle")]
    Read(#[source] io::Error),
    /// It is something else.
    #[error("this is not a bundle of a thread")]
    NotABundle,
    /// It was written by a later release.
    #[error("this bundle has the form {version}, and {VERSION} is the newest that is known")]
    Version {
        /// Its form.
        version: u32,
    },
    /// A line of it is not one of a rollout.
    #[error("line {number} of the bundle is not a line of a rollout")]
    BadLine {
        /// Which line, counted from one.
        number: u64,
    },
    /// The thread it names is not the one it holds.
    #[error("the bundle does not hold the thread that it names")]
    OtherThread,
    /// Not all of it is there.
    #[error("the bundle is incomplete: it has {found} of {expected} bytes")]
    Incomplete {
        /// How many bytes there are.
        found: u64,
        /// How many there should be.
        expected: u64,
    },
    /// It could not be written into the home.
    #[error(transparent)]
    Write(#[from] RolloutError),
    /// It could not be put in its place.
    #[error("could not make {path}", path = .path.display())]
    Place {
        /// The place.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The index could not be asked.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// Its name could not be kept.
    #[error(transparent)]
    Name(#[from] ShelfError),
}

impl ThreadIndex {
    /// Takes in a bundle. If there is such a thread already, the new one is a fork of it with a name of its own.
    pub fn import(&self, bundle: &mut (impl BufRead + ?Sized)) -> Result<Imported, ImportError> {
        let manifest = read_manifest(bundle)?;
        let known = self.find(manifest.thread)?.is_some();
        let id = if known { ThreadId::fresh() } else { manifest.thread };
        let name = format!("rollout-{}-{id}.jsonl", manifest.file_time);
        let time = RolloutName::parse(&name).map(|name| name.time);
        let day = time.and_then(day_folder).ok_or(ImportError::NotABundle)?;
        let path = self.home().join(SESSIONS).join(day).join(&name);
        // Until it is whole it has a name that no list shows.
        let part = path.with_extension("part");
        let mut file = RolloutFile::create(part.clone())?;
        let copied = copy(bundle, &manifest, id, &mut file).and_then(|()| place(&part, &path));
        drop(file);
        if copied.is_err() {
            drop(std::fs::remove_file(&part));
        }
        copied?;
        self.note(&path)?;
        if let Some(name) = &manifest.name {
            self.rename(id, name)?;
        }
        Ok(Imported { id, path, renamed_from: known.then_some(manifest.thread) })
    }
}

fn place(part: &Path, path: &Path) -> Result<(), ImportError> {
    let failed = |source| ImportError::Place { path: path.to_owned(), source };
    if path.symlink_metadata().is_ok() {
        return Err(failed(io::ErrorKind::AlreadyExists.into()));
    }
    std::fs::rename(part, path).map_err(failed)
}

fn read_manifest(bundle: &mut (impl BufRead + ?Sized)) -> Result<Manifest, ImportError> {
    let line = read_line(bundle, LONGEST_MANIFEST)?.ok_or(ImportError::NotABundle)?;
    let manifest: Manifest = serde_json::from_str(&line).map_err(|_| ImportError::NotABundle)?;
    match manifest {
        Manifest { ref kind, .. } if kind != BUNDLE => Err(ImportError::NotABundle),
        Manifest { version, .. } if version > VERSION => Err(ImportError::Version { version }),
        manifest => Ok(manifest),
    }
}

/// The next line without its end; none at the end, and at a line that is too long or no text.
fn read_line(bundle: &mut (impl BufRead + ?Sized), longest: usize) -> Result<Option<String>, ImportError> {
    let mut bytes = Vec::new();
    bundle.take(longest as u64 + 1).read_until(b'\n', &mut bytes).map_err(ImportError::Read)?;
    if bytes.pop() != Some(b'\n') {
        return Ok(None);
    }
    Ok(String::from_utf8(bytes).ok())
}

fn copy(
    bundle: &mut (impl BufRead + ?Sized),
    manifest: &Manifest,
    id: ThreadId,
    file: &mut RolloutFile,
) -> Result<(), ImportError> {
    let mut found = 0;
    for number in 0..manifest.lines {
        let incomplete = ImportError::Incomplete { found, expected: manifest.bytes };
        let text = read_line(bundle, LONGEST_LINE)?.ok_or(incomplete)?;
        found += text.len() as u64 + 1;
        // The first line of the bundle is the manifest.
        let line = Line::parse(&text).map_err(|_| ImportError::BadLine { number: number + 2 })?;
        if number == 0 {
            file.append_text(&first_line(&line, manifest.thread, id)?);
        } else if line.event().is_none_or(|event| event.kind != "goal_changed") {
            // A thread goes on by itself towards its goal, and whoever takes it in has set none.
            file.append_text(&text);
        }
        if file.pending_bytes() >= WRITE_BYTES {
            file.flush()?;
        }
    }
    if found != manifest.bytes || manifest.lines == 0 {
        return Err(ImportError::Incomplete { found, expected: manifest.bytes });
    }
    file.flush()?;
    Ok(file.sync()()?)
}

/// The line that says which thread it is, with the name that it has here and since when it is here. Who resumes the thread
/// is asked where it may work because of that.
fn first_line(line: &Line<'_>, old: ThreadId, new: ThreadId) -> Result<String, ImportError> {
    let meta: Option<SessionMeta> = line.payload_as().filter(|_| line.kind == "session_meta");
    if meta.is_none_or(|meta| meta.id != old) {
        return Err(ImportError::OtherThread);
    }
    let mut members: Map<String, Value> = serde_json::from_str(line.text).map_err(|_| ImportError::OtherThread)?;
    if let Some(Value::Object(payload)) = members.get_mut("payload") {
        for name in ["id", "session_id"] {
            if payload.get(name) == Some(&json!(old)) {
                payload.insert(name.to_owned(), json!(new));
            }
        }
        if old != new {
            payload.insert("forked_from_id".to_owned(), json!(old));
        }
        let now = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
        payload.insert("imported_at".to_owned(), json!(now));
    }
    serde_json::to_string(&members).map_err(|_| ImportError::OtherThread)
}
