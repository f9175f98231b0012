//! The summary of a thread in lists.

use std::path::PathBuf;

use chrono::{DateTime, SecondsFormat, Utc};
use codex_wire::ids::ThreadId;
use codex_wire::rollout::{GitInfo, SessionSource, SubAgentSource};
use serde_json::{Value, json};

use super::metadata::InSection;

/// A thread as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadSummary {
    pub id: ThreadId,
    /// Its file.
    pub path: PathBuf,
    /// The first message of the user, or the goal that was set before it; may be empty.
    pub preview: String,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// The provider of its model, if recorded.
    pub provider: Option<String>,
    /// The kind of client that started it, if recorded.
    pub source: Option<SessionSource>,
    /// The client that started it.
    pub originator: String,
    /// The release that started it.
    pub cli_version: String,
    /// The state of the repository when it started.
    pub git: Option<GitInfo>,
    pub name: Option<String>,
    /// Whether it is archived.
    pub archived: bool,
    /// The thread that started it.
    pub parent: Option<ThreadId>,
    /// The thread that it is a copy of.
    pub forked_from: Option<ThreadId>,
    /// The client's word for the origin of the thread.
    pub thread_source: Option<String>,
    /// The section that it is in.
    pub section: Option<InSection>,
}

impl ThreadSummary {
    /// The name of the thread, or else its first message.
    #[must_use]
    pub fn title(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.preview)
    }

    /// The metadata of the thread, for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let time = |time: DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::Millis, true);
        json!({
            "id": self.id,
            "name": self.name,
            "preview": self.preview,
            "created_at": time(self.created_at),
            "updated_at": time(self.updated_at),
            "cwd": self.cwd,
            "path": self.path,
            "archived": self.archived,
            "source": self.source,
            "originator": self.originator,
            "provider": self.provider,
            "cli_version": self.cli_version,
            "git": self.git,
            "parent": self.parent,
            "forked_from": self.forked_from,
        })
    }
}

/// The kinds of sources of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// The terminal interface.
    Cli,
    /// An editor, or any client of the app-server.
    VsCode,
    /// A non-interactive run.
    Exec,
    /// An MCP client.
    AppServer,
    /// Another thread, for any reason.
    SubAgent,
    /// Another thread, for a review.
    SubAgentReview,
    /// Another thread, for a summary.
    SubAgentCompact,
    /// Another thread, by a call of its model.
    SubAgentThreadSpawn,
    /// Another thread, for another reason.
    SubAgentOther,
    /// Unknown.
    Unknown,
}

impl SourceKind {
    /// The kind of a source. Threads of releases that did not record theirs were started by an editor or a terminal,
    /// and are listed as the former, as those releases do.
    #[must_use]
    pub fn of(source: Option<&SessionSource>) -> Self {
        match source {
            None | Some(SessionSource::VsCode) => Self::VsCode,
            Some(SessionSource::Cli) => Self::Cli,
            Some(SessionSource::Exec) => Self::Exec,
            Some(SessionSource::Mcp) => Self::AppServer,
            Some(SessionSource::Unknown | SessionSource::Other(_)) => Self::Unknown,
            Some(SessionSource::SubAgent(SubAgentSource::Review)) => Self::SubAgentReview,
            Some(SessionSource::SubAgent(SubAgentSource::Compact)) => Self::SubAgentCompact,
            Some(SessionSource::SubAgent(SubAgentSource::ThreadSpawn(_))) => Self::SubAgentThreadSpawn,
            Some(SessionSource::SubAgent(SubAgentSource::Other(_))) => Self::SubAgentOther,
        }
    }

    /// The names of some kinds, where that of all agents includes each of theirs.
    #[must_use]
    pub fn words(kinds: &[Self]) -> Vec<String> {
        let all = [Self::SubAgentReview, Self::SubAgentCompact, Self::SubAgentThreadSpawn, Self::SubAgentOther];
        let agents = all.iter().filter(|_| kinds.contains(&Self::SubAgent));
        kinds.iter().chain(agents).map(|kind| kind.word().to_owned()).collect()
    }

    /// Its name in the index, which is also that of the protocol.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Cli => "cli",
            Self::VsCode => "vscode",
            Self::Exec => "exec",
            Self::AppServer => "appServer",
            Self::SubAgent => "subAgent",
            Self::SubAgentReview => "subAgentReview",
            Self::SubAgentCompact => "subAgentCompact",
            Self::SubAgentThreadSpawn => "subAgentThreadSpawn",
            Self::SubAgentOther => "subAgentOther",
            Self::Unknown => "unknown",
        }
    }
}
