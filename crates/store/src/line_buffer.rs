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

impl LineBuffer {
    /// Adds a line that bears the time of now. Nothing is added if it cannot be encoded.
    pub(crate) fn append<P: Serialize + ?Sized>(&mut self, kind: &str, payload: &P) -> serde_json::Result<()> {
        let timestamp = Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true);
        let whole = self.bytes.len();
        let line = TimedLine { timestamp, kind, payload };
        if let Err(error) = serde_json::to_writer(&mut self.bytes, &line) {
            self.bytes.truncate(whole);
            return Err(error);
        }
        self.bytes.push(b'\n');
        Ok(())
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
        assert!(buffer.append("event_msg", &Odd).is_err());
        assert_eq!(buffer.len(), 6);
    }
}
