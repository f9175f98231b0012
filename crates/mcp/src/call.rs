//! One call of a tool of a server: it requests an approval if one is needed, waits for the server, and passes on its
//! messages.

mod sampling;

use std::sync::Arc;
use std::time::Duration;

use codex_config::{McpApprovalMode, McpServer, McpTransport};
use codex_log::item::{McpCall, McpCallEnd};
use codex_log::{Answer, Body, Elicitation, ElicitationForm, Item, ItemId, Question, QuestionId, QuestionKind, Status};
use codex_tools::context::ToolContext;
use codex_tools::grants::Grant;
use codex_tools::lifecycle::{Call, Effect, ToolOutput};
use codex_wire::decision::{ElicitationDecision, ReviewDecision};
use codex_wire::mcp::{CallToolResult, McpInvocation, Tool};
use codex_wire::policy::ApprovalKind;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use self::sampling::Sampling;
use crate::approval::{Claims, Judgement, judge};
use crate::connection::{Asks, RequestError, ServerQuestion, Told};
use crate::form_defaults::with_defaults;
use crate::in_flight::{InFlight, Step};
use crate::names;
use crate::result::{self, Telling};
use crate::server::{Ready, Server};
use crate::whole_results;

/// The maximum duration of a call, however much progress it reports.
const LONGEST: Duration = Duration::from_secs(30 * 60);
/// The time limit for the answer to a question of a server.
const ANSWER_WITHIN: Duration = Duration::from_secs(5 * 60);
/// The maximum number of times that a server may request input instead of a result.
const MOST_ROUNDS: u32 = 10;

const REJECTED: &str = "user rejected MCP tool call";

/// A tool that is called.
pub(crate) struct Target {
    pub(crate) config: Arc<McpServer>,
    pub(crate) server: Arc<Server>,
    /// Its name on the server.
    pub(crate) tool: String,
    description: Option<String>,
    pub(crate) claims: Claims,
    /// A digest of the tool and of the server: an approval is for exactly these.
    pub(crate) digest: Box<str>,
}

impl Target {
    pub(crate) fn new(config: Arc<McpServer>, server: Arc<Server>, tool: &Tool) -> Self {
        let (digest, description) = (digest(&config, tool), tool.description.clone());
        let claims = Claims::of(tool.annotations.as_ref());
        Self { config, server, tool: tool.name.clone(), description, claims, digest }
    }

    /// Whether a server still has the tool as it was offered and judged.
    fn is_unchanged(&self, ready: &Ready) -> bool {
        let now = ready.tools.iter().find(|tool| tool.name == self.tool);
        now.is_some_and(|now| digest(&self.config, now) == self.digest)
    }
}

/// A digest of a tool and of its server.
fn digest(config: &McpServer, tool: &Tool) -> Box<str> {
    let schema = tool.input_schema.to_string();
    let transport = match &config.transport {
        McpTransport::Stdio(program) => {
            let env: Vec<_> = program.env.iter().map(|(name, value)| (name, value.reveal())).collect();
            format!("{} {:?} {:?} {env:?} {:?}", program.command, program.args, program.cwd, program.env_vars)
        }
        McpTransport::Http(address) => address.url.clone(),
    };
    let annotations = tool.annotations.as_ref().map(ToString::to_string).unwrap_or_default();
    let described = tool.description.as_deref().unwrap_or_default();
    names::digest(&[&config.name, &transport, &tool.name, &schema, described, &annotations]).into()
}

/// A call.
pub(crate) struct RunningCall {
    id: ItemId,
    target: Arc<Target>,
    arguments: Value,
    cx: Arc<ToolContext>,
    is_granted: bool,
    /// The id of the current question, or of the next one.
    question: QuestionId,
    phase: Phase,
    began: Instant,
    /// The tokens of the model's answers to the server so far.
    sampled_tokens: u32,
}

enum Phase {
    /// It waits for an approval.
    Asking,
    /// It waits for the server to start.
    Waiting,
    Running(Box<Exchange>),
    /// It waits for the answer to a question of the server.
    Questioned(Box<Exchange>, ServerQuestion),
    /// It waits for the model to answer a question of the server.
    Sampling(Box<Exchange>, ServerQuestion, Sampling),
    Over,
}

