//! The text of open items, and the lines that store it until they are complete.
//!
//! These lines are not part of the log. They are in a file next to it, which is written without waiting, and matter
//! only when the program dies in the middle of an answer: then [`Partial`] restores the items from them.
//!
//! Invariant: memory is bounded. At most [`MOST_BYTES`] of one item are kept, and nothing of a turn that is over.

mod lines;
mod partial;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{Body, Delta, Event, Item, ItemId, TurnId};

pub use partial::Partial;

/// The maximum number of bytes that are kept of one item.
pub const MOST_BYTES: usize = 1024 * 1024;

/// The maximum number of bytes of the lines of all items. A larger file was not written by this program.
pub const MOST_LINES: u64 = 16 * 1024 * 1024;

/// The maximum number of bytes of a character.
const LONGEST_CHAR: usize = 4;

/// The accumulated text of one part of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    kind: RunKind,
    /// The index of the part of the reasoning, from 0; 0 for everything else.
    index: i64,
    /// The text, which may end within a character. The output of commands need not be text.
    bytes: Vec<u8>,
    /// The number of bytes that are in lines.
    kept: usize,
}

/// The kind of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunKind {
    /// A message.
    Text,
    /// A summary of reasoning.
    Summary,
    /// Raw reasoning.
    Raw,
    /// The output of a command, on both streams.
    Output,
}

impl Run {
    /// The texts of one kind in the order of their parts, without empty ones.
    pub(crate) fn texts(runs: &[Self], kind: RunKind) -> Vec<Cow<'_, str>> {
        let mut runs: Vec<&Self> = runs.iter().filter(|run| run.kind == kind).collect();
        runs.sort_by_key(|run| run.index);
        let texts = runs.into_iter().map(|run| String::from_utf8_lossy(&run.bytes[..whole_length(&run.bytes)]));
        texts.filter(|text| !text.is_empty()).collect()
    }
}

/// The number of these bytes before an incomplete character at their end.
fn whole_length(bytes: &[u8]) -> usize {
    let is_continuation = |byte: &u8| byte & 0xC0 == 0x80;
    let last = bytes.len().saturating_sub(LONGEST_CHAR);
    let Some(lead) = bytes[last..].iter().rposition(|byte| !is_continuation(byte)) else { return bytes.len() };
    let lead = last + lead;
    let is_torn = std::str::from_utf8(&bytes[lead..]).is_err_and(|error| error.error_len().is_none());
    if is_torn { lead } else { bytes.len() }
}

/// An open item.
#[derive(Debug)]
struct Draft {
    /// Its state at the start.
    item: Item,
    turn: Option<TurnId>,
    /// The length of the log at that time.
    position: u64,
    runs: Vec<Run>,
    bytes: usize,
    /// Whether a line records its start.
    is_kept: bool,
}

impl Draft {
    fn new(item: Item, turn: Option<TurnId>, position: u64) -> Self {
        Self { item, turn, position, runs: Vec::new(), bytes: 0, is_kept: false }
    }

    fn grow(&mut self, delta: &Delta) -> bool {
        let (kind, index, more) = match delta {
            Delta::Text(text) => (RunKind::Text, 0, text.as_bytes()),
            Delta::Summary { index, text } => (RunKind::Summary, *index, text.as_bytes()),
            Delta::Raw { index, text } => (RunKind::Raw, *index, text.as_bytes()),
            Delta::Output { bytes, .. } => (RunKind::Output, 0, bytes.as_slice()),
            Delta::SummaryPart { .. } => return false,
        };
        self.add(kind, index, more)
    }

    /// Appends to a run, as far as there is room; false if nothing was appended.
    fn add(&mut self, kind: RunKind, index: i64, more: &[u8]) -> bool {
        let more = &more[..more.len().min(MOST_BYTES - self.bytes)];
        if more.is_empty() {
            return false;
        }
        self.bytes += more.len();
        let is_meant = |run: &Run| run.kind == kind && run.index == index;
        match self.runs.iter_mut().rfind(|run| is_meant(run)) {
            Some(run) => run.bytes.extend_from_slice(more),
            None => self.runs.push(Run { kind, index, bytes: more.to_vec(), kept: 0 }),
        }
        true
    }

    /// Whether it is part of the model's answer, which is discarded with it when the answer is retried.
    fn is_answer(&self) -> bool {
        !self.item.is_call()
    }
}

/// The open items of the running turn, with their text.
#[derive(Debug, Default)]
pub struct Drafts {
    open: Vec<Draft>,
    /// Items that have ended, whose end is not recorded in a line yet.
    closed: Vec<ItemId>,
    /// Whether some text has no line yet.
    has_unsaved: bool,
    /// The size of the lines in bytes.
    line_bytes: u64,
}

impl Drafts {
    /// Processes one event, after which the log has this many bytes.
    pub fn take(&mut self, event: &Event, position: u64) {
        match &event.body {
            Body::ItemDelta { item, delta } => self.grow(item, delta),
            // A message of the user starts and completes at once.
            Body::ItemStarted(item) if item.said().is_none() => {
                self.close(|draft| draft.item.id() == item.id());
                self.open.push(Draft::new(item.clone(), event.turn.clone(), position));
            }
            Body::ItemCompleted(item) | Body::ItemInterrupted(item) => {
                self.close(|draft| draft.item.id() == item.id());
            }
            Body::AnswerRetried { .. } | Body::LimitReached { .. } => self.close(Draft::is_answer),
            Body::TurnEnded(_) => self.close(|_| true),
            _ => {}
        }
    }

