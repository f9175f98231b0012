//! The trait of the single writer of a thread's log.

use std::fmt;
use std::io::{self, Write};
use std::pin::Pin;

use chrono::{DateTime, SecondsFormat};
use codex_wire::conversation_item::ItemOrigin;
use serde::Serialize;

use super::error::StoreError;
use crate::encode::LineSink;

/// Writes the payload of a line.
pub type Payload<'a> = &'a mut dyn FnMut(&mut dyn Write) -> serde_json::Result<()>;

/// A future that owns everything it needs.
pub type Pending<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Appends to the log of a thread. A thread has at most one writer at a time.
///
/// Lines wait until [`LogWriter::commit`]; after a commit has returned they survive the death of this process, and
/// after a durable one that of the machine. After a failed commit none of the waiting lines is in the log: the caller
/// has to append them again.
pub trait LogWriter: fmt::Debug + Send {
    /// Adds a line with its type and the time of its event, in milliseconds of Unix time, to the waiting ones.
    ///
    /// # Errors
    /// When the line cannot be encoded. If a part was already written and that failed, no lines wait any more.
    fn append(&mut self, at_ms: i64, kind: &str, payload: Payload<'_>) -> Result<(), StoreError>;

    /// The length of the log in bytes, including waiting lines.
    fn position(&self) -> u64;

    /// Writes the waiting lines. To survive the death of the machine, a further step may be needed. No other method may
    /// be called before the steps of a commit are complete.
    fn commit(&mut self, durably: bool) -> Commit;

    /// Appends draft lines to the file next to the log, without waiting for them; a store may leave them out.
    fn partial(&mut self, _lines: &[u8]) {}

    /// Removes the drafts next to the log.
    fn clear_partial(&mut self) {}

    /// A warning about the log, such as that another process has written to it. It is returned once.
    fn take_warning(&mut self) -> Option<String> {
        None
    }

    /// Completes with the reason when this process may no longer write the thread, because another one may take it over.
    /// `None` if that cannot happen.
    fn revoked(&self) -> Option<Pending<String>> {
        None
    }

    /// Completes when another process asks for the thread, which this one may give away while it is idle by dropping the
    /// writer. `None` if none can ask.
    fn wanted(&self) -> Option<Pending<()>> {
        None
    }

    /// Whether lines are stored.
    fn is_kept(&self) -> bool {
        true
    }

    /// Removes a thread that has no content.
    fn discard(self: Box<Self>);
}

/// The result of a commit.
pub enum Commit {
    /// It is complete, or it has failed.
    Done(Result<(), StoreError>),
    /// The lines are written, and survive the death of the machine once this function has returned. It blocks.
    Sync(Box<dyn FnOnce() -> Result<(), StoreError> + Send>),
    /// The lines are on their way. Once this future has completed, they survive the death of the machine, or the commit
    /// has failed.
    Later(Pending<Result<(), StoreError>>),
}

impl fmt::Debug for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(result) => f.debug_tuple("Done").field(result).finish(),
            Self::Sync(_) => f.write_str("Sync"),
            Self::Later(_) => f.write_str("Later"),
        }
    }
}

impl LineSink for dyn LogWriter + '_ {
    type Error = StoreError;

    fn line<P: Serialize + ?Sized>(&mut self, at_ms: i64, kind: &str, payload: &P) -> Result<(), StoreError> {
        self.append(at_ms, kind, &mut |out| serde_json::to_writer(out, payload))
    }

    fn line_made_by<P: Serialize + ?Sized>(
        &mut self,
        at_ms: i64,
        kind: &str,
        payload: &P,
        origin: &ItemOrigin,
    ) -> Result<(), StoreError> {
        self.append(at_ms, kind, &mut |out| {
            serde_json::to_writer(&mut *out, payload)?;
            out.write_all(b",\"origin\":").map_err(serde_json::Error::io)?;
            serde_json::to_writer(out, origin)
        })
    }
}

/// The reason why a line was not written.
#[derive(Debug)]
pub enum LineError {
    /// It cannot be encoded.
    Encode(serde_json::Error),
    /// The file is full or cannot be written.
    Write(io::Error),
}

impl From<serde_json::Error> for LineError {
    fn from(error: serde_json::Error) -> Self {
        if error.is_io() { Self::Write(error.into()) } else { Self::Encode(error) }
    }
}

/// Writes a line in the canonical form, with its line end.
///
/// # Errors
/// When the payload cannot be encoded, or the output fails.
pub fn write_line(out: &mut dyn Write, at_ms: i64, kind: &str, payload: Payload<'_>) -> Result<(), LineError> {
    write_numbered_line(out, at_ms, None, kind, payload)
}

/// Writes a line with its ordinal in the file. Files of release 0.166 have ordinals, and that release does not index a
/// line without one.
///
/// # Errors
/// When the payload cannot be encoded, or the output fails.
pub fn write_numbered_line(
    out: &mut dyn Write,
    at_ms: i64,
    ordinal: Option<u64>,
    kind: &str,
    payload: Payload<'_>,
) -> Result<(), LineError> {
    let time = DateTime::from_timestamp_millis(at_ms).unwrap_or_default();
    let time = time.to_rfc3339_opts(SecondsFormat::Millis, true);
    write!(out, "{{\"timestamp\":\"{time}\",").map_err(LineError::Write)?;
    if let Some(ordinal) = ordinal {
        write!(out, "\"ordinal\":{ordinal},").map_err(LineError::Write)?;
    }
    out.write_all(b"\"type\":").map_err(LineError::Write)?;
    serde_json::to_writer(&mut *out, kind)?;
    out.write_all(b",\"payload\":").map_err(LineError::Write)?;
    payload(out)?;
    out.write_all(b"}\n").map_err(LineError::Write)
}

/// The writer of an unsaved thread, which only counts bytes.
#[derive(Debug, Default)]
pub struct UnsavedWriter {
    position: u64,
}

impl LogWriter for UnsavedWriter {
    fn append(&mut self, at_ms: i64, kind: &str, payload: Payload<'_>) -> Result<(), StoreError> {
        let mut counted = Counted { bytes: 0 };
        // A line that cannot be encoded is not needed.
        if write_line(&mut counted, at_ms, kind, payload).is_ok() {
            self.position += counted.bytes;
        }
        Ok(())
    }

    fn position(&self) -> u64 {
        self.position
    }

    fn commit(&mut self, _durably: bool) -> Commit {
        Commit::Done(Ok(()))
    }

    fn is_kept(&self) -> bool {
        false
    }

    fn discard(self: Box<Self>) {}
}

/// Counts bytes.
struct Counted {
    bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_form_that_all_releases_write() {
        let mut line = Vec::new();
        write_line(&mut line, 1_767_323_045_678, "a\"b", &mut |out| serde_json::to_writer(out, &["c"])).unwrap();
        let expected = r#"{"timestamp":"2026-01-02T03:04:05.678Z","type":"a\"b","payload":["c"]}"#;
        assert_eq!(String::from_utf8(line).unwrap(), format!("{expected}\n"));
    }

    #[test]
    fn a_pen_that_keeps_nothing_counts_what_it_would_have_written() {
        let mut writer = UnsavedWriter::default();
        let writer: &mut dyn LogWriter = &mut writer;
        writer.line(1_767_323_045_678, "event_msg", &["c"]).unwrap();
        let line = r#"{"timestamp":"2026-01-02T03:04:05.678Z","type":"event_msg","payload":["c"]}"#;
        assert_eq!(writer.position(), line.len() as u64 + 1);
        assert!(matches!(writer.commit(true), Commit::Done(Ok(()))));
    }
}
