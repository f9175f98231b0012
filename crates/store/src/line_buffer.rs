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
        outcome
    }
}
