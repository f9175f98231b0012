//! A turn of a thread that another server has open, driven over the protocol of the app-server.
//!
//! The messages for the client are the legacy events of that protocol as they are. Approval requests come in both
//! dialects: the one of v1 has everything that an elicitation shows and gets the answer, and its twin of v2 names the
//! turn and is withdrawn when somebody else has answered.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use codex_lines::{Line, LineReader, Outbox, encoded};
use codex_log::{Elicitation, ElicitationForm, ItemId, Question, QuestionId, QuestionKind};
use codex_protocol::rpc::Incoming;
use codex_protocol::v2::request::{McpElicitationParams, ServerRequest};
use codex_thread::BoxFuture;
use codex_wire::event::EventMsg;
use codex_wire::foreign_json;
use codex_wire::ids::{RequestId, ThreadId};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{DuplexStream, ReadHalf};
use tokio::time::timeout;

use super::asker::{Asker, RelayedRequest};
use super::followed::{Change, Happening};
use super::tool::ToolResult;

/// The time limit for the other server to load the thread and to accept the prompt.
const BEGINNING: Duration = Duration::from_secs(60);
/// The messages of a server have no limit, because it is as trusted as this one.
const MAX_LINE_BYTES: usize = usize::MAX / 2;
/// The notifications that only repeat legacy events.
const UNWANTED: &[&str] =
    &["item/*", "turn/started", "turn/plan/*", "turn/diff/*", "thread/tokenUsage/*", "thread/status/*"];

/// The servers that share the threads of this one.
pub trait OtherServers: fmt::Debug + Send + Sync {
    /// Connects to the server that has a thread open. `None` if this process can open the thread, or explain why nobody
    /// can.
    fn connect(&self, thread: ThreadId) -> BoxFuture<'_, Option<ServerConnection>>;
}

/// A connection that leads to another server.
#[derive(Debug)]
pub struct ServerConnection {
    /// The name of the server, for people.
    pub server: String,
    /// The protocol of the app-server, before the handshake.
    pub stream: DuplexStream,
}

/// A turn on another server.
pub(super) struct TurnElsewhere {
    thread: ThreadId,
    server: String,
    turn: String,
    lines: LineReader<ReadHalf<DuplexStream>>,
    outbox: Arc<Outbox>,
    last_request: i64,
    /// Lines that came before the turn was known.
    queue: VecDeque<Vec<u8>>,
    /// Questions whose twin has not come yet, by thread.
    unpaired: HashMap<ThreadId, VecDeque<(i64, Question)>>,
    /// The open questions, by the id of their twin.
    twins: HashMap<i64, (ThreadId, QuestionId)>,
    /// The last message of the turn, from the event that ends it.
    last_message: Option<String>,
}

/// The parameters of a legacy event.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventParams {
    id: String,
    msg: EventMsg,
    conversation_id: ThreadId,
}

#[derive(Deserialize)]
struct NotificationLine<'a> {
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

impl TurnElsewhere {
    /// Starts a turn, or joins the one that runs.
    pub(super) async fn start(
        connection: ServerConnection,
        thread: ThreadId,
        prompt: &str,
    ) -> Result<Self, ToolResult> {
        let ServerConnection { server, stream } = connection;
        let (input, output) = tokio::io::split(stream);
        let (outbox, writer) = Outbox::new(output);
        drop(tokio::spawn(writer.run()));
        let mut started = Self {
            thread,
            server,
            turn: String::new(),
            lines: LineReader::new(input),
            outbox: Arc::new(outbox),
            last_request: 0,
            queue: VecDeque::new(),
            unpaired: HashMap::new(),
            twins: HashMap::new(),
            last_message: None,
        };
        let begun = timeout(BEGINNING, started.begin(prompt)).await;
        let late = || format!("thread {thread} is open on server {}, which did not answer in time", started.server);
        match begun.unwrap_or_else(|_| Err(late())) {
            Ok(()) => Ok(started),
            Err(why) => Err(ToolResult::error(Some(thread), why)),
        }
    }

    async fn begin(&mut self, prompt: &str) -> Result<(), String> {
        let info = json!({"name": "codex-mcp-server", "title": "Codex", "version": env!("CARGO_PKG_VERSION")});
        let capabilities = json!({"dialect": "both", "optOutNotificationMethods": UNWANTED});
        self.ask("initialize", &json!({"clientInfo": info, "capabilities": capabilities})).await?;
        self.send(&json!({"method": "initialized"}));
        let thread = self.thread;
        self.ask("thread/resume", &json!({"threadId": thread, "excludeTurns": true})).await?;
        let listener = json!({"conversationId": thread, "experimentalRawEvents": true});
        self.ask("addConversationListener", &listener).await?;
        let input = json!([{"type": "text", "text": prompt}]);
        let started = self.ask("turn/start", &json!({"threadId": thread, "input": input})).await?;
        started["turn"]["id"].as_str().unwrap_or_default().clone_into(&mut self.turn);
        Ok(())
    }

