//! Server-sent events with their names, ids and waits: bytes in, split anywhere; whole events out.
//!
//! `codex_model::sse` reads only data, as fast as it can. Streams of MCP servers are resumed by the id of the last event,
//! and the oldest ones tell an address in an event with a name.
//!
//! Invariant: no more than one event and one line are held in memory, and neither is longer than the limit.

use std::time::Duration;

/// A whole event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StreamEvent {
    /// Its kind; empty unless the server names one.
    pub(crate) name: String,
    pub(crate) data: Vec<u8>,
}

/// Reads one stream, or several of which each continues the one before.
#[derive(Debug)]
pub(crate) struct EventReader {
    limit: usize,
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    name: String,
    /// The id of the event that is being read.
    next_id: Option<String>,
    last_id: Option<String>,
    retry: Option<Duration>,
    /// The last line ended in a carriage return, to which a line feed may still belong.
    ends_in_return: bool,
}

impl EventReader {
    /// A reader that refuses events of more than `limit` bytes.
    pub(crate) fn with_limit(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            name: String::new(),
            next_id: None,
            last_id: None,
            retry: None,
            ends_in_return: false,
        }
    }

    /// The id of the last whole event that had one.
    pub(crate) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref().filter(|id| !id.is_empty())
    }

    /// The wait before the stream is asked for again, if the server has said one.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Forgets the unfinished event of a stream that broke off, and keeps the id and the wait.
    pub(crate) fn begin_again(&mut self) {
        self.line.clear();
        self.ends_in_return = false;
        self.forget_event();
    }

    /// Takes bytes, and returns the events that they complete.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<Vec<StreamEvent>, String> {
        let mut events = Vec::new();
        let mut rest = bytes;
        while let Some(first) = rest.first() {
            if std::mem::take(&mut self.ends_in_return) && *first == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.line.extend_from_slice(rest);
                self.check(self.line.len())?;
                break;
            };
            self.ends_in_return = rest[end] == b'\r';
            self.line.extend_from_slice(&rest[..end]);
            self.check(self.line.len() + self.data.len())?;
            let line = std::mem::take(&mut self.line);
            events.extend(self.end_line(line));
            rest = &rest[end + 1..];
        }
        Ok(events)
    }

    fn end_line(&mut self, mut line: Vec<u8>) -> Option<StreamEvent> {
        if line.is_empty() {
            return self.end_event();
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (&*line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" if self.has_data => {
                self.data.push(b'\n');
                self.data.extend_from_slice(value);
            }
            // The only data line of most events, which may be large, is not copied.
            b"data" => {
                let name = line.len() - value.len();
                line.drain(..name);
                (self.data, self.has_data) = (line, true);
            }
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            b"id" if !value.contains(&0) => self.next_id = Some(String::from_utf8_lossy(value).into_owned()),
            b"retry" => {
                let millis = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                self.retry = millis.map(Duration::from_millis).or(self.retry);
            }
            // Comments, and fields of other kinds.
            _ => {}
        }
        None
    }

    fn end_event(&mut self) -> Option<StreamEvent> {
        if self.next_id.is_some() {
            self.last_id = self.next_id.take();
        }
        let event = self
            .has_data
            .then(|| StreamEvent { name: std::mem::take(&mut self.name), data: std::mem::take(&mut self.data) });
        self.forget_event();
        event
    }

    fn forget_event(&mut self) {
        self.data.clear();
        self.has_data = false;
        self.name.clear();
        self.next_id = None;
    }

    fn check(&self, bytes: usize) -> Result<(), String> {
        if bytes <= self.limit {
            return Ok(());
        }
        Err(format!("an event of the stream has more than {} bytes", self.limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, data: &str) -> StreamEvent {
        StreamEvent { name: name.to_owned(), data: data.as_bytes().to_vec() }
    }

    #[test]
    fn events_come_out_whole_however_the_bytes_are_split() {
        let stream = ": hello\r\nevent: endpoint\r\ndata: /post\r\n\r\nid: 7\nretry: 250\ndata: a\ndata: b\n\nid: 8\ndata:\n\ndata: cut";
        for size in 1..stream.len() {
            let mut reader = EventReader::with_limit(100);
            let chunks = stream.as_bytes().chunks(size);
            let events: Vec<_> = chunks.flat_map(|chunk| reader.take(chunk).unwrap()).collect();
            assert_eq!(events, [event("endpoint", "/post"), event("", "a\nb"), event("", "")], "{size}");
            assert_eq!((reader.last_id(), reader.retry()), (Some("8"), Some(Duration::from_millis(250))));
        }
    }

    #[test]
    fn an_id_counts_once_its_event_is_whole() {
        let mut reader = EventReader::with_limit(100);
        reader.take(b"id: 1\ndata: a\n\nid: 2\ndata: b\n").unwrap();
        reader.begin_again();
        assert_eq!(reader.last_id(), Some("1"));
        assert_eq!(reader.take(b"data: c\n\n").unwrap(), [event("", "c")]);
        reader.take(b"id\ndata: d\n\nid: x\0y\n\n").unwrap();
        assert_eq!(reader.last_id(), None, "an empty id is none, and one with a zero is ignored");
    }

    #[test]
    fn an_event_has_a_longest_length() {
        assert!(EventReader::with_limit(10).take(b"data: 0123456789").is_err());
        assert!(EventReader::with_limit(10).take(b"data: 0\ndata: 1\ndata: 2\ndata: 3\ndata: 4\n").is_err());
    }
}
