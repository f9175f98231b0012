//! Searches: their results, filters and orders.

use codex_wire::ids::ThreadId;
use codex_wire::rollout::{SessionMeta, SessionSource};

use super::{AT_MS, append_turn, commit, meta};
use crate::encode::LineSink;
use crate::store::{LogWriter, Opened, SearchOrder, SearchQuery, SearchResults, SourceKind, ThreadStore};

/// A thread that was created at this minute, and its writer.
fn begin(
    store: &dyn ThreadStore,
    minute: u32,
    source: SessionSource,
    texts: &[&str],
) -> (ThreadId, Box<dyn LogWriter>) {
    let thread = ThreadId::fresh();
    let Opened { mut writer, .. } = store.create(thread).expect("a thread can begin");
    let timestamp = format!("2026-01-02T03:{minute:02}:05.678Z");
    let meta = SessionMeta { timestamp, source: Some(source), ..meta(thread) };
    writer.line(AT_MS, "session_meta", &meta).expect("a line is taken");
    for text in texts {
        append_turn(&mut *writer, text);
    }
    commit(&mut *writer, true);
    (thread, writer)
}

/// Searches until all texts are indexed: a search spends a limited time on new ones, and a busy machine needs several.
pub(super) fn search(store: &dyn ThreadStore, query: &SearchQuery) -> SearchResults {
    loop {
        let found = store.search(query).expect("threads can be searched");
        if found.complete {
            return found;
        }
    }
}

pub(super) fn searches_are_filtered_and_sorted(store: &dyn ThreadStore) {
    let long = format!("{} lantern {}", "so ".repeat(400), "on ".repeat(400));
    let (cli, _cli_writer) = begin(store, 7, SessionSource::Cli, &["lantern lantern lantern", &long]);
    let (exec, mut exec_writer) = begin(store, 8, SessionSource::Exec, &[&long]);
    let (mcp, _mcp_writer) = begin(store, 6, SessionSource::Mcp, &["a lantern, or two"]);
    let (away, writer) = begin(store, 5, SessionSource::Cli, &["the lantern was put away"]);
    drop(writer);
    store.archive(away).expect("it can be put away");
    let (_other, _other_writer) = begin(store, 9, SessionSource::Cli, &["a lamp"]);
    // The thread has to be the latest, also where times are coarse.
    let updated = |thread| store.find(thread).expect("it can be looked for").expect("it is there").updated_at;
    while updated(exec) <= updated(cli).max(updated(mcp)) {
        append_turn(&mut *exec_writer, "later");
        commit(&mut *exec_writer, false);
    }

    let all = SearchQuery { words: "lant".to_owned(), limit: 10, ..SearchQuery::default() };
    let found =
        |query: &SearchQuery| -> Vec<ThreadId> { search(store, query).hits.iter().map(|hit| hit.thread.id).collect() };
    let by = |order| SearchQuery { order, archived: Some(false), ..all.clone() };
    assert_eq!(found(&by(SearchOrder::Created { ascending: true })), [mcp, cli, exec]);
    assert_eq!(found(&by(SearchOrder::Created { ascending: false })), [exec, cli, mcp]);
    assert_eq!(found(&by(SearchOrder::Updated { ascending: false }))[0], exec);
    assert_eq!(found(&by(SearchOrder::Updated { ascending: true }))[2], exec);
    let newest = SearchQuery { limit: 2, ..by(SearchOrder::Created { ascending: false }) };
    assert_eq!(found(&newest), [exec, cli], "the limit counts threads after the filter and in the order of the query");

    assert_eq!(found(&SearchQuery { archived: Some(true), ..all.clone() }), [away]);
    assert_eq!(found(&all).len(), 4);
    let of = |sources: &[SourceKind]| SearchQuery { sources: sources.to_vec(), ..all.clone() };
    assert_eq!(found(&of(&[SourceKind::Exec])), [exec]);
    assert_eq!(found(&of(&[SourceKind::Exec, SourceKind::AppServer])).len(), 2);
    assert_eq!(found(&of(&[SourceKind::SubAgent])), [] as [ThreadId; 0]);
    let one = SearchQuery { limit: 1, ..of(&[SourceKind::AppServer]) };
    assert_eq!(found(&one), [mcp], "threads that are left out do not count");
    assert_eq!(found(&SearchQuery { words: "lanterns".to_owned(), ..all.clone() }), [] as [ThreadId; 0]);
    for hit in search(store, &all).hits {
        assert!(hit.snippet.contains("lantern") && hit.snippet.len() < 200, "{}", hit.snippet);
    }
}