/// The exchange with the server about the call.
struct Exchange {
    ready: Arc<Ready>,
    in_flight: InFlight,
    /// The deadline of the current silence of the server.
    silent_at: Instant,
    over_at: Instant,
    patience: Duration,
    /// The number of times that the server has requested input instead of a result.
    rounds: u32,
}

impl Exchange {
    fn begin(ready: Arc<Ready>, params: Value, patience: Duration) -> Result<Self, RequestError> {
        let in_flight = ready.connection.begin("tools/call", params)?;
        let now = Instant::now();
        let over_at = now + LONGEST.max(patience);
        Ok(Self { ready, in_flight, silent_at: now + patience, over_at, patience, rounds: 0 })
    }

    /// Waits for the next step. Cancel safe.
    async fn next(&mut self) -> Step {
        let until = self.silent_at.min(self.over_at);
        let step = timeout_at(until, self.in_flight.next()).await;
        if let Ok(Step::Told(_)) = &step {
            self.silent_at = Instant::now() + self.patience;
        }
        step.unwrap_or(Step::Ended(Err(RequestError::Timeout(self.patience))))
    }
}

impl RunningCall {
    pub(crate) fn new(
        id: ItemId,
        target: &Arc<Target>,
        arguments: Value,
        cx: &Arc<ToolContext>,
        is_granted: bool,
    ) -> Self {
        Self {
            question: QuestionId::first(id.clone()),
            id,
            target: Arc::clone(target),
            arguments,
            cx: Arc::clone(cx),
            is_granted,
            phase: Phase::Over,
            began: Instant::now(),
            sampled_tokens: 0,
        }
    }

    fn item(&self, status: Status, result: Option<Result<CallToolResult, String>>) -> Item {
        let duration = self.began.elapsed();
        Item::McpCall(Arc::new(McpCall {
            id: self.id.clone(),
            invocation: self.invocation(),
            status,
            end: result.map(|result| McpCallEnd { duration, result }),
        }))
    }

    fn invocation(&self) -> McpInvocation {
        McpInvocation {
            server: self.target.config.name.clone(),
            tool: self.target.tool.clone(),
            arguments: Some(self.arguments.clone()),
        }
    }

    fn ask(&self, kind: QuestionKind, deadline: Option<Duration>) -> Effect {
        Effect::Ask(Question { id: self.question.clone(), reason: None, kind, deadline })
    }

    /// Records the answer to the current question.
    fn note(&mut self, answer: Answer, item: Option<Item>) -> Effect {
        let next = self.question.next();
        let question = std::mem::replace(&mut self.question, next);
        Effect::Emit(Body::Answered { question, answer, item })
    }

    fn end(&mut self, status: Status, result: Result<CallToolResult, String>, output: ToolOutput) -> Vec<Effect> {
        self.phase = Phase::Over;
        vec![Effect::Emit(Body::ItemCompleted(self.item(status, Some(result)))), Effect::End(output)]
    }

    fn decline(&mut self, why: &str) -> Vec<Effect> {
        self.end(Status::Declined, Err(why.to_owned()), ToolOutput::Text(why.to_owned()))
    }

    fn fail(&mut self, why: &str) -> Vec<Effect> {
        let Target { config, tool, .. } = &*self.target;
        let text = format!("the tool `{tool}` of the MCP server `{}` failed: {why}", config.name);
        self.end(Status::Failed, Err(why.to_owned()), ToolOutput::Text(text))
    }

    /// Whether a person has allowed the tool in an earlier session. A tool that is to be asked about every time is not.
    fn is_allowed_for_good(&self) -> bool {
        let Target { config, server, tool, digest, .. } = &*self.target;
        config.approval_of(tool) != McpApprovalMode::Prompt && server.approvals.allow(digest)
    }

