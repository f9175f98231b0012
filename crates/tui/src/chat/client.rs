//! The chat as a client: JSON-RPC with an app-server in the same process, or with the background server that has the
//! thread open.
//!
//! Invariant: the engine is reached only through the protocol.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use codex_lines::{Line, LineReader};
use codex_protocol::rpc::Incoming;
use codex_transport::{Address, Reader, Writer, dial, owner};
use codex_wire::ids::RequestId;
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;

use super::error::{ChatError, Refused};

/// The capacity of the in-memory pipe.
const PIPE_BYTES: usize = 256 * 1024;

/// The timeout of a request. Opening a long thread takes longest.
const PATIENCE: Duration = Duration::from_secs(120);

/// The time limit for the background server to list its open threads.
const DAEMON: Duration = Duration::from_secs(3);

/// The time limit for the server to flush everything when the chat is over.
const LAST_WRITES: Duration = Duration::from_secs(30);

/// The longest line of a server, and how many bytes of messages are kept while a response is waited for. The response
/// with a long thread is one line.
const MOST_BYTES: usize = 256 * 1024 * 1024;

/// A message that is not a response.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    Notification { method: String, params: Value },
    Question { id: RequestId, method: String, params: Value },
}

/// A connection to a server.
pub struct Client {
    reader: LineReader<Reader>,
    writer: Writer,
    /// Messages that arrived while waiting for a response, and how long their lines were.
    waiting: VecDeque<(Message, usize)>,
    waiting_bytes: usize,
    /// The maximum number of bytes of a line, and of these messages.
    most: usize,
    last_id: i64,
    /// The server, if it runs in this process.
    server: Option<JoinHandle<std::io::Result<()>>>,
    /// The connection to this process's server while another server is in use.
    own: Option<Box<Client>>,
}

enum Received {
    Message(Message, usize),
    Answer { id: RequestId, result: Result<Value, Refused> },
}

impl Client {
    /// Starts a server, which serves its end of an in-memory pipe, and initializes the connection.
    pub async fn connect<S>(serve: impl FnOnce(DuplexStream) -> S) -> Result<Self, ChatError>
    where
        S: Future<Output = std::io::Result<()>> + Send + 'static,
    {
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        let server = tokio::spawn(serve(theirs));
        let (reader, writer) = tokio::io::split(ours);
        Self::greet((Box::new(reader), Box::new(writer)), Some(server), MOST_BYTES).await
    }

    /// Connects to the background server if it has a thread open.
    pub(crate) async fn holding(socket: &Path, thread: &str) -> Option<Self> {
        owner(socket)?;
        let asking = async {
            let ends = dial(&Address::Unix(Some(socket.to_owned())), None).await.ok()?;
            let mut client = Self::greet(ends, None, MOST_BYTES).await.ok()?;
            let open = client.call("thread/loaded/list", json!({})).await.ok()?;
            open["data"].as_array()?.iter().any(|open| open == thread).then_some(client)
        };
        // An unresponsive server is treated as absent.
        tokio::time::timeout(DAEMON, asking).await.ok()?
    }

    async fn greet(
        (reader, writer): (Reader, Writer),
        server: Option<JoinHandle<std::io::Result<()>>>,
        most: usize,
    ) -> Result<Self, ChatError> {
        let mut client = Self {
            reader: LineReader::with_limit(reader, most),
            writer,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            most,
            last_id: 0,
            server,
            own: None,
        };
        let info = json!({"name": "codex-chat", "title": "Codex", "version": env!("CARGO_PKG_VERSION")});
        let capabilities = json!({"experimentalApi": true, "optOutNotificationMethods": ["codex/event/*"]});
        client.call("initialize", json!({"clientInfo": info, "capabilities": capabilities})).await?;
        client.write(&json!({"method": "initialized"})).await?;
        Ok(client)
    }

    /// The connection to this process's server.
    pub(crate) fn own(&mut self) -> &mut Self {
        match self.own {
            Some(ref mut own) => own,
            None => self,
        }
    }

    /// Switches to another server, or back to this process's server. A connection to a third one is closed; its open
    /// threads continue there.
    pub(crate) fn turn_to(&mut self, other: Option<Self>) {
        let own = self.own.take();
        match (other, own) {
            (Some(other), own) => {
                let before = std::mem::replace(self, other);
                self.own = own.or_else(|| Some(Box::new(before)));
            }
            (None, Some(own)) => *self = *own,
            (None, None) => {}
        }
    }

    /// Sends a request, and waits for the response. Messages that arrive in the meantime are kept for [`Client::next`].
    ///
    /// # Errors
    /// [`ChatError::Refused`] for an error response; anything else means that the server is gone.
    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Result<Value, ChatError> {
        self.last_id += 1;
        let wanted = RequestId::Integer(self.last_id);
        self.write(&json!({"id": self.last_id, "method": method, "params": params})).await?;
        let answer = async {
            loop {
                match self.read().await? {
                    Received::Answer { id, result } if id == wanted => return Ok(result?),
                    Received::Answer { .. } => {}
                    Received::Message(message, bytes) => self.keep(message, bytes)?,
                }
            }
        };
        tokio::time::timeout(PATIENCE, answer).await.map_err(|_| ChatError::Late(method.to_owned()))?
    }

    /// Keeps a message for [`Client::next`], if there is room for it.
    fn keep(&mut self, message: Message, bytes: usize) -> Result<(), ChatError> {
        self.waiting_bytes += bytes;
        if self.waiting_bytes > self.most {
            return Err(ChatError::Flood { most: self.most });
        }
        self.waiting.push_back((message, bytes));
        Ok(())
    }

