//! A thread as one file that another home can import: a manifest line, then the unchanged rollout, and after it the same
//! for each thread that it has started. Releases that know nothing of agents read the first thread only.

use std::io::Write;
use std::path::Path;

use codex_log::store::Entry;
use codex_wire::ids::ThreadId;
use serde::{Deserialize, Serialize};

use super::ExportError;
use crate::rollout::RolloutLines;
use crate::threads::RolloutName;

/// The marker that identifies a bundle.
pub(super) const BUNDLE: &str = "codex_thread_bundle";

/// The format version of written bundles, and the newest that can be read.
pub(super) const VERSION: u32 = 1;

/// The first line of a bundle.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) version: u32,
    pub(super) thread: ThreadId,
    /// The start time of the thread, as in its file name.
    pub(super) file_time: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    /// The threads that follow this one, in their order: those that it has started, and those that they have started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) agents: Vec<ThreadId>,
    /// The number of lines and bytes that follow, so that a truncated bundle is noticed.
    pub(super) lines: u64,
    pub(super) bytes: u64,
}

/// A thread of a bundle.
#[derive(Debug, Clone, Copy)]
pub struct BundleThread<'a> {
    pub id: ThreadId,
    /// The start time of the thread, as in file names.
    pub file_time: &'a str,
    pub name: Option<&'a str>,
    /// The threads that follow it.
    pub agents: &'a [ThreadId],
}

/// Writes a thread as a bundle, or as the next thread of one. Unreadable lines are left out.
pub fn export_bundle(
    path: &Path,
    name: Option<&str>,
    agents: &[ThreadId],
    out: &mut (impl Write + ?Sized),
) -> Result<(), ExportError> {
    let file_name = path.file_name().and_then(|name| name.to_str()).and_then(RolloutName::parse);
    let file_name = file_name.ok_or_else(|| ExportError::NotAThread { path: path.to_owned() })?;
    let mut bundle = BundleWriter::default();
    let mut rollout = RolloutLines::open(path)?;
    while let Some(entry) = rollout.next_entry()? {
        bundle.count(&entry);
    }
    let thread = BundleThread { id: file_name.id, file_time: file_name.time, name, agents };
    bundle.begin(thread, out)?;
    rollout.rewind()?;
    while let Some(entry) = rollout.next_entry()? {
        if !bundle.write(&entry, out)? {
            break;
        }
    }
    Ok(out.flush()?)
}

/// Writes a bundle in two passes over the lines of a thread.
#[derive(Debug, Default)]
pub struct BundleWriter {
    lines: u64,
    bytes: u64,
    /// The end of the last counted line.
    end: u64,
}

impl BundleWriter {
    /// Takes a line in the first pass.
    pub fn count(&mut self, entry: &Entry<'_>) {
        if let Entry::Line(line) = entry {
            self.lines += 1;
            self.bytes += line.text.len() as u64 + 1;
            self.end = line.range.end;
        }
    }

    /// Writes the manifest, between the passes.
    pub fn begin(&self, thread: BundleThread<'_>, out: &mut (impl Write + ?Sized)) -> std::io::Result<()> {
        let BundleThread { id: thread, file_time, name, agents } = thread;
        let manifest = Manifest {
            kind: BUNDLE.to_owned(),
            version: VERSION,
            thread,
            file_time: file_time.to_owned(),
            name: name.map(str::to_owned),
            agents: agents.to_vec(),
            lines: self.lines,
            bytes: self.bytes,
        };
        serde_json::to_writer(&mut *out, &manifest)?;
        out.write_all(b"\n")
    }

    /// Writes a line in the second pass. False if it was written since the first one, and is not part of the bundle.
    pub fn write(&self, entry: &Entry<'_>, out: &mut (impl Write + ?Sized)) -> std::io::Result<bool> {
        let Entry::Line(line) = entry else { return Ok(true) };
        if line.range.end > self.end {
            return Ok(false);
        }
        out.write_all(line.text.as_bytes())?;
        out.write_all(b"\n")?;
        Ok(true)
    }
}