    /// Sends the call to a server that has started.
    fn send(&mut self, ready: Arc<Ready>) -> Option<Vec<Effect>> {
        if !self.target.is_unchanged(&ready) {
            return Some(self.fail("the tool has changed since it was offered; look at it again, and repeat the call"));
        }
        self.began = Instant::now();
        let params = json!({"name": self.target.tool, "arguments": self.arguments});
        match Exchange::begin(ready, params, self.target.config.tool_timeout) {
            Ok(exchange) => {
                self.phase = Phase::Running(Box::new(exchange));
                None
            }
            Err(error) => Some(self.fail(&error.to_string())),
        }
    }

    fn step(&mut self, step: Step) -> Vec<Effect> {
        match step {
            Step::Told(Told::Progress(message)) if message.is_empty() => Vec::new(),
            Step::Told(Told::Progress(message)) => {
                vec![Effect::Emit(Body::CallProgressed { item: self.id.clone(), message })]
            }
            Step::Told(Told::Asked(question)) => self.questioned(question),
            Step::Ended(Ok(answer)) => self.answered_by_server(answer),
            Step::Ended(Err(error)) => self.fail(&error.to_string()),
        }
    }

    fn answered_by_server(&mut self, answer: Value) -> Vec<Effect> {
        if answer["resultType"] == "input_required" {
            return self.input_required(&answer);
        }
        let telling =
            Telling { most_bytes: self.cx.output_bytes(), took: self.cx.tells_time().then(|| self.began.elapsed()) };
        let kept = result::is_cut(&answer, telling.most_bytes)
            .then(|| whole_results::keep(&self.target.server.results, &answer));
        let result = result::read(answer);
        let mut output = result::for_model(&result, telling);
        if let Some(path) = kept {
            output = whole_results::with_path(output, &path);
        }
        let status = if result.is_error == Some(true) { Status::Failed } else { Status::Completed };
        self.end(status, Ok(result), output)
    }

    /// A server without sessions requests input before it answers.
    fn input_required(&mut self, answer: &Value) -> Vec<Effect> {
        let Phase::Running(exchange) = &mut self.phase else { return Vec::new() };
        exchange.rounds += 1;
        let first = answer["inputRequests"].as_object().and_then(|requests| requests.iter().next());
        match first {
            Some((name, request)) if exchange.rounds <= MOST_ROUNDS => {
                let method = request["method"].as_str().unwrap_or_default().to_owned();
                let asks = match &*method {
                    "elicitation/create" => Asks::User,
                    "sampling/createMessage" if self.target.config.sampling.is_some() => Asks::Model,
                    _ => return self.fail(&format!("the server asks for `{method}`, which is not supported")),
                };
                // The answer is sent with the call, which is repeated; see `reply_with`.
                let id = json!({"input": name, "state": answer["requestState"]});
                self.questioned(ServerQuestion { id, asks, params: request["params"].clone() })
            }
            _ => self.fail("the server asks for input again and again"),
        }
    }

    /// Asks a person the question of the server, or declines it if nobody may be asked.
    fn questioned(&mut self, question: ServerQuestion) -> Vec<Effect> {
        let Phase::Running(exchange) = std::mem::replace(&mut self.phase, Phase::Over) else { return Vec::new() };
        self.phase = Phase::Questioned(exchange, question);
        let server = &self.target.config.name;
        let silence = self.cx.settings.approval_policy.silence(ApprovalKind::Mcp);
        let nobody = silence.map(str::to_owned).or_else(|| self.cx.absent_reviewer());
        if let Some(why) = nobody {
            let message = format!("a question of the MCP server `{server}` was declined: {why}");
            let mut effects = vec![Effect::Emit(Body::Warning { message })];
            effects.extend(self.decline_question());
            return effects;
        }
        let Phase::Questioned(_, question) = &self.phase else { return Vec::new() };
        let text = |key: &str| question.params[key].as_str().unwrap_or_default().to_owned();
        let form = if question.asks == Asks::Model {
            ElicitationForm::Schema(json!({"type": "object", "properties": {}}))
        } else if question.params["mode"] == "url" {
            ElicitationForm::Url { url: text("url"), id: text("elicitationId") }
        } else {
            ElicitationForm::Schema(question.params["requestedSchema"].clone())
        };
        let (id, server) = (question.request_id(), server.clone());
        let message = match question.asks {
            Asks::User => text("message"),
            Asks::Model => sampling::shown(&server, question),
        };
        let asked = Elicitation { server, id, message, form };
        let deadline = self.cx.answer_within().unwrap_or(ANSWER_WITHIN);
        vec![self.ask(QuestionKind::Elicitation(asked), Some(deadline))]
    }

