//! The fake model over a WebSocket: each message is a request, and each event of its answer is a message.

use std::io;

use codex_model::scripted::{End, Entry, Step, Taken, responses_events};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::fake_model::Shared;
use crate::http::{RawRequest, Wire};

/// The WebSocket of a client.
struct Socket(WebSocketStream<TcpStream>);

/// Answers requests over a WebSocket until we close it; an error means that the client did.
pub(crate) async fn serve(shared: &Shared, mut wire: Wire, opening: RawRequest, connection: usize) -> io::Result<()> {
    let key = opening.headers.iter().find(|(name, _)| name == "sec-websocket-key").map_or("", |(_, value)| value);
    let headers = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-accept", &*derive_accept_key(key.as_bytes())),
    ];
    wire.write_head(101, &headers.map(|(name, value)| (name.to_owned(), value.to_owned()))).await?;
    let mut socket = Socket(WebSocketStream::from_raw_socket(wire.into_stream(), Role::Server, None).await);
    loop {
        let body = socket.request().await?;
        let request = RawRequest {
            method: "GET".to_owned(),
            target: opening.target.clone(),
            headers: opening.headers.clone(),
            body,
        };
        let Taken { number, entry } = shared.take(request, connection);
        tokio::time::sleep(entry.delay).await;
        match entry.end.clone() {
            End::Reset => {
                socket.answer(entry, number).await?;
                return socket.0.get_ref().set_zero_linger();
            }
            End::Cut => return socket.answer(entry, number).await,
            _ => socket.answer(entry, number).await?,
        }
    }
}

impl Socket {
    async fn request(&mut self) -> io::Result<Vec<u8>> {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => return Ok(text.as_bytes().to_vec()),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Err(io::ErrorKind::UnexpectedEof.into()),
                Some(Ok(_)) => {}
            }
        }
    }

    async fn send(&mut self, event: &Value) -> io::Result<()> {
        // A string is sent as it is.
        let text = event.as_str().map_or_else(|| event.to_string(), str::to_owned);
        self.0.send(Message::text(text)).await.map_err(io::Error::other)
    }

    async fn answer(&mut self, entry: Entry, number: Option<usize>) -> io::Result<()> {
        if let Some(plain) = &entry.plain {
            let body: Value = serde_json::from_str(&plain.body).unwrap_or_default();
            return self.send(&json!({"type": "error", "status": plain.status, "error": body["error"]})).await;
        }
        for step in responses_events(entry, number.unwrap_or_default()) {
            match step {
                Step::Event(event) => self.send(&event).await?,
                Step::Pause(span) => tokio::time::sleep(span).await,
                // Nothing but the end of the connection is expected.
                Step::Hang => drop(self.request().await?),
            }
        }
        Ok(())
    }
}