    pub(super) fn thread(&self) -> ThreadId {
        self.thread
    }

    pub(super) fn turn(&self) -> &str {
        &self.turn
    }

    /// Waits for the next line; `None` when the server has hung up. Cancelling it loses nothing.
    pub(super) async fn next(&mut self) -> Option<Vec<u8>> {
        match self.queue.pop_front() {
            Some(line) => Some(line),
            None => self.read().await,
        }
    }

    async fn read(&mut self) -> Option<Vec<u8>> {
        match self.lines.next().await {
            Ok(Some(Line::Whole(line))) => Some(line),
            // The turn may have lost its end, so it counts as broken off.
            Ok(Some(Line::TooLong { .. }) | None) | Err(_) => None,
        }
    }

    fn send(&self, message: &Value) {
        self.outbox.send_answer_at_once(encoded(message));
    }

    fn request(&mut self, method: &str, params: &Value) -> i64 {
        self.last_request += 1;
        self.send(&json!({"id": self.last_request, "method": method, "params": params}));
        self.last_request
    }

    /// Sends a request and waits for its result. Other lines are kept.
    async fn ask(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        let number = self.request(method, params);
        while let Some(line) = self.read().await {
            if let Ok(Incoming::Response { id: RequestId::Integer(id), result }) = Incoming::read(&line)
                && id == number
            {
                let result = result.map_err(|error| error.message)?;
                return Ok(result.and_then(|result| foreign_json::read(result.get()).ok()).unwrap_or_default());
            }
            if self.queue.iter().map(Vec::len).sum::<usize>() + line.len() > MAX_LINE_BYTES {
                return Err(format!("server {} sent too much before its answer", self.server));
            }
            self.queue.push_back(line);
        }
        Err(self.lost().text)
    }

    fn lost(&self) -> ToolResult {
        let (thread, server) = (self.thread, &self.server);
        let why = format!(
            "thread {thread} was open on server {server}, which has ended or cannot be reached; call again to continue"
        );
        ToolResult::error(Some(thread), why)
    }

    /// Asks the server to stop the turn.
    pub(super) fn interrupt(&mut self) {
        let params = json!({"threadId": self.thread, "turnId": self.turn});
        self.request("turn/interrupt", &params);
    }

