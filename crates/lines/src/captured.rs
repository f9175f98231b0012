//! Bounded buffers for unbounded output: the start and the end are kept, and everything is counted.

use std::collections::VecDeque;

/// Output whose start and end were kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    pub head: Vec<u8>,
    /// The end. Everything between `head` and `tail` was omitted.
    pub tail: Vec<u8>,
    pub total_bytes: u64,
}

impl Captured {
    /// The number of omitted bytes.
    #[must_use]
    pub fn omitted_bytes(&self) -> u64 {
        self.total_bytes.saturating_sub(self.head.len() as u64 + self.tail.len() as u64)
    }

    /// The output as text: exact where it is valid UTF-8, with a note in the middle if something was omitted.
    #[must_use]
    pub fn text(&self) -> String {
        let omitted = self.omitted_bytes();
        if omitted == 0 {
            let mut whole = Vec::with_capacity(self.head.len() + self.tail.len());
            whole.extend_from_slice(&self.head);
            whole.extend_from_slice(&self.tail);
            return into_text(whole);
        }
        let (head, cut_after) = whole_characters(&self.head);
        let cut_before = self.tail.iter().take(3).take_while(|byte| is_continuation(**byte)).count();
        let tail = self.tail.get(cut_before..).unwrap_or_default();
        let omitted = omitted + (cut_after + cut_before) as u64;
        let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
        format!("{head}\n… {omitted} bytes left out …\n{tail}")
    }
}

fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Strips an incomplete character from the end, and returns how many bytes that were.
fn whole_characters(bytes: &[u8]) -> (&[u8], usize) {
    let trailing = bytes.iter().rev().take(3).take_while(|byte| is_continuation(**byte)).count();
    let lead = bytes.len().checked_sub(trailing + 1).and_then(|at| bytes.get(at).map(|byte| (at, *byte)));
    let needed = match lead {
        Some((_, 0xc0..=0xdf)) => 2,
        Some((_, 0xe0..=0xef)) => 3,
        Some((_, 0xf0..=0xf7)) => 4,
        _ => return (bytes, 0),
    };
    match lead {
        Some((at, _)) if bytes.len() - at < needed => (bytes.get(..at).unwrap_or(bytes), bytes.len() - at),
        _ => (bytes, 0),
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// A buffer that accepts any amount of output and keeps at most `limit` bytes of it.
#[derive(Debug)]
pub struct BoundedBuffer {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_limit: usize,
    tail_limit: usize,
    total: u64,
}

impl BoundedBuffer {
    #[must_use]
    pub fn new(limit: usize) -> Self {
        let head_limit = limit / 2;
        Self { head: Vec::new(), tail: VecDeque::new(), head_limit, tail_limit: limit - head_limit, total: 0 }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(self.head_limit - self.head.len()));
        self.head.extend_from_slice(head);
        let rest = rest.get(rest.len().saturating_sub(self.tail_limit)..).unwrap_or_default();
        let surplus = (self.tail.len() + rest.len()).saturating_sub(self.tail_limit);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }

    #[must_use]
    pub fn finish(self) -> Captured {
        Captured { head: self.head, tail: self.tail.into(), total_bytes: self.total }
    }

    /// Takes everything that was kept since the last call.
    pub fn take(&mut self) -> Captured {
        let limit = self.head_limit + self.tail_limit;
        std::mem::replace(self, Self::new(limit)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(limit: usize, chunks: &[&str], expected: &str) {
        let mut keeper = BoundedBuffer::new(limit);
        for chunk in chunks {
            keeper.push(chunk.as_bytes());
        }
        assert_eq!(keeper.finish().text(), expected);
    }

    #[test]
    fn output_that_fits_is_kept_completely() {
        check(8, &["ab", "", "cdefgh"], "abcdefgh");
        check(0, &[], "");
    }

    #[test]
    fn the_middle_is_left_out_and_counted() {
        check(8, &["abcdefgh", "i"], "abcd\n… 1 bytes left out …\nfghi");
        check(8, &["abcdefghijklmnopqrstuvwxyz"], "abcd\n… 18 bytes left out …\nwxyz");
        check(0, &["abc"], "\n… 3 bytes left out …\n");
    }

    #[test]
    fn characters_are_not_cut_in_two() {
        // Three bytes each; four are kept on either side.
        check(8, &["€€€€€€"], "€\n… 12 bytes left out …\n€");
        // A cut that was bridged exactly is not a cut.
        check(7, &["€", "€"], "€€");
    }

    #[test]
    fn invalid_bytes_become_marks_and_valid_text_stays_exact() {
        let mut keeper = BoundedBuffer::new(64);
        keeper.push(b"a\xff\xfeb");
        assert_eq!(keeper.finish().text(), "a\u{fffd}\u{fffd}b");
    }

    #[test]
    fn memory_is_bounded_by_the_limit() {
        let mut keeper = BoundedBuffer::new(1000);
        for _ in 0..10_000 {
            keeper.push(&[b'x'; 777]);
        }
        assert!(keeper.tail.capacity() <= 2048, "{}", keeper.tail.capacity());
        let kept = keeper.finish();
        assert_eq!((kept.head.len(), kept.tail.len(), kept.total_bytes), (500, 500, 7_770_000));
    }
}
