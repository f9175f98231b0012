//! The bytes around the text of a chunk.
//!
//! Most chunks of an answer differ from the one before in their text, in the count of tokens, and in values that say nothing
//! to us, such as the time. The rest is compared and not parsed again.
//!
//! Invariant: a chunk has a frame only if it would be parsed to the same text and count, and nothing else.

use serde::de::IgnoredAny;

/// The largest frame that is remembered, and the most values that may differ.
const MOST_BYTES: usize = 4096;
const MOST_VALUES: usize = 32;

/// The most digits of a number that may differ, which no reader has trouble with.
const MOST_DIGITS: usize = 15;

/// A chunk without its text and without the values that may differ.
#[derive(Debug, Default)]
pub(super) struct Frame {
    /// The bytes before each value, and those after the last.
    fixed: String,
    values: Vec<Value>,
}

/// A value that may differ.
#[derive(Debug)]
struct Value {
    /// The end of the bytes before it.
    fixed_end: usize,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The text of the chunk.
    Text,
    /// The count of tokens.
    Usage,
    /// A string without escapes and control characters.
    String,
    /// A number without a sign or a fraction.
    Number,
    /// A list or an object.
    Any,
}

/// The contents of a chunk.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Framed<'d> {
    pub(super) text: String,
    /// The count of tokens, still encoded.
    pub(super) usage: Option<&'d str>,
}

impl Frame {
    /// The contents of a chunk with this frame.
    pub(super) fn read<'d>(&self, data: &'d str) -> Option<Framed<'d>> {
        let (mut rest, mut text, mut usage, mut begin) = (data, None, None, 0);
        for Value { fixed_end, kind } in &self.values {
            rest = rest.strip_prefix(self.fixed.get(begin..*fixed_end)?)?;
            let (value, after) = rest.split_at_checked(kind.length(rest)?)?;
            match kind {
                Kind::Text => text = Some(value),
                Kind::Usage => usage = Some(value),
                Kind::String | Kind::Number | Kind::Any => {}
            }
            (rest, begin) = (after, *fixed_end);
        }
        if rest != self.fixed.get(begin..)? {
            return None;
        }
        Some(Framed { text: serde_json::from_str(text?).ok()?, usage })
    }

    /// Remembers the frame of a valid chunk. The text is a part of it, still encoded.
    pub(super) fn learn(&mut self, data: &str, text: &str) {
        self.fixed.clear();
        self.values.clear();
        let place = (text.as_ptr() as usize).checked_sub(data.as_ptr() as usize);
        let Some(text) = place.filter(|place| data.get(*place..place + text.len()) == Some(text)) else { return };
        let mut scan = Scan { data, at: 0, text, found: Vec::new() };
        if scan.value(Level::Chunk).is_none() || scan.found.len() > MOST_VALUES {
            return;
        }
        let mut begin = 0;
        for (start, end, kind) in scan.found {
            self.fixed.push_str(data.get(begin..start).unwrap_or_default());
            self.values.push(Value { fixed_end: self.fixed.len(), kind });
            begin = end;
        }
        self.fixed.push_str(data.get(begin..).unwrap_or_default());
        if self.fixed.len() > MOST_BYTES {
            self.values.clear();
        }
    }
}

impl Kind {
    /// The length of a value of this kind at the beginning of a text.
    fn length(self, text: &str) -> Option<usize> {
        match self {
            Self::Text => string_length(text),
            Self::String => plain_string_length(text),
            Self::Number => number_length(text),
            Self::Usage | Self::Any => {
                matches!(text.as_bytes().first(), Some(b'{' | b'[')).then(|| any_length(text))?
            }
        }
    }
}

/// A part of a chunk with members that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Chunk,
    Choices,
    Choice,
    Delta,
}

/// The role of a member for the reader of chunks.
enum Member {
    /// It is read, so it may not differ.
    Read,
    /// It has members that are read.
    Within(Level),
    Usage,
    /// It is skipped.
    Other,
}

impl Level {
    fn member(self, key: &str) -> Member {
        match (self, key) {
            // An escape may hide a name.
            (_, key) if key.contains('\\') => Member::Read,
            (Self::Chunk, "choices") => Member::Within(Self::Choices),
            (Self::Choice, "delta") => Member::Within(Self::Delta),
            (Self::Chunk, "usage") => Member::Usage,
            (Self::Chunk, "id" | "error") => Member::Read,
            (Self::Choice, "index" | "message" | "finish_reason") => Member::Read,
            (Self::Delta, "content" | "reasoning_content" | "reasoning" | "refusal" | "tool_calls") => Member::Read,
            _ => Member::Other,
        }
    }
}

