//! The two directions of a client: its input, which may end without it being gone, and its output, which it may not
//! read.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep, timeout};

use crate::limits::SlotKeeper;

/// The time limit for one direction of a connection to end once the other has ended.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(5);

/// Runs both until one of them has ended, and then the other for at most `rest`.
pub(crate) async fn together(one: impl Future<Output = ()>, other: impl Future<Output = ()>, rest: Duration) {
    let (mut one, mut other) = (std::pin::pin!(one), std::pin::pin!(other));
    let is_first = tokio::select! {
        () = &mut one => true,
        () = &mut other => false,
    };
    let left = async { if is_first { other.await } else { one.await } };
    // Anything slower is cut off.
    let _: Result<(), _> = timeout(rest, left).await;
}

/// The input of a client. Its end is an error if the client is gone, because then it receives no responses either.
/// After its first complete line, the client's place is permanent.
pub(crate) struct ClientInput<R, F> {
    input: R,
    is_gone: F,
    /// `None` once the place is permanent.
    keeper: Option<SlotKeeper>,
}

impl<R, F> ClientInput<R, F> {
    pub(crate) fn new(input: R, is_gone: F, keeper: SlotKeeper) -> Self {
        Self { input, is_gone, keeper: Some(keeper) }
    }
}

impl<R: AsyncRead + Unpin, F: Fn(&R) -> bool + Unpin> AsyncRead for ClientInput<R, F> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        std::task::ready!(Pin::new(&mut self.input).poll_read(context, buffer))?;
        let read = &buffer.filled()[before..];
        if read.is_empty() && buffer.remaining() > 0 && (self.is_gone)(&self.input) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if self.keeper.is_some()
            && read.contains(&b'\n')
            && let Some(keeper) = self.keeper.take()
        {
            keeper.keep();
        }
        Poll::Ready(Ok(()))
    }
}

/// An output that fails when nothing is read for too long. If it can be read from, that has no limit.
#[derive(Debug)]
pub(crate) struct TimedWriter<W> {
    output: W,
    patience: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<W> TimedWriter<W> {
    pub(crate) fn new(output: W, patience: Duration) -> Self {
        Self { output, patience, waiting: None }
    }

    /// Passes a result on, or fails if there is none and the time is up.
    fn bounded<T>(&mut self, polled: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.waiting = None;
            return polled;
        }
        let patience = self.patience;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(patience)));
        waiting.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<W: AsyncRead + Unpin> AsyncRead for TimedWriter<W> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.output).poll_read(context, buffer)
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for TimedWriter<W> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.output).poll_write(context, bytes);
        self.bounded(polled, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.output).poll_flush(context);
        self.bounded(polled, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.output).poll_shutdown(context);
        self.bounded(polled, context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_dropped() {
        let (near, mut far) = tokio::io::duplex(4);
        let mut output = TimedWriter::new(near, Duration::from_secs(60));
        output.write_all(b"1234").await.unwrap();
        let begun = tokio::time::Instant::now();
        let error = output.write_all(b"5").await.unwrap_err();
        assert_eq!((error.kind(), begun.elapsed().as_secs()), (io::ErrorKind::TimedOut, 60));
        let mut read = [0; 4];
        far.read_exact(&mut read).await.unwrap();
        output.write_all(b"5").await.unwrap();
    }
}
