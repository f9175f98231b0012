//! The summary of a thread in its row.

use std::path::PathBuf;

use chrono::DateTime;
use codex_log::store::{SourceKind, ThreadSummary, store_place};
use codex_wire::ids::ThreadId;
use codex_wire::rollout::{GitInfo, SessionSource};
use serde::{Deserialize, Serialize};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::connection::column;
use crate::errors::PostgresError;

/// The columns that [`listed`] reads.
pub(crate) const COLUMNS: &str = "id, archived, began, updated, preview, cwd, provider, summary, name";

/// The parts of a summary that no query filters by, in one column.
#[derive(Debug, Serialize, Deserialize)]
struct Rest {
    created: i64,
    source: Option<SessionSource>,
    originator: String,
    cli_version: String,
    git: Option<GitInfo>,
    parent: Option<ThreadId>,
    forked_from: Option<ThreadId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    thread_source: Option<String>,
}

/// The columns of a summary.
#[derive(Debug, Default)]
pub(crate) struct SummaryRow {
    pub(crate) preview: String,
    pub(crate) cwd: String,
    pub(crate) provider: Option<String>,
    pub(crate) source_kind: String,
    pub(crate) rest: Option<String>,
}

impl SummaryRow {
    pub(crate) fn of(summary: &ThreadSummary) -> Self {
        let rest = Rest {
            created: summary.created_at.timestamp_millis(),
            source: summary.source.clone(),
            originator: summary.originator.clone(),
            cli_version: summary.cli_version.clone(),
            git: summary.git.clone(),
            parent: summary.parent,
            forked_from: summary.forked_from,
            thread_source: summary.thread_source.clone(),
        };
        Self {
            preview: without_nul(&summary.preview),
            cwd: without_nul(&summary.cwd.to_string_lossy()),
            provider: summary.provider.as_deref().map(without_nul),
            source_kind: SourceKind::of(summary.source.as_ref()).word().to_owned(),
            rest: serde_json::to_string(&rest).ok(),
        }
    }
}

/// A text without the one character that the database cannot store.
pub(crate) fn without_nul(text: &str) -> String {
    text.replace('\0', "")
}

/// A row of a list.
pub(crate) struct Listed {
    pub(crate) began: String,
    pub(crate) summary: ThreadSummary,
}

/// Parses a row with the [`COLUMNS`]; `None` if the thread has no summary yet.
pub(crate) fn listed(row: &Row, place: &str) -> Result<Option<Listed>, PostgresError> {
    let rest: Option<String> = column(row, "summary", place)?;
    let Some(rest) = rest.and_then(|rest| serde_json::from_str::<Rest>(&rest).ok()) else { return Ok(None) };
    let id = ThreadId::from(column::<Uuid>(row, "id", place)?);
    let cwd: String = column(row, "cwd", place)?;
    let summary = ThreadSummary {
        id,
        path: store_place(id),
        preview: column(row, "preview", place)?,
        created_at: DateTime::from_timestamp_millis(rest.created).unwrap_or_default(),
        updated_at: DateTime::from_timestamp_nanos(column(row, "updated", place)?),
        cwd: PathBuf::from(cwd),
        provider: column(row, "provider", place)?,
        source: rest.source,
        originator: rest.originator,
        cli_version: rest.cli_version,
        git: rest.git,
        name: column(row, "name", place)?,
        archived: column(row, "archived", place)?,
        parent: rest.parent,
        forked_from: rest.forked_from,
        thread_source: rest.thread_source,
        section: None,
    };
    Ok(Some(Listed { began: column(row, "began", place)?, summary }))
}
