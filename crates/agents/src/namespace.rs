//! The tools of the namespace `multi_agent_v1`, over the same tree.

mod specs;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use codex_log::item::CalledAgent;
use codex_tools::call::{Concurrency, ToolCall};
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
use crate::call::{self, Caller, Outcome, Told};
use crate::handle::Inner;
use crate::roles::Roles;
use crate::spawning::{self, ChildOptions, NewChild};
use crate::task::{Details, ForkDetails};
use crate::tree::{AgentView, AwaitRequest, Reply, Request, SendRequest, SpawnRequest, Target};

pub(crate) const NAMESPACE: &str = "multi_agent_v1";
/// The shortest, usual and longest wait, in milliseconds.
const LEAST_WAIT: u64 = 10_000;
const USUAL_WAIT: u64 = 30_000;
const MOST_WAIT: u64 = 3_600_000;

/// The longest nickname.
const NICKNAME_CHARS: usize = 64;
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
        let texts: Vec<String> = self.items.iter().filter_map(item_text).collect();
        self.message.clone().or_else(|| (!texts.is_empty()).then(|| texts.join("\n")))
    }
}

/// A part of a message as text: other parts than texts are named, so that the agent can look at them.
fn item_text(item: &Value) -> Option<String> {
    let member = |name: &str| item.get(name).and_then(Value::as_str);
    if let Some(text) = member("text") {
        return Some(text.to_owned());
    }
    let named = [member("name"), member("path"), member("image_url"), member("audio_url")];
    let named: Vec<&str> = named.into_iter().flatten().filter(|name| !name.starts_with("data:")).collect();
    (!named.is_empty()).then(|| format!("[{}: {}]", member("type").unwrap_or("attachment"), named.join(" ")))
}

impl Tool for NamespaceTool {
    fn spec(&self, _: Offer) -> Option<ToolSpec> {
        (self.verb == Verb::Spawn).then(|| specs::namespace(&self.agent.shared.options.roles))
    }

    fn takes(&self, call: &ToolCall) -> bool {
        call.tool.strip_prefix(NAMESPACE).and_then(|rest| rest.strip_prefix("__")) == Some(self.verb.name())
    }

    fn concurrency(&self, _: &ToolCall) -> Concurrency {
        Concurrency::Beside
    }

    fn begin(&self, call: ToolCall, cx: &Arc<ToolContext>, _: &Grants) -> Box<dyn Call> {
        let verb = self.verb;
        let tell = |arguments: &Arguments| {
            let named = arguments.targets.iter().chain(&arguments.target).chain(&arguments.id);
            let wishes = (arguments.model.clone(), arguments.reasoning_effort.clone());
            Told {
                tool: verb.shown(),
                receivers: named.filter_map(|id| id.parse().ok()).collect(),
                prompt: arguments.prompt(),
                new_agent: (verb == Verb::Spawn).then_some(wishes),
            }
        };
        call::begin(&self.agent, &call, cx, tell, move |caller, arguments| run(caller, verb, arguments))
    }
}

async fn run(caller: Caller, verb: Verb, arguments: Arguments) -> Result<Outcome, String> {
    let agent = &*caller.agent;
    match verb {
        Verb::Spawn => spawn(&caller, &arguments).await,
        Verb::Wait => wait(agent, &arguments).await,
        Verb::Send => {
            let target = find(agent, arguments.target.as_deref()).await?;
            let (prompt, interrupt) = (arguments.prompt(), arguments.interrupt);
            let send = SendRequest { agent: target.summary.agent_id, prompt, label: None, interrupt, is_quiet: false };
            let view = agent_reply(agent, Request::Send(send), None).await?;
            let text = json!({"submission_id": ThreadId::fresh()}).to_string();
            Ok(Outcome { text, is_success: true, agents: vec![called(agent, &view)], activity: None })
        }
        Verb::Close => {
            let target = find(agent, arguments.target.as_deref()).await?;
            let view = agent_reply(agent, Request::Close(target.summary.agent_id), None).await?;
            let shown = called(agent, &view);
            let text = json!({"previous_status": agent_json::status_value(&view)}).to_string();
            Ok(Outcome { text, is_success: true, agents: vec![shown], activity: None })
        }
        Verb::Resume => {
            let target = find(agent, arguments.id.as_deref()).await?;
            let view = agent_reply(agent, Request::Reopen(target.summary.agent_id), None).await?;
            let text = json!({"status": agent_json::status_value(&view)}).to_string();
            Ok(Outcome { text, is_success: true, agents: vec![called(agent, &view)], activity: None })
        }
    }
}

