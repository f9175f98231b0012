//! The minimal HTTP/1.1 of the fake model.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// A connection to a client.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    /// Bytes that were read and not used yet.
    buffer: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct RawRequest {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    /// The stream itself, for another protocol.
    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// Reads one request; the error `UnexpectedEof` means that the client has disconnected.
    pub(crate) async fn read_request(&mut self) -> io::Result<RawRequest> {
        let head_end = loop {
            if let Some(end) = self.buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end;
            }
            self.read_more().await?;
        };
        let head = self.buffer.drain(..head_end + 4).collect::<Vec<_>>();
        let head = String::from_utf8_lossy(&head).into_owned();
        let mut lines = head.lines();
        let mut words = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let headers = lines.filter_map(|line| line.split_once(':'));
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()));
        let headers = headers.collect::<Vec<_>>();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length = length.and_then(|(_, value)| value.parse::<usize>().ok()).unwrap_or(0);
        while self.buffer.len() < length {
            self.read_more().await?;
        }
        let body = self.buffer.drain(..length).collect();
        Ok(RawRequest { method, target, headers, body })
    }

    async fn read_more(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Sends nothing for a while, or forever without a span, but notices when the client disconnects.
    pub(crate) async fn keep_silent(&mut self, span: Option<Duration>) -> io::Result<()> {
        let over = async {
            match span {
                Some(span) => tokio::time::sleep(span).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(over);
        loop {
            tokio::select! {
                () = &mut over => return Ok(()),
                read = self.read_more() => read?,
            }
        }
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Writes the status line and the headers of a response.
    pub(crate) async fn write_head(&mut self, status: u16, headers: &[(String, String)]) -> io::Result<()> {
        let headers = headers.iter().map(|(name, value)| [name, ": ", value, "\r\n"].concat()).collect::<String>();
        self.write(format!("HTTP/1.1 {status} Fake\r\n{headers}\r\n").as_bytes()).await
    }

    /// Closes the connection with a reset, which the client sees as an error.
    pub(crate) fn reset(self) -> io::Result<()> {
        self.stream.set_zero_linger()
    }
}
