//! The tools of the namespace `multi_agent_v1`, over the same tree.

mod specs;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use codex_log::item::CalledAgent;
use codex_tools::call::{Concurrency, ToolCall, ToolInput};
use codex_tools::context::ToolContext;
use codex_tools::grants::Grants;
use codex_tools::lifecycle::Call;
use codex_tools::registry::{Offer, Tool};
use codex_wire::agent::{AgentState, AgentTool, SubagentOrigin};
use codex_wire::ids::ThreadId;
use codex_wire::reasoning::ReasoningEffort;
use codex_wire::tool_spec::ToolSpec;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::agent_json;
use crate::call::{Outcome, RunningCall, Shown};
use crate::handle::Inner;
use crate::spawning::{self, ChildOptions};
use crate::task::Details;
use crate::tree::{AgentView, AwaitRequest, Reply, Request, SendRequest, Target};

pub(crate) const NAMESPACE: &str = "multi_agent_v1";
/// The shortest, usual and longest wait, in milliseconds.
const LEAST_WAIT: u64 = 10_000;
const USUAL_WAIT: u64 = 30_000;
const MOST_WAIT: u64 = 3_600_000;

/// The names that agents are given, in turn.
const NICKNAMES: &[&str] = &[
    "Ada", "Blaise", "Carl", "Dorothy", "Emmy", "Felix", "Grace", "Henri", "Ida", "Johann", "Karen", "Leonhard",
    "Mary", "Niels", "Olga", "Pierre", "Ruth", "Sofia", "Tycho", "Ursula", "Vera", "Wilhelm", "Xia", "Yuri", "Zelda",
];

/// A tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Spawn,
    Wait,
    Send,
    Close,
    Resume,
}

impl Verb {
    const ALL: [Self; 5] = [Self::Spawn, Self::Send, Self::Resume, Self::Wait, Self::Close];

    fn name(self) -> &'static str {
        match self {
            Self::Spawn => "spawn_agent",
            Self::Wait => "wait_agent",
            Self::Send => "send_input",
            Self::Close => "close_agent",
            Self::Resume => "resume_agent",
        }
    }

    fn shown(self) -> AgentTool {
        match self {
            Self::Spawn => AgentTool::SpawnAgent,
            Self::Wait => AgentTool::Wait,
            Self::Send => AgentTool::SendInput,
            Self::Close => AgentTool::CloseAgent,
            Self::Resume => AgentTool::ResumeAgent,
        }
    }
}

/// The tools of an agent, as one tool for each and one specification for all.
pub(crate) fn tools(agent: &Arc<Inner>) -> Vec<Arc<dyn Tool>> {
    let tool = |verb| Arc::new(NamespaceTool { verb, agent: Arc::clone(agent) }) as Arc<dyn Tool>;
    Verb::ALL.into_iter().map(tool).collect()
}

struct NamespaceTool {
    verb: Verb,
    agent: Arc<Inner>,
}

/// The arguments of all tools. Each reads those that it knows.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Arguments {
    agent_type: Option<String>,
    fork_context: bool,
    id: Option<String>,
    interrupt: bool,
    isolation: Option<String>,
    items: Vec<Value>,
    message: Option<String>,
    model: Option<String>,
    reasoning_effort: Option<ReasoningEffort>,
    target: Option<String>,
    targets: Vec<String>,
    timeout_ms: Option<u64>,
}

impl Arguments {
    /// The message: its text, or the texts of its items.
    fn prompt(&self) -> Option<String> {
        let texts: Vec<&str> = self.items.iter().filter_map(|item| item.get("text")?.as_str()).collect();
        self.message.clone().or_else(|| (!texts.is_empty()).then(|| texts.join("\n")))
    }
}

impl Tool for NamespaceTool {
    fn spec(&self, _: Offer) -> Option<ToolSpec> {
        (self.verb == Verb::Spawn).then(specs::namespace)
    }

    fn takes(&self, call: &ToolCall) -> bool {
        call.tool.strip_prefix(NAMESPACE).and_then(|rest| rest.strip_prefix("__")) == Some(self.verb.name())
    }