/// Looks for the values of a valid chunk that may differ.
struct Scan<'d> {
    data: &'d str,
    at: usize,
    /// The place of the text.
    text: usize,
    /// Begin, end and kind of each value.
    found: Vec<(usize, usize, Kind)>,
}

impl Scan<'_> {
    fn rest(&self) -> Option<&str> {
        self.data.get(self.at..)
    }

    /// Skips white space, and this byte if it is next.
    fn skip(&mut self, byte: u8) -> bool {
        let bytes = self.data.as_bytes();
        while bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        let is_next = bytes.get(self.at) == Some(&byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// Goes through a part that has members that are read; any other value there is fixed.
    fn value(&mut self, level: Level) -> Option<()> {
        match level {
            Level::Choices if self.skip(b'[') => {
                while !self.skip(b']') {
                    self.value(Level::Choice)?;
                    self.skip(b',');
                }
            }
            Level::Chunk | Level::Choice | Level::Delta if self.skip(b'{') => {
                while !self.skip(b'}') {
                    self.member(level)?;
                    self.skip(b',');
                }
            }
            _ => self.at += any_length(self.rest()?)?,
        }
        Some(())
    }

    fn member(&mut self, level: Level) -> Option<()> {
        let length = string_length(self.rest()?)?;
        let member = level.member(self.rest()?.get(1..length - 1)?);
        self.at += length;
        self.skip(b':');
        // Skips white space only.
        self.skip(0);
        if let Member::Within(level) = member {
            return self.value(level);
        }
        let (begin, rest) = (self.at, self.rest()?);
        let kinds: &[Kind] = match member {
            Member::Read if begin == self.text => &[Kind::Text],
            Member::Read | Member::Within(_) => &[],
            Member::Usage => &[Kind::Usage],
            Member::Other => &[Kind::String, Kind::Number, Kind::Any],
        };
        let found = kinds.iter().find_map(|kind| Some((*kind, kind.length(rest)?)));
        let length = found.map_or_else(|| any_length(rest), |(_, length)| Some(length))?;
        self.at += length;
        self.found.extend(found.map(|(kind, length)| (begin, begin + length, kind)));
        Some(())
    }
}

/// The length of the string at the beginning of a text, with its quotes.
fn string_length(text: &str) -> Option<usize> {
    let bytes = text.strip_prefix('"')?.as_bytes();
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes.get(at) == Some(&b'"') {
            return Some(at + 2);
        }
        at += 2;
    }
}

/// As above, for a string that is valid whatever it says.
fn plain_string_length(text: &str) -> Option<usize> {
    let bytes = text.strip_prefix('"')?.as_bytes();
    let end = bytes.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))?;
    (bytes.get(end) == Some(&b'"')).then_some(end + 2)
}

/// The length of the number at the beginning of a text, if it has neither a sign nor a fraction.
fn number_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let end = bytes.iter().position(|byte| !byte.is_ascii_digit())?;
    let is_plain = end == 1 || (end > 1 && end <= MOST_DIGITS && bytes.first() != Some(&b'0'));
    (is_plain && !matches!(bytes.get(end), Some(b'.' | b'e' | b'E'))).then_some(end)
}

