//! Turns and items of a thread, page by page.
//!
//! A cursor names the entry next to the page, so pages stay complete while the thread grows.

use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::item::{ThreadItem, TimedItem};
use codex_protocol::v2::turn::{ItemsView, Turn};
use codex_protocol::v2::turn_list::{
    InitialTurnsPageParams, ResumedParts, SortDirection, ThreadItemEntry, ThreadItemsListAnchor, ThreadItemsListCursor,
    ThreadItemsListParams, ThreadItemsListResponse, ThreadTurnsListParams, ThreadTurnsListResponse,
};
use codex_wire::collaboration::CollaborationMode;

/// The number of entries of a page when the client names none.
const PAGE: usize = 25;
/// The maximum number of entries of a page.
const LARGEST_PAGE: usize = 500;

/// The position where a page begins.
#[derive(Debug, PartialEq)]
enum Cursor {
    /// After this entry.
    After(String),
    /// At this entry.
    At(String),
}

impl Cursor {
    fn read(text: &str) -> Result<Self, ErrorObject> {
        match text.split_once(':') {
            Some(("after", name)) => Ok(Self::After(name.to_owned())),
            Some(("at", name)) => Ok(Self::At(name.to_owned())),
            _ => Err(ErrorObject::invalid(format!("invalid cursor: {text}"))),
        }
    }
}

/// A page of a list.
struct Page<T> {
    entries: Vec<T>,
    next: Option<String>,
    backwards: Option<String>,
}

/// Cuts a page out of a list that is already in the requested order.
fn cut<T>(
    mut all: Vec<T>,
    name: impl Fn(&T) -> String,
    cursor: Option<&Cursor>,
    limit: Option<u32>,
) -> Result<Page<T>, ErrorObject> {
    let place = |wanted: &str| {
        let found = all.iter().position(|entry| name(entry) == wanted);
        found.ok_or_else(|| ErrorObject::invalid(format!("invalid cursor: {wanted} (it is gone)")))
    };
    let start = match cursor {
        None => 0,
        Some(Cursor::At(wanted)) => place(wanted)?,
        Some(Cursor::After(wanted)) => place(wanted)? + 1,
    };
    let limit = limit.map_or(PAGE, |limit| (limit as usize).clamp(1, LARGEST_PAGE));
    let is_last = all.len() - start <= limit;
    let entries: Vec<T> = all.drain(start..).take(limit).collect();
    let next = entries.last().filter(|_| !is_last).map(|entry| format!("after:{}", name(entry)));
    let backwards = entries.first().map(|entry| format!("at:{}", name(entry)));
    Ok(Page { entries, next, backwards })
}

/// The additional data for a resumed thread: the cursors of its pages, and the page that the client requested.
pub fn resumed(
    turns: &[Turn],
    wanted: Option<InitialTurnsPageParams>,
    mode: CollaborationMode,
) -> Result<ResumedParts, ErrorObject> {
    let last_item = turns.iter().rev().find_map(|turn| turn.items.last());
    let page = wanted.map(|wanted| turns_page(turns, None, &wanted)).transpose()?;
    Ok(ResumedParts {
        collaboration_mode: mode,
        initial_turns_page: page,
        turns_backwards_cursor: turns.last().map(|turn| format!("at:{}", turn.id)),
        items_backwards_cursor: last_item.map(|item| format!("at:{}", item.item.id())),
    })
}

/// The response of `thread/turns/list` from all turns of the thread.
pub fn turns(all: Vec<Turn>, params: &ThreadTurnsListParams) -> Result<ThreadTurnsListResponse, ErrorObject> {
    let cursor = params.cursor.as_deref().map(Cursor::read).transpose()?;
    turns_page(&all, cursor.as_ref(), &params.page)
}

fn turns_page(
    all: &[Turn],
    cursor: Option<&Cursor>,
    wanted: &InitialTurnsPageParams,
) -> Result<ThreadTurnsListResponse, ErrorObject> {
    let mut all: Vec<&Turn> = all.iter().collect();
    if wanted.sort_direction.unwrap_or(SortDirection::Desc) == SortDirection::Desc {
        all.reverse();
    }
    let page = cut(all, |turn| turn.id.clone(), cursor, wanted.limit)?;
    let view = wanted.items_view.unwrap_or(ItemsView::Summary);
    let data = page.entries.into_iter().map(|turn| shown(turn.clone(), view)).collect();
    Ok(ThreadTurnsListResponse { data, next_cursor: page.next, backwards_cursor: page.backwards })
}

