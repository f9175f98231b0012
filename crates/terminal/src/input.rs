//! The bytes of a terminal as keys, mouse events and answers to queries.
//!
//! Invariant: pure and total. Nothing that a terminal sends is an error, and an incomplete sequence keeps a bounded number
//! of bytes. The end of a lone Esc is a matter of time, so the reader says when it is over ([`Parser::flush`]).

use std::time::{Duration, Instant};

use crate::key::Key;

/// The longest control sequence that is kept; more is no sequence of a terminal.
const SEQUENCE_BYTES: usize = 256;

/// The longest paste that is kept; the editor takes less.
const PASTE_BYTES: usize = 2 * 1024 * 1024;

/// A read of more bytes than this without any sequence is a paste of a terminal that does not mark pastes. Nobody types
/// that much between two reads.
const UNMARKED_PASTE: usize = 256;
/// With a line break among them, fewer are one: pasted lines must not be sent one by one.
const UNMARKED_LINES: usize = 16;
/// The same for bytes that follow each other closer than anybody types.
const BURST_BYTES: usize = 64;
const BURST: Duration = Duration::from_millis(10);
/// A line break this soon after a paste is a late part of it. Nobody reads what they have pasted that fast.
const AFTER_PASTE: Duration = Duration::from_millis(200);

const PASTE_END: &[u8] = b"\x1b[201~";

/// Something that a terminal sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typed {
    Key(Key),
    Mouse(Mouse),
    /// The window got or lost the focus.
    Focus(bool),
    /// The background colour, as the terminal reports it.
    Background(u8, u8, u8),
}

/// An event of the mouse, at a column and a row that count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mouse {
    pub kind: MouseKind,
    pub column: u16,
    pub row: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MouseKind {
    Press,
    Drag,
    Release,
    WheelUp,
    WheelDown,
}

/// Tells pastes of a terminal that does not mark them from keys, by their speed.
#[derive(Debug, Default)]
pub struct Burst {
    last: Option<Instant>,
    /// The bytes that came without a pause.
    bytes: usize,
    /// The end of the last paste.
    pasted: Option<Instant>,
}

impl Burst {
    /// Whether bytes that were read at a time are part of a paste.
    pub fn is_paste(&mut self, bytes: &[u8], now: Instant) -> bool {
        let goes_on = self.last.replace(now).is_some_and(|last| now.saturating_duration_since(last) < BURST);
        let before = if goes_on { self.bytes } else { 0 };
        self.bytes = before + bytes.len();
        let is_text = |byte: &u8| *byte >= 0x20 || matches!(byte, b'\r' | b'\n' | b'\t');
        if !bytes.iter().all(is_text) {
            (self.bytes, self.pasted) = (0, None);
            return false;
        }
        let is_break = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let has_lines = bytes.iter().rev().skip_while(|byte| is_break(byte)).any(is_break);
        let is_behind = self.pasted.is_some_and(|end| now.saturating_duration_since(end) < AFTER_PASTE);
        let is_paste = bytes.len() > UNMARKED_PASTE
            || (is_behind && bytes.iter().any(is_break))
            || (has_lines && bytes.len() >= UNMARKED_LINES)
            || (before > 0 && self.bytes >= BURST_BYTES && bytes.iter().any(is_break));
        if !is_paste && bytes.last().is_some_and(is_break) {
            // A program may type several lines, each of which is sent.
            self.bytes = 0;
        }
        is_paste
    }

    /// A paste has ended, as far as is known: the terminal may have passed on only a part of it.
    pub fn ended(&mut self, now: Instant) {
        self.pasted = Some(now);
    }
}

/// Reads what a terminal sends, however it is cut.
#[derive(Debug, Default)]
pub struct Parser {
    rest: Vec<u8>,
    /// Whether the rest is older than the bytes after it.
    is_split: bool,
    /// The text of a marked paste until its end.
    paste: Option<Vec<u8>>,
}

/// The outcome of parsing the start of the rest.
enum Step {
    /// So many bytes were read.
    Taken(usize, Option<Typed>),
    /// More bytes are needed.
    Partial,
    /// A paste starts after so many bytes.
    Paste(usize),
}