    /// Handles the decision of a person about a question of the server.
    fn reply(&mut self, action: ElicitationDecision, content: Option<Value>) -> Vec<Effect> {
        let Phase::Questioned(_, question) = &self.phase else { return Vec::new() };
        match (action, question.asks) {
            (ElicitationDecision::Accept, Asks::Model) => self.sample(),
            (ElicitationDecision::Accept, Asks::User) => {
                let content = with_defaults(content, &question.params["requestedSchema"]);
                self.reply_with(json!({"action": "accept", "content": content}))
            }
            (ElicitationDecision::Cancel, Asks::User) => self.reply_with(json!({"action": "cancel"})),
            (ElicitationDecision::Decline | ElicitationDecision::Cancel, _) => self.decline_question(),
        }
    }

    /// Declines a question of the server, which then continues with the call.
    fn decline_question(&mut self) -> Vec<Effect> {
        let Phase::Questioned(exchange, question) = &mut self.phase else { return Vec::new() };
        match (question.asks, exchange.ready.introduction.is_stateless()) {
            (Asks::User, _) => self.reply_with(json!({"action": "decline"})),
            // Such a server expects an answer of the model with the repeated call, and nothing else.
            (Asks::Model, true) => self.fail("its request to the model was declined"),
            (Asks::Model, false) => {
                exchange.in_flight.decline(question);
                self.resume()
            }
        }
    }

    /// Continues with the call after a question of the server.
    fn resume(&mut self) -> Vec<Effect> {
        if let Phase::Questioned(mut exchange, _) = std::mem::replace(&mut self.phase, Phase::Over) {
            exchange.silent_at = Instant::now() + exchange.patience;
            self.phase = Phase::Running(exchange);
        }
        Vec::new()
    }

    /// Answers the server, which then continues with the call.
    fn reply_with(&mut self, answer: Value) -> Vec<Effect> {
        let Phase::Questioned(exchange, question) = &mut self.phase else { return Vec::new() };
        match question.id["input"].as_str().filter(|_| exchange.ready.introduction.is_stateless()) {
            None => exchange.in_flight.reply(question, answer),
            Some(input) => {
                let params = json!({
                    "name": self.target.tool,
                    "arguments": self.arguments,
                    "inputResponses": {input: answer},
                    "requestState": question.id["state"],
                });
                match exchange.ready.connection.begin("tools/call", params) {
                    Ok(again) => exchange.in_flight = again,
                    Err(error) => return self.fail(&error.to_string()),
                }
            }
        }
        self.resume()
    }

    /// The approval of the tool for the session.
    fn grant(&self) -> Effect {
        let name = format!("{}.{}", self.target.config.name, self.target.tool);
        Effect::Grant(Grant::Tool { digest: self.target.digest.clone(), name })
    }

    /// Handles the decision about the call itself.
    fn decided(&mut self, answer: Answer) -> Vec<Effect> {
        let decision = answer.decision();
        let started = self.item(Status::Running, None);
        let mut effects = vec![self.note(answer, Some(started))];
        match decision {
            ReviewDecision::ApprovedForSession => {
                effects.push(self.grant());
                self.phase = Phase::Waiting;
            }
            // For tools, a change of the rules means that this one is allowed for good.
            ReviewDecision::ApprovedExecpolicyAmendment { .. } => {
                effects.push(self.grant());
                if let Err(error) = self.target.server.approvals.add(&self.target.digest) {
                    let message = format!("the approval was not stored: {error}");
                    effects.push(Effect::Emit(Body::Warning { message }));
                }
                self.phase = Phase::Waiting;
            }
            ReviewDecision::Approved => self.phase = Phase::Waiting,
            ReviewDecision::Denied | ReviewDecision::TimedOut => effects.extend(self.decline(REJECTED)),
            ReviewDecision::Abort => {
                effects.extend(self.stop());
                effects.push(Effect::EndTurn);
            }
        }
        effects
    }
}

