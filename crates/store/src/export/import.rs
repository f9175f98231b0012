//! Imports a bundle: checked line by line, and never outside the home.

use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

use codex_log::line::Line;
use codex_log::store::Imported;
use codex_wire::ids::ThreadId;
use codex_wire::rollout::SessionMeta;
use serde_json::{Map, Value, json};

use super::bundle::{BUNDLE, Manifest, VERSION};
use super::new_ids::NewIds;
use crate::index::{IndexError, StoredThreadError, ThreadIndex};
use crate::rollout::{FIRST_LINE, LONGEST_LINE};
use crate::rollout_file::{RolloutError, RolloutFile};
use crate::threads::{RolloutName, SESSIONS, day_folder};

/// The maximum length of the first line of a bundle.
const LONGEST_MANIFEST: usize = 1 << 20;

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
    /// It ends before the last of its threads.
    #[error("the bundle is incomplete: it has {found} of {expected} threads")]
    MissingThreads { found: usize, expected: usize },
    #[error(transparent)]
    Write(#[from] RolloutError),
    #[error("could not create {path}", path = .path.display())]
    Place { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error(transparent)]
    Name(#[from] StoredThreadError),
}

/// An imported thread that has a name yet that no list shows. Dropping it removes its file, unless that was moved.
struct Part {
    id: ThreadId,
    /// Its file, and the place where it will be.
    file: PathBuf,
    path: PathBuf,
    name: Option<String>,
}

impl Drop for Part {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.file));
    }
}

impl ThreadIndex {
    /// Imports a bundle: a thread, and those that it has started. If one of them exists already, all get new ids, and the
    /// first is a fork of the one with its previous id.
    pub fn import(&self, bundle: &mut (impl BufRead + ?Sized)) -> Result<Imported, ImportError> {
        let mut reader = BundleReader::open(bundle)?;
        let mut is_known = false;
        for thread in reader.threads() {
            is_known |= self.find(thread)?.is_some();
        }
        let ids = reader.ids(is_known);
        let mut parts = vec![self.import_part(&reader, bundle, &ids)?];
        while reader.next(bundle)? {
            parts.push(self.import_part(&reader, bundle, &ids)?);
        }
        // The first thread is there when all others are.
        for part in parts.iter().rev() {
            place(&part.file, &part.path)?;
            self.record(&part.path)?;
            if let Some(name) = &part.name {
                self.rename(part.id, name)?;
            }
        }
        let (first, agents) = (&parts[0], parts[1..].iter().map(|part| part.id).collect());
        let renamed_from = is_known.then(|| ids.first().0);
        Ok(Imported { id: first.id, path: first.path.clone(), renamed_from, agents })
    }

