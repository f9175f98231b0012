//! Finds the position from which a rollout has to be read to resume its thread: the last valid compaction.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use codex_log::decode::begins_after;
use codex_log::line::{Head, Line};
use codex_log::state::HistoryStart;
use serde::Deserialize;

use super::backward::{BackwardLines, Span};
use super::lines::LONGEST_LINE;

/// The number of bytes that are read after the compaction was found, to find earlier settings and token counts.
const LOOK_BEHIND: u64 = 16 << 20;

/// The maximum number of bytes of user messages that are carried over a compaction that does not record what remains.
const CARRIED_BYTES: usize = 80_000;

/// The start position, and the earlier lines that still count.
#[derive(Debug, Default)]
pub(crate) struct Base {
    /// The start of reading: a `compacted` line, or the start of the file.
    pub(crate) start: u64,
    /// The newest settings and token count of the whole file, and the earlier user messages if a summary does not
    /// record what remains.
    pub(crate) lines: Vec<String>,
}

/// The newest lines of each kind, of which only the last counts.
#[derive(Debug, Default)]
struct NewestLines {
    turn_context: Option<String>,
    token_count: Option<String>,
    /// The latest rate limits, if no tokens were counted after them.
    rate_limits: Option<String>,
}

impl NewestLines {
    fn into_lines(self) -> impl Iterator<Item = String> {
        self.turn_context.into_iter().chain(self.token_count).chain(self.rate_limits)
    }
}

/// The meaning of a line for the search. Texts are read only where they are needed.
enum Mark {
    Compacted,
    TurnContext,
    TokenCount,
    RateLimits,
    UserMessage,
    RolledBack,
    Other,
}

fn mark(file: &File, span: &Span<'_>) -> io::Result<Mark> {
    if let Some(head) = Head::of(span.head) {
        return Ok(mark_of(head.kind, head.inner, span.head));
    }
    let text = read_span(file, span)?;
    let Some(line) = text.as_deref().and_then(|text| Line::parse(text).ok()) else { return Ok(Mark::Other) };
    let inner = line.event().map(|event| event.kind.into_owned()).unwrap_or_default();
    Ok(mark_of(&line.kind, &inner, line.text.as_bytes()))
}

fn mark_of(kind: &str, inner: &str, text: &[u8]) -> Mark {
    let holds = |needle: &str| memchr::memmem::find(text, needle.as_bytes()).is_some();
    match (kind, inner) {
        ("compacted", _) => Mark::Compacted,
        ("turn_context", _) => Mark::TurnContext,
        ("event_msg", "token_count") if !holds("\"info\":null") => Mark::TokenCount,
        ("event_msg", "token_count") => Mark::RateLimits,
        ("event_msg", "user_message") => Mark::UserMessage,
        ("event_msg", "item_completed") if holds("\"type\":\"UserMessage\"") => Mark::UserMessage,
        ("event_msg", "thread_rolled_back") => Mark::RolledBack,
        _ => Mark::Other,
    }
}

/// Finds the start position in a file with `whole` complete bytes.
pub(crate) fn find(file: &File, whole: u64) -> io::Result<Base> {
    let mut lines = BackwardLines::before(file, whole)?;
    let mut newest = NewestLines::default();
    let mut found: Option<(u64, HistoryStart)> = None;
    let mut taken_back = 0;
    while let Some(span) = lines.next_span()? {
        if found.is_some_and(|(at, _)| at - span.start > LOOK_BEHIND) {
            break;
        }
        match mark(file, &span)? {
            Mark::TurnContext if newest.turn_context.is_none() => newest.turn_context = read_line(file, &span)?,
            Mark::TokenCount if newest.token_count.is_none() => newest.token_count = read_line(file, &span)?,
            Mark::RateLimits if newest.token_count.is_none() && newest.rate_limits.is_none() => {
                newest.rate_limits = read_line(file, &span)?;
            }
            // A compaction of a rolled-back turn was rolled back with it.
            Mark::RolledBack if found.is_none() => taken_back += turns_taken_back(file, &span)?,
            Mark::UserMessage if taken_back > 0 => taken_back -= 1,
            Mark::Compacted if found.is_none() && taken_back == 0 => {
                found = begins_at(file, &span)?.map(|begins| (span.start, begins));
            }
            _ => {}
        }
        if found.is_some() && newest.turn_context.is_some() && newest.token_count.is_some() {
            break;
        }
    }
    let mut lines: Vec<String> = newest.into_lines().collect();
    if let Some((start, HistoryStart::Summary)) = found {
        lines.extend(said_before(file, start)?);
    }
    Ok(Base { start: found.map_or(0, |(start, _)| start), lines })
}

