//! One line of a rollout, decoded up to its type.

use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use codex_wire::conversation_item::ItemOrigin;
use codex_wire::event::EventMsg;
use codex_wire::rollout::RolloutLine;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;

/// One line of a rollout. The payload is valid JSON, and is decoded only on demand.
#[derive(Debug, Clone)]
pub struct Line<'a> {
    /// Its number, counted from one.
    pub number: u64,
    /// Its position in the file, including its line end.
    pub range: Range<u64>,
    /// The line as it was read, without its line end.
    pub text: &'a str,
    /// The time of the write; empty if the line contains none.
    pub timestamp: Cow<'a, str>,
    /// Its type.
    pub kind: Cow<'a, str>,
    pub payload: &'a RawValue,
}

impl<'a> Line<'a> {
    /// Decodes a line. The caller sets the number and the position.
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        if let Some(line) = Self::parse_usual(text) {
            return Ok(line);
        }
        let Envelope { timestamp, kind, payload } = serde_json::from_str(text)?;
        let timestamp = timestamp.map(|text| text.0).unwrap_or_default();
        Ok(Self { number: 0, range: 0..0, text, timestamp, kind, payload: payload.unwrap_or(RawValue::NULL) })
    }

    /// Decodes a line with the members and the order that all releases write. Only the payload has to be parsed then.
    fn parse_usual(text: &'a str) -> Option<Self> {
        let head = Head::of(text.as_bytes())?;
        let payload = serde_json::from_str(text.get(head.payload..)?.strip_suffix('}')?).ok()?;
        let (timestamp, kind) = (Cow::Borrowed(head.timestamp), Cow::Borrowed(head.kind));
        Some(Self { number: 0, range: 0..0, text, timestamp, kind, payload })
    }

    /// The complete line. `None` if it lacks a member that every line has; a payload of an unknown form is kept.
    #[must_use]
    pub fn decode(&self) -> Option<RolloutLine> {
        serde_json::from_str(self.text).ok()
    }

    /// The provider of an item with data that only it can read.
    #[must_use]
    pub fn origin(&self) -> Option<Arc<ItemOrigin>> {
        // Nearly all lines end with their payload, which is a slice of them.
        let payload = self.payload.get().as_bytes().as_ptr_range();
        if self.text.as_bytes().as_ptr_range().end as usize == payload.end as usize + 1 {
            return None;
        }
        serde_json::from_str::<OriginMember>(self.text).ok()?.origin.map(Arc::new)
    }

    /// The time of the write, in milliseconds of Unix time; 0 if the line contains none.
    #[must_use]
    pub fn at_ms(&self) -> i64 {
        if let Some(at_ms) = usual_time(self.timestamp.as_bytes()) {
            return at_ms;
        }
        chrono::DateTime::parse_from_rfc3339(&self.timestamp).map(|time| time.timestamp_millis()).unwrap_or_default()
    }

    /// The payload as the type that the caller expects.
    #[must_use]
    pub fn payload_as<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(self.payload.get()).ok()
    }

    /// Its event of the queue, as the release that wrote it sent it.
    #[must_use]
    pub fn message(&self) -> Option<EventMsg> {
        (self.kind == "event_msg").then(|| self.payload_as()).flatten()
    }

    /// The `type` inside the payload of an event, and other members that distinguish events.
    #[must_use]
    pub fn event(&self) -> Option<EventHead<'a>> {
        (self.kind == "event_msg").then(|| serde_json::from_str(self.payload.get()).ok()).flatten()
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    timestamp: Option<Text<'a>>,
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    payload: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct OriginMember {
    #[serde(default)]
    origin: Option<ItemOrigin>,
}

/// A string that is copied only if it has escapes.
#[derive(Debug, Deserialize)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

/// The members that distinguish items of the conversation.
#[derive(Debug, Deserialize)]
pub struct ItemHead<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    #[serde(borrow, default)]
    pub role: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub call_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub name: Option<Text<'a>>,
    #[serde(default)]
    pub id: Option<IgnoredAny>,
    #[serde(default, rename = "internal_chat_message_metadata_passthrough")]
    pub passthrough: Option<IgnoredAny>,
}

impl<'a> ItemHead<'a> {
    /// Decodes the distinguishing members of an item.
    #[must_use]
    pub fn of(item: &'a RawValue) -> Option<Self> {
        serde_json::from_str(item.get()).ok()
    }

    /// Whether this is a message of this role.
    #[must_use]
    pub fn is_message_of(&self, role: &str) -> bool {
        self.kind == "message" && self.role.as_ref().is_some_and(|text| text.0 == role)
    }
}

