//! Converts between lines and frames.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};

/// The buffer size between frames and lines, in each direction.
pub(crate) const PIPE_BYTES: usize = 64 * 1024;

/// The time for which the other side may read nothing while messages are waiting.
pub(crate) const STALL: Duration = Duration::from_secs(300);

/// The maximum size of a message, if messages have an explicit length.
pub(crate) const MESSAGE_BYTES: usize = 32 * 1024 * 1024;

/// Writes a message as a line. Line breaks within it can only be white space between its parts, because JSON strings
/// contain none.
pub(crate) async fn write_line<W: AsyncWrite + Unpin>(output: &mut W, message: &[u8]) -> io::Result<()> {
    if message.len() > PIPE_BYTES && !message.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        // A copy would take as much memory again.
        output.write_all(message).await?;
        return output.write_all(b"\n").await;
    }
    let mut line = Vec::with_capacity(message.len() + 1);
    line.extend(message.iter().map(|byte| if *byte == b'\n' || *byte == b'\r' { b' ' } else { *byte }));
    line.push(b'\n');
    output.write_all(&line).await
}

/// Reads messages, one per line.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    input: BufReader<R>,
    limit: usize,
    /// The start of an incomplete line.
    begun: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Reads lines of up to `limit` bytes.
    pub(crate) fn new(input: R, limit: usize) -> Self {
        Self { input: BufReader::with_capacity(PIPE_BYTES, input), limit, begun: Vec::new() }
    }

    /// The next non-empty line without its end; `None` at the end of the input. Cancel safe.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let room = self.limit.saturating_add(1).saturating_sub(self.begun.len());
            let read = (&mut self.input).take(room as u64).read_until(b'\n', &mut self.begun).await?;
            if read == 0 && self.begun.is_empty() {
                return Ok(None);
            }
            let has_end = self.begun.pop_if(|last| *last == b'\n').is_some();
            if !has_end && self.begun.len() > self.limit {
                let text = format!("a line of more than {} bytes", self.limit);
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            let line = std::mem::take(&mut self.begun);
            if !line.trim_ascii().is_empty() {
                return Ok(Some(line));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_message_of_several_lines_becomes_one() {
        let mut line = Vec::new();
        write_line(&mut line, b"{\n  \"a\": 1\r\n}").await.unwrap();
        assert_eq!(line, b"{   \"a\": 1  }\n");
    }

    #[tokio::test]
    async fn lines_are_bounded_and_empty_ones_passed_over() {
        let mut lines = Lines::new(&b"\n12345\n \r\nlast"[..], 5);
        assert_eq!(lines.next().await.unwrap().as_deref(), Some(&b"12345"[..]));
        assert_eq!(lines.next().await.unwrap().as_deref(), Some(&b"last"[..]));
        assert_eq!(lines.next().await.unwrap(), None);
        assert!(Lines::new(&b"123456\n"[..], 5).next().await.is_err());
    }
}
