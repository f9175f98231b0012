//! Listening: a new connection authenticates, gets a slot, and is served.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::AsyncRead;
use tokio::net::unix::OwnedReadHalf;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::{JoinSet, yield_now};
use tokio::time::{sleep, timeout};

use crate::client_stream::{ClientInput, TimedWriter};
use crate::descriptors::{self, Shortage, Spare};
use crate::http_service::{self, HttpService};
use crate::limits::{Limits, Slot, SlotPool, Slots, TransportKind};
use crate::peer;
use crate::token::Token;
use crate::unix_socket::{SocketError, UnixSocket};
use crate::{Address, Reader, Writer, grpc, tcp, unix, ws};

/// The length of the kernel's accept queue. A client whose first packet finds it full retries only after a second.
const BACKLOG: u32 = 4096;
/// The time limit for clients to disconnect when the server ends.
const GOODBYES: Duration = Duration::from_secs(5);
/// The pause before accepting again when the system has no room for another socket.
const BREATHER: Duration = Duration::from_millis(100);
/// The number of attempts before clients that wait at a Unix socket receive an error.
const TRIES: u32 = 20;
const NO_DESCRIPTORS: &str = "too many files are open (see ulimit -n); retry later";

/// The options of a listener.
#[derive(Debug, Clone)]
pub struct Options {
    /// The token for clients that cannot be identified by their user.
    pub token: Option<Token>,
    /// Room for connections, shared by all listeners of a server.
    pub slots: Slots,
    pub limits: Limits,
    /// The receiver of descriptor shortages.
    pub shortage: Shortage,
    /// Whether other machines may connect.
    pub allows_remote: bool,
    /// Whether a client may send the token instead of proving that it knows it.
    pub takes_bearer: bool,
}

/// The reason why listening failed.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Other machines could reach it.
    #[error("{address} can be reached from other machines")]
    Remote { address: Address },
    /// There is no token, so any process that can reach the port could do anything.
    #[error("{address} needs a token")]
    NoToken { address: Address },
    #[error("{address} is not a socket")]
    NoSocket { address: Address },
    /// The Unix socket is unusable.
    #[error(transparent)]
    Socket(#[from] SocketError),
    #[error("could not listen on {address}")]
    Bind { address: Address, source: io::Error },
}

/// Serves clients, each as lines in and lines out.
pub trait Service: Clone + Send + Sync + 'static {
    /// Serves one client until it leaves. Dropping the future also disconnects the client.
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

/// A connection that has not authenticated yet.
pub(crate) struct Client {
    pub(crate) token: Option<Token>,
    pub(crate) limits: Limits,
    pub(crate) slots: Slots,
    /// Its place among the unauthenticated connections.
    pub(crate) waiting: Slot,
    /// The local address it connected to.
    pub(crate) door: Option<SocketAddr>,
    /// Whether it may send the token.
    pub(crate) takes_bearer: bool,
}

/// A listening socket.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    address: Address,
    options: Options,
    /// Room for unauthenticated connections.
    strangers: SlotPool,
    spare: Spare,
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
            return Ok(Self::new(Socket::Unix(socket), address, options));
        };
        if !ip.ip().is_loopback() && !options.allows_remote {
            return Err(BindError::Remote { address: address.clone() });
        }
        if options.token.is_none() {
            return Err(BindError::NoToken { address: address.clone() });
        }
        let failed = |source| BindError::Bind { address: address.clone(), source };
        let socket = listen(ip).map_err(failed)?;
        let bound = socket.local_addr().map_err(failed)?;
        let address = match address {
            Address::Ws(_) => Address::Ws(bound),
            Address::Grpc(_) => Address::Grpc(bound),
            Address::Http(_) => Address::Http(bound),
            Address::Tcp(_) | Address::Unix(_) | Address::Stdio => Address::Tcp(bound),
        };
        Ok(Self::new(Socket::Ip(socket), address, options))
    }

    fn new(socket: Socket, address: Address, options: Options) -> Self {
        let strangers = SlotPool::new(options.limits.strangers);
        Self { socket, address, options, strangers, spare: Spare::new() }
    }

    /// The address, with the port that the system has chosen.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Serves clients until `stop` becomes true, and then until they have left.
    pub async fn serve<S: Service>(self, service: S, stop: watch::Receiver<bool>) {
        self.attend(OverLines(service), stop).await;
    }

    /// Serves the requests of clients at an address for HTTP until `stop` becomes true.
    pub async fn serve_http<S: HttpService>(self, service: S, stop: watch::Receiver<bool>) {
        self.attend(OverHttp { service, stop: stop.clone() }, stop).await;
    }

    async fn attend<A: Attendant>(mut self, attendant: A, mut stop: watch::Receiver<bool>) {
        let mut clients = JoinSet::new();
        let mut failures = 0;
        loop {
            tokio::select! {
                accepted = self.accept() => match accepted {
                    Ok(stream) => {
                        tracing::debug!(address = %self.address, "a client connects");
                        failures = 0;
                        self.spare.restore();
                        self.admit(stream, &attendant, &mut clients);
                        // Connections that were accepted before get their turn before the next one.
                        yield_now().await;
                    }
                    Err(error) => {
                        failures += 1;
                        tracing::warn!(address = %self.address, %error, failures, "no client could be accepted");
                        self.make_room(&error, failures).await;
                    }
                },
                Some(_) = clients.join_next(), if !clients.is_empty() => {}
                () = async { drop(stop.wait_for(|is_over| *is_over).await) } => break,
            }
        }
        drop(self);
        // Slow ones are cut off when the set is dropped.
        let all_left = async { while clients.join_next().await.is_some() {} };
        let _: Result<(), _> = timeout(GOODBYES, all_left).await;
    }

    /// Waits for a connection, once there is room for an unauthenticated one where those can arrive. Cancel safe.
    async fn accept(&self) -> io::Result<Stream> {
        match &self.socket {
            Socket::Unix(socket) => socket.accept().await.map(Stream::Unix),
            Socket::Ip(socket) => {
                self.strangers.vacancy().await;
                socket.accept().await.map(|(stream, _)| Stream::Ip(stream))
            }
        }
    }

    /// Handles a new connection.
    fn admit<A: Attendant>(&self, stream: Stream, attendant: &A, clients: &mut JoinSet<()>) {
        let Options { token, slots, limits, shortage, .. } = &self.options;
        match stream {
            Stream::Unix(stream) => {
                if descriptors::are_short(&stream) {
                    shortage.report();
                }
                clients.spawn(attendant.clone().unix(stream, *limits, slots.clone()));
            }
            Stream::Ip(stream) => {
                if descriptors::are_short(&stream) {
                    shortage.report();
                    self.strangers.drop_oldest();
                }
                let Some(waiting) = self.strangers.take_among_strangers() else { return };
                let (token, slots, door) = (token.clone(), slots.clone(), self.address.ip());
                let takes_bearer = self.options.takes_bearer;
                let client = Client { token, limits: *limits, slots, waiting, door, takes_bearer };
                peer::prepare(&stream);
                clients.spawn(attendant.clone().ip(stream, self.address.clone(), client));
            }
        }
    }

    /// Waits after a failure, because a client has already left or too many files are open. Existing clients continue,
    /// and whatever can be given up is released.
    async fn make_room(&mut self, error: &io::Error, failures: u32) {
        if !descriptors::is_shortage(error) {
            return sleep(BREATHER).await;
        }
        self.options.shortage.report();
        self.strangers.drop_oldest();
        sleep(BREATHER).await;
        if failures.is_multiple_of(TRIES)
            && let Socket::Unix(socket) = &self.socket
        {
            self.spare.release();
            if let Ok(Ok(stream)) = timeout(BREATHER, socket.accept()).await {
                tcp::refuse(&mut TimedWriter::new(stream, BREATHER), None, tcp::overloaded(NO_DESCRIPTORS)).await;
            }
            self.spare.restore();
        }
    }
}

