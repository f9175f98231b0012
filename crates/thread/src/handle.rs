//! The handle that drives a thread.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use codex_log::agents::AgentsState;
use codex_log::client_tools::ToolClient;
use codex_log::settings::{Settings, SettingsChange};
use codex_log::state::ThreadState;
use codex_log::{Answer, QuestionId, ThreadStarted, TurnId};
use codex_wire::event::{McpListToolsResponseEvent, McpStartupCompleteEvent};
use codex_wire::ids::RequestId;
use codex_wire::ids::ThreadId;
use codex_wire::input::UserInput;
use codex_wire::mcp::{CallToolResult, McpInvocation};
use codex_wire::prompt::CustomPrompt;
use codex_wire::response::ResponseItem;
use codex_wire::review::ReviewRequest;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::request::{
    Closed, OpenQuestions, QuestionName, RewindOutcome, ServersRequest, ThreadRequest, TurnInput, TurnStart,
};
use crate::subscription::{Cursor, Subscription};

/// The capacity of a thread's request queue; senders wait when it is full.
const WAITING_REQUESTS: usize = 64;

/// A thread. Clones drive the same one; when the last is dropped, the thread stops.
#[derive(Debug, Clone)]
pub struct Thread {
    started: Arc<ThreadStarted>,
    /// Boxed, because a channel allocates room for about thirty of them per thread.
    requests: mpsc::Sender<Box<ThreadRequest>>,
    /// Whether somebody has asked it to end.
    is_closed: Arc<AtomicBool>,
}

impl Thread {
    /// Creates a handle with the thread's initial state, and the receiver for its task.
    #[must_use]
    pub fn new(started: Arc<ThreadStarted>) -> (Self, mpsc::Receiver<Box<ThreadRequest>>) {
        let (requests, inbox) = mpsc::channel(WAITING_REQUESTS);
        (Self { started, requests, is_closed: Arc::default() }, inbox)
    }

    #[must_use]
    pub fn id(&self) -> ThreadId {
        self.started.meta.id
    }