/// The length of the value at the beginning of a text, if it is valid.
fn any_length(text: &str) -> Option<usize> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    Some(values.byte_offset())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CHUNK: &str = r#"{"id":"a1","created":17,"choices":[{"index":0,"delta":{"role":"r","content":"a"},"logprobs":{"p":[1]},"finish_reason":null}],"x":"y","usage":{"total_tokens":5}}"#;
    const USAGE: &str = r#"{"total_tokens":5}"#;

    fn frame_of(chunk: &str, text: &str) -> Frame {
        let mut frame = Frame::default();
        let place = chunk.find(text).unwrap();
        frame.learn(chunk, &chunk[place..place + text.len()]);
        frame
    }

    fn learnt() -> Frame {
        frame_of(CHUNK, r#""a""#)
    }

    #[test]
    fn a_chunk_that_differs_in_its_text_and_in_what_is_skipped_has_the_frame() {
        let frame = learnt();
        for (from, to, text) in [
            ("17", "17", "a"),
            (r#":"a""#, r#":"\"}}]}é\\""#, "\"}}]}é\\"),
            ("17", "1800000000", "a"),
            ("17", "0", "a"),
            (r#""y""#, r#""""#, "a"),
            (r#""y""#, r#""漢字 with a }""#, "a"),
            (r#""r""#, r#""assistant""#, "a"),
            (r#"{"p":[1]}"#, r#"{"content":[{"token":"}","logprob":-0.5}]}"#, "a"),
        ] {
            let framed =
                frame.read(&CHUNK.replace(from, to)).map(|framed| (framed.text, framed.usage.map(str::to_owned)));
            assert_eq!(framed, Some((text.to_owned(), Some(USAGE.to_owned()))), "{to}");
        }
        let counted = CHUNK.replace(USAGE, r#"{"total_tokens":6,"x":{}}"#);
        assert_eq!(frame.read(&counted).unwrap().usage, Some(r#"{"total_tokens":6,"x":{}}"#));
        let spaced = r#"{ "choices" : [ { "delta" : { "content" : "a" } , "n" : 1 } ] }"#;
        let frame = frame_of(spaced, r#""a""#);
        assert_eq!(frame.read(&spaced.replace('1', "22")).unwrap().text, "a");
    }

    #[test]
    fn any_other_chunk_does_not_have_the_frame() {
        let frame = learnt();
        for (from, to) in [
            (r#""a"}"#, r#""a","tool_calls":""}"#),
            (r#""a"}"#, r#"null}"#),
            (r#""a"}"#, r#""a}"#),
            (r#""a"}"#, "}"),
            (r#":"a""#, r#":"\x""#),
            (r#":"a""#, ":\"\n\""),
            (r#"[{"index":0"#, r#"[{"index":1"#),
            (r#""finish_reason":null"#, r#""finish_reason":"stop""#),
            (r#""a1""#, r#""a2""#),
            ("17", "017"),
            ("17", "-17"),
            ("17", "1.5"),
            ("17", "null"),
            ("17", "17,\"error\":1"),
            ("17", "1111111111111111"),
            (r#""y""#, r#""\q""#),
            (r#""y""#, "\"\n\""),
            (r#""y""#, r#""y","error":"e""#),
            (r#"{"p":[1]}"#, r#"{"p":[1}}"#),
            (r#"{"p":[1]}"#, "null"),
            (USAGE, "5"),
            (USAGE, r#"{"total_tokens":}"#),
            (r#"5}}"#, r#"5}}}"#),
            (r#"5}}"#, r#"5}"#),
        ] {
            let other = CHUNK.replace(from, to);
            assert_ne!(other, CHUNK, "{to}");
            assert_eq!(frame.read(&other), None, "{other}");
        }
        assert_eq!((frame.read(""), Frame::default().read("\"a\"")), (None, None));
    }

    #[test]
    fn a_name_with_an_escape_is_taken_for_one_that_is_read() {
        let chunk = r#"{"\u0069d":"b","choices":[{"delta":{"content":"a"}}]}"#;
        let frame = frame_of(chunk, r#""a""#);
        assert!(frame.read(chunk).is_some() && frame.read(&chunk.replace(r#""b""#, r#""c""#)).is_none());
    }

    #[test]
    fn a_large_frame_or_a_text_from_elsewhere_is_not_remembered() {
        let large = format!(r#"{{"id":"{}","choices":[{{"delta":{{"content":"a"}}}}]}}"#, "y".repeat(MOST_BYTES));
        assert_eq!(frame_of(&large, r#""a""#).read(&large), None);
        let many = format!(r#"{{{}"choices":[{{"delta":{{"content":"a"}}}}]}}"#, r#""n":1,"#.repeat(MOST_VALUES));
        assert_eq!(frame_of(&many, r#""a""#).read(&many), None);
        let mut frame = learnt();
        frame.learn(&CHUNK[..20], &CHUNK[66..69]);
        assert_eq!(frame.read(CHUNK), None);
    }

    proptest! {
        #[test]
        fn whatever_has_the_frame_is_valid(
            from in prop::sample::select(vec!["17", "\"r\"", "\"a\"", "\"y\"", "{\"p\":[1]}", USAGE, "0", "null"]),
            to in "[ 0-9a\"\\\\{}\\[\\],:\n.-]{0,12}",
        ) {
            let other = CHUNK.replacen(from, &to, 1);
            if let Some(framed) = learnt().read(&other) {
                let parsed: serde_json::Value = serde_json::from_str(&other).unwrap();
                prop_assert_eq!(&parsed["choices"][0]["delta"]["content"], &serde_json::Value::from(framed.text));
            }
        }
    }
}
