//! Finds the thread that a word refers to.

use std::path::Path;

use codex_log::store::{ListQuery, SortKey, SourceKind, ThreadSummary};
use codex_store::ThreadIndex;
use codex_wire::ids::ThreadId;

use crate::failure::ErrorWithHint;

/// The page size when searching for a name.
const PAGE: usize = 200;

/// The minimum length of an id prefix.
const SHORTEST: usize = 4;

/// Finds a thread by its id, the start of its id, or its name.
pub(crate) fn thread(index: &ThreadIndex, word: &str) -> anyhow::Result<ThreadSummary> {
    if let Ok(id) = word.parse::<ThreadId>() {
        return index.find(id)?.ok_or_else(|| nothing(format!("thread not found: {id}")));
    }
    let is_beginning = word.len() >= SHORTEST && word.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    let mut found = Vec::new();
    for archived in [false, true] {
        let mut query = ListQuery { archived, silent: true, limit: PAGE, ..ListQuery::default() };
        loop {
            let page = index.list(&query)?;
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
            Err(ErrorWithHint { what, hint: "use more of the id".to_owned() }.into())
        }
    }
}

/// The most recently updated thread of a person or a program, not of another thread.
pub(crate) fn newest(index: &ThreadIndex, folder: Option<&Path>) -> anyhow::Result<ThreadSummary> {
    use SourceKind::{AppServer, Cli, Exec, Unknown, VsCode};
    let query = ListQuery {
        sources: vec![Cli, VsCode, Exec, AppServer, Unknown],
        cwds: folder.iter().map(|folder| folder.to_path_buf()).collect(),
        sort: SortKey::Updated,
        limit: 1,
        ..ListQuery::default()
    };
    let found = index.list(&query)?.threads.pop();
    let (what, hint) = match folder {
        Some(folder) => {
            (format!("no threads in {} yet", folder.display()), "use --all to include other folders, or name a thread")
        }
        None => ("no threads yet".to_owned(), "start one with `codex` or `codex exec`"),
    };
    found.ok_or_else(|| ErrorWithHint { what, hint: hint.to_owned() }.into())
}

fn nothing(what: String) -> anyhow::Error {
    ErrorWithHint { what, hint: "list threads with `codex threads list`".to_owned() }.into()
}
