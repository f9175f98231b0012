//! An output that never blocks the engine: a separate thread writes.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::watch;

/// The interval at which an idle output checks for readers.
const LOOK: Duration = Duration::from_millis(500);

/// A sink for lines. Writes are sent at the next flush.
pub(crate) struct Outlet {
    waiting: Vec<u8>,
    pieces: Option<Sender<Vec<u8>>>,
    writer: Option<JoinHandle<io::Result<()>>>,
    gone: watch::Receiver<bool>,
}

impl Outlet {
    pub(crate) fn new(output: impl Write + AsFd + Send + 'static) -> Self {
        let (pieces, queue) = channel();
        let (tell, gone) = watch::channel(false);
        let writer = std::thread::spawn(move || {
            let written = write_all(output, &queue);
            if written.is_err() {
                // The receiver may be gone.
                let _: Result<(), _> = tell.send(true);
            }
            written
        });
        Self { waiting: Vec::new(), pieces: Some(pieces), writer: Some(writer), gone }
    }

    /// Waits until writing fails; forever while it works.
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

    /// Sends pending data. [`Outlet::finish`] and [`Outlet::is_gone`] report whether it arrives.
    fn flush(&mut self) -> io::Result<()> {
        if !self.waiting.is_empty()
            && let Some(pieces) = &self.pieces
        {
            let _: Result<(), _> = pieces.send(std::mem::take(&mut self.waiting));
        }
        Ok(())
    }
}

fn write_all(mut output: impl Write + AsFd, queue: &Receiver<Vec<u8>>) -> io::Result<()> {
    loop {
        match queue.recv_timeout(LOOK) {
            Ok(piece) => {
                output.write_all(&piece)?;
                output.flush()?;
            }
            Err(RecvTimeoutError::Timeout) if is_left(&output) => return Err(io::ErrorKind::BrokenPipe.into()),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

/// Whether the reader has left. A pipe reports this only when polled.
fn is_left(output: &impl AsFd) -> bool {
    let mut looked = [PollFd::new(output, PollFlags::empty())];
    poll(&mut looked, Some(&Timespec::default())).is_ok()
        && looked.iter().any(|looked| looked.revents().intersects(PollFlags::ERR | PollFlags::HUP))
}
