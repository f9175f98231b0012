//! Paged lists of threads.

use std::collections::HashMap;

use chrono::{DateTime, NaiveDateTime, SecondsFormat};
use codex_log::store::{ListQuery, Page, SectionFilter, SortKey, SourceKind, StoreError, ThreadSummary};
use codex_store::{Members, Sections};
use codex_wire::ids::ThreadId;
use codex_wire::rollout::GitInfo;
use uuid::Uuid;

use crate::connection::column;
use crate::documents;
use crate::errors::PostgresError;
use crate::store::{Parts, PostgresStore};
use crate::summary_row::{COLUMNS, Listed, listed};

/// The conditions of all lists, without the end of the previous page. A filter that is null is not applied.
macro_rules! list {
    ($order:literal) => {
        concat!(
            "SELECT id, archived, began, updated, preview, cwd, provider, summary, name FROM @.threads \
             WHERE archived = $1 AND NOT deleted AND summary IS NOT NULL AND ($2 OR preview <> '') \
             AND ($3::text[] IS NULL OR coalesce(provider, $4) = ANY($3)) \
             AND ($5::text[] IS NULL OR cwd = ANY($5)) AND ($6::text[] IS NULL OR source_kind = ANY($6)) \
             AND ($7::text IS NULL OR preview ILIKE $7 OR name ILIKE $7) \
             AND ($8::uuid[] IS NULL OR (id = ANY($8)) = $9) ",
            $order
        )
    };
}

const NEWEST: &str = list!("AND (began, id) < ($10, $11) ORDER BY began DESC, id DESC LIMIT $12");
const OLDEST: &str = list!("AND (began, id) > ($10, $11) ORDER BY began, id LIMIT $12");
const LATEST: &str = list!("AND (updated, id) < ($10, $11) ORDER BY updated DESC, id DESC LIMIT $12");
const STALEST: &str = list!("AND (updated, id) > ($10, $11) ORDER BY updated, id LIMIT $12");

const FIND: &str = "SELECT id, archived, began, updated, preview, cwd, provider, summary, name FROM @.threads \
     WHERE id = $1 AND NOT deleted";

/// The threads that a thread has started, and those that they have started. `UNION` ends at a circle, and ids are in the
/// order of time.
const DESCENDANTS: &str = "WITH RECURSIVE below (id) AS (SELECT $1::uuid UNION \
     SELECT threads.id FROM @.threads AS threads, below WHERE NOT threads.deleted \
     AND threads.summary LIKE '%\"parent\":\"' || below.id::text || '\"%') \
     SELECT id FROM below WHERE id <> $1 ORDER BY id";

const REPOSITORIES: &str = "SELECT thread, value FROM @.metadata WHERE kind = $1 AND thread = ANY($2)";

/// A time after all others, as in file names.
const LAST_TIME: &str = "~";

/// The end of the previous page: a time, and a thread that has it.
enum Place {
    Began(String, Uuid),
    Updated(i64, Uuid),
}

/// The values of a list, owned, because they go to another thread.
struct Filter {
    archived: bool,
    silent: bool,
    providers: Option<Vec<String>>,
    default_provider: Option<String>,
    cwds: Option<Vec<String>>,
    sources: Option<Vec<String>>,
    like: Option<String>,
    members: Option<Vec<Uuid>>,
    is_member: bool,
    limit: i64,
}

fn some<T>(values: Vec<T>) -> Option<Vec<T>> {
    if values.is_empty() { None } else { Some(values) }
}

impl Filter {
    fn of(query: &ListQuery, members: &Members) -> Self {
        let uuids = |threads: &[ThreadId]| threads.iter().copied().map(Uuid::from).collect::<Vec<_>>();
        let (members, is_member) = match members {
            Members::All => (None, true),
            Members::AllBut(threads) => (some(uuids(threads)), false),
            Members::Only(threads) => (Some(uuids(threads)), true),
        };
        let cwds = query.cwds.iter().map(|cwd| cwd.to_string_lossy().into_owned()).collect();
        let like = query.text.as_ref().map(|text| {
            let text = text.replace('\0', "").replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
            format!("%{text}%")
        });
        let limit = i64::try_from(query.limit).unwrap_or(i64::MAX).saturating_add(1);
        Self {
            archived: query.archived,
            silent: query.silent,
            providers: some(query.providers.clone()),
            default_provider: query.default_provider.clone(),
            cwds: some(cwds),
            sources: some(SourceKind::words(&query.sources)),
            like,
            members,
            is_member,
            // A section is sorted here, and has a limited number of threads.
            limit: if query.sort == SortKey::Place { i64::MAX } else { limit },
        }
    }
}

/// A page of threads.
pub(crate) fn list(store: &PostgresStore, query: &ListQuery) -> Result<Page, StoreError> {
    let sections = match query.section {
        // If the sections cannot be read, the threads are listed anyway.
        SectionFilter::Any => store.metadata().sorted().unwrap_or_default(),
        SectionFilter::Outside | SectionFilter::In(_) => store.metadata().sorted()?,
    };
    let members = Members::of(&query.section, &sections)?;
    let mut found = select(store.parts(), query, &members)?;
    if query.sort == SortKey::Place {
        found = members.sort(found, |listed| listed.summary.id, query)?;
    }
    let more = found.len() > query.limit;
    found.truncate(query.limit);
    let next_cursor = found.last().filter(|_| more).map(|last| match query.sort {
        SortKey::Place => members.cursor(last.summary.id),
        SortKey::Created => format!("{}|{}", last.began, last.summary.id),
        SortKey::Updated => format!("{}|{}", updated(&last.summary), last.summary.id),
    });
    // A time alone: the list starts with all threads that have it, so nothing is left out.
    let backwards_cursor = found.first().map(|first| match query.sort {
        SortKey::Place => members.cursor(first.summary.id),
        SortKey::Created => first.began.clone(),
        SortKey::Updated => updated(&first.summary),
    });
    let mut threads: Vec<ThreadSummary> = found.into_iter().map(|listed| listed.summary).collect();
    add_metadata(store.parts(), &mut threads, &sections)?;
    Ok(Page { threads, next_cursor, backwards_cursor })
}

