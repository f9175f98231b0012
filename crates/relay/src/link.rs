//! A link: the connection of one client to the owner of threads that it asks about.

use std::sync::Arc;
use std::time::Duration;

use codex_lines::{Line, LineReader, MAX_LINE_BYTES};
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
    let mut input = LineReader::new(input);
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
            // Its request would wait for ever, so the link ends, and all of its requests with it.
            Ok(Some(Line::TooLong { bytes, .. })) => {
                return format!("it sent a line of {bytes} bytes, and {MAX_LINE_BYTES} are allowed");
            }
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
    use std::sync::Mutex;

    use codex_protocol::v2::initialize::Release;
    use codex_wire::ids::ThreadId;
    use tokio::io::{AsyncBufReadExt as _, BufReader, DuplexStream, duplex};

    use super::*;
    use crate::{ClientView, Pending, Relay};

    /// One other server, which has every thread open and can be dialled once.
    #[derive(Debug)]
    struct OneOwner(Mutex<Option<DuplexStream>>);

    impl Peers for OneOwner {
        fn own_id(&self) -> Option<String> {
            Some("me".to_owned())
        }

        fn is_here(&self, _thread: ThreadId) -> bool {
            false
        }

        fn owner(&self, _thread: ThreadId) -> Pending<'_, Option<Peer>> {
            let [id, name, address] = ["x", "owner", "unix:///x"].map(str::to_owned);
            Box::pin(std::future::ready(Some(Peer { id, name, address })))
        }

        fn living(&self) -> Pending<'_, Vec<String>> {
            Box::pin(std::future::pending())
        }

        fn dial<'a>(&'a self, _peer: &'a Peer) -> Pending<'a, Result<PeerStream, String>> {
            let stream = self.0.lock().unwrap().take().ok_or_else(|| "it is gone".to_owned());
            Box::pin(std::future::ready(stream.map(|stream| {
                let (input, output) = tokio::io::split(stream);
                (Box::new(input) as _, Box::new(output) as _)
            })))
        }
    }

    /// The owner of a thread could make this server keep a line of any length.
    #[tokio::test]
    async fn an_owner_that_sends_an_endless_line_loses_its_link() {
        let (far, near) = duplex(1 << 20);
        let view = ClientView { emulate: None, release: Release::V077, dialect: None };
        let relay = Relay::new(Arc::new(OneOwner(Mutex::new(Some(near)))), view);
        // The server of this process says nothing.
        let client = relay.connect(|mut input, output| async move {
            let read = tokio::io::copy(&mut input, &mut tokio::io::sink()).await;
            drop(output);
            read.map(drop)
        });
        let (answers, mut requests) = tokio::io::split(client);
        let thread = ThreadId::fresh();
        let lines = format!(
            "{{\"id\":0,\"method\":\"initialize\",\"params\":{{\"clientInfo\":{{\"name\":\"me\"}}}}}}\n\
             {{\"id\":7,\"method\":\"thread/read\",\"params\":{{\"threadId\":\"{thread}\"}}}}\n"
        );
        requests.write_all(lines.as_bytes()).await.unwrap();
        tokio::spawn(async move {
            let (input, mut output) = tokio::io::split(far);
            let mut asked = BufReader::new(input).lines();
            asked.next_line().await.unwrap();
            output.write_all(b"{\"id\":0,\"result\":{}}\n").await.unwrap();
            asked.next_line().await.unwrap();
            let piece = vec![b'x'; 1 << 20];
            for _ in 0..=MAX_LINE_BYTES >> 20 {
                output.write_all(&piece).await.unwrap();
            }
            output.write_all(b"\n").await.unwrap();
            std::future::pending::<()>().await;
        });
        let mut answers = BufReader::new(answers).lines();
        let answer = answers.next_line().await.unwrap().unwrap();
        assert!(answer.contains("\"id\":7") && answer.contains("it sent a line of 34603008 bytes"), "{answer}");
    }

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