    fn import_part(
        &self,
        reader: &BundleReader,
        bundle: &mut (impl BufRead + ?Sized),
        ids: &NewIds,
    ) -> Result<Part, ImportError> {
        let id = ids.new_of(reader.thread()).ok_or(ImportError::OtherThread)?;
        let name = format!("rollout-{}-{id}.jsonl", reader.file_time());
        let time = RolloutName::parse(&name).map(|name| name.time);
        let day = time.and_then(day_folder).ok_or(ImportError::NotABundle)?;
        let path = self.home().join(SESSIONS).join(day).join(&name);
        let part = path.with_extension("part");
        let mut file = RolloutFile::create(part.clone())?;
        let part = Part { id, file: part, path, name: reader.name().map(str::to_owned) };
        reader.read_lines(bundle, ids, |line| -> Result<(), ImportError> {
            file.append_text(line);
            if file.pending_bytes() >= WRITE_BYTES {
                file.flush()?;
            }
            Ok(())
        })?;
        file.flush()?;
        file.sync()()?;
        Ok(part)
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

/// A bundle: a thread, and those that it has started, one after the other. The first line of the current one was read.
#[derive(Debug)]
pub struct BundleReader {
    manifest: Manifest,
    /// All threads of the bundle in their order.
    threads: Vec<ThreadId>,
    /// The number of threads up to the current one.
    opened: usize,
}

impl BundleReader {
    /// Reads the first line of a bundle.
    pub fn open(bundle: &mut (impl BufRead + ?Sized)) -> Result<Self, ImportError> {
        let manifest = read_manifest(bundle)?;
        check_name(&manifest)?;
        let threads: Vec<ThreadId> = std::iter::once(manifest.thread).chain(manifest.agents.iter().copied()).collect();
        let mut sorted = threads.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() != threads.len() {
            return Err(ImportError::NotABundle);
        }
        Ok(Self { manifest, threads, opened: 1 })
    }

    /// Goes on to the next thread, once the lines of the current one were read; false if there is none.
    pub fn next(&mut self, bundle: &mut (impl BufRead + ?Sized)) -> Result<bool, ImportError> {
        let Some(expected) = self.threads.get(self.opened) else { return Ok(false) };
        if bundle.fill_buf().map_err(ImportError::Read)?.is_empty() {
            return Err(ImportError::MissingThreads { found: self.opened, expected: self.threads.len() });
        }
        let manifest = read_manifest(bundle)?;
        check_name(&manifest)?;
        if manifest.thread != *expected {
            return Err(ImportError::OtherThread);
        }
        self.manifest = manifest;
        self.opened += 1;
        Ok(true)
    }

    /// All threads of the bundle.
    pub fn threads(&self) -> impl Iterator<Item = ThreadId> {
        self.threads.iter().copied()
    }

    /// The ids of its threads here: new ones if some of them are in use.
    #[must_use]
    pub fn ids(&self, is_known: bool) -> NewIds {
        let id = |old| (old, if is_known { ThreadId::fresh() } else { old });
        NewIds::new(self.threads().map(id).collect())
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

    /// Passes on the lines of the thread with the new ids. An error after some of them means that the bundle is no good.
    pub fn read_lines<E: From<ImportError>>(
        &self,
        bundle: &mut (impl BufRead + ?Sized),
        ids: &NewIds,
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
                take(&self.first_line(&line, ids)?)?;
            } else if let Some(text) = without_plans(&line) {
                take(&ids.replace(&text))?;
            }
        }
        if found != manifest.bytes || manifest.lines == 0 {
            return Err(ImportError::Incomplete { found, expected: manifest.bytes }.into());
        }
        Ok(())
    }

    /// The line that identifies the thread, with its new id and the time of the import, because of which a resume asks
    /// for the folder to work in. A thread that was started by another has to name one of the bundle.
    fn first_line(&self, line: &Line<'_>, ids: &NewIds) -> Result<String, ImportError> {
        let (old, is_first) = (self.manifest.thread, self.opened == 1);
        let meta: SessionMeta =
            line.payload_as().filter(|_| line.kind == FIRST_LINE).ok_or(ImportError::OtherThread)?;
        let belongs = is_first || meta.lineage.parent_thread_id.is_some_and(|parent| ids.new_of(parent).is_some());
        if meta.id != old || !belongs {
            return Err(ImportError::OtherThread);
        }
        let text = ids.replace(line.text);
        let mut members: Map<String, Value> = serde_json::from_str(&text).map_err(|_| ImportError::OtherThread)?;
        if let Some(Value::Object(payload)) = members.get_mut("payload") {
            if is_first && ids.new_of(old) != Some(old) {
                payload.insert("forked_from_id".to_owned(), json!(old));
            }
            let now = chrono::DateTime::<chrono::Utc>::from(codex_wire::time::now())
                .to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
            payload.insert("imported_at".to_owned(), json!(now));
            // The importing client has registered no tools.
            payload.shift_remove("dynamic_tools");
        }
        serde_json::to_string(&members).map_err(|_| ImportError::OtherThread)
    }
}

fn check_name(manifest: &Manifest) -> Result<(), ImportError> {
    let name = format!("rollout-{}-{}.jsonl", manifest.file_time, manifest.thread);
    RolloutName::parse(&name).map(drop).ok_or(ImportError::NotABundle)
}

/// A line without what a thread would do on its own, which the importing user has not asked for: goals, queued
/// input and watchdogs.
fn without_plans<'a>(line: &Line<'a>) -> Option<std::borrow::Cow<'a, str>> {
    match line.event().as_ref().map(|event| &*event.kind) {
        Some("goal_changed" | "agent_watchdog") => None,
        Some(kind) if kind.starts_with("queue_") => None,
        Some("agent_tree") => {
            let mut whole: Value = serde_json::from_str(line.text).ok()?;
            whole.get_mut("payload")?.as_object_mut()?.remove("watchdogs");
            Some(whole.to_string().into())
        }
        _ => Some(line.text.into()),
    }
}
