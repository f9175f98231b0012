//! A proxy that cuts a connection after a given number of bytes, in the middle of anything.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use codex_transport::Address;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::task::JoinHandle;

/// The number of bytes in each direction before a connection is cut.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowance {
    pub(super) to_server: u64,
    pub(super) to_client: u64,
}

impl Allowance {
    pub(super) const ALL: Self = Self { to_server: u64::MAX, to_client: u64::MAX };
}

/// Sits between one client and the server.
pub(super) struct Cutter {
    pub(super) address: Address,
    /// The allowance of the next connection.
    next: Arc<Mutex<Allowance>>,
    accepting: JoinHandle<()>,
}

impl Cutter {
    /// Sits in front of the server at an address; `path` is where it listens for a Unix socket.
    pub(super) async fn before(server: &Address, path: PathBuf) -> Self {
        let next = Arc::new(Mutex::new(Allowance::ALL));
        let allowance = Arc::clone(&next);
        let (address, accepting) = match server.clone() {
            Address::Ws(ip) => {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
                let own = listener.local_addr().expect("it has an address");
                let accepting = tokio::spawn(async move {
                    while let Ok((client, _)) = listener.accept().await {
                        let allowance = *allowance.lock().expect("nobody panics here");
                        let server = TcpStream::connect(ip).await.expect("the server is there");
                        tokio::spawn(pass(client, server, allowance));
                    }
                });
                (Address::Ws(own), accepting)
            }
            server => {
                let listener = UnixListener::bind(&path).expect("there is a path");
                let real = PathBuf::from(server.to_string().trim_start_matches("unix://"));
                let accepting = tokio::spawn(async move {
                    while let Ok((client, _)) = listener.accept().await {
                        let allowance = *allowance.lock().expect("nobody panics here");
                        let server = UnixStream::connect(&real).await.expect("the server is there");
                        tokio::spawn(pass(client, server, allowance));
                    }
                });
                (format!("unix://{}", path.display()).parse().expect("it is an address"), accepting)
            }
        };
        Self { address, next, accepting }
    }

    /// Sets when the next connection is cut.
    pub(super) fn allow(&self, allowance: Allowance) {
        *self.next.lock().expect("nobody panics here") = allowance;
    }
}

impl Drop for Cutter {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Forwards bytes until either side ends or its allowance is exhausted; then both connections end at once.
async fn pass(
    client: impl AsyncRead + AsyncWrite + Send,
    server: impl AsyncRead + AsyncWrite + Send,
    allowance: Allowance,
) {
    let (from_client, to_client) = tokio::io::split(client);
    let (from_server, to_server) = tokio::io::split(server);
    tokio::select! {
        () = pump(from_client, to_server, allowance.to_server) => {}
        () = pump(from_server, to_client, allowance.to_client) => {}
    }
}

async fn pump(from: impl AsyncRead, to: impl AsyncWrite, mut left: u64) {
    let (mut from, mut to) = (std::pin::pin!(from), std::pin::pin!(to));
    let mut bytes = [0; 4096];
    while left > 0 {
        let most = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
        let Ok(read @ 1..) = from.read(&mut bytes[..most]).await else { return };
        if to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
        left -= read as u64;
    }
}
