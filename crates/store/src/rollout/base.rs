//! Finds the position from which a thread has to be read to resume it: the last valid compaction.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use codex_log::decode::begins_after;
use codex_log::line::{HEAD_BYTES, Head, Line};
use codex_log::state::HistoryStart;
use codex_wire::rollout::SessionMeta;
use serde::Deserialize;

use super::backward::BackwardLines;
use super::lines::LONGEST_LINE;

/// The number of bytes that are read after the compaction was found, to find earlier settings and token counts.
const LOOK_BEHIND: u64 = 16 << 20;

/// The maximum number of bytes of user messages that are carried over a compaction that does not record what remains.
const CARRIED_BYTES: usize = 80_000;

/// The numbers of bytes and of lines before a compaction that are searched for calls of agents, and the bytes of those
/// lines that are kept. Only the heads of other lines are looked at.
const AGENTS_LOOK_BEHIND: u64 = 256 << 20;
const AGENT_CALLS: usize = 4096;
const AGENT_CALL_BYTES: usize = 8 << 20;

/// The start position, and the earlier lines that still count.
#[derive(Debug, Default)]
pub struct Base {
    /// The start of reading: a `compacted` line, or the start of the thread.
    pub start: u64,
    /// The newest settings and token count of the whole thread, the earlier user messages if a summary does not record
    /// what remains, and earlier calls of agents in a thread of another release.
    pub lines: Vec<String>,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Compacted,
    TurnContext,
    TokenCount,
    RateLimits,
    UserMessage,
    RolledBack,
    /// A call that started another agent or was about one.
    AgentCall,
    Other,
}

impl Mark {
    /// The meaning of a whole line.
    #[must_use]
    pub fn of(line: &[u8]) -> Self {
        let head = &line[..line.len().min(HEAD_BYTES)];
        if let Some(found) = Head::of(head).filter(tells_its_kind) {
            return mark_of(found.kind, found.inner, head);
        }
        std::str::from_utf8(line).map_or(Self::Other, Self::of_text)
    }

    fn of_text(text: &str) -> Self {
        let Ok(line) = Line::parse(text) else { return Self::Other };
        let inner = line.event().map(|event| event.kind.into_owned()).unwrap_or_default();
        mark_of(&line.kind, &inner, line.text.as_bytes())
    }
}

/// A line of a thread, and its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarkedLine {
    pub start: u64,
    /// Its end, without the line break.
    pub end: u64,
    pub mark: Mark,
}

/// The lines of a thread, the last first. Lines without a meaning may be left out.
pub trait MarkedLines {
    type Error;

    /// Whether there may be a compaction among the lines. If there is none, they are not read to their start.
    fn may_be_compacted(&mut self) -> Result<bool, Self::Error> {
        Ok(true)
    }

    /// Continues with the line that ends before a position.
    fn go_before(&mut self, place: u64) -> Result<(), Self::Error>;

    /// The line before the one returned last.
    fn next_marked(&mut self) -> Result<Option<MarkedLine>, Self::Error>;

    /// The text of a line; `None` if it is too long or not text.
    fn text(&mut self, line: &MarkedLine) -> Result<Option<String>, Self::Error>;
}

/// The lines of a file, the last first.
struct FileMarks<'a> {
    file: &'a File,
    lines: BackwardLines<'a>,
}

impl<'a> FileMarks<'a> {
    fn before(file: &'a File, place: u64) -> io::Result<Self> {
        Ok(Self { file, lines: BackwardLines::before(file, place)? })
    }
}

impl MarkedLines for FileMarks<'_> {
    type Error = io::Error;

    fn go_before(&mut self, place: u64) -> io::Result<()> {
        self.lines = BackwardLines::before(self.file, place)?;
        Ok(())
    }

    fn next_marked(&mut self) -> io::Result<Option<MarkedLine>> {
        let Some(span) = self.lines.next_span()? else { return Ok(None) };
        let mark = match Head::of(span.head).filter(tells_its_kind) {
            Some(head) => mark_of(head.kind, head.inner, span.head),
            None => read_span(self.file, span.start, span.end)?.map_or(Mark::Other, |text| Mark::of_text(&text)),
        };
        Ok(Some(MarkedLine { start: span.start, end: span.end, mark }))
    }

    fn text(&mut self, line: &MarkedLine) -> io::Result<Option<String>> {
        read_span(self.file, line.start, line.end)
    }
}

/// Whether a head suffices to tell the meaning of its line. The payload of an event may begin with another member.
fn tells_its_kind(head: &Head<'_>) -> bool {
    head.kind != "event_msg" || !head.inner.is_empty()
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
        ("event_msg", "item_completed") if holds("\"type\":\"CollabAgentToolCall\"") => Mark::AgentCall,
        ("event_msg", "sub_agent_activity") => Mark::AgentCall,
        ("event_msg", "thread_rolled_back") => Mark::RolledBack,
        _ => Mark::Other,
    }
}

/// Finds the start position in a file with `whole` complete bytes.
pub(crate) fn find(file: &File, whole: u64, meta: &SessionMeta) -> io::Result<Base> {
    find_base(&mut FileMarks::before(file, whole)?, meta)
}

