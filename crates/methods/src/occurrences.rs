//! `thread/searchOccurrences`: the places of a text in the turns of a thread.

use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::item::{InputItem, ThreadItem};
use codex_protocol::v2::thread_search::{
    ThreadSearchOccurrence, ThreadSearchOccurrencesParams, ThreadSearchOccurrencesResponse, ThreadSearchTextRange,
};
use codex_protocol::v2::turn::Turn;

use crate::pagination::page;

/// The number of entries of a page when the client names none, and the maximum number.
const PAGE: u32 = 50;
const LARGEST_PAGE: u32 = 500;
/// The maximum number of places that are found.
const MOST: usize = 10_000;
/// The number of characters on each side of a match in its snippet.
const AROUND: usize = 60;

/// The places of a text, oldest first.
///
/// # Errors
/// If the text is empty, or the cursor is not one of a page.
pub fn occurrences(
    turns: &[Turn],
    params: &ThreadSearchOccurrencesParams,
) -> Result<ThreadSearchOccurrencesResponse, ErrorObject> {
    let needle: Vec<char> = params.search_term.trim().chars().flat_map(char::to_lowercase).collect();
    if needle.is_empty() {
        return Err(ErrorObject::invalid("searchTerm must not be empty"));
    }
    let mut found = Vec::new();
    for turn in turns {
        for timed in &turn.items {
            for text in texts(&timed.item) {
                add(text, &needle, &turn.id, timed.item.id(), &mut found);
            }
        }
    }
    let limit = params.limit.unwrap_or(PAGE).clamp(1, LARGEST_PAGE);
    let (data, next_cursor) =
        page(found, params.cursor.as_deref(), Some(limit)).map_err(|error| ErrorObject::invalid(error.to_string()))?;
    Ok(ThreadSearchOccurrencesResponse { data, next_cursor })
}

/// The searchable texts of an item: messages and commands, as in a search of all threads.
fn texts(item: &ThreadItem) -> Vec<&str> {
    match item {
        ThreadItem::UserMessage { content, .. } => content.iter().filter_map(input_text).collect(),
        ThreadItem::AgentMessage { text, .. } => vec![text.as_str()],
        ThreadItem::CommandExecution(command) => vec![&command.command],
        _ => Vec::new(),
    }
}

fn input_text(part: &InputItem) -> Option<&str> {
    match part {
        InputItem::Text { text, .. } => Some(text),
        _ => None,
    }
}

fn add(text: &str, needle: &[char], turn: &str, item: &str, found: &mut Vec<ThreadSearchOccurrence>) {
    let letters: Vec<char> = text.chars().collect();
    let mut place = 0;
    while place < letters.len() && found.len() < MOST {
        let Some(length) = match_length(&letters[place..], needle) else {
            place += 1;
            continue;
        };
        let (start, end) = (place.saturating_sub(AROUND), (place + length + AROUND).min(letters.len()));
        let units = |letters: &[char]| letters.iter().map(|letter| letter.len_utf16()).sum::<usize>();
        let before = units(&letters[start..place]);
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        found.push(ThreadSearchOccurrence {
            turn_id: turn.to_owned(),
            turn_cursor: format!("at:{turn}"),
            item_id: item.to_owned(),
            snippet: letters[start..end].iter().collect(),
            snippet_match_range: ThreadSearchTextRange {
                start: number(before),
                end: number(before + units(&letters[place..place + length])),
            },
        });
        place += length;
    }
}

/// The number of letters that a text begins with, if it begins with the wanted ones in any case.
fn match_length(letters: &[char], mut needle: &[char]) -> Option<usize> {
    for (length, letter) in letters.iter().enumerate() {
        if needle.is_empty() {
            return Some(length);
        }
        for lower in letter.to_lowercase() {
            needle = needle.strip_prefix(&[lower])?;
        }
    }
    needle.is_empty().then_some(letters.len())
}

#[cfg(test)]
mod tests {
    use codex_protocol::v2::turn::TurnStatus;

    use super::*;

    fn turn(id: &str, texts: &[&str]) -> Turn {
        let item = |(place, text): (usize, &&str)| ThreadItem::agent_message(format!("{id}-{place}"), *text);
        Turn::whole(id.to_owned(), texts.iter().enumerate().map(item).collect(), TurnStatus::Completed)
    }

    fn find(term: &str, cursor: Option<&str>, limit: u32) -> Result<ThreadSearchOccurrencesResponse, ErrorObject> {
        let turns = [turn("a", &["one Fish two fish"]), turn("b", &["nothing", "😀 FISH"])];
        let (cursor, search_term) = (cursor.map(str::to_owned), term.to_owned());
        let params =
            ThreadSearchOccurrencesParams { thread_id: String::new(), search_term, cursor, limit: Some(limit) };
        occurrences(&turns, &params)
    }

    #[test]
    fn every_place_is_found_in_any_case() {
        let found = find(" fish ", None, 10).unwrap();
        let places: Vec<(&str, u32, u32)> = found
            .data
            .iter()
            .map(|place| (place.item_id.as_str(), place.snippet_match_range.start, place.snippet_match_range.end))
            .collect();
        assert_eq!(places, [("a-0", 4, 8), ("a-0", 13, 17), ("b-1", 3, 7)], "a smiley has two units");
        assert_eq!(found.data[2].turn_cursor, "at:b");
        assert!(find("nothing else", None, 10).unwrap().data.is_empty());
        assert!(find("  ", None, 10).is_err());
    }

    #[test]
    fn places_come_in_pages() {
        let first = find("fish", None, 2).unwrap();
        let second = find("fish", first.next_cursor.as_deref(), 2).unwrap();
        assert_eq!((first.data.len(), second.data.len(), second.next_cursor), (2, 1, None));
        assert!(find("fish", Some("odd"), 2).is_err());
    }

    #[test]
    fn a_snippet_is_cut_at_characters() {
        let long = format!("{}fish{}", "ä".repeat(200), "ü".repeat(200));
        let params = ThreadSearchOccurrencesParams {
            thread_id: String::new(),
            search_term: "FISH".to_owned(),
            cursor: None,
            limit: None,
        };
        let found = occurrences(&[turn("a", &[&long])], &params).unwrap().data;
        assert_eq!(found[0].snippet.chars().count(), 2 * AROUND + 4);
        assert_eq!(match_length(&['İ', 'x'], &['i', '\u{307}', 'x']), Some(2));
    }
}
