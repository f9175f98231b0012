//! Paged lists of threads.

use std::path::Path;

use chrono::{DateTime, SecondsFormat};
use codex_log::store::{ListQuery, Page, SortKey, SourceKind, ThreadSummary};
use codex_wire::ids::ThreadId;
use rusqlite::types::Value;
use rusqlite::{Params, params_from_iter};

use super::database::Database;
use super::rows::{self, COLUMNS, Listed};
use super::sectioned::Members;
use super::{IndexError, refresh};
use crate::threads::{FileState, local_time};

/// Lists threads after checking for changes.
pub(crate) fn list(database: &mut Database, query: &ListQuery, members: &Members) -> Result<Page, IndexError> {
    refresh::folders(database)?;
    // Later pages keep the order of the first one.
    if query.sort == SortKey::Updated && query.cursor.is_none() {
        refresh::files(database)?;
    }
    let mut listed = select_page(database, query, members)?;
    let shown: Vec<(i64, &Path, FileState)> =
        listed.iter().map(|listed| (listed.key, &*listed.summary.path, listed.state)).collect();
    if refresh::shown(database, &shown)? {
        listed = select_page(database, query, members)?;
    }
    let more = listed.len() > query.limit;
    listed.truncate(query.limit);
    let next_cursor = listed.last().filter(|_| more).map(|last| cursor(last, query.sort, members));
    // A time alone: the list starts with all threads that have it, so nothing is left out.
    let backwards_cursor = listed.first().map(|first| match query.sort {
        SortKey::Place => members.cursor(first.summary.id),
        SortKey::Created => first.file_time.clone(),
        SortKey::Updated => written_time(&first.summary),
    });
    Ok(Page { threads: listed.into_iter().map(|listed| listed.summary).collect(), next_cursor, backwards_cursor })
}

/// Finds a thread.
pub(crate) fn find(database: &mut Database, thread: ThreadId) -> Result<Option<ThreadSummary>, IndexError> {
    let condition = "threads.id = ?1 ORDER BY archived LIMIT 1";
    let Some(listed) = select(database, condition, [thread.to_string()])?.pop() else { return Ok(None) };
    if !refresh::shown(database, &[(listed.key, &listed.summary.path, listed.state)])? {
        return Ok(Some(listed.summary));
    }
    // Once is enough: a thread that is being written has changed again by now.
    Ok(select(database, condition, [thread.to_string()])?.pop().map(|listed| listed.summary))
}

/// The threads that a thread has started.
pub(crate) fn children(database: &Database, parent: ThreadId) -> Result<Vec<ThreadId>, IndexError> {
    let condition = "json_extract(threads.summary, '$.parent') = ?1 ORDER BY threads.file_time";
    let listed = select(database, condition, [parent.to_string()])?;
    Ok(listed.into_iter().map(|listed| listed.summary.id).collect())
}

/// The threads of a query, and one more.
fn select_page(database: &Database, query: &ListQuery, members: &Members) -> Result<Vec<Listed>, IndexError> {
    let mut condition = Condition::of(query);
    condition.add_members(members);
    let (column, order, sign) = match (query.sort, query.ascending) {
        (SortKey::Created, false) => ("threads.file_time", "DESC", "<"),
        (SortKey::Created, true) => ("threads.file_time", "ASC", ">"),
        (SortKey::Updated, false) => ("threads.mtime", "DESC", "<"),
        (SortKey::Updated, true) => ("threads.mtime", "ASC", ">"),
        (SortKey::Place, _) => {
            let listed = select(database, &condition.parts.join(" AND "), params_from_iter(condition.values))?;
            return members.sort(listed, |listed| listed.summary.id, query);
        }
    };
    if let Some(cursor) = &query.cursor {
        let place = parse_cursor(cursor, query.sort);
        let (place, id) = place.ok_or_else(|| IndexError::Cursor { cursor: cursor.clone() })?;
        condition.add(format!("({column}, threads.id) {sign} (?, ?)"), [place, Value::from(id)]);
    }
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX).saturating_add(1);
    condition.values.push(Value::from(limit));
    let conditions = condition.parts.join(" AND ");
    let text = format!("{conditions} ORDER BY {column} {order}, threads.id {order} LIMIT ?");
    select(database, &text, params_from_iter(condition.values))
}

