//! The reading side: lines in, requests to the thread.

use std::sync::Arc;
use std::time::Duration;

use codex_dialects::eq;
use codex_log::TurnId;
use codex_log::settings::SettingsChange;
use codex_thread::{Closed, LoadedThreads, RewindOutcome, Thread, TurnStart};
use codex_wire::decision::ReviewDecision;
use codex_wire::event::{
    ConversationPathEvent, ErrorEvent, EventMsg, GetHistoryEntryResponseEvent, ListCustomPromptsResponseEvent,
    ListSkillsResponseEvent, TaskCompleteEvent, WarningEvent,
};
use codex_wire::input::UserInput;
use codex_wire::op::{
    AddToHistory, ApprovalAnswer, GetHistoryEntryRequest, ListSkills, Op, ResolveElicitation, Submission,
    TurnContextOverride, UserInputOp, UserTurn,
};
use serde_json::Value;
use tokio::io::AsyncRead;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::{Answer, User};
use codex_lines::{Line, LineReader, MAX_LINE_BYTES};

/// The byte order mark that some programs write before their first line.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// The time limit for a submission that works on files.
const FILES_TIME: Duration = Duration::from_secs(30);

/// The reading side.
pub(super) struct Reader {
    thread: Thread,
    /// The threads of child agents, whose questions the client answers too.
    children: Arc<dyn LoadedThreads>,
    user: User,
    answers: mpsc::Sender<Answer>,
    line: u64,
    /// Set to false when no more answers can arrive.
    has_input: watch::Sender<bool>,
}

/// Whether to read more lines.
#[derive(PartialEq, Eq)]
enum Next {
    GoOn,
    Stop,
}

impl Reader {
    pub(super) fn new(
        thread: Thread,
        children: Arc<dyn LoadedThreads>,
        user: User,
        answers: mpsc::Sender<Answer>,
        has_input: watch::Sender<bool>,
    ) -> Self {
        Self { thread, children, user, answers, line: 0, has_input }
    }

    /// Reads and serves submissions until the client is done.
    pub(super) async fn run<R: AsyncRead + Unpin>(mut self, mut lines: LineReader<R>) -> std::io::Result<()> {
        loop {
            let line = match lines.next().await {
                Ok(line) => line,
                Err(error) => {
                    self.thread.close().await;
                    return Err(error);
                }
            };
            self.line += 1;
            let next = match line {
                Some(Line::Whole(line)) => self.take(&line).await,
                Some(Line::TooLong { bytes, .. }) => {
                    let problem = format!("it has {bytes} bytes, and {MAX_LINE_BYTES} are allowed");
                    self.refuse(String::new(), &problem).await;
                    Next::GoOn
                }
                None => {
                    self.has_input.send_replace(false);
                    self.thread.finish().await;
                    Next::Stop
                }
            };
            if next == Next::Stop {
                return Ok(());
            }
        }
    }

    async fn take(&self, line: &[u8]) -> Next {
        if line.trim_ascii().is_empty() {
            return Next::GoOn;
        }
        match read_submission(line) {
            Ok(Submission { id, op }) => self.obey(id, op).await,
            Err((id, problem)) => {
                self.refuse(id, &problem).await;
                Next::GoOn
            }
        }
    }

    async fn obey(&self, id: String, op: Op) -> Next {
        let obeyed = match op {
            Op::UserInput(input) => self.say_after(id, input).await,
            Op::UserTurn(mut turn) => {
                let items = std::mem::take(&mut turn.items);
                self.say(id, items, turn_settings(turn)).await
            }
            Op::OverrideTurnContext(change) => self.thread.configure(override_settings(change)).await.map(drop),
            Op::ConfigureSession(change) => self.configure(id, change).await,
            Op::Interrupt => self.thread.interrupt().await.map(drop),
            Op::GetPath => {
                let path = self.thread.started().rollout.clone();
                let msg = ConversationPathEvent { conversation_id: self.thread.id(), path };
                self.answer(id, EventMsg::ConversationPath(msg)).await;
                Ok(())
            }
            Op::Shutdown => {
                self.thread.close().await;
                self.answer(id, EventMsg::ShutdownComplete).await;
                return Next::Stop;
            }
            Op::ExecApproval(answer) | Op::PatchApproval(answer) => self.approve(id, answer).await,
            Op::AddToHistory(AddToHistory { text }) => self.remember(id, text).await,
            Op::GetHistoryEntryRequest(request) => self.recall(id, request).await,
            Op::ListCustomPrompts => self.list_prompts(id).await,
            Op::ListSkills(request) => self.list_skills(id, request).await,
            Op::Review(review) => self.thread.review(TurnId::new(id), review.review_request).await,
            Op::Compact => self.thread.compact(TurnId::new(id)).await,
            Op::ListMcpTools => self.list_mcp_tools(id).await,
            Op::ResolveElicitation(answer) => self.resolve(id, answer).await,
            Op::RunUserShellCommand(shell) => self.run_user_shell(id, shell.command).await,
            Op::Undo | Op::ListModels => {
                self.warn(id, format!("`{}` is not supported by this release", op.kind())).await;
                Ok(())
            }
            Op::Other(_) => {
                let problem = format!("unknown op `{}`", op.kind());
                self.refuse(id, &problem).await;
                Ok(())
            }
        };
        if obeyed == Err(Closed) { Next::Stop } else { Next::GoOn }
    }