impl Parser {
    /// Takes more bytes.
    pub fn push(&mut self, bytes: &[u8], mut take: impl FnMut(Typed)) {
        self.is_split = !self.rest.is_empty();
        self.rest.extend_from_slice(bytes);
        loop {
            if self.paste.is_some() {
                match self.take_paste() {
                    Some(text) => take(Typed::Key(Key::Paste(text))),
                    None => return,
                }
            }
            if self.rest.is_empty() {
                return;
            }
            match step(&self.rest, self.is_split) {
                Step::Taken(count, typed) => {
                    self.rest.drain(..count);
                    self.is_split = false;
                    typed.into_iter().for_each(&mut take);
                }
                Step::Paste(count) => {
                    self.rest.drain(..count);
                    self.paste = Some(Vec::new());
                }
                Step::Partial if self.rest.len() > SEQUENCE_BYTES => self.rest.clear(),
                Step::Partial => return,
            }
        }
    }

    /// Takes a paste that the terminal did not mark.
    #[must_use]
    pub fn unmarked_paste(bytes: &[u8]) -> Typed {
        Typed::Key(Key::Paste(String::from_utf8_lossy(bytes).into_owned()))
    }

    /// Whether something is incomplete that time can end.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.paste.is_none() && !self.rest.is_empty()
    }

    /// Whether a marked paste goes on.
    #[must_use]
    pub fn is_within_paste(&self) -> bool {
        self.paste.is_some()
    }

    /// Time is over for an incomplete sequence: a lone Esc is the key, and anything else nothing.
    pub fn flush(&mut self) -> Option<Typed> {
        let is_escape = self.paste.is_none() && self.rest == b"\x1b";
        self.rest.clear();
        is_escape.then_some(Typed::Key(Key::Esc))
    }

    /// Forgets everything incomplete.
    pub fn clear(&mut self) {
        self.rest.clear();
        self.paste = None;
    }

    /// The paste if its end is here.
    fn take_paste(&mut self) -> Option<String> {
        let paste = self.paste.as_mut()?;
        let end = self.rest.windows(PASTE_END.len()).position(|window| window == PASTE_END);
        // The start of the end mark may be at the end of these bytes.
        let count = end.unwrap_or_else(|| self.rest.len().saturating_sub(PASTE_END.len() - 1));
        let room = PASTE_BYTES.saturating_sub(paste.len());
        paste.extend(self.rest.drain(..count).take(room));
        end?;
        self.rest.drain(..PASTE_END.len());
        self.paste.take().map(|paste| String::from_utf8_lossy(&paste).into_owned())
    }
}

fn key(count: usize, key: Key) -> Step {
    Step::Taken(count, Some(Typed::Key(key)))
}

fn step(bytes: &[u8], is_split: bool) -> Step {
    match bytes {
        [0x1b] => Step::Partial,
        [0x1b, b'[', ..] => csi(bytes),
        [0x1b, b'O', ..] => match bytes.get(2) {
            Some(last) => Step::Taken(3, named(*last, &[]).map(Typed::Key)),
            None => Step::Partial,
        },
        [0x1b, b']', ..] => text_sequence(bytes, true),
        [0x1b, b'P' | b'_' | b'^' | b'X', ..] => text_sequence(bytes, false),
        // A key with Alt arrives in one piece, and input after Esc is not lost.
        [0x1b, ..] if is_split => key(1, Key::Esc),
        [0x1b, 0x1b, ..] => key(1, Key::Esc),
        [0x1b, rest @ ..] => match plain(rest) {
            Step::Taken(count, Some(Typed::Key(inner))) => key(count + 1, with_alt(inner)),
            Step::Taken(count, other) => Step::Taken(count + 1, other),
            other => other,
        },
        _ => plain(bytes),
    }
}

fn with_alt(key: Key) -> Key {
    match key {
        Key::Char(c) => Key::Alt(c),
        Key::Enter => Key::NewLine,
        Key::Backspace => Key::Ctrl('w'),
        other => other,
    }
}

/// A character, or a control key.
fn plain(bytes: &[u8]) -> Step {
    match bytes {
        [] => Step::Partial,
        [b'\r', ..] => key(1, Key::Enter),
        // Raw mode reports a line feed like this: terminals send it for Ctrl-J, and for pasted line breaks.
        [b'\n', ..] => key(1, Key::NewLine),
        [b'\t', ..] => key(1, Key::Char('\t')),
        [0x7f, ..] => key(1, Key::Backspace),
        [0, ..] => key(1, Key::Ctrl(' ')),
        [code @ 0x1c..=0x1f, ..] => key(1, Key::Ctrl(char::from(code - 0x1c + b'4'))),
        [code @ 1..=0x1a, ..] => key(1, Key::Ctrl(char::from(code - 1 + b'a'))),
        _ => character(bytes),
    }
}

