//! A way out that never makes the engine wait: a thread of its own writes.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use tokio::sync::watch;

/// Where lines go. What is written is sent at the next flush.
pub(crate) struct Outlet {
    waiting: Vec<u8>,
    pieces: Option<Sender<Vec<u8>>>,
    writer: Option<JoinHandle<io::Result<()>>>,
    gone: watch::Receiver<bool>,
}

impl Outlet {
    /// Writes to that.
    pub(crate) fn new(output: impl Write + Send + 'static) -> Self {
        let (pieces, queue) = channel();
        let (tell, gone) = watch::channel(false);
        let writer = std::thread::spawn(move || {
            let written = write_all(output, &queue);
            if written.is_err() {
                // Nobody may be listening any more.
                let _: Result<(), _> = tell.send(true);
            }
            written
        });
        Self { waiting: Vec::new(), pieces: Some(pieces), writer: Some(writer), gone }
    }

    /// Waits until nothing can be written any more; for ever while it can.
    pub(crate) fn is_gone(&self) -> impl Future<Output = ()> + use<> {
        let mut gone = self.gone.clone();
        async move {
            if gone.wait_for(|gone| *gone).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until everything is written.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        let flushed = self.flush();
        self.pieces = None;
        let written = self
            .writer
            .take()
            .map_or(Ok(()), |writer| writer.join().unwrap_or_else(|_| Err(io::Error::other("the writer has failed"))));
        written.and(flushed)
    }
}

impl Write for Outlet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    /// Sends what was written. Whether it arrives is told by [`Outlet::finish`] and [`Outlet::is_gone`].
    fn flush(&mut self) -> io::Result<()> {
        if !self.waiting.is_empty()
            && let Some(pieces) = &self.pieces
        {
            let _: Result<(), _> = pieces.send(std::mem::take(&mut self.waiting));
        }
        Ok(())
    }
}

fn write_all(mut output: impl Write, queue: &Receiver<Vec<u8>>) -> io::Result<()> {
    for piece in queue {
        output.write_all(&piece)?;
        output.flush()?;
    }
    Ok(())
}