    /// Processes a line.
    pub(super) fn take(&mut self, line: Option<Vec<u8>>) -> Happening {
        let Some(line) = line else { return changed(Change::Lost(self.lost())) };
        match Incoming::read(&line) {
            Ok(Incoming::Notification { method }) => {
                let params = serde_json::from_slice(&line).ok().and_then(|line: NotificationLine<'_>| line.params);
                self.told(&method, params.map_or("{}", RawValue::get))
            }
            Ok(Incoming::Request { id: RequestId::Integer(id), method, params }) => {
                self.asked(id, &method, params.map_or("{}", RawValue::get))
            }
            Ok(Incoming::Request { .. } | Incoming::Response { .. }) | Err(_) => Happening::default(),
        }
    }

    fn told(&mut self, method: &str, params: &str) -> Happening {
        if method.starts_with("codex/event/") {
            return serde_json::from_str(params).map(|event| self.take_event(event)).unwrap_or_default();
        }
        let Ok(params) = serde_json::from_str::<Value>(params) else { return Happening::default() };
        let is_own = params["threadId"].as_str() == Some(self.thread.to_string().as_str());
        match method {
            "turn/completed" if is_own => changed(Change::TurnEnded(self.result(&params["turn"]))),
            "thread/closed" if is_own => changed(Change::Lost(self.lost())),
            "serverRequest/resolved" => {
                let twin = params["requestId"].as_i64().and_then(|number| self.twins.remove(&number));
                let answered = |(thread, question)| changed(Change::Answered { thread, question });
                twin.map(answered).unwrap_or_default()
            }
            _ => Happening::default(),
        }
    }

    /// The client sees the events of the thread itself, and not those of its child agents.
    fn take_event(&mut self, event: EventParams) -> Happening {
        let EventParams { id, msg, conversation_id } = event;
        // The end of the thread is told apart from its events.
        if conversation_id != self.thread || matches!(msg, EventMsg::ShutdownComplete) {
            return Happening::default();
        }
        if let EventMsg::TaskComplete(ended) = &msg
            && id == self.turn
        {
            self.last_message = ended.last_agent_message.as_ref().map(ToString::to_string);
        }
        Happening { messages: vec![(id, msg)], change: None }
    }

    /// The result of the turn of the call, if that is the one that has ended.
    fn result(&mut self, turn: &Value) -> Option<ToolResult> {
        if turn["id"].as_str() != Some(self.turn.as_str()) {
            return None;
        }
        let thread = self.thread;
        Some(match turn["status"].as_str() {
            Some("completed") => {
                ToolResult { thread: Some(thread), text: self.last_message.take().unwrap_or_default(), is_error: false }
            }
            Some("failed") => ToolResult::error(Some(thread), turn["error"]["message"].as_str().unwrap_or("it failed")),
            _ => ToolResult::interrupted(thread),
        })
    }

    /// Processes a request of the server.
    fn asked(&mut self, id: i64, method: &str, params: &str) -> Happening {
        match ServerRequest::read(method, params) {
            Some(Ok(ServerRequest::DynamicToolCall(_) | ServerRequest::ChatgptAuthTokensRefresh(_)) | Err(_))
            | None => {
                let why = format!("a client of codex mcp-server cannot answer {method}");
                self.send(&json!({"id": id, "error": {"code": -32601, "message": why}}));
                Happening::default()
            }
            Some(Ok(request)) => match read_question(id, request) {
                Asking::Question(thread, question) => {
                    self.unpaired.entry(thread).or_default().push_back((id, *question));
                    Happening::default()
                }
                Asking::Twin { thread, turn } => self.pair(id, thread, turn),
                Asking::Nothing => Happening::default(),
            },
        }
    }

    fn pair(&mut self, twin: i64, thread: ThreadId, turn: String) -> Happening {
        let Some((number, question)) = self.unpaired.get_mut(&thread).and_then(VecDeque::pop_front) else {
            return Happening::default();
        };
        self.twins.insert(twin, (thread, question.id.clone()));
        let asker = Asker::Elsewhere(RelayedRequest { thread, number, outbox: Arc::clone(&self.outbox) });
        changed(Change::Asked { asker, turn, question: Arc::new(question) })
    }
}

fn changed(change: Change) -> Happening {
    Happening { messages: Vec::new(), change: Some(change) }
}

/// The meaning of a request of a server.
enum Asking {
    /// A question, in the dialect whose answer counts.
    Question(ThreadId, Box<Question>),
    /// The same question again in the other dialect.
    Twin { thread: ThreadId, turn: String },
    /// A request about no thread.
    Nothing,
}

fn read_question(id: i64, request: ServerRequest) -> Asking {
    let question = |thread, item: String, reason, kind| {
        let id = QuestionId::first(ItemId::new(item));
        Asking::Question(thread, Box::new(Question { id, reason, kind, deadline: None }))
    };
    match request {
        ServerRequest::ExecCommandApproval(asked) => {
            let (argv, cwd, parsed) = (asked.command, asked.cwd, asked.parsed_cmd);
            let kind = QuestionKind::Command { argv, cwd, parsed, amendment: None };
            question(asked.conversation_id, asked.call_id, asked.reason, kind)
        }
        ServerRequest::ApplyPatchApproval(asked) => {
            let kind = QuestionKind::Patch { changes: Arc::new(asked.file_changes), grant_root: asked.grant_root };
            question(asked.conversation_id, asked.call_id, asked.reason, kind)
        }
        ServerRequest::McpServerElicitation(asked) => match (asked.thread_id.parse(), asked.turn_id.clone()) {
            (Ok(thread), None) => question(
                thread,
                format!("{}:{id}", asked.server_name),
                None,
                QuestionKind::Elicitation(form(id, asked)),
            ),
            (thread, Some(turn)) => twin(thread.ok(), turn),
            (Err(_), None) => Asking::Nothing,
        },
        ServerRequest::CommandExecutionRequestApproval(asked) => twin(asked.thread_id.parse().ok(), asked.turn_id),
        ServerRequest::FileChangeRequestApproval(asked) => twin(asked.thread_id.parse().ok(), asked.turn_id),
        ServerRequest::PermissionsRequestApproval(asked) => twin(asked.thread_id.parse().ok(), asked.turn_id),
        ServerRequest::DynamicToolCall(_) | ServerRequest::ChatgptAuthTokensRefresh(_) => Asking::Nothing,
    }
}

fn twin(thread: Option<ThreadId>, turn: String) -> Asking {
    thread.map_or(Asking::Nothing, |thread| Asking::Twin { thread, turn })
}

/// A question of an MCP server.
fn form(id: i64, asked: McpElicitationParams) -> Elicitation {
    let form = match (asked.url, asked.elicitation_id) {
        (Some(url), id) => ElicitationForm::Url { url, id: id.unwrap_or_default() },
        (None, _) => ElicitationForm::Schema(asked.requested_schema.unwrap_or_default()),
    };
    Elicitation { server: asked.server_name, id: RequestId::Integer(id), message: asked.message, form }
}