/// The members that distinguish events.
#[derive(Debug, Deserialize)]
pub struct EventHead<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    #[serde(borrow, default)]
    item: Option<EventItem<'a>>,
    #[serde(default)]
    num_turns: Option<usize>,
    #[serde(borrow, default)]
    pub turn_id: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
struct EventItem<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
}

impl EventHead<'_> {
    /// Whether it is a message of the user.
    #[must_use]
    pub fn is_user_message(&self) -> bool {
        match &*self.kind {
            "user_message" => true,
            "item_completed" => self.item.as_ref().is_some_and(|item| item.kind == "UserMessage"),
            _ => false,
        }
    }

    /// The number of turns that it rolls back.
    #[must_use]
    pub fn turns_taken_back(&self) -> usize {
        if self.kind == "thread_rolled_back" { self.num_turns.unwrap_or(0) } else { 0 }
    }
}

/// The beginning of a line, read without parsing the line: enough to recognise it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head<'a> {
    pub timestamp: &'a str,
    /// The ordinal of the line, which release 0.166 writes.
    pub ordinal: Option<u64>,
    /// The type of the line.
    pub kind: &'a str,
    /// The type inside the payload; empty if the payload does not begin with one.
    pub inner: &'a str,
    /// The position of the payload.
    pub payload: usize,
}

/// The number of bytes that suffice to read the head of a line.
pub const HEAD_BYTES: usize = 512;

impl<'a> Head<'a> {
    /// Reads the head of a line with the members and the order that all releases write; `None` for any other line. Some
    /// tools that rewrite lines add a space after each comma and colon.
    pub fn of(line: &'a [u8]) -> Option<Self> {
        let (timestamp, rest) = word(after(line, b"{\"timestamp\":")?)?;
        let rest = after(rest, b",")?;
        let (ordinal, rest) = match after(rest, b"\"ordinal\":") {
            Some(number) => {
                let digits = number.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let (digits, rest) = number.split_at(digits);
                (std::str::from_utf8(digits).ok()?.parse().ok(), after(rest, b",")?)
            }
            None => (None, rest),
        };
        let (kind, rest) = word(after(rest, b"\"type\":")?)?;
        let rest = after(after(rest, b",")?, b"\"payload\":")?;
        let inner = after(rest, b"{\"type\":").and_then(word).map_or("", |(inner, _)| inner);
        Some(Self { timestamp, ordinal, kind, inner, payload: line.len() - rest.len() })
    }

    /// The type of the item in the payload of this line, if it is near its start.
    #[must_use]
    pub fn item(&self, line: &'a [u8]) -> Option<&'a str> {
        const ITEM: &[u8] = b"\"item\":{\"type\":";
        let beginning = line.get(self.payload..)?;
        let beginning = &beginning[..beginning.len().min(HEAD_BYTES)];
        let at = memchr::memmem::find(beginning, ITEM)?;
        word(&beginning[at + ITEM.len()..]).map(|(kind, _)| kind)
    }
}

/// Parses a time in the form that all releases write, `2026-01-02T03:04:05.006Z`; `None` for any other form. Every line
/// has one.
fn usual_time(text: &[u8]) -> Option<i64> {
    const FORM: &[u8; 24] = b"0000-00-00T00:00:00.000Z";
    let is_usual = |(form, byte): (&u8, &u8)| if *form == b'0' { byte.is_ascii_digit() } else { form == byte };
    if text.len() != FORM.len() || !FORM.iter().zip(text).all(is_usual) {
        return None;
    }
    let number =
        |from: usize, to: usize| text[from..to].iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    let (year, month, day) = (number(0, 4), number(5, 7), number(8, 10));
    let (hour, minute, second) = (number(11, 13), number(14, 16), number(17, 19));
    // Unusual dates, such as the 29th of February, are left to the general parser.
    let days = match month {
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let is_plain = year >= 1970 && (1..=12).contains(&month) && (1..=days).contains(&day);
    if !is_plain || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    // Years begin with March here, so that the leap day is the last day.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 719_469;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + number(20, 23))
}

/// The bytes after some others, and after a space. The length is known to the compiler, because every line is read so.
fn after<'a, const N: usize>(text: &'a [u8], token: &[u8; N]) -> Option<&'a [u8]> {
    let rest = text.strip_prefix(token)?;
    Some(rest.strip_prefix(b" ").unwrap_or(rest))
}

