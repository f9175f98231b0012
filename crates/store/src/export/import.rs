//! Imports a bundle: checked line by line, and never outside the home.

use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

use codex_log::line::Line;
use codex_log::store::Imported;
use codex_wire::ids::ThreadId;
use codex_wire::rollout::SessionMeta;
use serde_json::{Map, Value, json};

use super::bundle::{BUNDLE, Manifest, VERSION};
use crate::index::{IndexError, StoredThreadError, ThreadIndex};
use crate::rollout::LONGEST_LINE;
use crate::rollout_file::{RolloutError, RolloutFile};
use crate::threads::{RolloutName, SESSIONS, day_folder};

/// The maximum length of the first line of a bundle.
const LONGEST_MANIFEST: usize = 64 << 10;

/// The number of bytes after which the lines read so far are written.
const WRITE_BYTES: usize = 1 << 20;

/// The reason why a bundle could not be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("could not read the bundle")]
    Read(#[source] io::Error),
    /// It is something else.
    #[error("not a thread bundle")]
    NotABundle,
    /// It was written by a later release.
    #[error("unsupported bundle version {version}; the newest supported version is {VERSION}")]
    Version { version: u32 },
    /// A line is not a rollout line.
    #[error("line {number} of the bundle is not a line of a rollout")]
    BadLine {
        /// The line number, starting at 1.
        number: u64,
    },
    /// It names another thread than it contains.
    #[error("the bundle does not contain the thread that it names")]
    OtherThread,
    #[error("the bundle is incomplete: it has {found} of {expected} bytes")]
    Incomplete { found: u64, expected: u64 },
    #[error(transparent)]
    Write(#[from] RolloutError),
    #[error("could not create {path}", path = .path.display())]
    Place { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error(transparent)]
    Name(#[from] StoredThreadError),
}

impl ThreadIndex {
    /// Imports a bundle. If the thread exists already, the new one is a fork of it with a new id.
    pub fn import(&self, bundle: &mut (impl BufRead + ?Sized)) -> Result<Imported, ImportError> {
        let manifest = BundleReader::open(bundle)?.manifest;
        let known = self.find(manifest.thread)?.is_some();
        let id = if known { ThreadId::fresh() } else { manifest.thread };
        let name = format!("rollout-{}-{id}.jsonl", manifest.file_time);
        let time = RolloutName::parse(&name).map(|name| name.time);
        let day = time.and_then(day_folder).ok_or(ImportError::NotABundle)?;
        let path = self.home().join(SESSIONS).join(day).join(&name);
        // Until it is complete, it has a name that no list shows.
        let part = path.with_extension("part");
        let mut file = RolloutFile::create(part.clone())?;
        let reader = BundleReader { manifest };
        let copied = copy(bundle, &reader, id, &mut file).and_then(|()| place(&part, &path));
        let manifest = reader.manifest;
        drop(file);
        if copied.is_err() {
            drop(std::fs::remove_file(&part));
        }
        copied?;
        self.record(&path)?;
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

/// The next line without its end; `None` at the end, and at a line that is too long or not text.
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
    reader: &BundleReader,
    id: ThreadId,
    file: &mut RolloutFile,
) -> Result<(), ImportError> {
    reader.read_lines(bundle, id, |line| -> Result<(), ImportError> {
        file.append_text(line);
        if file.pending_bytes() >= WRITE_BYTES {
            file.flush()?;
        }
        Ok(())
    })?;
    file.flush()?;
    Ok(file.sync()()?)
}

/// A bundle whose first line was read.
#[derive(Debug)]
pub struct BundleReader {
    manifest: Manifest,
}

impl BundleReader {
    /// Reads the first line of a bundle.
    pub fn open(bundle: &mut (impl BufRead + ?Sized)) -> Result<Self, ImportError> {
        let manifest = read_manifest(bundle)?;
        let name = format!("rollout-{}-{}.jsonl", manifest.file_time, manifest.thread);
        RolloutName::parse(&name).ok_or(ImportError::NotABundle)?;
        Ok(Self { manifest })
    }

    #[must_use]
    pub fn thread(&self) -> ThreadId {
        self.manifest.thread
    }

    /// The start time of the thread, as in file names.
    #[must_use]
    pub fn file_time(&self) -> &str {
        &self.manifest.file_time
    }

    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.manifest.name.as_deref()
    }

    /// Passes on the lines of the thread with its new id. An error after some of them means that the bundle is no good.
    pub fn read_lines<E: From<ImportError>>(
        &self,
        bundle: &mut (impl BufRead + ?Sized),
        id: ThreadId,
        mut take: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let manifest = &self.manifest;
        let mut found = 0;
        for number in 0..manifest.lines {
            let incomplete = ImportError::Incomplete { found, expected: manifest.bytes };
            let text = read_line(bundle, LONGEST_LINE)?.ok_or(incomplete)?;
            found += text.len() as u64 + 1;
            // The first line of the bundle is the manifest.
            let line = Line::parse(&text).map_err(|_| ImportError::BadLine { number: number + 2 })?;
            if number == 0 {
                take(&first_line(&line, manifest.thread, id)?)?;
            } else if line.event().is_none_or(|event| !starts_turns(&event.kind)) {
                // The importing user has set no goal and queued nothing.
                take(&text)?;
            }
        }
        if found != manifest.bytes || manifest.lines == 0 {
            return Err(ImportError::Incomplete { found, expected: manifest.bytes }.into());
        }
        Ok(())
    }
}

/// Whether a line makes a thread start turns on its own.
fn starts_turns(kind: &str) -> bool {
    kind == "goal_changed" || kind.starts_with("queue_")
}

/// The line that identifies the thread, with its new id and the time of the import, because of which a resume asks for
/// the folder to work in.
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
        // The importing client has registered no tools.
        payload.shift_remove("dynamic_tools");
    }
    serde_json::to_string(&members).map_err(|_| ImportError::OtherThread)
}