    fn concurrency(&self, _: &ToolCall) -> Concurrency {
        Concurrency::Beside
    }

    fn begin(&self, call: ToolCall, cx: &Arc<ToolContext>, _: &Grants) -> Box<dyn Call> {
        let text = match &call.input {
            ToolInput::Function(text) | ToolInput::Custom(text) => text.as_str(),
            ToolInput::UserShell { .. } => "",
        };
        let arguments = serde_json::from_str::<Arguments>(text);
        let (agent, verb) = (Arc::clone(&self.agent), self.verb);
        let known = arguments.as_ref().ok();
        let named = known.into_iter().flat_map(|known| known.targets.iter().chain(&known.target).chain(&known.id));
        let is_new = verb == Verb::Spawn;
        let effort = known.and_then(|known| known.reasoning_effort.clone()).or_else(|| cx.settings.effort.clone());
        let shown = Shown {
            id: call.id.clone(),
            tool: verb.shown(),
            sender: agent.thread(),
            receivers: named.filter_map(|id| id.parse().ok()).collect(),
            prompt: known.and_then(Arguments::prompt),
            model: is_new
                .then(|| known.and_then(|known| known.model.clone()).unwrap_or_else(|| cx.settings.model.clone())),
            effort: is_new.then(|| effort.unwrap_or(ReasoningEffort::Medium)),
        };
        let (cx, call_id) = (Arc::clone(cx), call.id.as_str().to_owned());
        let work = async move {
            let arguments = arguments.map_err(|error| format!("failed to parse function arguments: {error}"));
            let outcome = match arguments {
                Ok(arguments) => run(&agent, verb, arguments, &cx, call_id).await,
                Err(error) => Err(error),
            };
            outcome.unwrap_or_else(Outcome::failed)
        };
        RunningCall::begin(shown, Box::pin(work))
    }
}

async fn run(
    agent: &Inner,
    verb: Verb,
    arguments: Arguments,
    cx: &ToolContext,
    call_id: String,
) -> Result<Outcome, String> {
    match verb {
        Verb::Spawn => spawn(agent, &arguments, cx, call_id).await,
        Verb::Wait => wait(agent, &arguments).await,
        Verb::Send => {
            let target = find(agent, arguments.target.as_deref()).await?;
            let (prompt, interrupt) = (arguments.prompt(), arguments.interrupt);
            let send = SendRequest { agent: target.summary.agent_id, prompt, label: None, interrupt };
            let view = agent_reply(agent, Request::Send(send), None).await?;
            let text = json!({"submission_id": ThreadId::fresh()}).to_string();
            Ok(Outcome { text, is_success: true, agents: vec![called(agent, &view)] })
        }
        Verb::Close => {
            let target = find(agent, arguments.target.as_deref()).await?;
            let view = agent_reply(agent, Request::Close(target.summary.agent_id), None).await?;
            let shown = called(agent, &view);
            let text = json!({"previous_status": agent_json::status_value(&view)}).to_string();
            Ok(Outcome { text, is_success: true, agents: vec![shown] })
        }
        Verb::Resume => {
            let target = find(agent, arguments.id.as_deref()).await?;
            let view = agent_reply(agent, Request::Reopen(target.summary.agent_id), None).await?;
            let text = json!({"status": agent_json::status_value(&view)}).to_string();
            Ok(Outcome { text, is_success: true, agents: vec![called(agent, &view)] })
        }
    }
}

async fn spawn(agent: &Inner, arguments: &Arguments, cx: &ToolContext, call_id: String) -> Result<Outcome, String> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let effort = arguments.reasoning_effort.clone();
    let options = ChildOptions { model: arguments.model.clone(), effort, sandbox_mode: None };
    let settings = spawning::settings(&cx.settings, options)?;
    let isolation = spawning::isolation(arguments.isolation.as_deref())?;
    let thread = ThreadId::fresh();
    let nickname = NICKNAMES[NEXT.fetch_add(1, Ordering::Relaxed) % NICKNAMES.len()].to_owned();
    let origin = if arguments.fork_context { SubagentOrigin::Fork } else { SubagentOrigin::Spawn };
    let output = json!({"role": "child", "parent_thread_id": agent.thread(), "agent_id": thread}).to_string();
    let details = Details {
        settings,
        role: arguments.agent_type.clone(),
        nickname: Some(nickname.clone()),
        instructions: None,
        fork: arguments.fork_context.then_some((call_id, output)),
        isolation,
    };
    let prompt = arguments.prompt();
    let request = Request::Spawn { thread, origin, prompt, label: Some(nickname.clone()), history: 0 };
    agent_reply(agent, request, Some(details)).await?;
    let text = json!({"agent_id": thread, "nickname": nickname}).to_string();
    let started = CalledAgent { thread, nickname: Some(nickname), status: AgentState::PendingInit, message: None };
    Ok(Outcome { text, is_success: true, agents: vec![started] })
}

