//! The server's end of a command's terminal.

use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A terminal: writing types into it, reading returns its output.
///
/// Clones refer to the same terminal. One may be read and another written at the same time.
#[derive(Debug, Clone)]
pub struct Pty {
    control: Arc<AsyncFd<std::fs::File>>,
}

impl Pty {
    pub(super) fn new(control: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&control, true)?;
        // SAFETY: the file owns its descriptor and does not share it, so it stays open for as long as it is registered.
        let control = unsafe { AsyncFd::register(std::fs::File::from(control)) }.map_err(io::Error::from)?;
        Ok(Self { control: Arc::new(control) })
    }

    /// Changes the size and notifies the programs in it.
    pub fn resize(&self, rows: u16, cols: u16) -> io::Result<()> {
        tcsetwinsize(self.control.get_ref(), Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 })?;
        Ok(())
    }
}

impl AsyncRead for Pty {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.control.poll_read_ready(cx))?;
            let unfilled = buffer.initialize_unfilled();
            match guard.try_io(|control| control.get_ref().read(unfilled)) {
                Ok(Ok(length)) => {
                    buffer.advance(length);
                    return Poll::Ready(Ok(()));
                }
                // The error of a terminal whose other end is closed.
                Ok(Err(error)) if error.raw_os_error() == Some(libc::EIO) => return Poll::Ready(Ok(())),
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Err(_would_block) => {}
            }
        }
    }
}

impl AsyncWrite for Pty {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.control.poll_write_ready(cx))?;
            if let Ok(result) = guard.try_io(|control| control.get_ref().write(bytes)) {
                return Poll::Ready(result);
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