/// A turn with the requested part of its items. A summary has the input and the final answer.
fn shown(turn: Turn, view: ItemsView) -> Turn {
    let items = match view {
        ItemsView::NotLoaded => Vec::new(),
        ItemsView::Full => turn.items,
        ItemsView::Summary => {
            let is_answer = |item: &TimedItem| matches!(item.item, ThreadItem::AgentMessage { .. });
            let last = turn.items.iter().rposition(is_answer);
            let is_kept = |(place, item): &(usize, TimedItem)| {
                matches!(item.item, ThreadItem::UserMessage { .. }) || Some(*place) == last
            };
            turn.items.into_iter().enumerate().filter(is_kept).map(|(_, item)| item).collect()
        }
    };
    Turn { items, items_view: view, ..turn }
}

/// The response of `thread/items/list` from all turns of the thread.
pub fn items(mut turns: Vec<Turn>, params: ThreadItemsListParams) -> Result<ThreadItemsListResponse, ErrorObject> {
    let cursor = match params.cursor {
        None => None,
        Some(ThreadItemsListCursor::Cursor(text)) => Some(Cursor::read(&text)?),
        Some(ThreadItemsListCursor::Anchor(_)) if params.turn_id.as_deref().is_none_or(str::is_empty) => {
            return Err(ErrorObject::invalid("a cursor that names an item needs `turnId`"));
        }
        Some(ThreadItemsListCursor::Anchor(ThreadItemsListAnchor::Item { item_id })) => Some(Cursor::After(item_id)),
    };
    if let Some(wanted) = &params.turn_id {
        turns.retain(|turn| turn.id == *wanted);
        if turns.is_empty() {
            return Err(ErrorObject::invalid(format!("turn not found: {wanted}")));
        }
    }
    let entries = turns.into_iter().flat_map(|turn| {
        let turn_id = turn.id;
        turn.items.into_iter().map(move |item| ThreadItemEntry {
            turn_id: turn_id.clone(),
            started_at_ms: item.started_at_ms,
            completed_at_ms: item.completed_at_ms,
            item,
        })
    });
    let mut all: Vec<ThreadItemEntry> = entries.collect();
    if params.sort_direction == Some(SortDirection::Desc) {
        all.reverse();
    }
    let page = cut(all, |entry| entry.item.item.id().to_owned(), cursor.as_ref(), params.limit)?;
    Ok(ThreadItemsListResponse { data: page.entries, next_cursor: page.next, backwards_cursor: page.backwards })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(page: &Page<u32>) -> (Vec<u32>, Option<&str>, Option<&str>) {
        (page.entries.clone(), page.next.as_deref(), page.backwards.as_deref())
    }

    fn page(cursor: Option<&str>, limit: u32) -> Result<Page<u32>, ErrorObject> {
        let cursor = cursor.map(Cursor::read).transpose()?;
        cut((0..5).collect(), u32::to_string, cursor.as_ref(), Some(limit))
    }

    #[test]
    fn pages_follow_each_other_without_gaps() {
        assert_eq!(names(&page(None, 2).unwrap()), (vec![0, 1], Some("after:1"), Some("at:0")));
        assert_eq!(names(&page(Some("after:1"), 2).unwrap()), (vec![2, 3], Some("after:3"), Some("at:2")));
        assert_eq!(names(&page(Some("after:3"), 2).unwrap()), (vec![4], None, Some("at:4")));
        assert_eq!(names(&page(Some("at:3"), 2).unwrap()), (vec![3, 4], None, Some("at:3")));
        assert_eq!(names(&page(Some("after:4"), 2).unwrap()), (vec![], None, None));
    }

    #[test]
    fn a_cursor_that_is_none_is_an_error() {
        for cursor in ["", "3", "before:3", "at:9"] {
            assert!(page(Some(cursor), 2).is_err(), "{cursor}");
        }
    }
}
