//! `thread/search` and `thread/searchOccurrences`.

use std::sync::Arc;

use codex_log::store::{SearchHit, SourceKind, ThreadStore};
use codex_methods::occurrences::occurrences;
use codex_methods::pagination::page;
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::thread_search::{
    ThreadSearchOccurrencesParams, ThreadSearchOccurrencesResponse, ThreadSearchParams, ThreadSearchResponse,
    ThreadSearchResult, ThreadSearchSortKey,
};
use codex_protocol::v2::turn_list::SortDirection;

use super::connection::Connection;
use super::disk::blocking;
use super::dispatch::serve;
use super::stored_threads::{shown, sources};
use super::turn_list;

/// The number of threads of a page when the client names none, and the maximum number.
const PAGE: u32 = 25;
const LARGEST_PAGE: u32 = 100;
/// The number of threads that a search finds at first, before those that the client does not want are left out.
const FIRST_HITS: usize = 500;

serve! {
    waits { ThreadSearch => search, }
    stored { ThreadSearchOccurrences => search_occurrences, }
}

async fn search(connection: &Arc<Connection>, params: ThreadSearchParams) -> Result<ThreadSearchResponse, ErrorObject> {
    if params.search_term.trim().is_empty() {
        return Err(ErrorObject::invalid("searchTerm must not be empty"));
    }
    let host = Arc::clone(&connection.host);
    blocking(move || {
        let provider = host.config()?.provider.id.clone();
        let limit = params.limit.unwrap_or(PAGE).clamp(1, LARGEST_PAGE);
        let mut hits = wanted_hits(&*host.store, &params, limit)?;
        sort(&mut hits, &params);
        let (hits, next_cursor) = page(hits, params.cursor.as_deref(), Some(limit))
            .map_err(|error| ErrorObject::invalid(error.to_string()))?;
        let backwards_cursor = (!hits.is_empty()).then(|| params.cursor.clone().unwrap_or_else(|| "0".to_owned()));
        let result = |hit: SearchHit| {
            let snippet = hit.snippet;
            ThreadSearchResult { thread: shown(&host, hit.thread, &provider), snippet }
        };
        Ok(ThreadSearchResponse { data: hits.into_iter().map(result).collect(), next_cursor, backwards_cursor })
    })
    .await
}

/// The threads that the client wants, best matches first: at least those up to the end of the page, and one more if there
/// is one. A list by time needs all of them.
fn wanted_hits(
    store: &dyn ThreadStore,
    params: &ThreadSearchParams,
    limit: u32,
) -> Result<Vec<SearchHit>, ErrorObject> {
    let start: usize = params.cursor.as_deref().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let needed = start.saturating_add(usize::try_from(limit).unwrap_or(usize::MAX));
    let mut most = FIRST_HITS;
    loop {
        let found = store.search(&params.search_term, most).map_err(ErrorObject::internal_from)?;
        let is_all = found.hits.len() < most;
        let mut hits = found.hits;
        hits.retain(|hit| is_wanted(hit, params));
        if is_all || (params.sort_key.is_none() && hits.len() > needed) {
            return Ok(hits);
        }
        most = most.saturating_mul(4);
    }
}

fn is_wanted(hit: &SearchHit, params: &ThreadSearchParams) -> bool {
    let kind = SourceKind::of(hit.thread.source.as_ref());
    hit.thread.archived == params.archived.unwrap_or(false)
        && sources(params.source_kinds.as_deref()).iter().any(|wanted| {
            *wanted == kind || (*wanted == SourceKind::SubAgent && kind.word().starts_with(SourceKind::SubAgent.word()))
        })
}

/// Sorts by time if the client wants that; otherwise the best matches stay first.
fn sort(hits: &mut [SearchHit], params: &ThreadSearchParams) {
    let Some(key) = params.sort_key else { return };
    let time = |hit: &SearchHit| match key {
        ThreadSearchSortKey::CreatedAt => hit.thread.created_at,
        ThreadSearchSortKey::UpdatedAt | ThreadSearchSortKey::RecencyAt => hit.thread.updated_at,
    };
    if params.sort_direction == Some(SortDirection::Asc) {
        hits.sort_by_key(time);
    } else {
        hits.sort_by_key(|hit| std::cmp::Reverse(time(hit)));
    }
}

async fn search_occurrences(
    connection: &Arc<Connection>,
    params: ThreadSearchOccurrencesParams,
) -> Result<ThreadSearchOccurrencesResponse, ErrorObject> {
    let turns = turn_list::turns(connection, &params.thread_id).await?;
    blocking(move || occurrences(&turns, &params)).await
}