    /// Sends a request. An error response is not a failure of the chat.
    pub(crate) async fn attempt(&mut self, method: &str, params: Value) -> Result<Result<Value, Refused>, ChatError> {
        match self.call(method, params).await {
            Ok(answer) => Ok(Ok(answer)),
            Err(ChatError::Refused(refused)) => Ok(Err(refused)),
            Err(error) => Err(error),
        }
    }

    pub(crate) async fn answer(&mut self, id: &RequestId, result: Value) -> Result<(), ChatError> {
        self.write(&json!({"id": id, "result": result})).await
    }

    /// Responds that a request is not understood.
    pub(crate) async fn refuse(&mut self, id: &RequestId, why: &str) -> Result<(), ChatError> {
        self.write(&json!({"id": id, "error": {"code": codex_protocol::rpc::INVALID_REQUEST, "message": why}})).await
    }

    /// Waits for the next message. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Message, ChatError> {
        if let Some((message, bytes)) = self.waiting.pop_front() {
            self.waiting_bytes -= bytes;
            return Ok(message);
        }
        loop {
            if let Received::Message(message, _) = self.read().await? {
                return Ok(message);
            }
        }
    }

    /// Whether a message is available without waiting.
    pub(crate) fn has_next(&self) -> bool {
        !self.waiting.is_empty() || self.reader.has_line()
    }

    /// Closes the connection, and waits until everything is written. A background server keeps running.
    pub(crate) async fn close(mut self) -> Result<(), ChatError> {
        self.turn_to(None);
        let Some(mut server) = self.server.take() else { return Ok(()) };
        self.writer.shutdown().await.map_err(ChatError::Gone)?;
        let rest = async {
            // Remaining messages are read, so that the server can finish.
            while let Ok(Some(_)) = self.reader.next().await {}
            (&mut server).await
        };
        let ended = tokio::time::timeout(LAST_WRITES, rest).await.map_err(ChatError::Endless)?;
        ended.map_err(ChatError::Failed)?.map_err(ChatError::Connection)
    }

    async fn write(&mut self, message: &Value) -> Result<(), ChatError> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.writer.write_all(&line).await.map_err(ChatError::Gone)
    }

    async fn read(&mut self) -> Result<Received, ChatError> {
        let line = match self.reader.next().await.map_err(ChatError::Connection)? {
            Some(Line::Whole(line)) => line,
            Some(Line::TooLong { bytes, .. }) => return Err(ChatError::TooLong { bytes }),
            None => return Err(ChatError::Stopped),
        };
        let value = |raw: Option<&serde_json::value::RawValue>| {
            raw.map_or(Ok(Value::Null), |raw| serde_json::from_str::<Value>(raw.get()))
        };
        Ok(match Incoming::read(&line).map_err(ChatError::NoMessage)? {
            Incoming::Request { id, method, params } => {
                let question = Message::Question { id, method: method.into_owned(), params: value(params)? };
                Received::Message(question, line.len())
            }
            Incoming::Response { id, result } => {
                let result = match result {
                    Ok(result) => Ok(value(result)?),
                    Err(error) => Err(Refused(error.message)),
                };
                Received::Answer { id, result }
            }
            Incoming::Notification { method } => {
                #[derive(serde::Deserialize)]
                struct Notification {
                    #[serde(default)]
                    params: Value,
                }
                let Notification { params } = serde_json::from_slice(&line)?;
                Received::Message(Message::Notification { method: method.into_owned(), params }, line.len())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client whose server answers with these lines and then with the response.
    async fn client(lines: Vec<String>) -> Client {
        let (ours, theirs) = tokio::io::duplex(64);
        let (input, mut output) = tokio::io::split(theirs);
        drop(tokio::spawn(async move {
            let mut requests = LineReader::new(input);
            let mut waiting = Some(lines);
            while let Ok(Some(Line::Whole(line))) = requests.next().await {
                let Ok(Incoming::Request { id, method, .. }) = Incoming::read(&line) else { continue };
                let before = if method == "initialize" { None } else { waiting.take() };
                for line in before.unwrap_or_default() {
                    output.write_all(format!("{line}\n").as_bytes()).await.expect("the client reads");
                }
                let answer = json!({"id": id, "result": {}});
                output.write_all(format!("{answer}\n").as_bytes()).await.expect("the client reads");
            }
        }));
        let (reader, writer) = tokio::io::split(ours);
        Client::greet((Box::new(reader), Box::new(writer)), None, 100).await.expect("it answers")
    }

    #[tokio::test]
    async fn messages_before_a_response_are_kept_in_order() {
        let told = |number: i64| json!({"method": "told", "params": number}).to_string();
        let mut client = client(vec![told(1), told(2)]).await;
        client.call("x", json!({})).await.expect("it answers");
        assert!(client.has_next());
        for number in [1, 2] {
            let message = Message::Notification { method: "told".to_owned(), params: json!(number) };
            assert_eq!(client.next().await.expect("it is kept"), message);
        }
        assert!(!client.has_next() && client.waiting_bytes == 0);
    }

    #[tokio::test]
    async fn a_flood_of_messages_before_a_response_is_an_error() {
        let told = json!({"method": "told"}).to_string();
        let mut client = client(vec![told; 6]).await;
        let error = client.call("x", json!({})).await.expect_err("it is too much");
        assert_eq!(error.to_string(), "the server sent more than 100 bytes before it answered");
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_an_error_and_not_kept() {
        let mut client = client(vec!["x".repeat(1000)]).await;
        let error = client.call("x", json!({})).await.expect_err("it is too long");
        assert_eq!(error.to_string(), "the server sent a line of 1000 bytes");
    }
}