fn character(bytes: &[u8]) -> Step {
    let length = match bytes.first() {
        Some(0..=0x7f) => 1,
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        _ => return Step::Taken(1, None),
    };
    let Some(piece) = bytes.get(..length) else { return Step::Partial };
    match std::str::from_utf8(piece).ok().and_then(|text| text.chars().next()) {
        Some(c) => key(length, Key::Char(c)),
        None => Step::Taken(1, None),
    }
}

/// `ESC [ … letter`.
fn csi(bytes: &[u8]) -> Step {
    let Some(end) = bytes.iter().skip(2).position(|byte| (0x40..=0x7e).contains(byte)).map(|at| at + 2) else {
        return Step::Partial;
    };
    let (body, last) = (&bytes[2..end], bytes[end]);
    let count = end + 1;
    if let Some(body) = body.strip_prefix(b"<") {
        return Step::Taken(count, mouse(body, last).map(Typed::Mouse));
    }
    if body.first().is_some_and(|byte| b"?>=".contains(byte)) {
        // An answer to a query.
        return Step::Taken(count, None);
    }
    let numbers = numbers(body);
    match last {
        b'~' if numbers.first() == Some(&200) => Step::Paste(count),
        b'I' => Step::Taken(count, Some(Typed::Focus(true))),
        b'O' => Step::Taken(count, Some(Typed::Focus(false))),
        last => Step::Taken(count, named(last, &numbers).map(Typed::Key)),
    }
}

fn numbers(body: &[u8]) -> Vec<u32> {
    let number = |part: &[u8]| {
        let digits = part.split(|byte| *byte == b':').next().unwrap_or_default();
        std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
    };
    body.split(|byte| *byte == b';').map(number).collect()
}

/// The key of a sequence by its last letter and its numbers.
fn named(last: u8, numbers: &[u32]) -> Option<Key> {
    let held = numbers.get(1).copied().unwrap_or(1).saturating_sub(1);
    let (is_shift, is_alt, is_ctrl) = (held & 1 != 0, held & 2 != 0, held & 4 != 0);
    Some(match last {
        b'A' if is_alt => Key::AltUp,
        b'B' if is_alt => Key::AltDown,
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' if is_alt || is_ctrl => Key::WordRight,
        b'D' if is_alt || is_ctrl => Key::WordLeft,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        b'Z' => Key::BackTab,
        b'M' => Key::Enter,
        last @ b'P'..=b'S' => Key::F(last - b'P' + 1),
        b'~' => match numbers.first()? {
            1 | 7 => Key::Home,
            4 | 8 => Key::End,
            3 => Key::Delete,
            5 => Key::PageUp,
            6 => Key::PageDown,
            number @ 11..=15 => Key::F(u8::try_from(number - 10).ok()?),
            number @ 17..=21 => Key::F(u8::try_from(number - 11).ok()?),
            number @ 23..=24 => Key::F(u8::try_from(number - 12).ok()?),
            _ => return None,
        },
        b'u' => match char::from_u32(*numbers.first()?)? {
            '\r' if is_shift || is_alt || is_ctrl => Key::NewLine,
            '\r' => Key::Enter,
            '\t' if is_shift => Key::BackTab,
            '\t' => Key::Char('\t'),
            '\u{1b}' => Key::Esc,
            '\u{7f}' if is_alt || is_ctrl => Key::Ctrl('w'),
            '\u{7f}' => Key::Backspace,
            'j' if is_ctrl => Key::NewLine,
            c if c.is_control() => return None,
            c if is_ctrl => Key::Ctrl(c.to_ascii_lowercase()),
            c if is_alt => Key::Alt(c),
            c => Key::Char(c),
        },
        _ => return None,
    })
}