    /// The agents that it has started, and the mail between them and it.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn agents(&self) -> Result<Box<AgentsState>, Closed> {
        self.ask(|reply| ThreadRequest::Agents { reply }).await
    }

    /// Whether it has ended and answers nothing any more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.requests.is_closed()
    }

    /// Whether somebody has asked it to end. One that ends by itself may have been taken over by another process.
    #[must_use]
    pub fn was_closed(&self) -> bool {
        self.is_closed.load(Relaxed)
    }

    /// Its initial state.
    #[must_use]
    pub fn started(&self) -> &ThreadStarted {
        &self.started
    }

    /// Sends input: starts a turn with this id, or joins the running one.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn say(
        &self,
        turn: TurnId,
        content: Vec<UserInput>,
        change: SettingsChange,
    ) -> Result<TurnStart, Closed> {
        self.say_once(turn, TurnInput { content, change, ..TurnInput::default() }).await
    }

    /// The same, unless input with the same key was sent before.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn say_once(&self, turn: TurnId, input: TurnInput) -> Result<TurnStart, Closed> {
        let input = Box::new(input);
        self.ask(|reply| ThreadRequest::Say { turn, input, reply }).await
    }

    /// Changes the settings of later turns, and returns the result.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn configure(&self, change: SettingsChange) -> Result<Arc<Settings>, Closed> {
        let change = Box::new(change);
        self.ask(|reply| ThreadRequest::Configure { change, reply }).await
    }

    /// Stops the running turn and changes the settings, as the earliest clients do first. From then on the end of a
    /// turn names its response, new input replaces a running turn, and [`Thread::go_back`] works.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn reconfigure(&self, change: SettingsChange) -> Result<Arc<Settings>, Closed> {
        let change = Box::new(change);
        self.ask(|reply| ThreadRequest::Reconfigure { change, reply }).await
    }

    /// Rewinds the conversation to the end of the turn with this response.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn go_back(&self, response: String) -> Result<RewindOutcome, Closed> {
        self.ask(|reply| ThreadRequest::GoBack { response, reply }).await
    }

    /// Compacts the conversation, in a turn with this id. A running turn is stopped.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn compact(&self, turn: TurnId) -> Result<(), Closed> {
        self.ask(|reply| ThreadRequest::Compact { turn, reply }).await
    }

    /// Starts a review, in a turn with this id and a separate conversation. A running turn is stopped.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn review(&self, turn: TurnId, request: ReviewRequest) -> Result<(), Closed> {
        let request = Box::new(request);
        self.ask(|reply| ThreadRequest::Review { turn, request, reply }).await
    }

    /// Runs a user's shell command in a turn with this id: outside the sandbox, without an approval. The model sees it
    /// with the next input. False if a turn is running.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn run_user_shell(
        &self,
        turn: TurnId,
        command: String,
        timeout: Option<Duration>,
    ) -> Result<bool, Closed> {
        self.ask(|reply| ThreadRequest::RunUserShell { turn, command, timeout, reply }).await
    }

    /// Adds items to the conversation with the model; false if a turn is running, because they could separate calls
    /// from their outputs.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn inject(&self, items: Vec<ResponseItem>) -> Result<bool, Closed> {
        self.ask(|reply| ThreadRequest::Inject { items, reply }).await
    }

    /// Answers a question; false if it is no longer open.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn answer(&self, question: QuestionId, answer: Answer) -> Result<bool, Closed> {
        let question = QuestionName::Id(question);
        self.ask(|reply| ThreadRequest::Answer { question, answer, reply }).await
    }

    /// Answers a question of an MCP server; false if it is not open.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn answer_server(&self, server: String, id: RequestId, answer: Answer) -> Result<bool, Closed> {
        let question = QuestionName::Elicitation { server, id };
        self.ask(|reply| ThreadRequest::Answer { question, answer, reply }).await
    }

    /// Answers the question about a call, named by the call, or by its turn if that has only one open question; false
    /// if no such question is open.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn answer_named(&self, name: String, answer: Answer) -> Result<bool, Closed> {
        let question = QuestionName::CallOrTurn(name);
        self.ask(|reply| ThreadRequest::Answer { question, answer, reply }).await
    }

    /// Stops the running turn and the agents below, and returns when the turn has ended; false if neither was at work.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn interrupt(&self) -> Result<bool, Closed> {
        self.ask(|reply| ThreadRequest::Interrupt { keeps_agents: false, reply }).await
    }

    /// Stops the running turn alone; the agents below continue. False if no turn was running.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn interrupt_turn_alone(&self) -> Result<bool, Closed> {
        self.ask(|reply| ThreadRequest::Interrupt { keeps_agents: true, reply }).await
    }

    /// Drops the last turns; false if a turn is running or fewer turns are known since the last compaction.
    ///
    /// Files that the turns have changed are left alone.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn roll_back(&self, turns: usize) -> Result<bool, Closed> {
        self.ask(|reply| ThreadRequest::RollBack { turns, reply }).await
    }

    /// The running turn, if any.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn running(&self) -> Result<Option<TurnId>, Closed> {
        self.ask(|reply| ThreadRequest::Running { reply }).await
    }

    /// The folded state of the thread's log; `None` while part of it is not in the file, or not stored at all.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn state(&self) -> Result<Option<Box<ThreadState>>, Closed> {
        self.ask(|reply| ThreadRequest::State { reply }).await
    }

    /// Subscribes from now on. The subscription lists the open questions.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn subscribe(&self) -> Result<Subscription, Closed> {
        self.ask(|reply| ThreadRequest::Subscribe { after: None, reply }).await
    }

    /// Subscribes from a position in the log, if the events since are still known, or from now on.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn subscribe_after(&self, after: Cursor) -> Result<Subscription, Closed> {
        self.ask(|reply| ThreadRequest::Subscribe { after: Some(after), reply }).await
    }

    /// The tools and resources of the thread's MCP servers. Waits until each has started or failed to start.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn list_servers(&self) -> Result<McpListToolsResponseEvent, Closed> {
        self.ask(|reply| ThreadRequest::Servers(ServersRequest::List { reply })).await
    }

    /// The prompts of the thread's MCP servers. Waits until each has started or failed to.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn list_server_prompts(&self) -> Result<Vec<CustomPrompt>, Closed> {
        self.ask(|reply| ThreadRequest::Servers(ServersRequest::ListPrompts { reply })).await
    }

    /// The MCP servers that have started and those that have failed; `None` while one of them starts.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn server_startup(&self) -> Result<Option<McpStartupCompleteEvent>, Closed> {
        self.ask(|reply| ThreadRequest::Servers(ServersRequest::Startup { reply })).await
    }

    /// Calls a tool of an MCP server for a client. The model does not see it.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn call_tool(&self, invocation: McpInvocation) -> Result<Result<CallToolResult, String>, Closed> {
        let invocation = Box::new(invocation);
        self.ask(|reply| ThreadRequest::Servers(ServersRequest::CallTool { invocation, reply })).await
    }

    /// Reads a resource of an MCP server for a client.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn read_resource(&self, server: String, uri: String) -> Result<Result<Vec<Value>, String>, Closed> {
        self.ask(|reply| ThreadRequest::Servers(ServersRequest::ReadResource { server, uri, reply })).await
    }

    /// Lets a client run the tools that a client supplies to this thread, unless another that can is connected.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn offer_tool_client(&self, client: Arc<dyn ToolClient>) -> Result<(), Closed> {
        self.ask(|reply| ThreadRequest::OfferToolClient { client, reply }).await
    }

    /// The number of subscribers.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn listeners(&self) -> Result<usize, Closed> {
        self.ask(|reply| ThreadRequest::CountListeners { reply }).await
    }

    /// Waits for the running turn to end, then closes the thread like [`Thread::close`].
    pub async fn finish(&self) {
        self.is_closed.store(true, Relaxed);
        let _: Result<(), Closed> = self.ask(|reply| ThreadRequest::Finish { reply }).await;
    }

    /// Stops the thread and returns when everything is written. Its feeds end after their last event.
    pub async fn close(&self) {
        self.is_closed.store(true, Relaxed);
        // If the thread has already ended, there is nothing to close.
        let _: Result<(), Closed> = self.ask(|reply| ThreadRequest::Close { reply }).await;
    }

    /// Whether [`Thread::retire`] would close the thread.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn is_retirable(&self, questions: OpenQuestions) -> Result<bool, Closed> {
        self.ask(|reply| ThreadRequest::IsRetirable { questions, reply }).await
    }

    /// Closes the thread unless a turn is running or it has subscribers; false if it stays open. Nothing can start
    /// between the check and the end. A turn that only waits for a person does not keep it open: its questions are
    /// asked again when the thread is resumed, or the turn is interrupted if that is impossible and `questions` says
    /// so.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn retire(&self, questions: OpenQuestions) -> Result<bool, Closed> {
        self.ask(|reply| ThreadRequest::Retire { questions, reply }).await
    }

    pub(crate) async fn ask<T>(&self, request: impl FnOnce(oneshot::Sender<T>) -> ThreadRequest) -> Result<T, Closed> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(Box::new(request(reply))).await.map_err(|_| Closed)?;
        answer.await.map_err(|_| Closed)
    }
}
