//! Reads lines of bytes from any stream, in chunks of any size.
//!
//! Invariant: memory is bounded. A line over the limit is skipped as it arrives and reported with its length.

use tokio::io::{AsyncRead, AsyncReadExt};

/// The maximum length of a line.
pub const MAX_LINE_BYTES: usize = 32 * 1024 * 1024;

const READ_BYTES: usize = 64 * 1024;
/// The number of bytes of an overlong line that are kept, to identify its sender.
const HEAD_BYTES: usize = 1024;

/// A received line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A line without its line end.
    Whole(Vec<u8>),
    /// A line that was too long to keep.
    TooLong {
        /// Its length in bytes.
        bytes: u64,
        /// Its first bytes.
        head: Vec<u8>,
    },
}

#[derive(Debug)]
pub struct LineReader<R> {
    input: R,
    limit: usize,
    buffer: Vec<u8>,
    /// The start of the unread part of the buffer.
    start: usize,
    /// The length of the part that was already searched for a line end.
    searched: usize,
    /// The number of skipped bytes and the start of an overlong line, while one is being skipped.
    skipped: Option<(u64, Vec<u8>)>,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Creates a reader for lines of up to [`MAX_LINE_BYTES`].
    pub fn new(input: R) -> Self {
        Self::with_limit(input, MAX_LINE_BYTES)
    }

    /// Creates a reader for lines of up to this many bytes.
    pub fn with_limit(input: R, limit: usize) -> Self {
        Self { input, limit, buffer: Vec::new(), start: 0, searched: 0, skipped: None }
    }

    /// Waits for the next line; `None` at the end of the input. A last line without a line end counts.
    ///
    /// Cancelling it loses nothing.
    pub async fn next(&mut self) -> std::io::Result<Option<Line>> {
        loop {
            if let Some(line) = self.take_line() {
                return Ok(Some(line));
            }
            self.make_room();
            if self.input.read_buf(&mut self.buffer).await? == 0 {
                return Ok(self.take_rest());
            }
        }
    }

    /// Whether a line can be had without waiting.
    pub fn has_line(&self) -> bool {
        memchr::memchr(b'\n', &self.buffer[self.start..]).is_some()
    }

    fn take_line(&mut self) -> Option<Line> {
        let found = memchr::memchr(b'\n', &self.buffer[self.searched..]);
        let Some(offset) = found else {
            self.searched = self.buffer.len();
            return None;
        };
        let end = self.searched + offset;
        Some(self.cut(end, end + 1))
    }

    fn take_rest(&mut self) -> Option<Line> {
        if self.start == self.buffer.len() && self.skipped.is_none() {
            return None;
        }
        Some(self.cut(self.buffer.len(), self.buffer.len()))
    }

    /// Takes the bytes up to `end` as a line; the next one begins at `next`.
    fn cut(&mut self, end: usize, next: usize) -> Line {
        let start = std::mem::replace(&mut self.start, next);
        self.searched = next;
        let line = &self.buffer[start..end];
        if let Some((skipped, head)) = self.skipped.take() {
            return Line::TooLong { bytes: skipped + line.len() as u64, head };
        }
        if line.len() > self.limit {
            return Line::TooLong { bytes: line.len() as u64, head: head_of(line) };
        }
        let length = line.strip_suffix(b"\r").unwrap_or(line).len();
        if length <= READ_BYTES {
            return Line::Whole(line[..length].to_vec());
        }
        // A copy of a long line would take as much memory again.
        let rest = self.buffer.split_off(next);
        let mut line = std::mem::replace(&mut self.buffer, rest);
        (self.start, self.searched) = (0, 0);
        line.truncate(start + length);
        line.drain(..start);
        Line::Whole(line)
    }

