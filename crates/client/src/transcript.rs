//! Bytes of a server as messages, however they are cut.
//!
//! Invariant: pure and total. A line that is no message is a note, and so is one that is too long to keep.

use codex_protocol::rpc::ErrorObject;
use codex_wire::ids::RequestId;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::event::Event;
use crate::router;

/// The longest line that is kept, unless a program says otherwise.
pub const MAX_LINE_BYTES: usize = 32 * 1024 * 1024;

/// A message of a server.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// It tells something; with its number, if the server numbers its events.
    Event { event: Event, seq: Option<u64> },
    /// It asks something.
    Question { id: RequestId, method: String, params: Value },
    /// It answers a request.
    Response { id: RequestId, result: Result<Value, ErrorObject> },
    /// It is no message; the bytes that it took.
    Noise { bytes: usize, why: &'static str },
}

/// Cuts bytes into lines and reads them.
#[derive(Debug)]
pub struct Transcript {
    rest: Vec<u8>,
    /// The longest line that is kept.
    most: usize,
    /// The bytes of a line that is too long, while it is skipped.
    skipped: Option<usize>,
}

#[derive(Deserialize)]
struct Shape {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    seq: Value,
    #[serde(default)]
    result: Option<Value>,
    #[serde(default)]
    error: Option<Map<String, Value>>,
}

impl Default for Transcript {
    fn default() -> Self {
        Self::with_limit(MAX_LINE_BYTES)
    }
}

impl Transcript {
    /// A transcript that keeps lines of at most so many bytes.
    #[must_use]
    pub fn with_limit(most: usize) -> Self {
        Self { rest: Vec::new(), most, skipped: None }
    }

    /// Takes more bytes, and hands out the messages that are complete with them.
    pub fn push(&mut self, mut bytes: &[u8], mut take: impl FnMut(Message)) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (line, after) = bytes.split_at(end);
            if let Some(skipped) = self.skipped.take() {
                take(Message::Noise { bytes: skipped + line.len(), why: "a line is too long" });
            } else if self.rest.is_empty() {
                read(line).map(&mut take);
            } else {
                self.rest.extend_from_slice(line);
                read(&self.rest).map(&mut take);
                self.rest.clear();
            }
            bytes = &after[1..];
        }
        self.keep(bytes);
    }

    /// Takes the end of the input: a last line counts without its end.
    pub fn finish(&mut self, mut take: impl FnMut(Message)) {
        if let Some(bytes) = self.skipped.take() {
            take(Message::Noise { bytes, why: "a line is too long" });
        }
        let rest = std::mem::take(&mut self.rest);
        read(&rest).map(&mut take);
    }

    fn keep(&mut self, bytes: &[u8]) {
        match &mut self.skipped {
            Some(skipped) => *skipped += bytes.len(),
            None if self.rest.len() + bytes.len() > self.most => {
                self.skipped = Some(self.rest.len() + bytes.len());
                self.rest = Vec::new();
            }
            None => self.rest.extend_from_slice(bytes),
        }
        if self.rest.is_empty() && self.rest.capacity() > MAX_LINE_BYTES / 32 {
            self.rest = Vec::new();
        }
    }
}

/// Reads a line; an empty one is nothing.
#[must_use]
pub fn read(line: &[u8]) -> Option<Message> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return None;
    }
    let noise = |why| Some(Message::Noise { bytes: line.len(), why });
    // A list would be read as the members in their order; and members that nobody needs are not checked for being text.
    let object = std::str::from_utf8(line).ok().filter(|line| line.starts_with('{'));
    let shape = object.and_then(|line| serde_json::from_str(line).ok());
    let Some(Shape { id, method, params, seq, result, error }) = shape else {
        return noise("a line is not a message");
    };
    let id = match id.filter(|id| !id.is_null()).map(serde_json::from_value::<RequestId>) {
        Some(Err(_)) => return noise("an id is neither a number nor a text"),
        Some(Ok(id)) => Some(id),
        None => None,
    };
    match (id, method) {
        (Some(id), Some(method)) => Some(Message::Question { id, method, params }),
        (None, Some(method)) => {
            Some(Message::Event { event: router::notification(&method, params), seq: seq.as_u64() })
        }
        (Some(id), None) => {
            let result = error.map_or_else(|| Ok(result.unwrap_or_default()), |error| Err(error_of(error)));
            Some(Message::Response { id, result })
        }
        (None, None) => noise("a message has neither an id nor a method"),
    }
}

/// The error of a response. One that is malformed still ends its call.
fn error_of(mut error: Map<String, Value>) -> ErrorObject {
    let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
    let message =
        error.get("message").map(|message| message.as_str().map_or_else(|| message.to_string(), str::to_owned));
    ErrorObject { code, message: message.unwrap_or_default(), data: error.remove("data") }
}

impl Message {
    /// The event that it is for a state.
    #[must_use]
    pub fn event(self) -> Option<Event> {
        match self {
            Self::Event { event, .. } => Some(event),
            Self::Question { id, method, params } => Some(router::request(id, &method, params)),
            Self::Response { result, .. } => router::response(result.as_ref().ok()?),
            Self::Noise { bytes, why } => Some(Event::Note { text: format!("{why} ({bytes} bytes)") }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(chunks: &[&[u8]]) -> Vec<Message> {
        let (mut transcript, mut messages) = (Transcript::default(), Vec::new());
        for chunk in chunks {
            transcript.push(chunk, |message| messages.push(message));
        }
        transcript.finish(|message| messages.push(message));
        messages
    }

    #[test]
    fn a_character_may_be_cut_in_the_middle() {
        let line = "{\"method\":\"warning\",\"params\":{\"message\":\"ä€😀\"}}\n".as_bytes();
        let whole = messages(&[line]);
        assert!(
            matches!(&whole[..], [Message::Event { event: Event::Warning { message, .. }, .. }] if message == "ä€😀")
        );
        for cut in 0..line.len() {
            assert_eq!(messages(&[&line[..cut], &line[cut..]]), whole, "cut at {cut}");
        }
    }

    #[test]
    fn noise_costs_a_note_and_the_rest_goes_on() {
        let lines = b"starting up...\n\n[1]\n{\"id\":{}}\n{}\n{\"id\":7,\"result\":{}}\n\xff\xfe\n{\"odd\":\"\xff\",\"method\":\"x/z\"}\n{\"method\":\"x/y\"}";
        let read = messages(&[lines]);
        let noise = read.iter().filter(|message| matches!(message, Message::Noise { .. })).count();
        assert_eq!(noise, 6, "{read:?}");
        assert!(
            matches!(read.last(), Some(Message::Event { event: Event::Unknown { method, .. }, .. }) if method == "x/y")
        );
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_not_kept() {
        let (mut transcript, mut messages) = (Transcript::default(), Vec::new());
        let piece = vec![b'x'; 1024 * 1024];
        for _ in 0..40 {
            transcript.push(&piece, |message| messages.push(message));
            assert!(transcript.rest.capacity() <= 2 * MAX_LINE_BYTES);
        }
        assert_eq!(transcript.rest.capacity(), 0, "nothing of it is kept");
        transcript.push(b"\n{\"id\":1,\"result\":1}\n", |message| messages.push(message));
        let expected = Message::Noise { bytes: 40 * 1024 * 1024, why: "a line is too long" };
        assert_eq!(messages[0], expected);
        assert_eq!(messages.len(), 2);
    }
}
