//! The summary of a thread in lists.

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use codex_wire::ids::ThreadId;
use codex_wire::rollout::{GitInfo, SessionSource, SubAgentSource};

use super::metadata::InSection;

/// A thread as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadSummary {
    /// The thread.
    pub id: ThreadId,
    /// Its file.
    pub path: PathBuf,
    /// The first message of the user, or the goal that was set before it; may be empty.
    pub preview: String,
    /// When it began.
    pub created_at: DateTime<Utc>,
    /// When its file was written last.
    pub updated_at: DateTime<Utc>,
    /// Where it works.
    pub cwd: PathBuf,
    /// The provider of its model, where it is recorded.
    pub provider: Option<String>,
    /// The kind of client that started it, if recorded.
    pub source: Option<SessionSource>,
    /// The client that began it.
    pub originator: String,
    /// The release that began it.
    pub cli_version: String,
    /// The state of the work tree when it began.
    pub git: Option<GitInfo>,
    pub name: Option<String>,
    /// Whether it is archived.
    pub archived: bool,
    /// The thread that started it.
    pub parent: Option<ThreadId>,
    /// The thread that it is a copy of.
    pub forked_from: Option<ThreadId>,
    /// The section that the user has put it into.
    pub section: Option<InSection>,
}

/// The kinds of what begins threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// The terminal interface.
    Cli,
    /// An editor, or any client of the app server.
    VsCode,
    /// A run without a person.
    Exec,
    /// A client of MCP.
    AppServer,
    /// Another thread, for whatever reason.
    SubAgent,
    /// Another thread, to review.
    SubAgentReview,
    /// Another thread, to sum up.
    SubAgentCompact,
    /// Another thread, by a model's call.
    SubAgentThreadSpawn,
    /// Another thread, for something else.
    SubAgentOther,
    /// Nobody knows.
    Unknown,
}

impl SourceKind {
    /// The kind of a source. Threads of releases that did not record theirs were begun by an editor or a terminal, and
    /// are listed as the former, as those releases do.
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

    /// The word for it in the index, which is also that of the protocol.
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