/// Parses a short string without escapes, and returns it with the remaining bytes.
fn word(text: &[u8]) -> Option<(&str, &[u8])> {
    let text = text.strip_prefix(b"\"")?;
    let end = memchr::memchr2(b'"', b'\\', &text[..text.len().min(HEAD_BYTES)])?;
    let (word, rest) = text.split_at(end);
    if word.iter().any(|byte| *byte < 0x20) {
        return None;
    }
    Some((std::str::from_utf8(word).ok()?, rest.strip_prefix(b"\"")?))
}

/// A line that could not be read and was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    pub path: PathBuf,
    /// The number of the line, from 1.
    pub number: u64,
    /// Its offset in the file.
    pub start: u64,
    pub fault: Fault,
}

/// The fault of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is not a JSON object with a type.
    NotALine,
    /// It is longer than any line that is read.
    TooLong,
    /// The file ends in the middle of it.
    Torn,
}

impl BadLine {
    #[must_use]
    pub fn new(path: &Path, number: u64, start: u64, fault: Fault) -> Self {
        Self { path: path.to_owned(), number, start, fault }
    }
}

impl std::fmt::Display for BadLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let fault = match self.fault {
            Fault::NotALine => "is not a line of a rollout",
            Fault::TooLong => "is too long",
            Fault::Torn => "was cut off when it was written",
        };
        write!(f, "line {} of {} {fault} and is skipped", self.number, self.path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_form_and_others_decode_to_the_same_line() {
        let usual = r#"{"timestamp":"2026-01-01T00:00:00.000Z","type":"event_msg","payload":{"type":"x","n":1}}"#;
        let numbered =
            r#"{"timestamp":"2026-01-01T00:00:00.000Z","ordinal":12,"type":"event_msg","payload":{"type":"x","n":1}}"#;
        let trailing = r#"{"timestamp":"2026-01-01T00:00:00.000Z","type":"event_msg","payload":{"type":"x","n":1},"metadata":{"a":{}}}"#;
        let turned =
            r#"{ "payload":{"type":"x","n":1}, "type":"event\u005fmsg", "timestamp":"2026-01-01T00:00:00.000Z"}"#;
        let spaced = r#"{"timestamp": "2026-01-01T00:00:00.000Z", "type": "event_msg", "payload": {"type":"x","n":1}}"#;
        for text in [usual, numbered, trailing, turned, spaced] {
            let line = Line::parse(text).unwrap();
            assert_eq!(line.kind, "event_msg", "{text}");
            assert_eq!(line.timestamp, "2026-01-01T00:00:00.000Z", "{text}");
            assert_eq!(line.payload.get(), r#"{"type":"x","n":1}"#, "{text}");
            assert_eq!(line.event().unwrap().kind, "x", "{text}");
        }
    }

    #[test]
    fn invalid_lines_are_refused() {
        let broken = [
            "",
            "null",
            "{}",
            r#"{"timestamp":"t","type":"event_msg","payload":{"type":"x"}"#,
            r#"{"timestamp":"t","type":"event_msg","payload":{"type":"x"}}}"#,
            r#"{"timestamp":"t","type":"event_msg","payload":{"type":"x""#,
        ];
        for text in broken {
            assert!(Line::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_head_needs_the_beginning_only() {
        let head =
            Head::of(br#"{"timestamp":"t","ordinal":3,"type":"event_msg","payload":{"type":"token_count","info"#);
        assert_eq!(
            head,
            Some(Head { timestamp: "t", ordinal: Some(3), kind: "event_msg", inner: "token_count", payload: 58 })
        );
        let spaced = Head::of(br#"{"timestamp": "t", "ordinal": 3, "type": "event_msg", "payload": {"type": "x", "#);
        assert_eq!(spaced.map(|head| (head.ordinal, head.kind, head.inner)), Some((Some(3), "event_msg", "x")));
        assert_eq!(Head::of(br#"{"timestamp":"t","type":"eve"#), None);
    }

    #[test]
    fn times_agree_with_the_calendar() {
        let mut day = chrono::NaiveDate::from_ymd_opt(1970, 1, 1).unwrap();
        while day < chrono::NaiveDate::from_ymd_opt(2110, 1, 1).unwrap() {
            let text = format!("{day}T23:59:58.007Z");
            let told = chrono::DateTime::parse_from_rfc3339(&text).unwrap().timestamp_millis();
            assert!(usual_time(text.as_bytes()).is_none_or(|read| read == told), "{text}");
            day = day + chrono::Days::new(1);
        }
        assert_eq!(usual_time(b"1970-01-01T00:00:00.001Z"), Some(1));
        for odd in ["2026-13-01T00:00:00.000Z", "2026-01-01T24:00:00.000Z", "2026-01-01T00:00:00Z", "now"] {
            assert_eq!(usual_time(odd.as_bytes()), None, "{odd}");
        }
    }
}
