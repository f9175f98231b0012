//! A buffer of lines for a file.

use std::io::{self, Write};

use codex_log::line::Head;
use codex_log::store::{LineError, Payload, write_numbered_line};

/// The file that lines are appended to, and can be truncated.
pub(crate) trait Target: Write {
    /// Ensures that the file ends with a whole line, and returns its length. It should be `expected`, unless somebody
    /// else has written too.
    fn end(&mut self, expected: u64) -> io::Result<u64>;

    /// Truncates the file to `end`.
    fn cut(&mut self, end: u64) -> io::Result<()>;
}

/// Lines waiting to be written, in the order in which they were appended.
///
/// Invariant: after [`LineBuffer::write_to`] either all lines appended since the last time are in the file, or none of
/// them is. A target that cannot even be truncated keeps a part of them until the next write, which removes it first.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer {
    bytes: Vec<u8>,
    /// The length of the file, without pending bytes.
    end: u64,
    /// The number of bytes already written past the end, because a line was too long to buffer.
    spilled: u64,
    /// Whether there are bytes past the end that could not be truncated.
    is_torn: bool,
    /// The number of the next line, if the last one has a number, and the number at the end of the file.
    ordinal: Option<u64>,
    ordinal_at_end: Option<u64>,
}

/// The capacity that an empty buffer keeps.
const KEPT_BYTES: usize = 1024;
/// The number of bytes that are buffered before an incomplete line is written.
const SPILLED_BYTES: usize = 128 * 1024;

impl LineBuffer {
    /// An empty buffer for a file of the given length, whose last line has this number. The numbers are continued.
    pub(crate) fn at(end: u64, last_ordinal: Option<u64>) -> Self {
        let ordinal = last_ordinal.map(|last| last + 1);
        Self { end, ordinal, ordinal_at_end: ordinal, ..Self::default() }
    }

    /// Adds a line with a timestamp, in milliseconds of Unix time. If a line cannot be encoded, nothing is added, or,
    /// if much of it is already in the file, a part that readers skip.
    ///
    /// A long line is written while it is encoded, so that it is never buffered as a whole. If that fails, everything
    /// pending is dropped, as after a failed [`LineBuffer::write_to`], and the error is an I/O error.
    pub(crate) fn append(
        &mut self,
        at_ms: i64,
        kind: &str,
        payload: Payload<'_>,
        file: &mut impl Target,
    ) -> Result<(), LineError> {
        let whole = self.bytes.len();
        let ordinal = self.ordinal;
        let mut spilling = Spilling { buffer: self, file, has_spilled: false };
        let encoded = write_numbered_line(&mut spilling, at_ms, ordinal, kind, payload);
        let has_spilled = spilling.has_spilled;
        match &encoded {
            Ok(()) => self.ordinal = ordinal.map(|ordinal| ordinal + 1),
            Err(LineError::Write(_)) => self.give_up(file),
            Err(LineError::Encode(_)) if has_spilled => self.bytes.push(b'\n'),
            Err(LineError::Encode(_)) => self.bytes.truncate(whole),
        }
        encoded
    }

    /// Adds an encoded line.
    pub(crate) fn append_text(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(b'\n');
        self.ordinal = Head::of(text.as_bytes()).and_then(|head| head.ordinal).map(|ordinal| ordinal + 1);
    }

    /// Lengthens the last pending line by spaces, which readers ignore.
    pub(crate) fn pad(&mut self, spaces: usize) {
        if self.bytes.pop_if(|last| *last == b'\n').is_some() {
            self.bytes.resize(self.bytes.len() + spaces, b' ');
            self.bytes.push(b'\n');
        }
    }

    /// The length of the file, including pending bytes.
    pub(crate) fn position(&self) -> u64 {
        self.end + self.spilled + self.bytes.len() as u64
    }

    /// The number of pending bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Writes everything pending. After a failure nothing is pending any more, and the file ends where it did before:
    /// the caller appends the lines again if it wants them.
    pub(crate) fn write_to(&mut self, file: &mut impl Target) -> io::Result<()> {
        if self.bytes.is_empty() && self.spilled == 0 {
            return Ok(());
        }
        let written = self.spill(file);
        match written {
            Ok(()) => {
                self.end += std::mem::take(&mut self.spilled);
                self.ordinal_at_end = self.ordinal;
            }
            Err(_) => self.give_up(file),
        }
        written
    }

