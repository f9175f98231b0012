//! TCP: the first line carries the token; after that it is lines, as over standard input and output.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::time::timeout;

use crate::client_stream::TimedWriter;
use crate::limits::{Slot, TransportKind};
use crate::listener::{Client, Service, host};
use crate::peer;
use crate::token::AUTHENTICATE;

/// The error code for a client error.
const INVALID_REQUEST: i64 = -32600;
/// The error code for a server that is full.
const OVERLOADED: i64 = -32001;
/// The maximum length of the first line.
const FIRST_LINE_BYTES: u64 = 4096;
/// The number of bytes that are read from a refused client, and the time limit.
const DRAINED_BYTES: u64 = 64 * 1024;
const DRAINING: Duration = Duration::from_secs(1);

/// The contents of the first line.
#[derive(Deserialize)]
struct First<'a> {
    #[serde(default, borrow)]
    id: Option<&'a serde_json::value::RawValue>,
    method: String,
    params: Params,
}

#[derive(Deserialize)]
struct Params {
    token: String,
}

/// The response to the first line.
#[derive(Serialize)]
struct Answer<'a> {
    id: Option<&'a serde_json::value::RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Empty>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Refusal>,
}

#[derive(Serialize)]
struct Empty {}

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
    let Client { token, limits, slots, mut waiting, .. } = client;
    let (input, output) = stream.into_split();
    let (mut input, mut output) = (BufReader::new(input), TimedWriter::new(output, limits.stall));
    let mut line = Vec::new();
    let mut head = (&mut input).take(FIRST_LINE_BYTES);
    let read = tokio::select! {
        read = timeout(limits.handshake, head.read_until(b'\n', &mut line)) => read,
        () = waiting.lost() => {
            let text = "too many connections that have not shown a token; retry later";
            return refuse(&mut output, None, overloaded(text)).await;
        }
    };
    if !matches!(read, Ok(Ok(_))) {
        return refuse(&mut output, None, Refusal::invalid("no token arrived in time")).await;
    }
    let first = serde_json::from_slice::<First<'_>>(&line).ok().filter(|first| first.method == AUTHENTICATE);
    let id = first.as_ref().and_then(|first| first.id);
    if !first.as_ref().is_some_and(|first| token.as_ref().is_some_and(|token| token.is(&first.params.token))) {
        let text = "the first line must be {\"id\":0,\"method\":\"authenticate\",\"params\":{\"token\":TOKEN}} with the right token";
        refuse(&mut output, id, Refusal::invalid(text)).await;
        return drain(input, waiting).await;
    }
    let place = match slots.serve(TransportKind::Ip, limits.quiet) {
        Ok(place) => place,
        Err(full) => {
            refuse(&mut output, id, overloaded(full)).await;
            return drain(input, waiting).await;
        }
    };
    drop(waiting);
    if say(&mut output, &Answer { id, result: Some(Empty {}), error: None }).await.is_ok() {
        let has_hung_up = |input: &BufReader<OwnedReadHalf>| peer::has_hung_up(input.get_ref().as_ref());
        host(&service, (input, has_hung_up), Box::new(output), place).await;
    }
}

/// The error for a client without room.
pub(crate) fn overloaded(why: impl ToString) -> Refusal {
    Refusal { code: OVERLOADED, message: why.to_string() }
}

/// Sends an error as the last message.
pub(crate) async fn refuse<W: AsyncWrite + Unpin>(
    output: &mut W,
    id: Option<&serde_json::value::RawValue>,
    error: Refusal,
) {
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
