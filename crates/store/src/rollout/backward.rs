//! Reads the lines of a rollout from the last to the first, so that the latest ones are found without reading the rest.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use codex_log::line::{HEAD_BYTES, Head};

/// The size of the read buffer.
const BLOCK_BYTES: usize = 1 << 20;

/// The position of a line, and its start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span<'a> {
    pub(crate) start: u64,
    /// Its end, without the line break.
    pub(crate) end: u64,
    /// Its first bytes, at most [`HEAD_BYTES`].
    pub(crate) head: &'a [u8],
}

/// The lines that end before a position, the last first.
pub(crate) struct BackwardLines<'a> {
    file: &'a File,
    /// A block of the file, followed by the first bytes of the next block.
    buffer: Vec<u8>,
    /// The offset of the block.
    base: u64,
    /// The length of the block within the buffer.
    block: usize,
    /// The end of the next line; `None` when the start was reached.
    end: Option<u64>,
}

impl<'a> BackwardLines<'a> {
    /// Starts at a position right after a line, or at the end of the file.
    pub(crate) fn before(file: &'a File, place: u64) -> io::Result<Self> {
        let mut lines = Self { file, buffer: Vec::new(), base: place, block: 0, end: None };
        if place > 0 {
            lines.load()?;
            let ended = lines.buffer.get(lines.block - 1) == Some(&b'\n');
            lines.end = Some(place - u64::from(ended));
        }
        Ok(lines)
    }

    /// The line before the one returned last.
    pub(crate) fn next_span(&mut self) -> io::Result<Option<Span<'_>>> {
        let Some(end) = self.end else { return Ok(None) };
        let start = loop {
            let upto = usize::try_from(end.saturating_sub(self.base)).unwrap_or(usize::MAX).min(self.block);
            match memchr::memrchr(b'\n', &self.buffer[..upto]) {
                Some(at) => break self.base + at as u64 + 1,
                None if self.base == 0 => break 0,
                None => self.load()?,
            }
        };
        self.end = start.checked_sub(1);
        let from = usize::try_from(start - self.base).unwrap_or(usize::MAX);
        let length = usize::try_from(end - start).unwrap_or(usize::MAX).min(HEAD_BYTES);
        let upto = from.saturating_add(length).min(self.buffer.len());
        Ok(Some(Span { start, end, head: self.buffer.get(from..upto).unwrap_or_default() }))
    }

    /// Reads the block before the current one.
    fn load(&mut self) -> io::Result<()> {
        let size = usize::try_from(self.base).unwrap_or(usize::MAX).min(BLOCK_BYTES);
        let kept = self.buffer.len().min(HEAD_BYTES);
        self.buffer.resize(self.buffer.len().max(size + kept), 0);
        self.buffer.copy_within(..kept, size);
        self.buffer.truncate(size + kept);
        self.base -= size as u64;
        self.block = size;
        self.file.read_exact_at(&mut self.buffer[..size], self.base)
    }
}

/// The last line of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastLine {
    pub(crate) start: u64,
    /// Whether a line break ends it.
    pub(crate) is_ended: bool,
    /// Its number, which release 0.166 writes.
    pub(crate) ordinal: Option<u64>,
}

/// The last line before `length`; `None` if there is none.
pub(crate) fn last_line(file: &File, length: u64) -> io::Result<Option<LastLine>> {
    codex_files::check_whole(file)?;
    let mut lines = BackwardLines::before(file, length)?;
    Ok(lines.next_span()?.map(|span| LastLine {
        start: span.start,
        is_ended: span.end != length,
        ordinal: Head::of(span.head).and_then(|head| head.ordinal),
    }))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn spans(text: &str) -> Vec<(u64, u64, String)> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let mut lines = BackwardLines::before(&file, text.len() as u64).unwrap();
        let mut seen = Vec::new();
        while let Some(span) = lines.next_span().unwrap() {
            seen.push((span.start, span.end, String::from_utf8_lossy(span.head).into_owned()));
        }
        seen
    }

    #[test]
    fn all_lines_come_in_reverse() {
        assert_eq!(spans(""), []);
        assert_eq!(spans("ab\nc\n"), [(3, 4, "c".to_owned()), (0, 2, "ab".to_owned())]);
        assert_eq!(spans("ab\nc"), [(3, 4, "c".to_owned()), (0, 2, "ab".to_owned())]);
        assert_eq!(spans("\n\n"), [(1, 1, String::new()), (0, 0, String::new())]);
    }

    #[test]
    fn lines_may_cross_blocks_anywhere() {
        for extra in [0, 1, 2, 100, HEAD_BYTES - 1, HEAD_BYTES, HEAD_BYTES + 1] {
            let long = format!("L{}", "x".repeat(2 * BLOCK_BYTES));
            let last = format!("Z{}", "y".repeat(BLOCK_BYTES - extra));
            let text = format!("first\n{long}\n{last}\n");
            let seen = spans(&text);
            let heads: Vec<&str> = seen.iter().map(|(_, _, head)| &head[..1]).collect();
            assert_eq!(heads, ["Z", "L", "f"], "{extra}");
            for (start, end, head) in seen {
                let line = &text[usize::try_from(start).unwrap()..usize::try_from(end).unwrap()];
                assert_eq!(head, &line[..line.len().min(HEAD_BYTES)], "{extra}");
            }
        }
    }
}