async fn wait(agent: &Inner, arguments: &Arguments) -> Result<Outcome, String> {
    let timeout_ms = arguments.timeout_ms.unwrap_or(USUAL_WAIT);
    if !(LEAST_WAIT..=MOST_WAIT).contains(&timeout_ms) {
        return Err(format!("timeout_ms must be between {LEAST_WAIT} and {MOST_WAIT}"));
    }
    if arguments.targets.is_empty() {
        return Err("targets must name at least one agent".to_owned());
    }
    let mut agents = Vec::new();
    let mut status = Map::new();
    for target in &arguments.targets {
        let thread = parsed(target)?;
        match find(agent, Some(target)).await {
            Ok(view) => agents.push(view.summary.agent_id),
            Err(_) => {
                status.insert(thread.to_string(), json!(AgentState::NotFound));
            }
        }
    }
    if agents.is_empty() || !status.is_empty() {
        let text = json!({"status": status, "timed_out": false}).to_string();
        return Ok(Outcome { text, is_success: true, agents: Vec::new() });
    }
    let request = AwaitRequest { agents, timeout_ms, target: Target::End };
    let reply = agent.call(Request::Await(request), None).reply().await.map_err(|error| error.to_string())?;
    let Reply::Awaited(awaited) = reply else { return Err("the wait was broken off".to_owned()) };
    let over = awaited.agents.iter().filter(|view| view.completion.is_some());
    for view in over.clone() {
        status.insert(view.summary.session_id.to_string(), agent_json::status_value(view));
    }
    let agents = over.map(|view| called(agent, view)).collect();
    let text = json!({"status": status, "timed_out": awaited.is_timed_out}).to_string();
    Ok(Outcome { text, is_success: true, agents })
}

pub(crate) async fn agent_reply(
    agent: &Inner,
    request: Request,
    details: Option<Details>,
) -> Result<AgentView, String> {
    match agent.call(request, details).reply().await {
        Ok(Reply::Agent(view)) => Ok(*view),
        Ok(_) => Err("the agent is not there any more".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn parsed(target: &str) -> Result<ThreadId, String> {
    target.parse().map_err(|error| {
        let shown: String = target.chars().take(80).collect();
        format!("invalid agent id {shown}: {error}")
    })
}

/// The agent of a thread below the caller.
pub(crate) async fn find(agent: &Inner, target: Option<&str>) -> Result<AgentView, String> {
    let target = target.ok_or("`target` is required")?;
    let thread = parsed(target)?;
    let reply = agent.call(Request::List { all: true }, None).reply().await.map_err(|error| error.to_string())?;
    let Reply::Agents(views) = reply else { return Err("no agents are known".to_owned()) };
    let found = views.into_iter().find(|view| view.summary.session_id == thread);
    found.ok_or_else(|| format!("agent with id {thread} not found"))
}

/// An agent as items show it.
pub(crate) fn called(agent: &Inner, view: &AgentView) -> CalledAgent {
    let (status, message) = agent_json::state(view);
    let thread = view.summary.session_id;
    let nickname = agent.shared.nickname(thread).or_else(|| view.summary.label.clone());
    CalledAgent { thread, nickname, status, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_is_none_is_refused_in_a_few_words() {
        let long = "x".repeat(1_000_000);
        let error = parsed(&long).unwrap_err();
        assert!(error.starts_with("invalid agent id xxx") && error.len() < 300, "{}", error.len());
    }
}