    /// Partial messages and reasoning of the model. Calls end separately.
    #[must_use]
    pub fn broken_off(&self) -> Vec<Item> {
        let answers = self.open.iter().filter(|draft| draft.is_answer() && draft.bytes > 0);
        answers.map(|draft| draft.item.broken_off(&draft.runs)).collect()
    }

    fn grow(&mut self, id: &ItemId, delta: &Delta) {
        if let Some(draft) = self.open.iter_mut().rfind(|draft| draft.item.id() == id) {
            self.has_unsaved |= draft.grow(delta);
        }
    }

    fn close(&mut self, is_over: impl Fn(&Draft) -> bool) {
        for draft in self.open.extract_if(.., |draft| is_over(draft)) {
            if draft.is_kept {
                self.closed.push(draft.item.id().clone());
                self.has_unsaved = true;
            }
        }
        if self.open.is_empty() {
            // An idle thread does not keep their buffers.
            self.open = Vec::new();
        }
        if self.open.iter().all(|draft| draft.bytes == 0) {
            self.has_unsaved = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use codex_wire::error_info::CodexErrorInfo;
    use codex_wire::event::ExecOutputStream;
    use codex_wire::ids::ThreadId;

    use super::*;
    use crate::{AgentMessage, Failure, Outcome, Reasoning, Seq};

    fn take(drafts: &mut Drafts, bodies: impl IntoIterator<Item = Body>) {
        for body in bodies {
            let turn = Some(TurnId::new("t"));
            drafts.take(&Event { thread: ThreadId::unknown(), seq: Seq::default(), at_ms: 0, turn, body }, 0);
        }
    }

    fn grown(id: &str, delta: Delta) -> Body {
        Body::ItemDelta { item: ItemId::new(id), delta }
    }

    fn text(id: &str, text: &str) -> Body {
        grown(id, Delta::Text(text.into()))
    }

    fn message(id: &str) -> Body {
        Body::ItemStarted(AgentMessage::empty(ItemId::new(id)).into())
    }

    fn titles(drafts: &Drafts) -> Vec<String> {
        drafts.broken_off().iter().map(|item| item.title().into_owned()).collect()
    }

    #[test]
    fn open_items_with_text_break_off() {
        let mut drafts = Drafts::default();
        take(&mut drafts, [message("a"), message("b"), message("c")]);
        take(&mut drafts, [text("a", "one "), text("b", "two"), text("a", "more"), text("nobody", "three")]);
        assert_eq!(titles(&drafts), ["one more", "two"]);
        take(&mut drafts, [Body::ItemCompleted(AgentMessage::empty(ItemId::new("a")).into())]);
        assert_eq!(titles(&drafts), ["two"]);
        take(&mut drafts, [Body::TurnEnded(Outcome::Completed { last_message: None, bookmark: None })]);
        assert!(drafts.broken_off().is_empty());
    }

    #[test]
    fn an_answer_that_is_asked_for_again_is_dropped() {
        let mut drafts = Drafts::default();
        take(&mut drafts, [message("a"), text("a", "one")]);
        let failure = Failure { message: String::new(), hint: None, info: CodexErrorInfo::Other };
        take(&mut drafts, [Body::AnswerRetried { failure, attempt: 1, limit: 2, delay: Duration::ZERO }]);
        assert!(drafts.broken_off().is_empty());
        take(&mut drafts, [message("a"), text("a", "two")]);
        assert_eq!(titles(&drafts), ["two"]);
    }

    #[test]
    fn thoughts_break_off_in_their_parts() {
        let mut drafts = Drafts::default();
        let summary = |index, text: &str| grown("r", Delta::Summary { index, text: text.into() });
        let raw = |text: &str| grown("r", Delta::Raw { index: 0, text: text.into() });
        take(&mut drafts, [Body::ItemStarted(Reasoning::empty(ItemId::new("r")).into())]);
        take(&mut drafts, [grown("r", Delta::SummaryPart { index: 0 }), summary(0, "a"), raw("x")]);
        take(&mut drafts, [summary(1, "c"), summary(0, "b"), raw("y")]);
        let expected = Reasoning {
            id: ItemId::new("r"),
            summary: vec!["ab".to_owned(), "c".to_owned()],
            raw: vec!["xy".to_owned()],
        };
        assert_eq!(drafts.broken_off(), [expected.into()]);
    }

    #[test]
    fn a_draft_is_bounded() {
        let mut drafts = Drafts::default();
        take(&mut drafts, [message("a"), text("a", "é")]);
        for _ in 0..4 {
            take(&mut drafts, [text("a", &"é".repeat(MOST_BYTES / 4)), text("a", "x")]);
        }
        let kept = titles(&drafts).concat();
        assert!(kept.len() <= MOST_BYTES && kept.len() > MOST_BYTES - 2, "{}", kept.len());
        assert!(kept.chars().all(|char| char == 'é' || char == 'x'));
    }

    #[test]
    fn output_that_is_not_text_is_kept_up_to_the_first_invalid_byte() {
        let stream = ExecOutputStream::Stdout;
        let item = AgentMessage::empty(ItemId::new("a")).into();
        let mut draft = Draft::new(item, None, 0);
        for bytes in [&b"a\xff"[..], b"\xe2\x82", b"\xac\xe2\x82"] {
            draft.grow(&Delta::Output { stream, bytes: bytes.to_vec() });
        }
        assert_eq!(Run::texts(&draft.runs, RunKind::Output), ["a\u{fffd}€"]);
    }
}