fn mouse(body: &[u8], last: u8) -> Option<Mouse> {
    let [button, column, row] = numbers(body)[..] else { return None };
    let place = |number: u32| u16::try_from(number.saturating_sub(1)).unwrap_or(u16::MAX);
    let is_moved = button & 32 != 0;
    let kind = match (button & !(4 | 8 | 16 | 32), last) {
        (64, _) => MouseKind::WheelUp,
        (65, _) => MouseKind::WheelDown,
        (0, b'm') => MouseKind::Release,
        (0, b'M') if is_moved => MouseKind::Drag,
        (0, b'M') => MouseKind::Press,
        _ => return None,
    };
    Some(Mouse { kind, column: place(column), row: place(row) })
}

/// A sequence with text, up to BEL or `ESC \`. Only the background colour means something.
fn text_sequence(bytes: &[u8], is_osc: bool) -> Step {
    let end = bytes.iter().enumerate().skip(2).find_map(|(at, byte)| match byte {
        0x07 => Some((at, at + 1)),
        b'\\' if bytes[at - 1] == 0x1b => Some((at - 1, at + 1)),
        _ => None,
    });
    let Some((end, count)) = end else { return Step::Partial };
    let told = std::str::from_utf8(&bytes[2..end.max(2)]).ok().filter(|_| is_osc);
    Step::Taken(count, told.and_then(|told| background(told.strip_prefix("11;")?)))
}