    async fn run_user_shell(&self, id: String, command: String) -> Result<(), Closed> {
        if !self.thread.run_user_shell(TurnId::new(id.as_str()), command, None).await? {
            self.warn(id, "a turn is running, so the command was not run".to_owned()).await;
        }
        Ok(())
    }

    async fn say(&self, id: String, items: Vec<UserInput>, change: SettingsChange) -> Result<(), Closed> {
        if items.is_empty() {
            // There is nothing to answer, but a client may wait for the end of its submission.
            self.warn(id.clone(), "the input has no items, so there is nothing to answer".to_owned()).await;
            self.answer(id, EventMsg::TaskComplete(TaskCompleteEvent::default())).await;
            return Ok(());
        }
        // The thread has warned already if it was refused, and the client still waits for the end of its submission.
        if let TurnStart::Refused(_) = self.thread.say(TurnId::new(id.clone()), items, change).await? {
            self.answer(id, EventMsg::TaskComplete(TaskCompleteEvent::default())).await;
        }
        Ok(())
    }

    /// Sends input, after the conversation was rewound if the client requests it.
    async fn say_after(&self, id: String, input: UserInputOp) -> Result<(), Closed> {
        if let Some(response) = input.last_response_id.filter(|_| !input.items.is_empty()) {
            match self.thread.go_back(response.clone()).await? {
                // In other sessions the id has no meaning, like any unknown member.
                RewindOutcome::Gone | RewindOutcome::NotKept => {}
                RewindOutcome::Unknown => {
                    // Continuing from another point than the requested one would mislead more than an error.
                    let message = format!("no turn has ended with the answer {response:?}, so the input was ignored");
                    self.answer(id.clone(), EventMsg::Error(ErrorEvent { message, codex_error_info: None })).await;
                    self.answer(id, EventMsg::TaskComplete(TaskCompleteEvent::default())).await;
                    return Ok(());
                }
            }
        }
        self.say(id, input.items, SettingsChange::default()).await
    }

    async fn approve(&self, id: String, answer: ApprovalAnswer) -> Result<(), Closed> {
        let ApprovalAnswer { id: asked, decision, .. } = answer;
        let is_taken = self.thread.answer_named(asked.clone(), decision.clone().into()).await?;
        if !is_taken && !self.answer_child(&asked, &decision).await {
            self.warn(id, format!("no single open request matches {asked:?}; name a `call_id`")).await;
        }
        Ok(())
    }

    /// Answers a question of a child agent; false if none has asked this.
    async fn answer_child(&self, asked: &str, decision: &ReviewDecision) -> bool {
        for child in self.children.loaded() {
            if child.answer_named(asked.to_owned(), decision.clone().into()).await.unwrap_or(false) {
                return true;
            }
        }
        false
    }

    /// Answers a question of an MCP server.
    async fn resolve(&self, id: String, answer: ResolveElicitation) -> Result<(), Closed> {
        let ResolveElicitation { server_name, request_id, decision: action } = answer;
        let given = codex_log::Answer::Given { action, content: None };
        if !self.thread.answer_server(server_name.clone(), request_id, given).await? {
            self.warn(id, format!("the MCP server {server_name:?} waits for no such answer")).await;
        }
        Ok(())
    }

    /// Lists the tools of MCP servers, by the names that clients of the queue know.
    async fn list_mcp_tools(&self, id: String) -> Result<(), Closed> {
        let mut offered = self.thread.list_servers().await?;
        let named = std::mem::take(&mut offered.tools).into_iter();
        offered.tools = named.map(|(name, tool)| (name.trim_start_matches("mcp__").to_owned(), tool)).collect();
        self.answer(id, EventMsg::McpListToolsResponse(offered)).await;
        Ok(())
    }

    async fn remember(&self, id: String, text: String) -> Result<(), Closed> {
        let (prompts, thread) = (self.user.prompts.clone(), self.thread.id());
        if let Err(problem) = blocking(move || prompts.add(thread, &text)).await {
            self.warn(id, format!("the prompt was not saved: {problem}")).await;
        }
        Ok(())
    }

