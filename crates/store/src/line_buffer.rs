//! Lines on their way into a file.

use std::io::{self, Write};

use chrono::{SecondsFormat, Utc};
use serde::Serialize;

/// Lines that wait to be written, in the order in which they were appended.
///
/// Invariant: whatever a write does, the bytes that reach the file are a prefix of those that were appended, and no
/// byte is written twice.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer {
    bytes: Vec<u8>,
}

#[derive(Serialize)]
struct TimedLine<'a, P: Serialize + ?Sized> {
    timestamp: String,
    #[serde(rename = "type")]
    kind: &'a str,
    payload: &'a P,
}

/// How much room an empty buffer keeps.
const KEPT_BYTES: usize = 1024;
/// How many bytes are gathered before a line that is not whole goes into the file.
const SPILLED_BYTES: usize = 128 * 1024;

impl LineBuffer {
    /// Adds a line that bears the time of now. Of a line that cannot be encoded nothing is added, or, if much of it is in the
    /// file already, a beginning that readers pass over.
    ///
    /// A long line goes into the file while it is encoded, so that it is not held as a whole. If that fails, it waits like
    /// all others.
    pub(crate) fn append<P: Serialize + ?Sized>(
        &mut self,
        kind: &str,
        payload: &P,
        file: &mut impl Write,
    ) -> serde_json::Result<()> {
        let timestamp = Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true);
        let whole = self.bytes.len();
        let mut spilling = Spilling { buffer: self, file, has_spilled: false, has_failed: false };
        let encoded = serde_json::to_writer(&mut spilling, &TimedLine { timestamp, kind, payload });
        if encoded.is_err() && !spilling.has_spilled {
            self.bytes.truncate(whole);
        } else {
            self.bytes.push(b'\n');
        }
        encoded
    }

    /// Adds a line as it is.
    pub(crate) fn append_text(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(b'\n');
    }

    /// How many bytes wait.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Writes all that waits. What a failure leaves unwritten still waits, so that a later try goes on where this one
    /// stopped, even in the middle of a line.
    pub(crate) fn write_to(&mut self, file: &mut impl Write) -> io::Result<()> {
        let mut done = 0;
        let outcome = loop {
            if done == self.bytes.len() {
                break Ok(());
            }
            match file.write(&self.bytes[done..]) {
                Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => done += written,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        self.bytes.drain(..done);
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT_BYTES {
            // A thread that waits keeps no room for the long lines it has written.
            self.bytes = Vec::new();
        }
        outcome
    }
}

/// Takes the bytes of a line, and passes them on to the file when they are many.
struct Spilling<'a, W> {
    buffer: &'a mut LineBuffer,
    file: &'a mut W,
    has_spilled: bool,
    /// Whether the file takes no more for now.
    has_failed: bool,
}

impl<W: Write> Write for Spilling<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Pieces of an encoded line are small, except for what was encoded before.
        for piece in bytes.chunks(SPILLED_BYTES) {
            self.buffer.bytes.extend_from_slice(piece);
            if self.buffer.len() >= SPILLED_BYTES && !self.has_failed {
                self.has_spilled = true;
                self.has_failed = self.buffer.write_to(self.file).is_err();
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

    use super::*;
    use crate::{Entry, RolloutFile, RolloutLines};

    /// A file of which one write goes wrong: so many bytes of it are written, then it fails.
    struct Faulty {
        file: File,
        /// How many writes still go well.
        good: usize,
        /// How much of the bad one is written, in percent.
        torn: usize,
        /// Whether all later writes fail too, as after a crash.
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

    /// Plays a recorded run, a flush for each line, with one write that goes wrong. Returns how many flushes went well
    /// before any failed.
    fn play(lines: &[String], mut file: Faulty) -> usize {
        let mut buffer = LineBuffer::default();
        let mut kept = None;
        for (number, line) in lines.iter().enumerate() {
            buffer.append_text(line);
            if buffer.write_to(&mut file).is_err() {
                kept.get_or_insert(number);
            }
        }
        kept.unwrap_or(lines.len())
    }

    #[test]
    fn whichever_write_fails_a_crash_leaves_a_prefix_that_goes_on() {
        let lines = recorded();
        let folder = tempfile::tempdir().unwrap();
        for good in 0..lines.len() {
            for torn in [0, 1, 50, 99] {
                let path = folder.path().join(format!("{good}-{torn}"));
                let kept = play(&lines, Faulty { file: File::create(&path).unwrap(), good, torn, dead: true });
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
    fn whichever_write_fails_the_next_one_makes_up_for_it() {
        let lines = recorded();
        let folder = tempfile::tempdir().unwrap();
        for good in 0..lines.len() - 1 {
            for torn in [0, 1, 50, 99] {
                let path = folder.path().join(format!("{good}-{torn}"));
                play(&lines, Faulty { file: File::create(&path).unwrap(), good, torn, dead: false });
                assert_eq!(read(&path), (lines.clone(), 0), "nothing lost, nothing twice");
            }
        }
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
        buffer.append_text("whole");
        assert!(buffer.append("event_msg", &Odd, &mut io::sink()).is_err());
        assert_eq!(buffer.len(), 6);
        let long = "x".repeat(3 * SPILLED_BYTES);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rollout");
        let mut file = File::create(&path).unwrap();
        assert!(buffer.append("event_msg", &(&long, Odd), &mut file).is_err());
        buffer.append_text(r#"{"timestamp":"t","type":"x","payload":1}"#);
        buffer.write_to(&mut file).unwrap();
        let (good, bad) = read(&path);
        assert_eq!((good.len(), bad), (1, 2), "what is not JSON is passed over, and the next line stands alone");
    }

    #[test]
    fn a_long_line_is_not_held_as_a_whole_and_survives_a_full_disk() {
        let long = "x\n".repeat(10 * SPILLED_BYTES);
        let folder = tempfile::tempdir().unwrap();
        for (good, torn) in [(usize::MAX, 100), (0, 0), (3, 50), (5, 99)] {
            let path = folder.path().join(format!("{good}-{torn}"));
            let mut file = Faulty { file: File::create(&path).unwrap(), good, torn, dead: false };
            let mut buffer = LineBuffer::default();
            buffer.append("event_msg", &long, &mut file).unwrap();
            assert!(good < usize::MAX || buffer.bytes.capacity() < 3 * SPILLED_BYTES, "{}", buffer.bytes.capacity());
            buffer.append("event_msg", &"short", &mut file).unwrap();
            buffer.write_to(&mut file).unwrap();
            let (lines, bad) = read(&path);
            assert_eq!((lines.len(), bad), (2, 0));
            let line: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
            assert_eq!(line["payload"], long);
        }
    }
}
