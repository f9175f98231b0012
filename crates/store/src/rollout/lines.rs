//! Reads the lines of a rollout from the first to the last, as a stream.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use codex_log::line::{BadLine, Fault, Line};
use codex_log::store::{Entry, LineSource, StoreError};

use crate::partial_file::Tail;

/// The maximum length of a line. A longer one would let a broken file use up all memory.
pub(crate) const LONGEST_LINE: usize = 64 << 20;

/// The size of the read buffer.
const READ_BYTES: usize = 256 << 10;

/// The size of the read buffer if only the start is needed.
const HEAD_READ_BYTES: usize = 16 << 10;

/// The buffer is freed after a line longer than this.
const KEPT_BYTES: usize = 1 << 20;

/// The reason why a rollout could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("could not open the rollout {path}", path = .path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error("could not read the rollout {path}", path = .path.display())]
    Read { path: PathBuf, source: io::Error },
    /// The file does not start like a rollout.
    #[error("{path} does not name its thread", path = .path.display())]
    NoMeta { path: PathBuf },
}

/// The lines of a rollout from the first to the last. One line is in memory at a time.
#[derive(Debug)]
pub struct RolloutLines {
    path: PathBuf,
    reader: BufReader<File>,
    buffer: Vec<u8>,
    /// The number of the last line.
    number: u64,
    /// The start of the next line.
    offset: u64,
    /// The lines after the end of the file.
    tail: Option<Tail>,
    /// The number of those that were read.
    tail_read: usize,
}

/// Opens a rollout for reading.
pub(super) fn open(path: &Path) -> Result<File, ReadError> {
    codex_files::open(path).map_err(|error| ReadError::Open { path: path.to_owned(), source: error.into() })
}

impl RolloutLines {
    /// Opens a rollout at its start. If its program has died in the middle of an answer, the partial answer comes after
    /// the last line of the file.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let file = open(path)?;
        Ok(Self { tail: Tail::of(path), ..Self::of(path, file, 0, READ_BYTES) })
    }

    /// Opens a rollout of which only the start will be read.
    pub(crate) fn open_head(path: &Path) -> Result<Self, ReadError> {
        let file = open(path)?;
        Ok(Self::of(path, file, 0, HEAD_READ_BYTES))
    }

    /// Opens a rollout at the start of a line. Lines are numbered from there.
    pub(crate) fn open_at(path: &Path, offset: u64) -> Result<Self, ReadError> {
        let file = open(path)?;
        Self::from_offset(path, file, offset)
    }

    /// Reads an open file from its current position.
    fn of(path: &Path, file: File, offset: u64, at_once: usize) -> Self {
        let reader = BufReader::with_capacity(at_once, file);
        Self { path: path.to_owned(), reader, buffer: Vec::new(), number: 0, offset, tail: None, tail_read: 0 }
    }

    /// Reads an open file from the start of a line on. Lines are numbered from there.
    pub(crate) fn from_offset(path: &Path, mut file: File, offset: u64) -> Result<Self, ReadError> {
        let sought = file.seek(SeekFrom::Start(offset));
        sought.map_err(|source| ReadError::Read { path: path.to_owned(), source })?;
        Ok(Self::of(path, file, offset, READ_BYTES))
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The start of the next line.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Starts over, with the same end.
    pub(crate) fn rewind(&mut self) -> Result<(), ReadError> {
        (self.number, self.offset, self.tail_read) = (0, 0, 0);
        let sought = self.reader.rewind();
        sought.map_err(|source| ReadError::Read { path: self.path.clone(), source })
    }

    /// The next line; `None` at the end. Empty lines are skipped silently.
    pub fn next_entry(&mut self) -> Result<Option<Entry<'_>>, ReadError> {
        match &self.tail {
            Some(tail) if self.offset >= tail.end => Ok(self.next_of_tail()),
            Some(_) | None => self.next_of_file(),
        }
    }

    /// The next line after the end of the file.
    fn next_of_tail(&mut self) -> Option<Entry<'_>> {
        let text = self.tail.as_ref()?.lines.get(self.tail_read)?;
        self.tail_read += 1;
        self.number += 1;
        let (number, range) = (self.number, self.offset..self.offset);
        Line::parse(text).ok().map(|line| Entry::Line(Line { number, range, ..line }))
    }

    fn next_of_file(&mut self) -> Result<Option<Entry<'_>>, ReadError> {
        let (start, fault) = loop {
            let start = self.offset;
            let Some(whole) = self.fill().map_err(|source| ReadError::Read { path: self.path.clone(), source })? else {
                return Ok(None);
            };
            self.number += 1;
            match whole {
                LineFill::TooLong => break (start, Some(Fault::TooLong)),
                LineFill::Ended if self.buffer.is_empty() => {}
                LineFill::Ended => break (start, None),
                LineFill::Unended => break (start, (!is_line(&self.buffer)).then_some(Fault::Torn)),
            }
        };
        let text = if fault.is_none() { std::str::from_utf8(&self.buffer).ok() } else { None };
        let parsed = text.and_then(|text| Line::parse(text).ok());
        let bad = |fault| Entry::Bad(BadLine::new(&self.path, self.number, start, fault));
        let range = start..self.offset;
        let entry = parsed.map(|line| Entry::Line(Line { number: self.number, range, ..line }));
        Ok(Some(entry.unwrap_or_else(|| bad(fault.unwrap_or(Fault::NotALine)))))
    }

    /// Reads up to the next line break into the buffer.
    fn fill(&mut self) -> io::Result<Option<LineFill>> {
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BYTES);
        let limit = LONGEST_LINE as u64 + 1;
        let mut read = self.reader.by_ref().take(limit).read_until(b'\n', &mut self.buffer)? as u64;
        let whole = match self.buffer.last() {
            None => return Ok(None),
            Some(b'\n') => {
                self.buffer.pop();
                if self.buffer.last() == Some(&b'\r') {
                    self.buffer.pop();
                }
                LineFill::Ended
            }
            Some(_) if read == limit => {
                read += self.reader.skip_until(b'\n')? as u64;
                LineFill::TooLong
            }
            Some(_) => LineFill::Unended,
        };
        self.offset += read;
        Ok(Some(whole))
    }
}