/// `rgb:RRRR/GGGG/BBBB`, with one to four digits each.
fn background(text: &str) -> Option<Typed> {
    let mut parts = text.strip_prefix("rgb:")?.split('/').map(|part| {
        let most = 16u32.checked_pow(u32::try_from(part.len()).ok()?)?.checked_sub(1).filter(|most| *most > 0)?;
        u8::try_from(u32::from_str_radix(part, 16).ok()? * 255 / most).ok()
    });
    let mut next = || parts.next()?;
    Some(Typed::Background(next()?, next()?, next()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<Typed> {
        let (mut parser, mut all) = (Parser::default(), Vec::new());
        for piece in pieces {
            parser.push(piece, |typed| all.push(typed));
        }
        all.extend(parser.flush());
        all
    }

    #[track_caller]
    fn keys(bytes: &[u8], expected: &[Key]) {
        let expected: Vec<Typed> = expected.iter().cloned().map(Typed::Key).collect();
        assert_eq!(read(&[bytes]), expected, "{:?}", String::from_utf8_lossy(bytes));
    }

    #[test]
    fn a_line_break_right_after_a_paste_sends_nothing() {
        let start = Instant::now();
        let after = |millis| start + Duration::from_millis(millis);
        let mut burst = Burst::default();
        assert!(burst.is_paste(&[b'x'; 1000], start));
        burst.ended(after(20));
        assert!(burst.is_paste(b"\r", after(60)), "it is a late part");
        assert!(!burst.is_paste(b"y", after(100)), "a key without a break is typed");
        assert!(!burst.is_paste(b"\r", after(300)));
        burst.ended(after(400));
        assert!(!burst.is_paste(b"\x15", after(410)), "a key that no paste has is typed");
        assert!(!burst.is_paste(b"\r", after(430)));
    }

    #[test]
    fn keys_have_one_name_each() {
        keys(b"a\xc3\xa9\xe6\x97\xa5", &[Key::Char('a'), Key::Char('é'), Key::Char('日')]);
        keys(
            b"\r\n\t\x7f\x03\x1a",
            &[Key::Enter, Key::NewLine, Key::Char('\t'), Key::Backspace, Key::Ctrl('c'), Key::Ctrl('z')],
        );
        keys(b"\x1b[A\x1bOF\x1b[1;5D\x1b[3~\x1b[1;3A", &[Key::Up, Key::End, Key::WordLeft, Key::Delete, Key::AltUp]);
        keys(b"\x1bf\x1b\r\x1b\x7f", &[Key::Alt('f'), Key::NewLine, Key::Ctrl('w')]);
        keys(b"\x1b[13;2u\x1b[99;5u\x1b[Z", &[Key::NewLine, Key::Ctrl('c'), Key::BackTab]);
        keys(b"\x1b", &[Key::Esc]);
        keys(b"\x1b\x1b", &[Key::Esc, Key::Esc]);
        keys(b"\x1bOP\x1b[15~\x1b[24~", &[Key::F(1), Key::F(5), Key::F(12)]);
        keys(b"\x1b[25~\x1b[?1;2c\x1bP1$r0m\x1b\\\x1b]52;c;eA==\x07x", &[Key::Char('x')]);
        keys(b"\xff\xc3(x", &[Key::Char('('), Key::Char('x')]);
    }

    #[test]
    fn a_lone_escape_is_distinguished_from_a_split_sequence() {
        assert_eq!(read(&[b"\x1b", b"[A"]), [Typed::Key(Key::Up)]);
        assert_eq!(read(&[b"\x1b", b"/"]), [Typed::Key(Key::Esc), Typed::Key(Key::Char('/'))]);
        assert_eq!(read(&[b"\x1b["]), []);
        assert_eq!(read(&[b"\x1b/"]), [Typed::Key(Key::Alt('/'))]);
    }

    #[test]
    fn a_paste_is_one_key_wherever_it_is_cut() {
        let bytes = b"\x1b[200~one\rtwo\x1b[3~\x1b[201~x";
        let whole = [Typed::Key(Key::Paste("one\rtwo\x1b[3~".to_owned())), Typed::Key(Key::Char('x'))];
        for cut in 6..bytes.len() {
            assert_eq!(read(&[&bytes[..cut], &bytes[cut..]]), whole, "cut at {cut}");
        }
    }

    #[test]
    fn the_mouse_the_focus_and_the_background_are_told() {
        let mouse = |kind, column, row| Typed::Mouse(Mouse { kind, column, row });
        assert_eq!(
            read(&[b"\x1b[<0;5;3M\x1b[<32;6;3M\x1b[<0;6;3m\x1b[<64;1;1M\x1b[<2;1;1M\x1b[<0;0;99999999M"]),
            [
                mouse(MouseKind::Press, 4, 2),
                mouse(MouseKind::Drag, 5, 2),
                mouse(MouseKind::Release, 5, 2),
                mouse(MouseKind::WheelUp, 0, 0),
                mouse(MouseKind::Press, 0, u16::MAX),
            ]
        );
        assert_eq!(
            read(&[b"\x1b[I\x1b[O\x1b]11;rgb:ffff/8080/0000\x1b\\\x1b]11;rgb:f/0\x07"]),
            [Typed::Focus(true), Typed::Focus(false), Typed::Background(255, 128, 0),]
        );
    }

    #[test]
    fn a_paste_without_marks_is_known_by_its_speed() {
        let start = Instant::now();
        let after = |millis: u64| start + Duration::from_millis(millis);
        let is_paste = |reads: &[(&str, u64)]| {
            let mut burst = Burst::default();
            let last = reads.iter().map(|(text, millis)| burst.is_paste(text.as_bytes(), after(*millis))).last();
            last.unwrap_or_default()
        };
        assert!(is_paste(&[(&"x".repeat(300), 0)]));
        assert!(is_paste(&[("first line\rsecond line", 0)]));
        assert!(!is_paste(&[("a whole line that a program types\r", 0)]), "its end sends it");
        assert!(!is_paste(&[("yes\rno\r", 0)]), "short lines may be typed ahead");
        let piece = "a piece of a paste that is not long, of forty letters";
        assert!(is_paste(&[(piece, 0), ("and its end\r", 3)]));
        assert!(!is_paste(&[(piece, 0), ("and its end\r", 300)]));
        let line = "a line of a program that waits for answers\r";
        assert!(!is_paste(&[(line, 0), (line, 2), (line, 4)]), "each of them is sent");
        assert!(!is_paste(&[("\u{1b}[A one\rtwo three four five", 0)]), "keys with sequences are keys");
    }

    #[test]
    fn a_sequence_without_an_end_is_forgotten() {
        let (mut parser, mut all) = (Parser::default(), Vec::new());
        for _ in 0..100 {
            parser.push(b"\x1b]0;aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", |typed| all.push(typed));
            assert!(parser.rest.len() <= SEQUENCE_BYTES + 64);
        }
        let mut parser = Parser::default();
        parser.push(b"\x1b[200~", |typed| all.push(typed));
        let piece = vec![b'x'; 65536];
        for _ in 0..100 {
            parser.push(&piece, |typed| all.push(typed));
        }
        assert!(parser.paste.as_ref().is_some_and(|paste| paste.len() <= PASTE_BYTES));
    }

    proptest! {
        /// Anything may be sent, cut anywhere.
        #[test]
        fn nothing_is_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200), cut in 0usize..200) {
            let cut = cut.min(bytes.len());
            read(&[&bytes[..cut], &bytes[cut..]]);
        }
    }
}
