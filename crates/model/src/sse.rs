//! Server-sent events: bytes in, split anywhere; the data of complete events out.
//!
//! Only `data` lines matter; comments and the fields `event`, `id` and `retry` are skipped. An event counts once the
//! blank line after it has arrived, so a truncated stream never yields a partial event.
//!
//! Invariant: each byte is examined once, and at most one event is in memory.

use std::str::Utf8Error;

use bytes::Buf;

/// The maximum number of bytes of one event, or of one line.
pub const EVENT_LIMIT: usize = 16 * 1024 * 1024;

/// The capacity that is kept for the next event.
const KEPT_BYTES: usize = 64 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// An error in a stream.
#[derive(Debug, thiserror::Error)]
pub enum SseError {
    /// An event is too large.
    #[error("an event of the stream has more than {limit} bytes")]
    TooLarge {
        /// The maximum number of bytes.
        limit: usize,
    },
    /// An event is no text. It is not repaired, because it may contain a command.
    #[error("an event of the stream is not UTF-8")]
    NotUtf8(#[from] Utf8Error),
}

/// Reads one stream of events.
#[derive(Debug)]
pub struct Parser {
    limit: usize,
    /// The start of an incomplete line.
    line: Vec<u8>,
    /// The data lines of the current event, joined by line feeds.
    data: Vec<u8>,
    /// The number of bytes before them that belong to the first line, but not to its value.
    skipped: usize,
    event: Event,
    /// The last line ended in a carriage return, to which a line feed may still belong.
    ends_in_return: bool,
    is_first_line: bool,
}

/// The content of `data`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// No data line has arrived.
    None,
    /// The data lines so far.
    Begun,
    /// An event that was returned.
    HandedOut,
}

impl Parser {
    /// A parser for a new stream.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(EVENT_LIMIT)
    }

    /// A parser that refuses events of more than `limit` bytes.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            data: Vec::new(),
            skipped: 0,
            event: Event::None,
            ends_in_return: false,
            is_first_line: true,
        }
    }

    /// Consumes the input up to the end of the next event and returns that event's data.
    ///
    /// `None` means that the input is consumed and more is needed.
    pub fn next(&mut self, input: &mut impl Buf) -> Result<Option<&str>, SseError> {
        if self.event == Event::HandedOut {
            self.forget();
        }
        while input.has_remaining() {
            let bytes = input.chunk();
            if std::mem::take(&mut self.ends_in_return) && bytes.first() == Some(&b'\n') {
                input.advance(1);
                continue;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) else {
                self.check_limit(self.line.len() + bytes.len())?;
                self.line.extend_from_slice(bytes);
                let taken = bytes.len();
                input.advance(taken);
                continue;
            };
            let (line, rest) = bytes.split_at(end);
            self.ends_in_return = rest.first() == Some(&b'\r');
            let is_blank = self.end_line(line)?;
            input.advance(end + 1);
            if is_blank && self.event == Event::Begun {
                self.event = Event::HandedOut;
                return Ok(Some(std::str::from_utf8(self.data.get(self.skipped..).unwrap_or_default())?));
            }
        }
        Ok(None)
    }

    /// Drops the returned event, and the capacity of a large one.
    pub fn release_capacity(&mut self) {
        if self.event == Event::HandedOut {
            self.forget();
        }
        for buffer in [&mut self.line, &mut self.data] {
            if buffer.is_empty() && buffer.capacity() > KEPT_BYTES {
                *buffer = Vec::new();
            }
        }
    }

    fn forget(&mut self) {
        self.data.clear();
        self.skipped = 0;
        self.event = Event::None;
    }

    /// Takes the rest of the current line. Returns whether the line is blank.
    fn end_line(&mut self, rest: &[u8]) -> Result<bool, SseError> {
        if self.line.is_empty() {
            return self.take_line(rest);
        }
        self.check_limit(self.line.len() + rest.len())?;
        let mut line = std::mem::take(&mut self.line);
        line.extend_from_slice(rest);
        if self.event != Event::None {
            let is_blank = self.take_line(&line)?;
            line.clear();
            self.line = line;
            return Ok(is_blank);
        }
        // The only data line of most events, which may be large, is not copied.
        let (value, is_blank) = self.value_of(&line);
        if let Some(value) = value {
            self.skipped = line.len() - value.len();
            self.event = Event::Begun;
            self.line = std::mem::replace(&mut self.data, line);
        } else {
            line.clear();
            self.line = line;
        }
        Ok(is_blank)
    }

    fn take_line(&mut self, line: &[u8]) -> Result<bool, SseError> {
        let (value, is_blank) = self.value_of(line);
        let Some(value) = value else { return Ok(is_blank) };
        self.check_limit(self.data.len() - self.skipped + value.len())?;
        if self.event == Event::Begun {
            self.data.push(b'\n');
        }
        self.event = Event::Begun;
        self.data.extend_from_slice(value);
        Ok(false)
    }

    /// The value of a data line, and whether the line is blank.
    fn value_of<'a>(&mut self, mut line: &'a [u8]) -> (Option<&'a [u8]>, bool) {
        if std::mem::take(&mut self.is_first_line) {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        let value = match line.strip_prefix(b"data") {
            Some([]) => Some(&[][..]),
            Some([b':', b' ', value @ ..] | [b':', value @ ..]) => Some(value),
            _ => None,
        };
        (value, line.is_empty())
    }

    fn check_limit(&self, size: usize) -> Result<(), SseError> {
        if size > self.limit { Err(SseError::TooLarge { limit: self.limit }) } else { Ok(()) }
    }
}