    /// Writes pending bytes, which need not be whole lines.
    fn spill(&mut self, file: &mut impl Target) -> io::Result<()> {
        if self.spilled == 0 {
            if self.is_torn {
                file.cut(self.end)?;
                self.is_torn = false;
            }
            self.end = file.end(self.end)?;
        }
        let mut done = 0;
        while done < self.bytes.len() {
            match file.write(&self.bytes[done..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    done += written;
                    self.spilled += written as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.clear();
        Ok(())
    }

    /// Drops pending bytes, and removes what was already written of them.
    fn give_up(&mut self, file: &mut impl Target) {
        if std::mem::take(&mut self.spilled) > 0 {
            self.is_torn = file.cut(self.end).is_err();
        }
        self.ordinal = self.ordinal_at_end;
        self.clear();
    }

    fn clear(&mut self) {
        self.bytes.clear();
        if self.bytes.capacity() > KEPT_BYTES {
            // An idle thread keeps no capacity for the long lines it has written.
            self.bytes = Vec::new();
        }
    }
}

/// Collects the bytes of a line, and writes them to the file when they are many.
struct Spilling<'a, W> {
    buffer: &'a mut LineBuffer,
    file: &'a mut W,
    has_spilled: bool,
}

impl<W: Target> Write for Spilling<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Pieces of an encoded line are small, except for parts that were encoded before.
        for piece in bytes.chunks(SPILLED_BYTES) {
            self.buffer.bytes.extend_from_slice(piece);
            if self.buffer.len() >= SPILLED_BYTES {
                self.has_spilled = true;
                self.buffer.spill(self.file)?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;

    use serde::Serialize;

    use super::*;

    fn append<P: Serialize + ?Sized>(buffer: &mut LineBuffer, payload: &P, file: &mut Faulty) -> Result<(), LineError> {
        buffer.append(0, "event_msg", &mut |out| serde_json::to_writer(out, payload), file)
    }
    use codex_log::store::Entry;

    use crate::{RolloutFile, RolloutLines};

    /// A file with one faulty write: some of its bytes are written, then it fails.
    struct Faulty {
        file: File,
        /// The number of writes that still succeed.
        good: usize,
        /// The part of the faulty write that is written, in percent.
        torn: usize,
        /// Whether everything later fails too, as after a crash.
        dead: bool,
    }

    impl Write for Faulty {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.good > 0 {
                self.good -= 1;
                return self.file.write(bytes);
            }
            let part = bytes.len() * self.torn / 100;
            if part > 0 && self.torn < 100 {
                // A short write is no error; the one after it is.
                self.file.write_all(&bytes[..part])?;
                self.torn = 0;
                return Ok(part);
            }
            if !self.dead {
                self.good = usize::MAX;
            }
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Target for Faulty {
        fn end(&mut self, expected: u64) -> io::Result<u64> {
            let end = self.file.metadata()?.len();
            assert!(self.is_dead() || end == expected, "{end} bytes instead of {expected}");
            Ok(end)
        }

        fn cut(&mut self, end: u64) -> io::Result<()> {
            if self.is_dead() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.file.set_len(end)
        }
    }

    impl Faulty {
        fn at(path: &Path, good: usize, torn: usize, dead: bool) -> Self {
            let file = File::options().append(true).create_new(true).open(path).unwrap();
            Self { file, good, torn, dead }
        }

        fn is_dead(&self) -> bool {
            self.dead && self.good == 0
        }
    }

    fn recorded() -> Vec<String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/samples/rollout-0.77.jsonl");
        std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
    }

    fn read(path: &Path) -> (Vec<String>, usize) {
        let mut lines = RolloutLines::open(path).unwrap();
        let (mut good, mut bad) = (Vec::new(), 0);
        while let Some(entry) = lines.next_entry().unwrap() {
            match entry {
                Entry::Line(line) => good.push(line.text.to_owned()),
                Entry::Bad(_) => bad += 1,
            }
        }
        (good, bad)
    }

    /// Plays a recorded run, one write per line, with a faulty one; unwritten lines are appended again before the next
    /// one. Returns the number of successful writes before the first failure.
    fn play(lines: &[String], path: &Path, mut file: Faulty) -> usize {
        let mut buffer = LineBuffer::default();
        let mut unsaved = Vec::new();
        let mut kept = None;
        for (number, line) in lines.iter().enumerate() {
            unsaved.push(line);
            for line in &unsaved {
                buffer.append_text(line);
            }
            if buffer.write_to(&mut file).is_ok() {
                unsaved.clear();
            } else {
                kept.get_or_insert(number);
                assert_eq!(buffer.len(), 0);
                if !file.dead {
                    assert_eq!(read(path), (lines[..number].to_vec(), 0), "nothing is left of the line that failed");
                }
            }
        }
        kept.unwrap_or(lines.len())
    }

    #[test]
    fn whichever_write_fails_a_crash_leaves_a_prefix_that_continues() {
        let lines = recorded();
        let folder = tempfile::tempdir().unwrap();
        for good in 0..lines.len() {
            for torn in [0, 1, 50, 99] {
                let path = folder.path().join(format!("{good}-{torn}"));
                let kept = play(&lines, &path, Faulty::at(&path, good, torn, true));
                assert_eq!(kept, good);
                let (left, bad) = read(&path);
                assert_eq!(left, lines[..good], "what was flushed is there, and no more");
                assert!(bad <= 1);
                let mut file = RolloutFile::reopen(path.clone()).unwrap();
                lines[good..].iter().for_each(|line| file.append_text(line));
                file.flush().unwrap();
                assert_eq!(read(&path), (lines.clone(), 0));
            }
        }
    }

    #[test]
    fn whichever_write_fails_nothing_of_it_stays_and_the_next_one_makes_up_for_it() {
        let lines = recorded();
        let folder = tempfile::tempdir().unwrap();
        for good in 0..lines.len() - 1 {
            for torn in [0, 1, 50, 99] {
                let path = folder.path().join(format!("{good}-{torn}"));
                play(&lines, &path, Faulty::at(&path, good, torn, false));
                assert_eq!(read(&path), (lines.clone(), 0), "nothing lost, nothing twice");
            }
        }
    }

    #[test]
    fn a_torn_line_that_could_not_be_removed_is_removed_before_the_next_line() {
        let lines = recorded();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rollout");
        let mut file = Faulty::at(&path, 1, 50, true);
        let mut buffer = LineBuffer::default();
        for line in &lines[..2] {
            buffer.append_text(line);
            drop(buffer.write_to(&mut file));
        }
        assert_eq!(read(&path).1, 1, "a torn line is there");
        file.dead = false;
        file.good = usize::MAX;
        lines[1..].iter().for_each(|line| buffer.append_text(line));
        buffer.write_to(&mut file).unwrap();
        assert_eq!(read(&path), (lines, 0));
    }

    #[test]
    fn a_line_that_cannot_be_encoded_leaves_no_trace() {
        struct Odd;
        impl Serialize for Odd {
            fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                Err(serde::ser::Error::custom("odd"))
            }
        }
        let mut buffer = LineBuffer::default();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rollout");
        let mut file = Faulty::at(&path, usize::MAX, 0, false);
        buffer.append_text("whole");
        assert!(append(&mut buffer, &Odd, &mut file).is_err());
        assert_eq!(buffer.len(), 6);
        let long = "x".repeat(3 * SPILLED_BYTES);
        assert!(append(&mut buffer, &(&long, Odd), &mut file).is_err());
        buffer.append_text(r#"{"timestamp":"t","type":"x","payload":1}"#);
        buffer.write_to(&mut file).unwrap();
        let (good, bad) = read(&path);
        assert_eq!((good.len(), bad), (1, 2), "what is not JSON is passed over, and the next line stands alone");
    }

    #[test]
    fn a_long_line_is_written_in_chunks_and_removed_when_the_disk_is_full() {
        let long = "x\n".repeat(10 * SPILLED_BYTES);
        let folder = tempfile::tempdir().unwrap();
        for (good, torn) in [(usize::MAX, 100), (0, 0), (3, 50), (5, 99)] {
            let path = folder.path().join(format!("{good}-{torn}"));
            let mut file = Faulty::at(&path, good, torn, false);
            let mut buffer = LineBuffer::default();
            let appended = append(&mut buffer, &long, &mut file);
            assert!(buffer.bytes.capacity() < 3 * SPILLED_BYTES, "{}", buffer.bytes.capacity());
            if good < usize::MAX {
                assert!(matches!(appended, Err(LineError::Write(_))));
                assert_eq!(std::fs::read(&path).unwrap(), b"");
                append(&mut buffer, &long, &mut file).unwrap();
            }
            append(&mut buffer, "short", &mut file).unwrap();
            buffer.write_to(&mut file).unwrap();
            let (lines, bad) = read(&path);
            assert_eq!((lines.len(), bad), (2, 0));
            let line: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
            assert_eq!(line["payload"], long);
        }
    }

    #[test]
    fn a_write_that_fails_uses_up_no_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let mut file = Faulty::at(&path, 0, 50, false);
        let mut buffer = LineBuffer::at(0, Some(4));
        append(&mut buffer, "lost", &mut file).unwrap();
        buffer.write_to(&mut file).unwrap_err();
        append(&mut buffer, "kept", &mut file).unwrap();
        buffer.write_to(&mut file).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("\"ordinal\":5,") && text.contains("kept") && !text.contains("lost"), "{text}");
    }
}
