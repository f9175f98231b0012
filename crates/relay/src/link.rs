//! A link: the connection of one client to the owner of threads that it asks about.

use std::sync::Arc;
use std::time::Duration;

use codex_lines::{Line, LineReader};
use codex_protocol::rpc::Incoming;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::connection::{Shared, pass_on};
use crate::peers::{Peer, PeerStream, Peers};
use crate::router::LinkNumber;

/// The time limit for the owner to accept a link.
const PATIENCE: Duration = Duration::from_secs(10);

/// The time limit for the owner to read a line. One that is alive and does not would keep the link for ever, also after its
/// client has left.
const READING: Duration = Duration::from_secs(60);

/// The number of lines that may wait to be written to a link.
pub(crate) const WAITING_LINES: usize = 64;

/// The messages of a server have no limit, because it is as trusted as this one.
const MAX_LINE_BYTES: usize = usize::MAX / 2;

/// Opens a link and passes lines in both directions until it ends.
pub(crate) async fn run(
    shared: Arc<Shared>,
    link: LinkNumber,
    peer: Peer,
    initialize: Vec<u8>,
    lines: mpsc::Receiver<Vec<u8>>,
) {
    let why = match timeout(PATIENCE, open(&*shared.peers, &peer, &initialize)).await {
        Err(_) => "it did not answer in time".to_owned(),
        Ok(Err(why)) => why,
        Ok(Ok((input, output))) => {
            shared.route(|router| router.link_opened(link));
            tokio::select! {
                why = read(&shared, link, input) => why,
                why = write(lines, output) => why,
                why = end_of(&*shared.peers, &peer) => why,
            }
        }
    };
    shared.route(|router| router.link_closed(link, &why));
}

type Input = LineReader<Box<dyn AsyncRead + Send + Unpin>>;

/// Connects, and introduces the client.
async fn open(
    peers: &dyn Peers,
    peer: &Peer,
    initialize: &[u8],
) -> Result<(Input, Box<dyn AsyncWrite + Send + Unpin>), String> {
    let (input, mut output): PeerStream = peers.dial(peer).await?;
    let broken = |error: std::io::Error| error.to_string();
    output.write_all(initialize).await.map_err(broken)?;
    output.flush().await.map_err(broken)?;
    let mut input = LineReader::with_limit(input, MAX_LINE_BYTES);
    while let Some(line) = input.next().await.map_err(broken)? {
        let Line::Whole(line) = line else { continue };
        match Incoming::read(&line) {
            Ok(Incoming::Response { result: Ok(_), .. }) => return Ok((input, output)),
            Ok(Incoming::Response { result: Err(error), .. }) => return Err(error.message),
            // Nothing else is meant for the client yet.
            Ok(Incoming::Request { .. } | Incoming::Notification { .. }) | Err(_) => {}
        }
    }
    Err("it has hung up".to_owned())
}

/// Passes lines of the owner to the client, and returns why that ended.
async fn read(shared: &Arc<Shared>, link: LinkNumber, mut input: Input) -> String {
    loop {
        match input.next().await {
            Ok(Some(Line::Whole(line))) => {
                if !shared.link_line(link, &line) {
                    continue;
                }
                let Some(outbox) = shared.outbox() else { return "the client has left".to_owned() };
                pass_on(&outbox, line).await;
            }
            // There is no such limit.
            Ok(Some(Line::TooLong { .. })) => {}
            Ok(None) => return "it has hung up".to_owned(),
            Err(error) => return error.to_string(),
        }
    }
}

/// Writes lines of the client to the owner, and returns why that ended.
async fn write(mut lines: mpsc::Receiver<Vec<u8>>, mut output: impl AsyncWrite + Unpin) -> String {
    while let Some(mut line) = lines.recv().await {
        line.push(b'\n');
        let written = async {
            output.write_all(&line).await?;
            output.flush().await
        };
        match timeout(READING, written).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return error.to_string(),
            Err(_) => return "it does not read".to_owned(),
        }
    }
    "the client has left".to_owned()
}

/// Waits until the owner is no longer among the living servers.
async fn end_of(peers: &dyn Peers, peer: &Peer) -> String {
    while peers.living().await.contains(&peer.id) {}
    "it has ended, or could not renew its lease".to_owned()
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_owner_that_does_not_read_loses_its_link() {
        let (near, _far) = duplex(16);
        let (sender, lines) = mpsc::channel(WAITING_LINES);
        sender.send(vec![b'x'; 17]).await.unwrap();
        // Its client has left.
        drop(sender);
        assert_eq!(write(lines, near).await, "it does not read");
    }
}