impl Default for Parser {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    /// Parses chunks one after the other; an error is the last entry of the list.
    fn read<'a>(limit: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Result<String, String>> {
        let mut parser = Parser::with_limit(limit);
        let mut events = Vec::new();
        for mut piece in pieces {
            loop {
                match parser.next(&mut piece) {
                    Ok(Some(data)) => events.push(Ok(data.to_owned())),
                    Ok(None) => break,
                    Err(error) => {
                        events.push(Err(error.to_string()));
                        return events;
                    }
                }
            }
        }
        events
    }

    #[track_caller]
    fn check(stream: &[u8], expected: Expect) {
        let whole = read(EVENT_LIMIT, [stream]);
        assert_eq!(read(EVENT_LIMIT, stream.chunks(1)), whole, "one byte at a time");
        expected.assert_eq(&format!("{whole:?}"));
    }

    #[test]
    fn all_line_ends() {
        check(
            b"data: a\n\ndata: b\r\n\r\ndata: c\r\rdata:d\n\r\n",
            expect![[r#"[Ok("a"), Ok("b"), Ok("c"), Ok("d")]"#]],
        );
    }

    #[test]
    fn data_of_several_lines() {
        check(b"data: a\ndata:  b\ndata\ndata: c\n\n", expect![[r#"[Ok("a\n b\n\nc")]"#]]);
    }

    #[test]
    fn comments_and_other_fields_are_skipped() {
        check(
            b": hi\n\nevent: x\nid: 1\nretry: 5\ndatum: no\ndata-x: no\n data: no\ndata: yes\nnonsense\n\nevent: y\n\n",
            expect![[r#"[Ok("yes")]"#]],
        );
    }

    #[test]
    fn byte_order_mark_only_at_the_start() {
        check(b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n", expect![[r#"[Ok("a")]"#]]);
        check(b"\xef\xbb\xbf\n\ndata: a\n\n", expect![[r#"[Ok("a")]"#]]);
    }

    #[test]
    fn cut_event_is_no_event() {
        check(b"data: a\n\ndata: b\n", expect![[r#"[Ok("a")]"#]]);
        check(b"data: b", expect!["[]"]);
        check(b"", expect!["[]"]);
    }

    #[test]
    fn empty_data_is_an_event_without_text() {
        check(b"data:\n\ndata: a\n\n", expect![[r#"[Ok(""), Ok("a")]"#]]);
    }

    #[test]
    fn split_characters_are_joined_and_invalid_ones_are_an_error() {
        check("data: pøng 漢字 🎉\n\n".as_bytes(), expect![[r#"[Ok("pøng 漢字 🎉")]"#]]);
        check(b"data: a\n\ndata: \xff\n\n", expect![[r#"[Ok("a"), Err("an event of the stream is not UTF-8")]"#]]);
        check(b"\xff\xfe\ndata: a\n\n", expect![[r#"[Ok("a")]"#]]);
    }

    #[test]
    fn the_buffer_of_a_large_event_is_released() {
        let mut parser = Parser::new();
        let stream = [b"data: ", &*b"x".repeat(1_000_000), b"\n\ndata: small\n\n"].concat();
        let mut events = Vec::new();
        for mut piece in stream.chunks(5000) {
            while let Some(data) = parser.next(&mut piece).unwrap() {
                events.push(data.len());
                parser.release_capacity();
                assert!(parser.line.capacity() + parser.data.capacity() <= 2 * KEPT_BYTES);
            }
        }
        assert_eq!(events, [1_000_000, 5]);
    }

    #[test]
    fn events_have_a_largest_size() {
        let error = Err("an event of the stream has more than 8 bytes".to_owned());
        assert_eq!(read(8, [&b"data: 12\n\n"[..]]), [Ok("12".to_owned())]);
        assert_eq!(read(8, [&b": a long comment without an end"[..]]), std::slice::from_ref(&error));
        assert_eq!(read(8, b"data: 1234".chunks(1)), std::slice::from_ref(&error));
        assert_eq!(read(8, [&b"data:1\ndata:2345678\ndata:9\n\n"[..]]), [error]);
    }

    fn pieces(bytes: Vec<u8>, cuts: &[prop::sample::Index]) -> Vec<Vec<u8>> {
        let mut places = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect::<Vec<_>>();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        places.windows(2).map(|pair| bytes[pair[0]..pair[1]].to_vec()).collect()
    }

    fn any_stream() -> impl Strategy<Value = Vec<u8>> {
        let token = prop::sample::select(vec![
            &b"data: "[..],
            b"data:",
            b"data",
            b"event: x",
            b":",
            b"\n",
            b"\r",
            b"\r\n",
            b"\n\n",
            b"{\"a\":1}",
            b"\xef\xbb\xbf",
            b"\xc3\xb8",
            b"\xff",
            b" ",
            b"x",
        ]);
        prop::collection::vec(token, 0..40).prop_map(|tokens| tokens.concat())
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_events(
            stream in any_stream(),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let whole = read(EVENT_LIMIT, [&stream[..]]);
            let split = pieces(stream, &cuts);
            prop_assert_eq!(read(EVENT_LIMIT, split.iter().map(Vec::as_slice)), whole);
        }

        #[test]
        fn random_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let whole = read(EVENT_LIMIT, [&bytes[..]]);
            prop_assert_eq!(read(EVENT_LIMIT, bytes.chunks(1)), whole);
        }
    }
}
