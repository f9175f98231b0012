//! A thread as one file that another home can import: a manifest line, then the unchanged rollout.

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
    /// The number of lines and bytes that follow, so that a truncated bundle is noticed.
    pub(super) lines: u64,
    pub(super) bytes: u64,
}

/// Writes a thread as a bundle. Unreadable lines are left out.
pub fn export_bundle(path: &Path, name: Option<&str>, out: &mut (impl Write + ?Sized)) -> Result<(), ExportError> {
    let file_name = path.file_name().and_then(|name| name.to_str()).and_then(RolloutName::parse);
    let file_name = file_name.ok_or_else(|| ExportError::NotAThread { path: path.to_owned() })?;
    let mut bundle = BundleWriter::default();
    let mut rollout = RolloutLines::open(path)?;
    while let Some(entry) = rollout.next_entry()? {
        bundle.count(&entry);
    }
    bundle.begin(file_name.id, file_name.time, name, out)?;
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
    pub fn begin(
        &self,
        thread: ThreadId,
        file_time: &str,
        name: Option<&str>,
        out: &mut (impl Write + ?Sized),
    ) -> std::io::Result<()> {
        let manifest = Manifest {
            kind: BUNDLE.to_owned(),
            version: VERSION,
            thread,
            file_time: file_time.to_owned(),
            name: name.map(str::to_owned),
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