/// Conjunctive conditions, and the values of their placeholders.
#[derive(Default)]
pub(super) struct Condition {
    pub(super) parts: Vec<String>,
    pub(super) values: Vec<Value>,
}

impl Condition {
    fn of(query: &ListQuery) -> Self {
        let mut condition = Self::default();
        condition.add("threads.archived = ?".to_owned(), [Value::from(query.archived)]);
        if !query.silent {
            condition.add("threads.preview <> ''".to_owned(), []);
        }
        let default = query.default_provider.clone().map_or(Value::Null, Value::from);
        condition.one_of("coalesce(threads.provider, ?)", Some(default), &query.providers);
        let cwds: Vec<String> = query.cwds.iter().map(|cwd| cwd.to_string_lossy().into_owned()).collect();
        condition.one_of("threads.cwd", None, &cwds);
        condition.one_of("threads.source_kind", None, &SourceKind::words(&query.sources));
        if let Some(text) = &query.text {
            let like = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
            let like = Value::from(format!("%{like}%"));
            let part = "(threads.preview LIKE ? ESCAPE '\\' OR names.name LIKE ? ESCAPE '\\')";
            condition.add(part.to_owned(), [like.clone(), like]);
        }
        condition
    }

    /// Restricts to threads that a section filter selects.
    fn add_members(&mut self, members: &Members) {
        let (word, threads) = match members {
            Members::All => return,
            Members::AllBut(threads) => ("NOT IN", threads),
            Members::Only(threads) => ("IN", threads),
        };
        // There may be more than a statement can have placeholders.
        let names: serde_json::Value = threads.iter().map(ThreadId::to_string).collect();
        self.add(format!("threads.id {word} (SELECT value FROM json_each(?))"), [Value::from(names.to_string())]);
    }

    pub(super) fn add(&mut self, part: String, values: impl IntoIterator<Item = Value>) {
        self.parts.push(part);
        self.values.extend(values);
    }

    /// The column, which may contain a placeholder, has one of these values; any if there are none.
    pub(super) fn one_of(&mut self, column: &str, value: Option<Value>, values: &[String]) {
        if !values.is_empty() {
            let marks = vec!["?"; values.len()].join(", ");
            let values = values.iter().cloned().map(Value::from);
            self.add(format!("{column} IN ({marks})"), value.into_iter().chain(values));
        }
    }
}

/// The threads that meet a condition.
pub(crate) fn select(database: &Database, condition: &str, values: impl Params) -> Result<Vec<Listed>, IndexError> {
    let ask = || -> rusqlite::Result<Vec<Listed>> {
        let text = format!("SELECT {COLUMNS} FROM threads LEFT JOIN names ON names.id = threads.id WHERE {condition}");
        let mut statement = database.connection.prepare_cached(&text)?;
        let rows = statement.query_map(values, |row| rows::listed(&database.home, row))?;
        rows.filter_map(Result::transpose).collect()
    };
    ask().map_err(database.error())
}

/// The cursor after a thread, in the format of other releases.
fn cursor(last: &Listed, sort: SortKey, members: &Members) -> String {
    match sort {
        SortKey::Place => members.cursor(last.summary.id),
        SortKey::Created => format!("{}|{}", last.file_time, last.summary.id),
        SortKey::Updated => format!("{}|{}", written_time(&last.summary), last.summary.id),
    }
}

fn written_time(summary: &ThreadSummary) -> String {
    summary.updated_at.to_rfc3339_opts(SecondsFormat::Nanos, true)
}

/// The time and the thread of a cursor. A time alone precedes all threads that have it.
fn parse_cursor(cursor: &str, sort: SortKey) -> Option<(Value, String)> {
    let (time, id) = match cursor.split_once('|') {
        Some((time, id)) => (time, id.parse::<ThreadId>().ok()?.to_string()),
        None => (cursor, String::new()),
    };
    let place = match sort {
        SortKey::Created => Value::from(local_time(time).map(|_| time.to_owned())?),
        SortKey::Place => return None,
        SortKey::Updated => Value::from(DateTime::parse_from_rfc3339(time).ok()?.timestamp_nanos_opt()?),
    };
    Some((place, id))
}
