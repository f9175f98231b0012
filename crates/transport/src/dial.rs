//! Connects to a server over any transport.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, TE};
use http::{Method, Request};
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex,
};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message, Utf8Bytes};

use crate::pipe::{Lines, MESSAGE_BYTES, PIPE_BYTES, STALL, write_line};
use crate::token::{AUTHENTICATE, Token};
use crate::{Address, Reader, Writer, grpc, unix};

/// The maximum length of the response to the token.
const ANSWER_BYTES: u64 = 4096;

/// The time limit for a server to accept us.
const PATIENCE: Duration = Duration::from_secs(10);

/// The reason why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    #[error("{address} is not an address to connect to")]
    NoSocket { address: Address },
    /// Nobody listens there, or the system refused.
    #[error("could not connect to {address}")]
    Connect { address: Address, source: io::Error },
    /// A process of another user listens there.
    #[error("{address} belongs to another user")]
    Foreign { address: Address },
    /// The server needs a token and there is none.
    #[error("{address} needs a token")]
    NoToken { address: Address },
    #[error("{address} has refused the connection: {why}")]
    Refused { address: Address, why: String },
    #[error("{address} did not answer in time")]
    Late { address: Address },
}

/// Connects to a server and presents the token. The result is a stream of lines, whatever the transport.
pub async fn dial(address: &Address, token: Option<&Token>) -> Result<(Reader, Writer), DialError> {
    let late = |_| DialError::Late { address: address.clone() };
    timeout(PATIENCE, Dial { address, token }.connect()).await.map_err(late)?
}

struct Dial<'a> {
    address: &'a Address,
    token: Option<&'a Token>,
}

