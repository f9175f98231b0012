//! `thread/search` and `thread/searchOccurrences`.

use std::sync::Arc;

use codex_log::store::{SearchHit, SearchOrder, SearchQuery};
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
        let query = query(&params, limit);
        // A filter that names only unknown sources chooses none, and not all.
        let is_empty = query.sources.is_empty();
        let hits =
            if is_empty { Vec::new() } else { host.store.search(&query).map_err(ErrorObject::internal_from)?.hits };
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

/// The query for the threads up to the end of the page, and one more, which shows that there is another page.
fn query(params: &ThreadSearchParams, limit: u32) -> SearchQuery {
    let start: usize = params.cursor.as_deref().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let ascending = params.sort_direction == Some(SortDirection::Asc);
    SearchQuery {
        words: params.search_term.clone(),
        archived: Some(params.archived.unwrap_or(false)),
        sources: sources(params.source_kinds.as_deref()),
        order: match params.sort_key {
            None => SearchOrder::Best,
            Some(ThreadSearchSortKey::CreatedAt) => SearchOrder::Created { ascending },
            Some(ThreadSearchSortKey::UpdatedAt | ThreadSearchSortKey::RecencyAt) => SearchOrder::Updated { ascending },
        },
        limit: start.saturating_add(limit).saturating_add(1),
    }
}

async fn search_occurrences(
    connection: &Arc<Connection>,
    params: ThreadSearchOccurrencesParams,
) -> Result<ThreadSearchOccurrencesResponse, ErrorObject> {
    let turns = turn_list::turns(connection, &params.thread_id).await?;
    blocking(move || occurrences(&turns, &params)).await
}
