//! A thread as one file that another home can take in: a line that says what follows, then the rollout as it is.

use std::io::Write;
use std::path::Path;

use codex_log::store::Entry;
use codex_wire::ids::ThreadId;
use serde::{Deserialize, Serialize};

use super::ExportError;
use crate::rollout::RolloutLines;
use crate::threads::RolloutName;

/// The word that tells a bundle from any other file of lines.
pub(super) const BUNDLE: &str = "codex_thread_bundle";

/// The form of the bundles that are written, and the newest that is read.
pub(super) const VERSION: u32 = 1;

/// The first line of a bundle.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) version: u32,
    pub(super) thread: ThreadId,
    /// When the thread began, as its file name spells it.
    pub(super) file_time: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    /// How many lines follow, and how many bytes they have, so that a bundle cut short is noticed.
    pub(super) lines: u64,
    pub(super) bytes: u64,
}

/// Writes a thread as a bundle. Lines that cannot be read are left out.
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
        // What was written since the lines were counted is not part of it.
        if line.range.end > end {
            break;
        }
        out.write_all(line.text.as_bytes())?;
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}
