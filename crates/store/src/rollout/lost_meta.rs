//! What can be told of a thread whose first line is gone: the name of its file, and what the other lines say.

use std::path::{Path, PathBuf};

use chrono::{SecondsFormat, Utc};
use codex_log::line::Line;
use codex_wire::rollout::{SessionLineage, SessionMeta, TurnContextItem};

use crate::threads::RolloutName;

/// What the lines of a thread say of it besides its first.
#[derive(Debug, Default)]
pub(crate) struct LostMeta {
    has_lines: bool,
    cwd: Option<PathBuf>,
}

impl LostMeta {
    /// Takes note of a line.
    pub(crate) fn see(&mut self, line: &Line<'_>) {
        self.has_lines = true;
        if line.kind == "turn_context" && self.cwd.is_none() {
            self.cwd = line.payload_as::<TurnContextItem>().map(|context| context.cwd);
        }
    }

    /// The line that is gone, as far as it can be told. A file that holds nothing of a thread is none, whatever its
    /// name.
    pub(crate) fn guess(self, path: &Path) -> Option<SessionMeta> {
        let name = RolloutName::parse(path.file_name()?.to_str()?).filter(|_| self.has_lines)?;
        let began = name.began().unwrap_or_else(Utc::now);
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