fn updated(summary: &ThreadSummary) -> String {
    summary.updated_at.to_rfc3339_opts(SecondsFormat::Nanos, true)
}

/// The start of a page. A time alone precedes all threads that have it.
fn place(query: &ListQuery) -> Result<Place, PostgresError> {
    let nil = Uuid::nil();
    let Some(cursor) = query.cursor.as_ref().filter(|_| query.sort != SortKey::Place) else {
        return Ok(match (query.sort, query.ascending) {
            (SortKey::Created, false) => Place::Began(LAST_TIME.to_owned(), nil),
            (SortKey::Created, true) => Place::Began(String::new(), nil),
            (SortKey::Updated, false) => Place::Updated(i64::MAX, nil),
            (SortKey::Updated, true) => Place::Updated(i64::MIN, nil),
            (SortKey::Place, _) => Place::Began(LAST_TIME.to_owned(), nil),
        });
    };
    let read = || {
        let (time, id) = match cursor.split_once('|') {
            Some((time, id)) => (time, Uuid::from(id.parse::<ThreadId>().ok()?)),
            None => (cursor.as_str(), nil),
        };
        Some(match query.sort {
            SortKey::Updated => Place::Updated(DateTime::parse_from_rfc3339(time).ok()?.timestamp_nanos_opt()?, id),
            SortKey::Created | SortKey::Place => {
                NaiveDateTime::parse_from_str(time, "%Y-%m-%dT%H-%M-%S").ok()?;
                Place::Began(time.to_owned(), id)
            }
        })
    };
    read().ok_or_else(|| PostgresError::Cursor { cursor: cursor.clone() })
}

/// The threads of a query, and one more.
fn select(parts: &Parts, query: &ListQuery, members: &Members) -> Result<Vec<Listed>, PostgresError> {
    let (filter, place) = (Filter::of(query, members), place(query)?);
    let sql = match (query.sort, query.ascending && query.sort != SortKey::Place) {
        (SortKey::Created | SortKey::Place, false) => NEWEST,
        (SortKey::Created | SortKey::Place, true) => OLDEST,
        (SortKey::Updated, false) => LATEST,
        (SortKey::Updated, true) => STALEST,
    };
    parts.database.wait(move |pool| async move {
        let Filter { archived, silent, providers, default_provider, cwds, sources, like, members, is_member, limit } =
            &filter;
        let rows = pool
            .run(async |connection| {
                let (time, id): (&dyn crate::connection::Value, &Uuid) = match &place {
                    Place::Began(time, id) => (time, id),
                    Place::Updated(time, id) => (time, id),
                };
                connection
                    .query(
                        sql,
                        &[
                            archived,
                            silent,
                            providers,
                            default_provider,
                            cwds,
                            sources,
                            like,
                            members,
                            is_member,
                            time,
                            id,
                            limit,
                        ],
                    )
                    .await
            })
            .await?;
        rows.iter().filter_map(|row| listed(row, &pool.place).transpose()).collect()
    })
}

/// Adds sections and corrected repositories to summaries, with one statement for all of them.
fn add_metadata(parts: &Parts, threads: &mut [ThreadSummary], sections: &Sections) -> Result<(), PostgresError> {
    let ids: Vec<Uuid> = threads.iter().map(|thread| thread.id.into()).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let corrected: HashMap<Uuid, String> = parts.database.wait(move |pool| async move {
        let kind = documents::REPOSITORY;
        let rows = pool.run(async |connection| connection.query(REPOSITORIES, &[&kind, &ids]).await).await?;
        let read = |row| Ok((column(row, "thread", &pool.place)?, column(row, "value", &pool.place)?));
        rows.iter().map(read).collect()
    })?;
    for thread in threads {
        thread.section = sections.of(thread.id);
        let corrected = corrected.get(&Uuid::from(thread.id));
        if let Some(git) = corrected.and_then(|git| serde_json::from_str::<Option<GitInfo>>(git).ok().flatten()) {
            thread.git = Some(git).filter(|git| *git != GitInfo::default());
        }
    }
    Ok(())
}

/// The threads that a thread has started, and those that they have started, oldest first.
pub(crate) fn descendants(parts: &Parts, thread: ThreadId) -> Result<Vec<ThreadId>, PostgresError> {
    parts.database.wait(move |pool| async move {
        let rows = pool.run(async |connection| connection.query(DESCENDANTS, &[&Uuid::from(thread)]).await).await?;
        rows.iter().map(|row| Ok(ThreadId::from(column::<Uuid>(row, "id", &pool.place)?))).collect()
    })
}

/// The summary of a thread.
pub(crate) fn find(parts: &Parts, thread: ThreadId) -> Result<Option<ThreadSummary>, PostgresError> {
    debug_assert!(FIND.contains(COLUMNS), "the columns of both are the same");
    parts.database.wait(move |pool| async move {
        let row = pool.run(async |connection| connection.row(FIND, &[&Uuid::from(thread)]).await).await?;
        let found = row.map(|row| listed(&row, &pool.place)).transpose()?.flatten();
        Ok(found.map(|listed| listed.summary))
    })
}
