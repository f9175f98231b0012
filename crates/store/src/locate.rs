//! Finds the thread that a word refers to.

use std::path::Path;

use codex_log::store::{ListQuery, SortKey, SourceKind, StoreError, ThreadStore, ThreadSummary};
use codex_wire::ids::ThreadId;

/// The reason why a word refers to no thread.
#[derive(Debug, thiserror::Error)]
pub enum LocateError {
    #[error("{what}")]
    None { what: String, hint: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The page size when searching for a name.
const PAGE: usize = 200;

/// The minimum length of an id prefix.
const SHORTEST: usize = 4;

/// Finds a thread by its id, the start of its id, or its name.
pub fn thread(store: &dyn ThreadStore, word: &str) -> Result<ThreadSummary, LocateError> {
    if let Ok(id) = word.parse::<ThreadId>() {
        return store.find(id)?.ok_or_else(|| nothing(format!("thread not found: {id}")));
    }
    let is_beginning = word.len() >= SHORTEST && word.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    let mut found = Vec::new();
    for archived in [false, true] {
        let mut query = ListQuery { archived, silent: true, limit: PAGE, ..ListQuery::default() };
        loop {
            let page = store.list(&query)?;
            found.extend(page.threads.into_iter().filter(|thread| {
                thread.name.as_deref() == Some(word) || (is_beginning && thread.id.to_string().starts_with(word))
            }));
            match page.next_cursor {
                Some(cursor) => query.cursor = Some(cursor),
                None => break,
            }
        }
    }
    match (found.pop(), found.len()) {
        (Some(thread), 0) => Ok(thread),
        (None, _) => Err(nothing(format!("thread not found: {word}"))),
        (Some(_), others) => {
            let what = format!("{} threads match {word}", others + 1);
            Err(LocateError::None { what, hint: "use more of the id".to_owned() })
        }
    }
}

/// The id of a thread that can be resumed, by a word as above.
pub fn active(store: &dyn ThreadStore, word: &str) -> Result<ThreadId, LocateError> {
    let found = thread(store, word).map_err(|error| match error {
        LocateError::None { what, hint } => LocateError::None { what: format!("could not resume: {what}"), hint },
        error @ LocateError::Store(_) => error,
    })?;
    if found.archived {
        let hint = format!("restore it with `codex threads unarchive {}`", found.id);
        return Err(LocateError::None { what: format!("thread {} is archived", found.id), hint });
    }
    Ok(found.id)
}

/// The most recently updated thread of a person or a program, not of another thread.
pub fn newest(store: &dyn ThreadStore, folder: Option<&Path>) -> Result<ThreadSummary, LocateError> {
    use SourceKind::{AppServer, Cli, Exec, Unknown, VsCode};
    let query = ListQuery {
        sources: vec![Cli, VsCode, Exec, AppServer, Unknown],
        cwds: folder.iter().map(|folder| folder.to_path_buf()).collect(),
        sort: SortKey::Updated,
        limit: 1,
        ..ListQuery::default()
    };
    let found = store.list(&query)?.threads.pop();
    let (what, hint) = match folder {
        Some(folder) => {
            (format!("no threads in {} yet", folder.display()), "use --all to include other folders, or name a thread")
        }
        None => ("no threads yet".to_owned(), "start one with `codex` or `codex exec`"),
    };
    found.ok_or_else(|| LocateError::None { what, hint: hint.to_owned() })
}

fn nothing(what: String) -> LocateError {
    LocateError::None { what, hint: "list threads with `codex threads list`".to_owned() }
}
