//! Listening: who comes gets a slot, shows who it is, and is served.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::limits::{Limits, Slot, Slots};
use crate::pipe::Patient;
use crate::token::Token;
use crate::unix::{self, SocketError, UnixSocket};
use crate::{Address, Reader, Writer, grpc, tcp, ws};

/// How long clients may take to leave when the server ends.
const GOODBYES: Duration = Duration::from_secs(5);
/// How long is waited when the system has no room for another socket.
const BREATHER: Duration = Duration::from_millis(100);

/// How a server listens.
#[derive(Debug, Clone)]
pub struct Options {
    /// What clients bring who cannot be told by their user.
    pub token: Option<Token>,
    /// Room for connections, shared by all listeners of a server.
    pub slots: Slots,
    /// What a connection may take.
    pub limits: Limits,
    /// Whether other machines may reach it.
    pub allows_remote: bool,
}

/// Why nothing is listened on.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Other machines could reach it.
    #[error("{address} can be reached from other machines")]
    Remote {
        /// Where.
        address: Address,
    },
    /// There is no token, and whoever can reach the port could do anything.
    #[error("{address} needs a token")]
    NoToken {
        /// Where.
        address: Address,
    },
    /// There is nothing to listen on.
    #[error("{address} is no socket")]
    NoSocket {
        /// Where.
        address: Address,
    },
    /// The Unix socket is unusable.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The system refused.
    #[error("could not listen on {address}")]
    Bind {
        /// Where.
        address: Address,
        /// What the system said.
        source: io::Error,
    },
}

/// What serves clients, each as lines in and lines out.
pub trait Service: Clone + Send + Sync + 'static {
    /// Serves one client until it leaves. Dropping the future is the client's leaving too.
    fn serve(&self, input: Reader, output: Writer) -> impl Future<Output = ()> + Send;
}

impl<S, F> Service for S
where
    S: Fn(Reader, Writer) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = ()> + Send,
{
    fn serve(&self, input: Reader, output: Writer) -> impl Future<Output = ()> + Send {
        self(input, output)
    }
}

/// A client that has come and not yet shown who it is.
pub(crate) struct Client {
    pub(crate) token: Option<Token>,
    pub(crate) limits: Limits,
    pub(crate) slots: Slots,
    /// Its place in the lobby.
    pub(crate) waiting: Slot,
    /// Where it came in.
    pub(crate) door: Option<SocketAddr>,
}

/// A socket that is listened on.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    address: Address,
    options: Options,
}

#[derive(Debug)]
enum Socket {
    Unix(UnixSocket),
    Ip(TcpListener),
}

enum Stream {
    Unix(UnixStream),
    Ip(TcpStream),
}

impl Listener {
    /// Listens on an address.
    pub async fn bind(address: &Address, options: Options) -> Result<Self, BindError> {
        let Some(ip) = address.ip() else {
            let Address::Unix(Some(path)) = address else {
                return Err(BindError::NoSocket { address: address.clone() });
            };
            let socket = UnixSocket::bind(path).await?;
            let address = Address::Unix(Some(socket.path().to_owned()));
            return Ok(Self { socket: Socket::Unix(socket), address, options });
        };
        if !ip.ip().is_loopback() && !options.allows_remote {
            return Err(BindError::Remote { address: address.clone() });
        }
        if options.token.is_none() {
            return Err(BindError::NoToken { address: address.clone() });
        }
        let failed = |source| BindError::Bind { address: address.clone(), source };
        let socket = TcpListener::bind(ip).await.map_err(failed)?;
        let bound = socket.local_addr().map_err(failed)?;
        let address = match address {
            Address::Ws(_) => Address::Ws(bound),
            Address::Grpc(_) => Address::Grpc(bound),
            Address::Tcp(_) | Address::Unix(_) | Address::Stdio => Address::Tcp(bound),
        };
        Ok(Self { socket: Socket::Ip(socket), address, options })
    }

    /// Where it listens, with the port that the system has chosen.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Serves clients until `stop` becomes true, and then until they have left.
    pub async fn serve<S: Service>(self, service: S, mut stop: watch::Receiver<bool>) {
        let mut clients = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.socket.accept() => match accepted {
                    Ok(stream) => if let Some(client) = self.admit() {
                        clients.spawn(attend(stream, self.address.clone(), client, service.clone()));
                    },
                    // Too many files are open, or a client has left already. Those who are here go on.
                    Err(_) => sleep(BREATHER).await,
                },
                Some(_) = clients.join_next(), if !clients.is_empty() => {}
                () = async { drop(stop.wait_for(|is_over| *is_over).await) } => break,
            }
        }
        drop(self);
        // Those who take too long are cut off when the set is dropped.
        let all_left = async { while clients.join_next().await.is_some() {} };
        let _: Result<(), _> = timeout(GOODBYES, all_left).await;
    }

    /// A place in the lobby for whoever comes.
    fn admit(&self) -> Option<Client> {
        let Options { token, slots, limits, .. } = &self.options;
        let waiting = slots.wait()?;
        Some(Client { token: token.clone(), limits: *limits, slots: slots.clone(), waiting, door: self.address.ip() })
    }
}

impl Socket {
    async fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Unix(socket) => socket.accept().await.map(Stream::Unix),
            Self::Ip(socket) => socket.accept().await.map(|(stream, _)| Stream::Ip(stream)),
        }
    }
}

/// Attends to a client in the language of the address it came to.
async fn attend<S: Service>(stream: Stream, address: Address, client: Client, service: S) {
    match (stream, address) {
        (Stream::Unix(stream), _) => serve_unix(stream, client, service).await,
        (Stream::Ip(stream), Address::Ws(_)) => ws::serve(stream, client, service).await,
        (Stream::Ip(stream), Address::Grpc(_)) => grpc::serve(stream, client, service).await,
        (Stream::Ip(stream), Address::Tcp(_) | Address::Unix(_) | Address::Stdio) => {
            tcp::serve(stream, client, service).await;
        }
    }
}

async fn serve_unix<S: Service>(stream: UnixStream, client: Client, service: S) {
    if !unix::is_trusted(&stream) {
        return;
    }
    let (input, output) = stream.into_split();
    let mut output = Patient::new(output, client.limits.stall);
    let Some(_slot) = client.slots.serve() else {
        return tcp::refuse(&mut output, None, tcp::overloaded()).await;
    };
    drop(client.waiting);
    service.serve(Box::new(input), Box::new(output)).await;
}
