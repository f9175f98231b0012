//! The chat's connections: to the app-server in this process, to the background server that has the thread open, or to a
//! server elsewhere.
//!
//! Invariant: the engine is reached only through the protocol. A question is answered by a person, or refused.

use std::path::Path;
use std::time::Duration;

use codex_client::answers::Answers;
use codex_client::approvals::Decision;
use codex_client::link::{Caller, Link};
use codex_client::{CallError, Event, Options};
use codex_transport::{Address, Token, owner};
use codex_wire::ids::RequestId;
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::task::JoinHandle;

use super::error::{ChatError, Refused};

/// The capacity of the in-memory pipe.
const PIPE_BYTES: usize = 256 * 1024;

/// The timeout of a request. Opening a long thread takes longest.
const PATIENCE: Duration = Duration::from_secs(120);

/// The time limit of a person's answer. The thread waits as long as the server lets it.
const PERSON: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The time limit for the background server to list its open threads.
const DAEMON: Duration = Duration::from_secs(3);

/// The time limit for the server to flush everything when the chat is over.
const LAST_WRITES: Duration = Duration::from_secs(30);

/// The longest line of a server. The response with a long thread is one line.
const MOST_BYTES: usize = 256 * 1024 * 1024;

/// The reason why a request fails while the connection is being restored.
const UNCONNECTED: &str = "the connection to the server is lost; try again when it is back";

/// A server in this process.
type Serving = JoinHandle<std::io::Result<()>>;

/// A connection to a server. One to a server elsewhere is restored when it breaks.
pub struct Connection {
    link: Link,
    answers: Answers,
    /// The number of breaks that the chat knows of, and whether the last one is over.
    breaks: u64,
    is_whole: bool,
    /// The server, if it runs in this process.
    server: Option<Serving>,
    /// The connection to the first server while another one is in use.
    first: Option<Box<Connection>>,
}

impl Connection {
    /// Starts a server, which serves its end of an in-memory pipe, and connects to it.
    pub async fn in_process<S>(serve: impl FnOnce(DuplexStream) -> S) -> Result<Self, ChatError>
    where
        S: Future<Output = std::io::Result<()>> + Send + 'static,
    {
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        let server = tokio::spawn(serve(theirs));
        let (reader, writer) = tokio::io::split(ours);
        let answers = Answers::default();
        let connected = codex_client::connect(reader, writer, options(), answers.approvals(0).within(PERSON)).await?;
        Ok(Self::new(Link::once(connected), answers, Some(server)))
    }

    /// Connects to a server elsewhere.
    pub async fn to(address: Address, token: Option<Token>) -> Result<Self, ChatError> {
        let (answers, options) = (Answers::default(), options());
        let of = answers.clone();
        let link = Link::dial(address, token, options, move |number| of.approvals(number).within(PERSON)).await?;
        Ok(Self::new(link, answers, None))
    }

    /// Connects to the background server if it has a thread open.
    pub(crate) async fn holding(socket: &Path, thread: &str) -> Option<Self> {
        owner(socket)?;
        let asking = async {
            let connection = Self::to(Address::Unix(Some(socket.to_owned())), None).await.ok()?;
            let open = connection.caller().raw("thread/loaded/list", json!({})).await.ok()?;
            open["data"].as_array()?.iter().any(|open| open == thread).then_some(connection)
        };
        // An unresponsive server is treated as absent.
        tokio::time::timeout(DAEMON, asking).await.ok()?
    }

    fn new(link: Link, answers: Answers, server: Option<Serving>) -> Self {
        Self { link, answers, breaks: 0, is_whole: true, server, first: None }
    }

    /// The connection to the first server: the one in this process, or the one that the user has named.
    pub(crate) fn first(&self) -> &Self {
        self.first.as_deref().unwrap_or(self)
    }

    /// Switches to another server, or back to the first one. A connection to a third one is closed; its open threads
    /// continue there.
    pub(crate) fn turn_to(&mut self, other: Option<Self>) {
        let first = self.first.take();
        match (other, first) {
            (Some(other), first) => {
                let before = std::mem::replace(self, other);
                self.first = first.or_else(|| Some(Box::new(before)));
            }
            (None, Some(first)) => *self = *first,
            (None, None) => {}
        }
    }

    /// Calls that run beside everything else.
    #[must_use]
    pub fn caller(&self) -> &Caller {
        self.link.caller()
    }

    /// Follows a thread across breaks, instead of another one.
    pub(crate) fn follow(&self, thread: &str, instead_of: Option<&str>) {
        self.link.follow(thread, instead_of);
    }

    /// Sends a request, and waits for the response. An error response is not a failure of the chat.
    pub(crate) async fn attempt(&self, method: &str, params: Value) -> Result<Result<Value, Refused>, ChatError> {
        self.read(self.caller().raw(method, params).await)
    }

    /// Sends a message under its name. `None` if the connection breaks first: then it is sent over the next one.
    pub(crate) async fn say(&self, params: Value) -> Result<Option<Result<Value, Refused>>, ChatError> {
        self.link.say(params).await.map(|answer| self.read(answer)).transpose()
    }

