//! Reconstructs the lost first line of a thread from its file name and its other lines.

use std::path::{Path, PathBuf};

use chrono::SecondsFormat;
use codex_log::line::Line;
use codex_wire::rollout::{SessionLineage, SessionMeta, TurnContextItem};

use crate::threads::RolloutName;

/// The information about a thread in its other lines.
#[derive(Debug, Default)]
pub(crate) struct LostMeta {
    has_lines: bool,
    cwd: Option<PathBuf>,
}

impl LostMeta {
    /// Processes a line.
    pub(crate) fn see(&mut self, line: &Line<'_>) {
        self.has_lines = true;
        if line.kind == "turn_context" && self.cwd.is_none() {
            self.cwd = line.payload_as::<TurnContextItem>().map(|context| context.cwd);
        }
    }

    /// The lost line, as far as it can be reconstructed. A file without any thread data is not a thread, whatever its
    /// name.
    pub(crate) fn guess(self, path: &Path) -> Option<SessionMeta> {
        let name = RolloutName::parse(path.file_name()?.to_str()?).filter(|_| self.has_lines)?;
        let began = name.began().unwrap_or_else(|| codex_wire::time::now().into());
        Some(SessionMeta {
            id: name.id,
            timestamp: began.to_rfc3339_opts(SecondsFormat::Millis, true),
            cwd: self.cwd.unwrap_or_else(|| PathBuf::from("/")),
            originator: String::new(),
            cli_version: String::new(),
            instructions: None,
            source: None,
            model_provider: None,
            lineage: SessionLineage::default(),
            git: None,
        })
    }
}