async fn spawn(caller: &Caller, arguments: &Arguments) -> Result<Outcome, String> {
    let Caller { agent, cx, call_id } = caller;
    let options = ChildOptions {
        model: arguments.model.clone(),
        effort: arguments.reasoning_effort.clone(),
        role: arguments.agent_type.clone(),
        isolation: arguments.isolation.clone(),
        ..ChildOptions::default()
    };
    let roles = &agent.shared.options.roles;
    let child = spawning::new_child(&cx.settings, options, roles).await?;
    let thread = ThreadId::fresh();
    let nickname = nickname_for(&child, roles);
    let output = json!({"role": "child", "parent_thread_id": agent.thread(), "agent_id": thread}).to_string();
    let request = SpawnRequest {
        thread,
        origin: if arguments.fork_context { SubagentOrigin::Fork } else { SubagentOrigin::Spawn },
        prompt: arguments.prompt(),
        label: Some(nickname.clone()),
        task: None,
        role: child.role.clone(),
    };
    let details = Details {
        settings: child.settings,
        role: child.role,
        nickname: Some(nickname.clone()),
        instructions: child.instructions,
        fork: arguments.fork_context.then_some(ForkDetails { call_id: call_id.clone(), output, turns: None }),
        isolation: child.isolation,
    };
    let view = agent_reply(agent, Request::Spawn(request), Some(details)).await?;
    let text = json!({"agent_id": thread, "nickname": nickname}).to_string();
    let started = CalledAgent { status: AgentState::PendingInit, message: None, ..called(agent, &view) };
    Ok(Outcome { text, is_success: true, agents: vec![started], activity: None })
}

/// The nickname of a new agent: one of its role, or the next one.
pub(crate) fn nickname_for(child: &NewChild, roles: &Roles) -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let own = child.role.as_deref().map(|role| roles.nicknames(role)).unwrap_or_default();
    match own.get(next % own.len().max(1)).map(|name| name.trim()).filter(|name| !name.is_empty()) {
        Some(name) => name.chars().take(NICKNAME_CHARS).collect(),
        None => NICKNAMES[next % NICKNAMES.len()].to_owned(),
    }
}

/// The time of a wait, in milliseconds.
pub(crate) fn wait_time(asked: Option<u64>) -> Result<u64, String> {
    let timeout_ms = asked.unwrap_or(USUAL_WAIT);
    let is_allowed = (LEAST_WAIT..=MOST_WAIT).contains(&timeout_ms);
    is_allowed.then_some(timeout_ms).ok_or_else(|| format!("timeout_ms must be between {LEAST_WAIT} and {MOST_WAIT}"))
}

async fn wait(agent: &Inner, arguments: &Arguments) -> Result<Outcome, String> {
    let timeout_ms = wait_time(arguments.timeout_ms)?;
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
        return Ok(Outcome { text, is_success: true, agents: Vec::new(), activity: None });
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
    Ok(Outcome { text, is_success: true, agents, activity: None })
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
    CalledAgent { thread, nickname, role: view.summary.agent_role.clone(), status, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_in_parts_names_those_that_are_no_texts() {
        let items = vec![
            json!({"type": "text", "text": "Look at"}),
            json!({"type": "local_image", "path": "/w/a.png"}),
            json!({"type": "mention", "name": "app", "path": "app://x"}),
            json!({"type": "image", "image_url": "data:image/png;base64,AA=="}),
        ];
        let arguments = Arguments { items, ..Arguments::default() };
        let expected = "Look at\n[local_image: /w/a.png]\n[mention: app app://x]";
        assert_eq!(arguments.prompt().as_deref(), Some(expected));
    }

    #[test]
    fn an_id_that_is_none_is_refused_in_a_few_words() {
        let long = "x".repeat(1_000_000);
        let error = parsed(&long).unwrap_err();
        assert!(error.starts_with("invalid agent id xxx") && error.len() < 300, "{}", error.len());
    }
}
