//! Connects to a server over any transport.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, TE, WWW_AUTHENTICATE};
use http::{Method, Request};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex,
};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message, Utf8Bytes};

use crate::pipe::{Lines, MESSAGE_BYTES, PIPE_BYTES, STALL, write_line};
use crate::proof::{Exchange, Hello, SCHEME, header_parts, part};
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
    /// It is another program, or a release that takes the token as it is.
    #[error(
        "{address} did not prove that it knows the token, so the token was not sent; use --send-token if you trust that address, such as that of a forwarded port"
    )]
    Unproved { address: Address },
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

    /// The beginning of the exchange of proofs over a connection.
    fn hello(&self, stream: &TcpStream) -> Result<Hello, DialError> {
        stream.peer_addr().and_then(Hello::to).map_err(|source| self.failed(source))
    }

    /// The client's proof, once the server has given its own.
    fn prove(&self, hello: Hello, nonce: Option<&str>, proofs: Option<&str>) -> Result<String, DialError> {
        let exchange = Exchange { hello, nonce: nonce.unwrap_or_default().to_owned() };
        if exchange.is_proved_by_server(proofs.unwrap_or_default(), self.token()?) {
            Ok(exchange.proof(self.token()?))
        } else {
            Err(DialError::Unproved { address: self.address.clone() })
        }
    }

    async fn tcp(&self, stream: TcpStream) -> Result<(Reader, Writer), DialError> {
        let (token, hello) = (self.token()?, self.hello(&stream)?);
        let (input, mut output) = stream.into_split();
        let mut input = BufReader::new(input);
        if token.is_sent() {
            self.authenticate(&mut input, &mut output, json!({"token": token.reveal()})).await?;
        } else {
            let params = json!({"nonce": hello.nonce, "address": hello.address});
            let answer = self.authenticate(&mut input, &mut output, params).await?;
            let proof = self.prove(hello, answer["nonce"].as_str(), answer["proof"].as_str())?;
            self.authenticate(&mut input, &mut output, json!({"proof": proof})).await?;
        }
        Ok((Box::new(input), Box::new(output)))
    }

    /// Sends a line of the exchange, and returns the result of its answer.
    async fn authenticate(
        &self,
        input: &mut BufReader<OwnedReadHalf>,
        output: &mut OwnedWriteHalf,
        params: Value,
    ) -> Result<Value, DialError> {
        let line = json!({"id": 0, "method": AUTHENTICATE, "params": params});
        output.write_all(format!("{line}\n").as_bytes()).await.map_err(|source| self.failed(source))?;
        let mut line = Vec::new();
        let answer = input.take(ANSWER_BYTES).read_until(b'\n', &mut line).await;
        answer.map_err(|source| self.failed(source))?;
        let mut answer: Value = serde_json::from_slice(&line).unwrap_or_default();
        match answer.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => Err(self.refused(answer["error"]["message"].as_str().unwrap_or("it has hung up"))),
        }
    }

    /// The header that authenticates a request over HTTP, after a first request that exchanges nonces.
    async fn ws_header(&self, stream: &mut TcpStream) -> Result<HeaderValue, DialError> {
        if self.token()?.is_sent() {
            return self.bearer();
        }
        let hello = self.hello(stream)?;
        let request =
            format!("GET / HTTP/1.1\r\nHost: {}\r\nAuthorization: {}\r\n\r\n", hello.address, hello.to_header());
        stream.write_all(request.as_bytes()).await.map_err(|source| self.failed(source))?;
        let head = read_head(stream).await.map_err(|source| self.failed(source))?;
        self.proof_header(hello, head_field(&head, WWW_AUTHENTICATE.as_str()).as_ref())
    }

    fn proof_header(&self, hello: Hello, challenge: Option<&HeaderValue>) -> Result<HeaderValue, DialError> {
        let parts = header_parts(challenge).unwrap_or_default();
        let proof = self.prove(hello, part(&parts, "nonce"), part(&parts, "proof"))?;
        HeaderValue::from_str(&format!("{SCHEME} proof={proof}")).map_err(|error| self.refused(error.to_string()))
    }

    async fn ws(&self, mut stream: TcpStream) -> Result<(Reader, Writer), DialError> {
        let request = self.address.to_string().into_client_request();
        let mut request = request.map_err(|error| self.refused(error.to_string()))?;
        request.headers_mut().insert(AUTHORIZATION, self.ws_header(&mut stream).await?);
        let most = Some(MESSAGE_BYTES);
        let config = WebSocketConfig::default().max_message_size(most).max_frame_size(most);
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

    fn grpc_request(&self, authorization: HeaderValue) -> Result<Request<()>, DialError> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(self.address.to_string().replacen("grpc", "http", 1) + grpc::PATH)
            .header(CONTENT_TYPE, "application/grpc")
            .header(TE, "trailers")
            .header(AUTHORIZATION, authorization);
        request.body(()).map_err(|error| self.refused(error.to_string()))
    }

    async fn grpc(&self, stream: TcpStream) -> Result<(Reader, Writer), DialError> {
        let broken = |error: h2::Error| self.failed(io::Error::other(error));
        let hello = self.hello(&stream)?;
        let (client, connection) = h2::client::handshake(stream).await.map_err(broken)?;
        tokio::spawn(async move {
            // Errors are reported by the streams of the connection.
            let _: Result<(), h2::Error> = connection.await;
        });
        let mut client = client.ready().await.map_err(broken)?;
        let authorization = if self.token()?.is_sent() {
            self.bearer()?
        } else {
            let value = HeaderValue::from_str(&hello.to_header()).map_err(|error| self.refused(error.to_string()))?;
            let (response, _) = client.send_request(self.grpc_request(value)?, true).map_err(broken)?;
            let response = response.await.map_err(broken)?;
            self.proof_header(hello, response.headers().get(WWW_AUTHENTICATE))?
        };
        let mut client = client.ready().await.map_err(broken)?;
        let (response, mut sender) = client.send_request(self.grpc_request(authorization)?, false).map_err(broken)?;
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
                grpc::stream::receive(response.into_body(), &mut output, MESSAGE_BYTES).await;
                let _: io::Result<()> = output.shutdown().await;
            };
            tokio::join!(writing, reading);
        });
        Ok(halves(near))
    }
}

/// The head of a response without a body.
async fn read_head(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    // The server sends nothing more before the next request, but a stranger might.
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() as u64 >= ANSWER_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the head of the response is too long"));
        }
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

fn head_field(head: &str, name: &str) -> Option<HeaderValue> {
    let fields = head.split("\r\n").filter_map(|line| line.split_once(':'));
    let value =
        fields.filter(|(key, _)| key.trim().eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()?;
    HeaderValue::from_str(value).ok()
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