    /// Drops the bytes of returned lines, and those of a line that is already too long.
    fn make_room(&mut self) {
        let left = self.buffer.len() - self.start;
        if self.skipped.is_some() || left > self.limit {
            let rest = &self.buffer[self.start..];
            self.skipped.get_or_insert_with(|| (0, head_of(rest))).0 += left as u64;
            self.start = self.buffer.len();
        }
        self.buffer.drain(..self.start);
        if self.buffer.is_empty() {
            // A long line must not occupy its memory forever.
            self.buffer.shrink_to(READ_BYTES);
        }
        self.searched = self.buffer.len();
        self.start = 0;
        self.buffer.reserve(READ_BYTES);
    }
}

fn head_of(line: &[u8]) -> Vec<u8> {
    line[..line.len().min(HEAD_BYTES)].to_vec()
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use proptest::prelude::*;
    use tokio::io::ReadBuf;

    use super::*;

    /// Returns its bytes in chunks of the given sizes.
    struct Pieces {
        bytes: Vec<u8>,
        sizes: Vec<usize>,
        at: usize,
    }

    impl AsyncRead for Pieces {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<std::io::Result<()>> {
            let size = self.sizes.pop().unwrap_or(usize::MAX).min(self.bytes.len() - self.at).min(buffer.remaining());
            buffer.put_slice(&self.bytes[self.at..self.at + size]);
            self.at += size;
            Poll::Ready(Ok(()))
        }
    }

    fn read_all(bytes: &[u8], sizes: Vec<usize>, limit: usize) -> Vec<Line> {
        let mut reader = LineReader::with_limit(Pieces { bytes: bytes.to_vec(), sizes, at: 0 }, limit);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut lines = Vec::new();
            while let Some(line) = reader.next().await.unwrap() {
                lines.push(line);
            }
            lines
        })
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.as_bytes().to_vec())
    }

    #[test]
    fn ends_of_all_kinds() {
        assert_eq!(read_all(b"a\r\n\nb", vec![], 10), [whole("a"), whole(""), whole("b")]);
        assert_eq!(read_all(b"", vec![], 10), []);
        assert_eq!(read_all(b"a\n", vec![], 10), [whole("a")]);
    }

    #[test]
    fn a_long_line_is_skipped_and_the_next_one_read() {
        let bytes = [vec![b'x'; 1000], b"\nok\n".to_vec()].concat();
        let long = |line: Line| match line {
            Line::TooLong { bytes, head } => (bytes, head.iter().all(|byte| *byte == b'x') && !head.is_empty()),
            Line::Whole(_) => (0, false),
        };
        let mut lines = read_all(&bytes, vec![7; 200], 10);
        assert_eq!(lines.pop(), Some(whole("ok")));
        assert_eq!(lines.pop().map(long), Some((1000, true)));
        assert_eq!(read_all(&bytes[..1000], vec![7; 200], 10).pop().map(long), Some((1000, true)));
    }

    #[test]
    fn a_line_that_is_handed_out_with_its_buffer_leaves_the_rest() {
        let long = "x".repeat(3 * READ_BYTES);
        let text = format!("a\n{long}\r\nb\n{long}\n{long}\nc");
        let expected = [whole("a"), whole(&long), whole("b"), whole(&long), whole(&long), whole("c")];
        for sizes in [vec![], vec![1000; 2000], vec![READ_BYTES; 20]] {
            assert_eq!(read_all(text.as_bytes(), sizes, text.len()), expected);
        }
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_lines(
            lines in prop::collection::vec("[ -~]{0,30}", 0..8),
            sizes in prop::collection::vec(1usize..9, 0..60),
        ) {
            let text = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect::<String>();
            let expected: Vec<Line> = lines
                .iter()
                .map(|line| match line.len() {
                    0..=20 => whole(line.strip_suffix('\r').unwrap_or(line)),
                    bytes => Line::TooLong { bytes: bytes as u64, head: Vec::new() },
                })
                .collect();
            let mut read = read_all(text.as_bytes(), sizes, 20);
            for (line, source) in read.iter_mut().zip(&lines) {
                if let Line::TooLong { head, .. } = line {
                    prop_assert!(source.as_bytes().starts_with(head));
                    head.clear();
                }
            }
            prop_assert_eq!(read, expected);
        }
    }
}