impl Call for RunningCall {
    fn begun(&mut self) -> Vec<Effect> {
        let Target { config, tool, claims, .. } = &*self.target;
        let settings = &self.cx.settings;
        let policy = settings.approval_policy;
        let judged = judge(config.approval_of(tool), *claims, self.is_granted, policy, &settings.sandbox_policy);
        let judged = match judged {
            Judgement::Ask | Judgement::Refuse(_) if self.is_allowed_for_good() => Judgement::Run,
            Judgement::Ask => self.cx.absent_reviewer().map_or(Judgement::Ask, Judgement::Refuse),
            Judgement::Run | Judgement::Refuse(_) => judged,
        };
        let status = if judged == Judgement::Run { Status::Running } else { Status::AwaitingApproval };
        let mut effects = vec![Effect::Emit(Body::ItemStarted(self.item(status, None)))];
        match judged {
            Judgement::Run => self.phase = Phase::Waiting,
            Judgement::Ask => {
                self.phase = Phase::Asking;
                let description = self.target.description.clone();
                let kind = QuestionKind::Tool { invocation: self.invocation(), description };
                effects.push(self.ask(kind, self.cx.answer_within()));
            }
            Judgement::Refuse(why) => {
                effects.extend(self.cx.tell_of_nobody().map(Effect::Emit));
                effects.extend(self.decline(&why));
            }
        }
        effects
    }

    fn answered(&mut self, answer: Answer) -> Vec<Effect> {
        match &self.phase {
            Phase::Asking => self.decided(answer),
            Phase::Questioned(..) => {
                let (action, content) = match &answer {
                    Answer::Given { action, content } => (*action, content.clone()),
                    Answer::Decision(decision) if decision.allows() => (ElicitationDecision::Accept, None),
                    Answer::Decision(ReviewDecision::Abort) => (ElicitationDecision::Cancel, None),
                    Answer::Decision(_) | Answer::Granted { .. } | Answer::Declined => {
                        (ElicitationDecision::Decline, None)
                    }
                };
                let mut effects = vec![self.note(answer, None)];
                effects.extend(self.reply(action, content));
                effects
            }
            Phase::Waiting | Phase::Running(_) | Phase::Sampling(..) | Phase::Over => Vec::new(),
        }
    }

    fn next(&mut self) -> BoxFuture<'_, Vec<Effect>> {
        Box::pin(async move {
            loop {
                match &mut self.phase {
                    Phase::Waiting => {
                        let target = Arc::clone(&self.target);
                        let ended = match target.server.ready(target.config.startup_timeout).await {
                            Ok(ready) => self.send(ready),
                            Err(why) => Some(self.fail(&why)),
                        };
                        if let Some(effects) = ended {
                            return effects;
                        }
                    }
                    Phase::Running(exchange) => {
                        let step = exchange.next().await;
                        let effects = self.step(step);
                        if !effects.is_empty() {
                            return effects;
                        }
                    }
                    Phase::Sampling(_, _, answer) => {
                        let answer = answer.await;
                        return self.sampled(answer);
                    }
                    Phase::Asking | Phase::Questioned(..) | Phase::Over => return std::future::pending().await,
                }
            }
        })
    }

    fn stop(&mut self) -> Vec<Effect> {
        if matches!(self.phase, Phase::Over) {
            return Vec::new();
        }
        let status = if matches!(self.phase, Phase::Asking) { Status::Declined } else { Status::Failed };
        // Dropping the exchange cancels the call on the server.
        self.phase = Phase::Over;
        vec![Effect::Emit(Body::ItemCompleted(self.item(status, Some(Err("aborted".to_owned())))))]
    }

    fn may_begin_again(&self) -> bool {
        matches!(self.phase, Phase::Asking)
    }
}