impl LineSource for RolloutLines {
    fn next_entry(&mut self) -> Result<Option<Entry<'_>>, StoreError> {
        Ok(self.next_entry()?)
    }
}

enum LineFill {
    Ended,
    Unended,
    TooLong,
}

/// Whether a line ends at a position, or the file starts there.
pub(crate) fn ends_line(path: &Path, position: u64) -> bool {
    let Some(before) = position.checked_sub(1) else { return true };
    let ends = || -> io::Result<bool> {
        let mut file: File = codex_files::open(path)?;
        let mut last = [0];
        file.seek(SeekFrom::Start(before))?;
        file.read_exact(&mut last)?;
        Ok(last == *b"\n")
    };
    ends().unwrap_or(false)
}

/// Whether some bytes are a whole line, possibly without its line break.
pub(crate) fn is_line(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| Line::parse(text).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(text: &[u8]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.jsonl");
        std::fs::write(&path, text).unwrap();
        let mut lines = RolloutLines::open(&path).unwrap();
        let mut seen = Vec::new();
        while let Some(entry) = lines.next_entry().unwrap() {
            seen.push(match entry {
                Entry::Line(line) => format!("{} {:?} {}", line.number, line.range, line.kind),
                Entry::Bad(bad) => format!("{} {} {:?}", bad.number, bad.start, bad.fault),
            });
        }
        assert_eq!(lines.offset(), text.len() as u64);
        seen
    }

    #[test]
    fn lines_have_numbers_and_places_and_bad_ones_do_not_stop_the_rest() {
        let a = r#"{"timestamp":"t","type":"a","payload":{}}"#;
        let seen = entries(format!("{a}\nnonsense\n\n{a}\r\n{a}").as_bytes());
        assert_eq!(seen, ["1 0..42 a", "2 42 NotALine", "4 52..95 a", "5 95..136 a"]);
    }

    #[test]
    fn a_torn_line_is_distinguished_from_a_complete_one_without_a_newline() {
        assert_eq!(entries(br#"{"timestamp":"t","type":"a","payl"#), ["1 0 Torn"]);
        assert_eq!(entries(br#"{"timestamp":"t","type":"a"}"#), ["1 0..28 a"]);
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over() {
        let mut text = vec![b'x'; LONGEST_LINE + 10];
        text.extend_from_slice(b"\n{\"type\":\"a\"}\n");
        assert_eq!(entries(&text), ["1 0 TooLong", &format!("2 {}..{} a", LONGEST_LINE + 11, LONGEST_LINE + 24)]);
    }

    #[test]
    fn bytes_that_are_no_text_are_a_bad_line() {
        assert_eq!(entries(b"{\"type\":\"\xff\"}\n"), ["1 0 NotALine"]);
    }

    #[test]
    fn a_rollout_that_never_ends_is_not_opened() {
        use codex_files::testing::{Endless, soon};

        for kind in Endless::ALL {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("rollout.jsonl");
            kind.make(&path).unwrap();
            let error = soon(move || RolloutLines::open(&path)).unwrap().unwrap_err();
            assert!(
                matches!(&error, ReadError::Open { source, .. } if source.to_string() == kind.complaint(None)),
                "{error:?}"
            );
        }
    }
}
