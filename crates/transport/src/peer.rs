//! The kernel's knowledge of the other side of a connection.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use tokio::net::TcpStream;

/// The idle time before the kernel probes a connection, the interval of its probes, and how many may stay unanswered.
const QUIET: Duration = Duration::from_secs(60);
const BETWEEN_QUESTIONS: Duration = Duration::from_secs(15);
const QUESTIONS: u32 = 4;
/// The time limit for the other side to acknowledge data.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED_MS: u32 = 120_000;

/// Whether the other side has closed both directions, so that nothing sent to it is received. One that has only
/// finished sending has not; over TCP that looks the same until something is sent to it.
pub(crate) fn has_hung_up(socket: &impl AsFd) -> bool {
    let mut sockets = [PollFd::new(socket, PollFlags::HUP | PollFlags::ERR)];
    // Both events are reported even if not requested.
    poll(&mut sockets, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
        && sockets[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

/// Configures a connection: small messages do not wait for each other, and a vanished machine is noticed.
pub(crate) fn prepare(stream: &TcpStream) {
    // The connection works without the options that the system does not support.
    let _: io::Result<()> = stream.set_nodelay(true);
    let _: rustix::io::Result<()> = watch(stream);
}

fn watch(stream: &TcpStream) -> rustix::io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, QUIET)?;
    sockopt::set_tcp_keepintvl(stream, BETWEEN_QUESTIONS)?;
    sockopt::set_tcp_keepcnt(stream, QUESTIONS)?;
    #[cfg(target_os = "linux")]
    sockopt::set_tcp_user_timeout(stream, UNACKNOWLEDGED_MS)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::{TcpListener, UnixStream};

    use super::*;

    #[tokio::test]
    async fn only_a_closed_peer_has_hung_up() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        assert!(!has_hung_up(&ours));
        theirs.shutdown().await.unwrap();
        assert!(!has_hung_up(&ours), "it still listens");
        drop(theirs);
        assert!(has_hung_up(&ours));
    }

    #[tokio::test]
    async fn a_connection_is_watched() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        prepare(&stream);
        assert!(stream.nodelay().unwrap() && sockopt::socket_keepalive(&stream).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&stream), Ok(QUIET));
        #[cfg(target_os = "linux")]
        assert_eq!(sockopt::tcp_user_timeout(&stream), Ok(UNACKNOWLEDGED_MS));
    }
}
