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
    let (mut lines, mut bytes, mut end) = (0, 0, 0);
    let mut rollout = RolloutLines::open(path)?;
    while let Some(entry) = rollout.next_entry()? {
        if let Entry::Line(line) = entry {
            lines += 1;
            bytes += line.text.len() as u64 + 1;
            end = line.range.end;
        }
    }
    let manifest = Manifest {
        kind: BUNDLE.to_owned(),
        version: VERSION,
        thread: file_name.id,
        file_time: file_name.time.to_owned(),
        name: name.map(str::to_owned),
        lines,
        bytes,
    };
    serde_json::to_writer(&mut *out, &manifest).map_err(std::io::Error::from)?;
    out.write_all(b"\n")?;
    rollout.rewind()?;
    while let Some(entry) = rollout.next_entry()? {
        let Entry::Line(line) = entry else { continue };
        // Lines written since the count are not part of it.
        if line.range.end > end {
            break;
        }
        out.write_all(line.text.as_bytes())?;
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}