/// The lines of user messages before a position, oldest first, as far as they are carried over a compaction.
fn said_before(file: &File, place: u64) -> io::Result<Vec<String>> {
    let mut lines = BackwardLines::before(file, place)?;
    let (mut said, mut room, mut taken_back) = (Vec::new(), CARRIED_BYTES, 0);
    while let Some(span) = lines.next_span()? {
        match mark(file, &span)? {
            Mark::RolledBack => taken_back += turns_taken_back(file, &span)?,
            Mark::UserMessage if taken_back > 0 => taken_back -= 1,
            Mark::UserMessage => {
                let Some(line) = read_line(file, &span)? else { continue };
                let Some(text) = user_text(&line) else { continue };
                if text.len() > room {
                    break;
                }
                room -= text.len();
                said.push(line);
            }
            _ => {}
        }
    }
    said.reverse();
    Ok(said)
}

/// The user message of an event.
fn user_text(line: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct MessageLine {
        message: Option<String>,
        item: Option<MessageItem>,
    }
    #[derive(Deserialize)]
    struct MessageItem {
        content: Vec<Part>,
    }
    #[derive(Deserialize)]
    struct Part {
        text: Option<String>,
    }
    let said: MessageLine = Line::parse(line).ok()?.payload_as()?;
    said.message.or_else(|| {
        let texts: Vec<String> = said.item?.content.into_iter().filter_map(|part| part.text).collect();
        Some(texts.join("\n"))
    })
}

fn turns_taken_back(file: &File, span: &Span<'_>) -> io::Result<usize> {
    let text = read_span(file, span)?;
    let line = text.as_deref().and_then(|text| Line::parse(text).ok());
    Ok(line.and_then(|line| line.event().map(|event| event.turns_taken_back())).unwrap_or(0))
}

/// The start of a conversation after a line.
fn begins_at(file: &File, span: &Span<'_>) -> io::Result<Option<HistoryStart>> {
    let text = read_span(file, span)?;
    let line = text.as_deref().and_then(|text| Line::parse(text).ok());
    Ok(line.and_then(|line| begins_after(&line)))
}

/// The text of a line, if it is valid.
fn read_line(file: &File, span: &Span<'_>) -> io::Result<Option<String>> {
    Ok(read_span(file, span)?.filter(|text| Line::parse(text).is_ok()))
}

/// The text of a line, valid or not.
fn read_span(file: &File, span: &Span<'_>) -> io::Result<Option<String>> {
    let length = usize::try_from(span.end - span.start).unwrap_or(usize::MAX);
    if length > LONGEST_LINE {
        return Ok(None);
    }
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, span.start)?;
    Ok(String::from_utf8(bytes).ok())
}

/// The number of turns in a file with `whole` complete bytes, without those rolled back.
pub(crate) fn count_turns(file: &File, whole: u64) -> io::Result<usize> {
    let mut lines = BackwardLines::before(file, whole)?;
    let (mut turns, mut taken_back) = (0, 0);
    while let Some(span) = lines.next_span()? {
        match mark(file, &span)? {
            Mark::RolledBack => taken_back += turns_taken_back(file, &span)?,
            Mark::UserMessage if taken_back > 0 => taken_back -= 1,
            Mark::UserMessage => turns += 1,
            _ => {}
        }
    }
    Ok(turns)
}

/// The number of lines that end before a position.
pub(crate) fn count_lines(file: &File, place: u64) -> io::Result<u64> {
    let mut lines = BackwardLines::before(file, place)?;
    let mut count = 0;
    while lines.next_span()?.is_some() {
        count += 1;
    }
    Ok(count)
}