impl Dial<'_> {
    async fn connect(&self) -> Result<(Reader, Writer), DialError> {
        match self.address {
            Address::Unix(Some(path)) => {
                let stream = UnixStream::connect(path).await.map_err(|source| self.failed(source))?;
                if !unix::is_trusted(&stream) {
                    return Err(DialError::Foreign { address: self.address.clone() });
                }
                let (input, output) = stream.into_split();
                Ok((Box::new(input), Box::new(output)))
            }
            Address::Tcp(ip) => self.tcp(self.stream(*ip).await?).await,
            Address::Ws(ip) => self.ws(self.stream(*ip).await?).await,
            Address::Grpc(ip) => self.grpc(self.stream(*ip).await?).await,
            Address::Stdio | Address::Unix(None) | Address::Http(_) => {
                Err(DialError::NoSocket { address: self.address.clone() })
            }
        }
    }

    fn failed(&self, source: io::Error) -> DialError {
        DialError::Connect { address: self.address.clone(), source }
    }

    fn refused(&self, why: impl Into<String>) -> DialError {
        DialError::Refused { address: self.address.clone(), why: why.into() }
    }

    fn token(&self) -> Result<&Token, DialError> {
        self.token.ok_or_else(|| DialError::NoToken { address: self.address.clone() })
    }

    fn bearer(&self) -> Result<HeaderValue, DialError> {
        self.token()?.header().ok_or_else(|| self.refused("the token fits into no header"))
    }

    async fn stream(&self, ip: std::net::SocketAddr) -> Result<TcpStream, DialError> {
        let stream = TcpStream::connect(ip).await.map_err(|source| self.failed(source))?;
        // Without it, small messages wait for each other.
        let _: io::Result<()> = stream.set_nodelay(true);
        Ok(stream)
    }

    async fn tcp(&self, stream: TcpStream) -> Result<(Reader, Writer), DialError> {
        let params = serde_json::json!({"token": self.token()?.reveal()});
        let first = serde_json::json!({"id": 0, "method": AUTHENTICATE, "params": params});
        let (input, mut output) = stream.into_split();
        output.write_all(format!("{first}\n").as_bytes()).await.map_err(|source| self.failed(source))?;
        let (mut input, mut line) = (BufReader::new(input), Vec::new());
        let answer = (&mut input).take(ANSWER_BYTES).read_until(b'\n', &mut line).await;
        answer.map_err(|source| self.failed(source))?;
        let answer: serde_json::Value = serde_json::from_slice(&line).unwrap_or_default();
        if answer.get("result").is_none() {
            return Err(self.refused(answer["error"]["message"].as_str().unwrap_or("it has hung up")));
        }
        Ok((Box::new(input), Box::new(output)))
    }

    async fn ws(&self, stream: TcpStream) -> Result<(Reader, Writer), DialError> {
        let request = self.address.to_string().into_client_request();
        let mut request = request.map_err(|error| self.refused(error.to_string()))?;
        request.headers_mut().insert(AUTHORIZATION, self.bearer()?);
        // The server is trusted with the size of its own messages.
        let config = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
        let connected = tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await;
        let (socket, _) = connected.map_err(|error| self.refused(explain(error)))?;
        let (near, far) = duplex(PIPE_BYTES);
        let (input, output) = tokio::io::split(far);
        let (sink, stream) = socket.split();
        tokio::spawn(async move {
            // The server closes the connection after its last message; until then it is read.
            tokio::join!(write_frames(input, sink), read_frames(stream, output));
        });
        Ok(halves(near))
    }

    async fn grpc(&self, stream: TcpStream) -> Result<(Reader, Writer), DialError> {
        let broken = |error: h2::Error| self.failed(io::Error::other(error));
        let (client, connection) = h2::client::handshake(stream).await.map_err(broken)?;
        tokio::spawn(async move {
            // Errors are reported by the streams of the connection.
            let _: Result<(), h2::Error> = connection.await;
        });
        let uri = self.address.to_string().replacen("grpc", "http", 1) + grpc::PATH;
        let request = Request::builder()
            .method(Method::POST)
            .uri(uri)
            .header(CONTENT_TYPE, "application/grpc")
            .header(TE, "trailers")
            .header(AUTHORIZATION, self.bearer()?)
            .body(())
            .map_err(|error| self.refused(error.to_string()))?;
        let mut client = client.ready().await.map_err(broken)?;
        let (response, mut sender) = client.send_request(request, false).map_err(broken)?;
        let response = response.await.map_err(broken)?;
        if let Some(why) = grpc::refusal(&response) {
            return Err(self.refused(why));
        }
        let (near, far) = duplex(PIPE_BYTES);
        let (input, mut output) = tokio::io::split(far);
        tokio::spawn(async move {
            let writing = async {
                if grpc::stream::send_lines(input, MESSAGE_BYTES, &mut sender, STALL).await.is_ok() {
                    let _: Result<(), h2::Error> = sender.send_data(Bytes::new(), true);
                }
            };
            let reading = async {
                grpc::stream::receive(response.into_body(), &mut output, usize::MAX / 2).await;
                let _: io::Result<()> = output.shutdown().await;
            };
            tokio::join!(writing, reading);
        });
        Ok(halves(near))
    }
}

fn halves(stream: DuplexStream) -> (Reader, Writer) {
    let (input, output) = tokio::io::split(stream);
    (Box::new(input), Box::new(output))
}

/// The server's reason for refusing us.
fn explain(error: tungstenite::Error) -> String {
    match error {
        tungstenite::Error::Http(response) => {
            let body = response.body().as_deref().map(String::from_utf8_lossy).unwrap_or_default();
            format!("{} {}", response.status(), body.trim())
        }
        error => error.to_string(),
    }
}

type Socket = WebSocketStream<TcpStream>;

async fn write_frames(input: ReadHalf<DuplexStream>, mut sink: SplitSink<Socket, Message>) {
    let mut lines = Lines::new(input, MESSAGE_BYTES);
    while let Ok(Some(line)) = lines.next().await {
        let Ok(text) = Utf8Bytes::try_from(Bytes::from(line)) else { break };
        if !matches!(timeout(STALL, sink.send(Message::Text(text))).await, Ok(Ok(()))) {
            return;
        }
    }
    let _: Result<Result<(), _>, _> = timeout(Duration::from_secs(1), sink.close()).await;
}

async fn read_frames(mut stream: SplitStream<Socket>, mut output: WriteHalf<DuplexStream>) {
    while let Some(Ok(message)) = stream.next().await {
        match message {
            Message::Text(text) => {
                if write_line(&mut output, text.as_bytes()).await.is_err() {
                    return;
                }
            }
            Message::Close(_) => break,
            Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
        }
    }
    let _: io::Result<()> = output.shutdown().await;
}
