//! TCP: the first line carries the token; after that it is lines, as over standard input and output.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::time::timeout;

use crate::client_stream::TimedWriter;
use crate::limits::{Slot, TransportKind};
use crate::listener::{Client, Service, host};
use crate::peer;
use crate::proof::Hello;
use crate::token::{AUTHENTICATE, Token};

/// The error code for a client error.
const INVALID_REQUEST: i64 = -32600;
/// The error code for a server that is full.
const OVERLOADED: i64 = -32001;
/// The maximum length of the first line.
const FIRST_LINE_BYTES: u64 = 4096;
/// The number of bytes that are read from a refused client, and the time limit.
const DRAINED_BYTES: u64 = 64 * 1024;
const DRAINING: Duration = Duration::from_secs(1);

/// A line of a client that is not admitted yet.
#[derive(Deserialize)]
struct First {
    #[serde(default)]
    id: LineId,
    method: String,
    #[serde(default)]
    params: Option<Params>,
}

/// The token, or a step of the exchange of proofs.
#[derive(Deserialize)]
#[serde(untagged)]
enum Params {
    Token { token: String },
    Hello { nonce: String, address: String },
    Proof { proof: String },
}

/// The response to the first line.
#[derive(Serialize)]
struct Answer<'a> {
    id: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Accepted>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Refusal>,
}

#[derive(Serialize)]
struct Accepted {
    /// The server's part of the exchange of proofs.
    #[serde(skip_serializing_if = "Option::is_none")]
    nonce: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<String>,
}

/// The reason why a client is refused, as a JSON-RPC error.
#[derive(Serialize)]
pub(crate) struct Refusal {
    code: i64,
    message: String,
}

impl Refusal {
    /// A client error.
    fn invalid(message: &str) -> Self {
        Self { code: INVALID_REQUEST, message: message.to_owned() }
    }
}

/// Serves a new connection.
pub(crate) async fn serve<S: Service>(stream: TcpStream, client: Client, service: S) {
    let Client { token, limits, slots, mut waiting, door, takes_bearer } = client;
    let (input, output) = stream.into_split();
    let (mut input, mut output) = (BufReader::new(input), TimedWriter::new(output, limits.stall));
    let gate = Gate { token, door, takes_bearer };
    let admitted = tokio::select! {
        admitted = timeout(limits.handshake, gate.admit(&mut input, &mut output)) => {
            admitted.unwrap_or_else(|_| Err(Refused::late()))
        }
        () = waiting.lost() => {
            let text = "too many connections that have not shown a token; retry later";
            return refuse(&mut output, None, overloaded(text)).await;
        }
    };
    let id = match admitted {
        Ok(id) => id,
        Err(Refused { id, error, is_read }) => {
            refuse(&mut output, id.as_deref(), error).await;
            if is_read {
                drain(input, waiting).await;
            }
            return;
        }
    };
    let place = match slots.serve(TransportKind::Ip, limits.quiet) {
        Ok(place) => place,
        Err(full) => {
            refuse(&mut output, id.as_deref(), overloaded(full)).await;
            return drain(input, waiting).await;
        }
    };
    drop(waiting);
    let accepted = Accepted { nonce: None, proof: None };
    if say(&mut output, &Answer { id: id.as_deref(), result: Some(accepted), error: None }).await.is_ok() {
        let has_hung_up = |input: &BufReader<OwnedReadHalf>| peer::has_hung_up(input.get_ref().as_ref());
        host(&service, (input, has_hung_up), Box::new(output), place).await;
    }
}

/// The id of a line, which its answer repeats.
type LineId = Option<Box<RawValue>>;

/// A client that is not admitted.
struct Refused {
    id: LineId,
    error: Refusal,
    /// Whether it has sent a line, and may have sent more.
    is_read: bool,
}

impl Refused {
    fn late() -> Self {
        Self { id: None, error: Refusal::invalid("no token arrived in time"), is_read: false }
    }

    fn wrong(id: LineId) -> Self {
        let text = "the first line must be {\"id\":0,\"method\":\"authenticate\",\"params\":{\"token\":TOKEN}} with the right token";
        Self { id, error: Refusal::invalid(text), is_read: true }
    }
}

/// The check of a client that sends lines.
struct Gate {
    token: Option<Token>,
    door: Option<SocketAddr>,
    takes_bearer: bool,
}

impl Gate {
    /// Reads lines until the client has shown the token, or has proved that it knows it; returns the id of the last.
    async fn admit<R, W>(&self, input: &mut R, output: &mut W) -> Result<LineId, Refused>
    where
        R: AsyncBufRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let (id, params) = read_line(input).await?;
        let Some(token) = &self.token else { return Err(Refused::wrong(id)) };
        let hello = match params {
            Params::Token { token: shown } if self.takes_bearer && token.is(&shown) => return Ok(id),
            Params::Hello { nonce, address } => Hello { nonce, address },
            Params::Token { .. } | Params::Proof { .. } => return Err(Refused::wrong(id)),
        };
        let Some(exchange) = hello.answered(self.door) else { return Err(Refused::wrong(id)) };
        let part = Accepted { nonce: Some(exchange.nonce.clone()), proof: Some(exchange.proofs(token)) };
        let answer = Answer { id: id.as_deref(), result: Some(part), error: None };
        say(output, &answer).await.map_err(|_| Refused::late())?;
        let (id, params) = read_line(input).await?;
        match params {
            Params::Proof { proof } if exchange.is_proved_by_client(&proof, token) => Ok(id),
            Params::Proof { .. } | Params::Token { .. } | Params::Hello { .. } => Err(Refused::wrong(id)),
        }
    }
}

/// The next line of a client that is not admitted yet.
async fn read_line<R: AsyncBufRead + Unpin>(input: &mut R) -> Result<(LineId, Params), Refused> {
    let mut line = Vec::new();
    let read = input.take(FIRST_LINE_BYTES).read_until(b'\n', &mut line).await;
    if read.is_err() {
        return Err(Refused::late());
    }
    let Ok(first) = serde_json::from_slice::<First>(&line) else { return Err(Refused::wrong(None)) };
    match first.params {
        Some(params) if first.method == AUTHENTICATE => Ok((first.id, params)),
        _ => Err(Refused::wrong(first.id)),
    }
}

/// The error for a client without room.
pub(crate) fn overloaded(why: impl ToString) -> Refusal {
    Refusal { code: OVERLOADED, message: why.to_string() }
}

/// Sends an error as the last message.
pub(crate) async fn refuse<W: AsyncWrite + Unpin>(output: &mut W, id: Option<&RawValue>, error: Refusal) {
    tracing::debug!(code = error.code, message = error.message, "a client is refused");
    // A client that does not receive it notices the end of the connection.
    let _: std::io::Result<()> = say(output, &Answer { id, result: None, error: Some(error) }).await;
    let _: std::io::Result<()> = output.shutdown().await;
}

/// Keeps reading for a moment: closing a socket with unread data would discard the response.
async fn drain<R: AsyncRead + Unpin>(input: R, mut waiting: Slot) {
    let (mut rest, mut nowhere) = (input.take(DRAINED_BYTES), tokio::io::sink());
    tokio::select! {
        _ = timeout(DRAINING, tokio::io::copy(&mut rest, &mut nowhere)) => {}
        () = waiting.lost() => {}
    }
}

async fn say<W: AsyncWrite + Unpin>(output: &mut W, answer: &Answer<'_>) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    output.write_all(&line).await?;
    output.flush().await
}