/// Finds the start position of a thread. The lines start with the last one.
///
/// # Errors
/// When the lines cannot be read.
pub fn find_base<L: MarkedLines>(lines: &mut L, meta: &SessionMeta) -> Result<Base, L::Error> {
    let mut newest = NewestLines::default();
    let mut found: Option<(u64, HistoryStart)> = None;
    let mut taken_back = 0;
    let may_be_compacted = lines.may_be_compacted()?;
    while let Some(line) = lines.next_marked()? {
        if found.is_some_and(|(at, _)| at - line.start > LOOK_BEHIND) {
            break;
        }
        match line.mark {
            Mark::TurnContext if newest.turn_context.is_none() => newest.turn_context = valid_text(lines, &line)?,
            Mark::TokenCount if newest.token_count.is_none() => newest.token_count = valid_text(lines, &line)?,
            Mark::RateLimits if newest.token_count.is_none() && newest.rate_limits.is_none() => {
                newest.rate_limits = valid_text(lines, &line)?;
            }
            // A compaction of a rolled-back turn was rolled back with it.
            Mark::RolledBack if found.is_none() => taken_back += turns_taken_back(lines, &line)?,
            Mark::UserMessage if taken_back > 0 => taken_back -= 1,
            Mark::Compacted if found.is_none() && taken_back == 0 => {
                found = begins_at(lines, &line)?.map(|begins| (line.start, begins));
            }
            _ => {}
        }
        let is_found = found.is_some() || !may_be_compacted;
        if is_found && newest.turn_context.is_some() && newest.token_count.is_some() {
            break;
        }
    }
    let mut kept: Vec<String> = newest.into_lines().collect();
    // Other releases do not repeat after a compaction which agents there are.
    if let Some((start, _)) = found.filter(|_| meta.cli_version != env!("CARGO_PKG_VERSION")) {
        kept.extend(agent_calls_before(lines, start)?);
    }
    if let Some((start, HistoryStart::Summary)) = found {
        kept.extend(said_before(lines, start)?);
    }
    Ok(Base { start: found.map_or(0, |(start, _)| start), lines: kept })
}

/// The lines of user messages before a position, oldest first, as far as they are carried over a compaction.
fn said_before<L: MarkedLines>(lines: &mut L, place: u64) -> Result<Vec<String>, L::Error> {
    lines.go_before(place)?;
    let (mut said, mut room, mut taken_back) = (Vec::new(), CARRIED_BYTES, 0);
    while let Some(line) = lines.next_marked()? {
        match line.mark {
            Mark::RolledBack => taken_back += turns_taken_back(lines, &line)?,
            Mark::UserMessage if taken_back > 0 => taken_back -= 1,
            Mark::UserMessage => {
                let Some(line) = valid_text(lines, &line)? else { continue };
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

/// The lines of calls of agents before a position, oldest first.
fn agent_calls_before<L: MarkedLines>(lines: &mut L, place: u64) -> Result<Vec<String>, L::Error> {
    lines.go_before(place)?;
    let (mut calls, mut room) = (Vec::new(), AGENT_CALL_BYTES);
    while let Some(line) = lines.next_marked()? {
        if place - line.start > AGENTS_LOOK_BEHIND || calls.len() == AGENT_CALLS {
            break;
        }
        if line.mark != Mark::AgentCall {
            continue;
        }
        let Some(text) = valid_text(lines, &line)? else { continue };
        if text.len() > room {
            break;
        }
        room -= text.len();
        calls.push(text);
    }
    calls.reverse();
    Ok(calls)
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

fn turns_taken_back<L: MarkedLines>(lines: &mut L, line: &MarkedLine) -> Result<usize, L::Error> {
    let text = lines.text(line)?;
    let line = text.as_deref().and_then(|text| Line::parse(text).ok());
    Ok(line.and_then(|line| line.event().map(|event| event.turns_taken_back())).unwrap_or(0))
}

/// The start of a conversation after a line.
fn begins_at<L: MarkedLines>(lines: &mut L, line: &MarkedLine) -> Result<Option<HistoryStart>, L::Error> {
    let text = lines.text(line)?;
    let line = text.as_deref().and_then(|text| Line::parse(text).ok());
    Ok(line.and_then(|line| begins_after(&line)))
}

/// The text of a line, if it is valid.
fn valid_text<L: MarkedLines>(lines: &mut L, line: &MarkedLine) -> Result<Option<String>, L::Error> {
    Ok(lines.text(line)?.filter(|text| Line::parse(text).is_ok()))
}

/// The text between two positions, valid or not.
fn read_span(file: &File, start: u64, end: u64) -> io::Result<Option<String>> {
    let length = usize::try_from(end - start).unwrap_or(usize::MAX);
    if length > LONGEST_LINE {
        return Ok(None);
    }
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, start)?;
    Ok(String::from_utf8(bytes).ok())
}

/// The number of turns in a file with `whole` complete bytes, without those rolled back.
pub(crate) fn count_turns(file: &File, whole: u64) -> io::Result<usize> {
    let mut lines = FileMarks::before(file, whole)?;
    let (mut turns, mut taken_back) = (0, 0);
    while let Some(line) = lines.next_marked()? {
        match line.mark {
            Mark::RolledBack => taken_back += turns_taken_back(&mut lines, &line)?,
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