    async fn recall(&self, id: String, request: GetHistoryEntryRequest) -> Result<(), Closed> {
        let (prompts, GetHistoryEntryRequest { offset, log_id }) = (self.user.prompts.clone(), request);
        let entry = blocking(move || Ok::<_, std::convert::Infallible>(prompts.entry(log_id, offset))).await;
        let entry = entry.unwrap_or_default();
        let answer = GetHistoryEntryResponseEvent { offset, log_id, entry };
        self.answer(id, EventMsg::GetHistoryEntryResponse(answer)).await;
        Ok(())
    }

    async fn list_prompts(&self, id: String) -> Result<(), Closed> {
        let prompts = self.user.prompts.clone();
        match blocking(move || prompts.custom()).await {
            Ok(mut custom_prompts) => {
                custom_prompts.extend(self.thread.list_server_prompts().await?);
                let answer = ListCustomPromptsResponseEvent { custom_prompts };
                self.answer(id, EventMsg::ListCustomPromptsResponse(answer)).await;
            }
            Err(problem) => self.warn(id, format!("the custom prompts cannot be read: {problem}")).await,
        }
        Ok(())
    }

    async fn list_skills(&self, id: String, request: ListSkills) -> Result<(), Closed> {
        let (config, home) = (Arc::clone(&self.user.config), self.user.home.clone());
        let own = self.thread.started().settings.cwd.clone();
        let listed = blocking(move || {
            let cwds = if request.cwds.is_empty() { vec![own] } else { request.cwds };
            let listed = cwds.iter().map(|cwd| codex_config::skill_list::list(&config, &home, cwd)).collect::<Vec<_>>();
            Ok::<_, std::convert::Infallible>(listed)
        });
        let skills = listed.await.unwrap_or_default();
        self.answer(id, EventMsg::ListSkillsResponse(ListSkillsResponseEvent { skills })).await;
        Ok(())
    }

    /// Reconfigures the session as the oldest clients did: a running turn is interrupted, and the new state is
    /// reported.
    async fn configure(&self, id: String, change: TurnContextOverride) -> Result<(), Closed> {
        let settings = self.thread.reconfigure(override_settings(change)).await?;
        let mut started = self.thread.started().clone();
        started.settings = settings;
        self.answer(id, eq::session_configured(self.thread.id(), &started)).await;
        Ok(())
    }

    async fn refuse(&self, id: String, problem: &str) {
        self.warn(id, format!("line {} is not a submission: {problem}", self.line)).await;
    }

    async fn warn(&self, id: String, message: String) {
        self.answer(id, EventMsg::Warning(WarningEvent { message })).await;
    }

    async fn answer(&self, id: String, msg: EventMsg) {
        // When the writer is gone, so is the client.
        let _: Result<(), _> = self.answers.send(Answer { id, msg }).await;
    }
}

/// Parses a line; an error comes with the id of the line if it has one.
fn read_submission(line: &[u8]) -> Result<Submission, (String, String)> {
    let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
    let value: Value = serde_json::from_slice(line).map_err(|error| {
        // The parser counts lines within this one.
        let problem = error.to_string().replace(" at line 1 column ", " at column ");
        (String::new(), problem)
    })?;
    let id = value.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    if !value.is_object() {
        return Err((id, "expected an object with `id` and `op`".to_owned()));
    }
    serde_json::from_value(value).map_err(|error| (id, error.to_string()))
}

fn turn_settings(turn: UserTurn) -> SettingsChange {
    SettingsChange {
        cwd: Some(turn.cwd),
        approval_policy: Some(turn.approval_policy),
        reviewer: None,
        sandbox_policy: Some(turn.sandbox_policy),
        model: Some(turn.model),
        effort: Some(turn.effort),
        summary: Some(turn.summary),
        output_schema: turn.final_output_json_schema,
        mode: None,
    }
}

fn override_settings(change: TurnContextOverride) -> SettingsChange {
    SettingsChange {
        cwd: change.cwd,
        approval_policy: change.approval_policy,
        reviewer: None,
        sandbox_policy: change.sandbox_policy,
        model: change.model,
        effort: change.effort,
        summary: change.summary,
        output_schema: None,
        mode: None,
    }
}

/// Runs blocking work on files; an error is reported with its cause.
async fn blocking<T: Send + 'static, E: std::error::Error + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, String> {
    let done = timeout(FILES_TIME, tokio::task::spawn_blocking(work)).await;
    let done = done.map_err(|_| format!("it took more than {} s", FILES_TIME.as_secs()))?;
    done.map_err(|error| error.to_string())?.map_err(|error| match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    })
}
