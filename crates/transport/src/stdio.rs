//! The standard streams of a server: read and written by the runtime itself if they are pipes or sockets.
//!
//! A thread that blocks in a read or a write has to hand its data to another one, and waking that takes longer than
//! most of what a server does with a message.
//!
//! Invariant: a pipe that is shared with others stays blocking for them, because it is reopened. A socket cannot be.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::fs::FileType;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

/// Standard input.
#[derive(Debug)]
pub enum Input {
    Pipe(pipe::Receiver),
    Socket(UnixStream),
    /// Anything else: a terminal, a file, a pipe of another user.
    Thread(tokio::io::Stdin),
}

/// Standard output.
#[derive(Debug)]
pub enum Output {
    Pipe(pipe::Sender),
    Socket(UnixStream),
    /// Anything else.
    Thread(tokio::fs::File),
}

/// Standard input. Needs a runtime.
#[must_use]
pub fn input() -> Input {
    let stdin = io::stdin();
    let pipe = || pipe::OpenOptions::new().open_receiver(again(&stdin)).ok().map(Input::Pipe);
    let found = match kind(&stdin) {
        Some(FileType::Fifo) => pipe(),
        Some(FileType::Socket) => socket(&stdin).map(Input::Socket),
        _ => None,
    };
    found.unwrap_or_else(|| Input::Thread(tokio::io::stdin()))
}

/// Standard output. Needs a runtime.
#[must_use]
pub fn output(stdout: File) -> Output {
    let pipe = || pipe::OpenOptions::new().open_sender(again(&stdout)).ok().map(Output::Pipe);
    let found = match kind(&stdout) {
        Some(FileType::Fifo) => pipe(),
        Some(FileType::Socket) => socket(&stdout).map(Output::Socket),
        _ => None,
    };
    found.unwrap_or_else(|| Output::Thread(tokio::fs::File::from_std(stdout)))
}

fn kind(stream: &impl AsFd) -> Option<FileType> {
    rustix::fs::fstat(stream).ok().map(|stat| FileType::from_raw_mode(stat.st_mode))
}

/// The path for reopening a stream, with a separate file description. Only Linux has one.
fn again(stream: &impl AsFd) -> String {
    use std::os::fd::AsRawFd as _;

    format!("/proc/self/fd/{}", stream.as_fd().as_raw_fd())
}

fn socket(stream: &impl AsFd) -> Option<UnixStream> {
    let socket: OwnedFd = stream.as_fd().try_clone_to_owned().ok()?;
    let socket = std::os::unix::net::UnixStream::from(socket);
    // A socket without such an address is not a Unix socket.
    socket.local_addr().ok()?;
    socket.set_nonblocking(true).ok()?;
    UnixStream::from_std(socket).ok()
}

impl AsyncRead for Input {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_read(cx, buffer),
            Self::Socket(socket) => Pin::new(socket).poll_read(cx, buffer),
            Self::Thread(stdin) => Pin::new(stdin).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Output {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_write(cx, bytes),
            Self::Socket(socket) => Pin::new(socket).poll_write(cx, bytes),
            Self::Thread(file) => Pin::new(file).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_flush(cx),
            Self::Socket(socket) => Pin::new(socket).poll_flush(cx),
            Self::Thread(file) => Pin::new(file).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(pipe) => Pin::new(pipe).poll_shutdown(cx),
            Self::Socket(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Thread(file) => Pin::new(file).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream as Ends;

    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn a_pipe_is_written_without_a_thread_and_continues_blocking_for_others() {
        let (mut read, write) = io::pipe().expect("a pipe");
        let others = write.try_clone().expect("a copy");
        let mut output = output(File::from(OwnedFd::from(write)));
        assert!(matches!(output, Output::Pipe(_)));
        output.write_all(b"news").await.expect("written");
        let flags = rustix::fs::fcntl_getfl(&others).expect("flags");
        assert!(!flags.contains(rustix::fs::OFlags::NONBLOCK));
        let mut text = [0; 4];
        read.read_exact(&mut text).expect("read");
        assert_eq!(&text, b"news");
    }

    #[tokio::test]
    async fn a_socket_is_written_without_a_thread() {
        let (mut ours, theirs) = Ends::pair().expect("a pair");
        let mut output = output(File::from(OwnedFd::from(theirs)));
        assert!(matches!(output, Output::Socket(_)));
        output.write_all(b"news").await.expect("written");
        let mut text = [0; 4];
        ours.read_exact(&mut text).expect("read");
        assert_eq!(&text, b"news");
    }

    #[tokio::test]
    async fn other_outputs_are_written_by_a_thread() {
        let mut file = tempfile::tempfile().expect("a file");
        let mut output = output(file.try_clone().expect("a copy"));
        assert!(matches!(output, Output::Thread(_)));
        output.write_all(b"news").await.expect("written");
        output.flush().await.expect("flushed");
        file.write_all(b"!").expect("written");
        assert_eq!(file.metadata().expect("metadata").len(), 5);
    }
}