/// Listens on an IP address.
fn listen(ip: SocketAddr) -> io::Result<TcpListener> {
    let socket = if ip.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Allows listening again on a port that was just closed.
    socket.set_reuseaddr(true)?;
    socket.bind(ip)?;
    socket.listen(BACKLOG)
}

/// Serves accepted connections.
trait Attendant: Clone + Send + Sync + 'static {
    fn unix(self, stream: UnixStream, limits: Limits, slots: Slots) -> impl Future<Output = ()> + Send;
    fn ip(self, stream: TcpStream, address: Address, client: Client) -> impl Future<Output = ()> + Send;
}

#[derive(Clone)]
struct OverLines<S>(S);

impl<S: Service> Attendant for OverLines<S> {
    async fn unix(self, stream: UnixStream, limits: Limits, slots: Slots) {
        serve_unix(stream, limits, slots, self.0).await;
    }

    /// Serves a connection in the protocol of its address.
    async fn ip(self, stream: TcpStream, address: Address, client: Client) {
        match address {
            Address::Ws(_) => ws::serve(stream, client, self.0).await,
            Address::Grpc(_) => grpc::serve(stream, client, self.0).await,
            Address::Tcp(_) | Address::Unix(_) | Address::Stdio => tcp::serve(stream, client, self.0).await,
            // Its clients send no lines.
            Address::Http(_) => {}
        }
    }
}

#[derive(Clone)]
struct OverHttp<S> {
    service: S,
    stop: watch::Receiver<bool>,
}

impl<S: HttpService> Attendant for OverHttp<S> {
    /// An address for HTTP is never a Unix socket.
    async fn unix(self, _stream: UnixStream, _limits: Limits, _slots: Slots) {}

    async fn ip(self, stream: TcpStream, _address: Address, client: Client) {
        http_service::serve(stream, client, self.service, self.stop).await;
    }
}

async fn serve_unix<S: Service>(stream: UnixStream, limits: Limits, slots: Slots, service: S) {
    if !unix::is_trusted(&stream) {
        tracing::warn!("a client of another user was turned away");
        return;
    }
    let (input, output) = stream.into_split();
    let mut output = TimedWriter::new(output, limits.stall);
    match slots.serve(TransportKind::Unix, limits.quiet) {
        Ok(place) => {
            let has_hung_up = |input: &OwnedReadHalf| peer::has_hung_up(input.as_ref());
            host(&service, (input, has_hung_up), Box::new(output), place).await;
        }
        Err(full) => tcp::refuse(&mut output, None, tcp::overloaded(full)).await,
    }
}

/// Serves an admitted client until it leaves or is evicted. Its input comes with a check whether it is gone, for the
/// end of the input.
pub(crate) async fn host<S, R, F>(service: &S, (input, is_gone): (R, F), output: Writer, mut place: Slot)
where
    S: Service,
    R: AsyncRead + Send + Unpin + 'static,
    F: Fn(&R) -> bool + Send + Unpin + 'static,
{
    let input = ClientInput::new(input, is_gone, place.keeper());
    tokio::select! {
        () = service.serve(Box::new(input), output) => {}
        () = place.lost() => tracing::debug!("a client that was idle has to make room for another"),
    }
    tracing::debug!("a client has left");
}