    /// The meaning of a response.
    fn read(&self, answer: Result<Value, CallError>) -> Result<Result<Value, Refused>, ChatError> {
        match answer {
            Ok(answer) => Ok(Ok(answer)),
            Err(CallError::Refused { message, .. }) => Ok(Err(Refused(message))),
            Err(CallError::Closed { .. }) if self.link.lasts() => Ok(Err(Refused(UNCONNECTED.to_owned()))),
            Err(CallError::Closed { .. }) => Err(ChatError::Stopped),
            Err(error) => Err(ChatError::Call(error)),
        }
    }

    pub(crate) fn answer(&self, id: &RequestId, decision: Decision) {
        self.answers.decide(self.breaks, id, decision);
    }

    /// Refuses a question that is not understood, or that needs no answer any more.
    pub(crate) fn refuse(&self, id: &RequestId) {
        self.answers.decide(self.breaks, id, Decision::deny("this client has no answer to that"));
    }

    /// Waits for the next event. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Event, ChatError> {
        let event = self.link.events().next().await.ok_or(ChatError::Stopped)?;
        Ok(self.noted(event))
    }

    /// The next event, if there is one.
    pub(crate) fn try_next(&mut self) -> Option<Event> {
        let event = self.link.events().try_next()?;
        Some(self.noted(event))
    }

    fn noted(&mut self, event: Event) -> Event {
        match event {
            Event::Disconnected => (self.breaks, self.is_whole) = (self.breaks + 1, false),
            Event::Reconnected { .. } => self.is_whole = true,
            _ => {}
        }
        event
    }

    /// Whether the connection has broken, and is not back yet.
    pub(crate) fn is_broken(&self) -> bool {
        !self.is_whole
    }

    /// Closes the connection, and waits until everything is written. A server elsewhere keeps running.
    pub(crate) async fn close(mut self) -> Result<(), ChatError> {
        self.turn_to(None);
        self.link.close();
        let Some(mut server) = self.server.take() else { return Ok(()) };
        let rest = async {
            // Remaining messages are read, so that the server can finish.
            while self.link.events().next().await.is_some() {}
            (&mut server).await
        };
        let ended = tokio::time::timeout(LAST_WRITES, rest).await.map_err(ChatError::Endless)?;
        ended.map_err(ChatError::Failed)?.map_err(ChatError::Connection)
    }
}

fn options() -> Options {
    Options {
        deadline: PATIENCE,
        unwanted: vec!["codex/event/*".to_owned()],
        line_bytes: MOST_BYTES,
        ..Options::new("codex-chat", env!("CARGO_PKG_VERSION"))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
    use tokio::sync::oneshot;

    use super::*;

    /// A server that tells something, asks something and then answers; it ends with its input and reports the answers
    /// that it got.
    async fn play(stream: DuplexStream, told: oneshot::Sender<Vec<Value>>) -> std::io::Result<()> {
        let (input, mut output) = tokio::io::split(stream);
        let (mut lines, mut answers) = (BufReader::new(input).lines(), Vec::new());
        while let Some(line) = lines.next_line().await? {
            let message: Value = serde_json::from_str(&line)?;
            let Some(method) = message["method"].as_str() else {
                answers.push(message);
                continue;
            };
            if method == "talk" {
                let params = json!({"threadId": "t", "itemId": "i", "command": "ls", "cwd": "/"});
                let asked = json!({"id": 70, "method": "item/commandExecution/requestApproval", "params": params});
                let warning = json!({"method": "warning", "params": {"threadId": "t", "message": "hot"}});
                output.write_all(format!("{warning}\n{asked}\n").as_bytes()).await?;
            }
            if let Some(id) = message.get("id") {
                output.write_all(format!("{}\n", json!({"id": id, "result": {}})).as_bytes()).await?;
            }
        }
        let _: Result<(), _> = told.send(answers);
        Ok(())
    }

    #[tokio::test]
    async fn events_arrive_in_order_and_each_question_gets_one_answer() {
        let (sender, answers) = oneshot::channel();
        let mut connection = Connection::in_process(|stream| play(stream, sender)).await.expect("it greets");
        connection.attempt("talk", json!({})).await.expect("it answers").expect("it agrees");
        assert!(matches!(connection.next().await, Ok(Event::Warning { .. })));
        let Ok(Event::Asked { id, .. }) = connection.next().await else { panic!("it asks") };
        connection.answer(&id, Decision::Allow);
        // Told once the answer is on its way.
        assert!(matches!(connection.next().await, Ok(Event::Resolved { .. })));
        connection.refuse(&id);
        connection.close().await.expect("it ends");
        assert_eq!(answers.await.expect("it tells"), [json!({"id": 70, "result": {"decision": "accept"}})]);
    }

    #[tokio::test]
    async fn a_question_that_nobody_answers_is_no_approval() {
        let (sender, answers) = oneshot::channel();
        let connection = Connection::in_process(|stream| play(stream, sender)).await.expect("it greets");
        connection.attempt("talk", json!({})).await.expect("it answers").expect("it agrees");
        connection.close().await.expect("it ends");
        let answers = answers.await.expect("it tells");
        assert!(answers.iter().all(|answer| answer["result"]["decision"] != "accept"), "{answers:?}");
    }
}
