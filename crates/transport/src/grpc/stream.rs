//! Converts the two directions of a call from and to lines.

use std::future::poll_fn;
use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use h2::{RecvStream, SendStream};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::Status;
use super::frame::{self, FrameError};
use crate::pipe::{Lines, PIPE_BYTES, write_line};

/// Forwards messages as lines until the other side closes, and returns how that ended.
pub(crate) async fn receive<W: AsyncWrite + Unpin>(mut stream: RecvStream, output: &mut W, limit: usize) -> Status {
    let mut bytes = BytesMut::new();
    while let Some(data) = stream.data().await {
        let Ok(data) = data else { return Status::Unavailable };
        bytes.extend_from_slice(&data);
        loop {
            match frame::decode(&mut bytes, limit) {
                Ok(Some(json)) => {
                    if write_line(output, &json).await.is_err() {
                        return Status::Unavailable;
                    }
                }
                Ok(None) => break,
                Err(FrameError::TooLong) => return Status::ResourceExhausted,
                Err(FrameError::Compressed) => return Status::Unimplemented,
                Err(FrameError::Malformed) => return Status::InvalidArgument,
            }
        }
        if bytes.is_empty() {
            // A long message must not keep its memory forever.
            bytes = BytesMut::new();
        }
        // The window is released only now that there is room for more.
        if stream.flow_control().release_capacity(data.len()).is_err() {
            return Status::Unavailable;
        }
    }
    Status::Ok
}

/// Forwards lines as messages until there are no more.
pub(crate) async fn send_lines<R: AsyncRead + Unpin>(
    input: R,
    limit: usize,
    stream: &mut SendStream<Bytes>,
    patience: Duration,
) -> io::Result<()> {
    let mut lines = Lines::new(input, limit);
    loop {
        let line = tokio::select! {
            line = lines.next() => line?,
            // The other side has cancelled the call.
            _ = poll_fn(|context| stream.poll_reset(context)) => return Err(io::ErrorKind::ConnectionReset.into()),
        };
        let Some(line) = line else { return Ok(()) };
        send(stream, frame::encode(&line), patience).await?;
    }
}

async fn send(stream: &mut SendStream<Bytes>, mut bytes: Bytes, patience: Duration) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.reserve_capacity(bytes.len().min(PIPE_BYTES));
        let capacity = timeout(patience, poll_fn(|context| stream.poll_capacity(context))).await;
        let capacity = capacity.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?;
        let capacity = capacity.ok_or(io::ErrorKind::BrokenPipe)?.map_err(io::Error::other)?;
        let piece = bytes.split_to(capacity.min(bytes.len()));
        if !piece.is_empty() {
            stream.send_data(piece, false).map_err(io::Error::other)?;
        }
    }
    Ok(())
}
