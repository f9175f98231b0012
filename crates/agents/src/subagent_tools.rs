//! The nine tools `subagent_*`.

mod specs;

use std::sync::Arc;
use std::time::Duration;

use codex_log::item::CalledAgent;
use codex_tools::call::{Concurrency, ToolCall};
use codex_tools::context::ToolContext;
use codex_tools::grants::Grants;
use codex_tools::lifecycle::Call;
use codex_tools::registry::{Offer, Tool};
use codex_wire::agent::{AgentId, AgentTool, SubagentOrigin};
use codex_wire::ids::ThreadId;
use codex_wire::tool_spec::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

pub(crate) use self::specs::{CHILD_INSTRUCTIONS, ROOT_INSTRUCTIONS};
use crate::agent_json;
use crate::call::{self, Caller, Outcome, Told};
use crate::handle::Inner;
use crate::recent_events::{EventRange, KEPT};
use crate::spawning::{self, ChildOptions, NewChild};
use crate::task::{Details, ForkDetails};
use crate::tree::{
    AgentView, AwaitRequest, PruneRequest, Pruned, Reply, Request, SendRequest, SpawnRequest, summarized,
};

/// The interval of a watchdog that was given none, in seconds.
const INTERVAL: u64 = 300;
/// The number of events that `subagent_logs` returns by default.
const EVENTS: usize = 5;
/// The time limit for reading the log of an agent.
const READING_TIME: Duration = Duration::from_secs(10);

/// A tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nine {
    Spawn,
    Fork,
    SendMessage,
    List,
    Await,
    Logs,
    Cancel,
    Prune,
    Watchdog,
}

impl Nine {
    const ALL: [Self; 9] = [
        Self::Spawn,
        Self::Fork,
        Self::SendMessage,
        Self::List,
        Self::Await,
        Self::Logs,
        Self::Cancel,
        Self::Prune,
        Self::Watchdog,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Spawn => "subagent_spawn",
            Self::Fork => "subagent_fork",
            Self::SendMessage => "subagent_send_message",
            Self::List => "subagent_list",
            Self::Await => "subagent_await",
            Self::Logs => "subagent_logs",
            Self::Cancel => "subagent_cancel",
            Self::Prune => "subagent_prune",
            Self::Watchdog => "subagent_watchdog",
        }
    }

    /// The call as items name it.
    fn shown(self) -> AgentTool {
        match self {
            Self::Spawn | Self::Fork => AgentTool::SpawnAgent,
            Self::SendMessage | Self::Watchdog => AgentTool::SendMessage,
            Self::List | Self::Logs => AgentTool::ListAgents,
            Self::Await => AgentTool::Wait,
            Self::Cancel => AgentTool::InterruptAgent,
            Self::Prune => AgentTool::CloseAgent,
        }
    }
}

/// The tools of an agent. One that can start no others has only those for messages.
pub(crate) fn tools(agent: &Arc<Inner>, is_leaf: bool) -> Vec<Arc<dyn Tool>> {
    let offered = Nine::ALL.into_iter().filter(|tool| !is_leaf || matches!(tool, Nine::SendMessage | Nine::Watchdog));
    offered.map(|tool| Arc::new(NineTool { tool, agent: Arc::clone(agent) }) as Arc<dyn Tool>).collect()
}

struct NineTool {
    tool: Nine,
    agent: Arc<Inner>,
}

/// The arguments of all tools. Each reads those that it knows.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Arguments {
    agent_id: Option<u64>,
    agent_ids: Option<Vec<u64>>,
    all: Option<bool>,
    before_ms: Option<i64>,
    cancel: bool,
    completed_only: Option<bool>,
    interrupt: bool,
    interval_s: Option<u64>,
    isolation: Option<String>,
    label: Option<String>,
    limit: Option<usize>,
    max_bytes: Option<usize>,
    message: Option<String>,
    model: Option<String>,
    prompt: Option<String>,
    reason: Option<String>,
    sandbox_mode: Option<String>,
    since_ms: Option<i64>,
    timeout_s: Option<u64>,
}

impl Tool for NineTool {
    fn spec(&self, _: Offer) -> Option<ToolSpec> {
        Some(specs::spec(self.tool))
    }

    fn takes(&self, call: &ToolCall) -> bool {
        call.tool == self.tool.name()
    }

    fn concurrency(&self, _: &ToolCall) -> Concurrency {
        Concurrency::Beside
    }

    fn begin(&self, call: ToolCall, cx: &Arc<ToolContext>, _: &Grants) -> Box<dyn Call> {
        let tool = self.tool;
        let tell = |arguments: &Arguments| Told {
            tool: tool.shown(),
            receivers: Vec::new(),
            prompt: arguments.prompt.clone(),
            new_agent: None,
        };
        call::begin(&self.agent, &call, cx, tell, move |caller, arguments| run(caller, tool, arguments))
    }
}

async fn run(caller: Caller, tool: Nine, arguments: Arguments) -> Result<Outcome, String> {
    let agent = &*caller.agent;
    let id = || arguments.agent_id.map(AgentId).ok_or_else(|| "`agent_id` is required".to_owned());
    let reply = match tool {
        Nine::Spawn | Nine::Fork => return start(caller, tool, arguments).await,
        Nine::Logs => return logs(agent, id()?, &arguments).await,
        Nine::SendMessage => Request::Send(SendRequest {
            agent: id()?,
            prompt: arguments.prompt,
            label: arguments.label,
            interrupt: arguments.interrupt,
            is_quiet: false,
        }),
        Nine::List => Request::List { all: arguments.all.unwrap_or(false) },
        Nine::Await => {
            let named = arguments.agent_ids.unwrap_or_default().into_iter().chain(arguments.agent_id);
            let wait = AwaitRequest::seconds(named.map(AgentId).collect(), arguments.timeout_s);
            Request::Await(wait.map_err(|error| error.to_string())?)
        }
        Nine::Cancel => Request::Cancel { agent: id()?, reason: arguments.reason },
        Nine::Prune => {
            let all = arguments.all.unwrap_or(false);
            let agents = arguments.agent_ids.map(|ids| ids.into_iter().map(AgentId).collect::<Vec<_>>());
            let agents =
                if all { agents.filter(|agents| !agents.is_empty()) } else { Some(agents.unwrap_or_default()) };
            Request::Prune(PruneRequest { agents, completed_only: arguments.completed_only.unwrap_or(true) })
        }
        Nine::Watchdog => Request::Watch {
            agent: id()?,
            interval_s: arguments.interval_s.unwrap_or(INTERVAL),
            message: arguments.message,
            is_canceled: arguments.cancel,
        },
    };
    let reply = agent.call(reply, None).reply().await.map_err(|error| error.to_string())?;
    Ok(shown_reply(reply))
}

async fn start(caller: Caller, tool: Nine, arguments: Arguments) -> Result<Outcome, String> {
    let Caller { agent, cx, call_id } = caller;
    let options = ChildOptions {
        model: arguments.model,
        sandbox_mode: arguments.sandbox_mode,
        isolation: arguments.isolation,
        ..ChildOptions::default()
    };
    let NewChild { settings, isolation, .. } =
        spawning::new_child(&cx.settings, options, &agent.shared.options.roles).await?;
    let thread = ThreadId::fresh();
    let is_fork = tool == Nine::Fork;
    let role = |role: &str| {
        json!({
            "role": role,
            "parent_session_id": agent.thread(),
            "child_session_id": thread,
            "label": arguments.label,
            "summary": arguments.prompt.as_deref().and_then(summarized),
            "prompt": arguments.prompt,
        })
    };
    let fork = is_fork.then(|| ForkDetails { call_id, output: role("child").to_string(), turns: None });
    let details = Details {
        settings: Arc::clone(&settings),
        role: None,
        nickname: arguments.label.clone(),
        instructions: None,
        fork,
        isolation,
    };
    let payload = is_fork.then(|| role("parent"));
    let origin = if is_fork { SubagentOrigin::Fork } else { SubagentOrigin::Spawn };
    let (prompt, label) = (arguments.prompt, arguments.label);
    let request = SpawnRequest { thread, origin, prompt, label, task: None, role: None };
    let reply = agent.call(Request::Spawn(request), Some(details)).reply().await.map_err(|error| error.to_string())?;
    let Reply::Agent(view) = reply else { return Ok(shown_reply(reply)) };
    let mut card = agent_json::members_of(&view);
    card.insert("model".to_owned(), json!(settings.model));
    if let Some(payload) = payload {
        card.insert("payload".to_owned(), payload);
    }
    Ok(Outcome { text: Value::Object(card).to_string(), is_success: true, agents: vec![called(&view)], activity: None })
}

async fn logs(agent: &Inner, id: AgentId, arguments: &Arguments) -> Result<Outcome, String> {
    let reply = agent.call(Request::Look(id), None).reply().await.map_err(|error| error.to_string())?;
    let Reply::Agent(view) = reply else { return Ok(shown_reply(reply)) };
    let slice = EventRange {
        limit: arguments.limit.unwrap_or(EVENTS),
        max_bytes: arguments.max_bytes,
        since_ms: arguments.since_ms,
        before_ms: arguments.before_ms,
    };
    let thread = view.summary.session_id;
    let ring = agent.shared.ring(thread);
    if ring.lacks_earlier() {
        let host = Arc::clone(&agent.shared.host);
        // A copy of another conversation has events from before its time.
        let is_fork = view.summary.origin == SubagentOrigin::Fork;
        let since_ms = if is_fork { view.summary.started_at_ms } else { i64::MIN };
        let reading = tokio::task::spawn_blocking(move || host.stored_events(thread, since_ms, KEPT));
        let stored = timeout(READING_TIME, reading).await.map_err(|_| "the log could not be read in time")?;
        ring.put_before(stored.map_err(|error| error.to_string())?);
    }
    let mut shown = agent_json::members(json!({"session_id": thread}));
    shown.extend(agent_json::members(ring.show(slice)));
    Ok(Outcome {
        text: Value::Object(shown).to_string(),
        is_success: true,
        agents: vec![called(&view)],
        activity: None,
    })
}

/// The output of a call.
fn shown_reply(reply: Reply) -> Outcome {
    let (value, is_success, agents) = match reply {
        Reply::Agent(view) => {
            let mut card = agent_json::members_of(&view);
            if let Some(reason) = &view.reason {
                card.insert("reason".to_owned(), json!(reason));
            }
            (Value::Object(card), true, vec![called(&view)])
        }
        Reply::ToRoot { thread, label, summary } => {
            let card = json!({"session_id": thread, "agent_id": 0, "label": label, "summary": summary});
            (card, true, Vec::new())
        }
        Reply::Agents(views) => {
            let agents = views.iter().map(called).collect();
            (json!({"sessions": views.iter().map(agent_json::listed).collect::<Vec<_>>()}), true, agents)
        }
        Reply::Awaited(awaited) => {
            let view = awaited.agent.as_ref();
            let completion = view.filter(|_| awaited.is_over).and_then(|view| view.completion.as_ref());
            let shown = agent_json::awaited(view, &awaited.messages, completion, awaited.is_timed_out, false);
            (shown, !awaited.is_timed_out, view.map(called).into_iter().collect())
        }
        Reply::Pruned { request, pruned } => (pruned_value(&request, &pruned), true, Vec::new()),
        Reply::Watch { agent, interval_s, message, action } => {
            let shown =
                json!({"agent_id": agent, "interval_s": interval_s, "message": message, "action": action.word()});
            (shown, true, Vec::new())
        }
    };
    Outcome { text: value.to_string(), is_success, agents, activity: None }
}

fn pruned_value(request: &PruneRequest, pruned: &Pruned) -> Value {
    let Pruned { pruned, skipped_active, unknown } = pruned;
    let PruneRequest { agents, completed_only } = request;
    json!({
        "request": {"agent_ids": agents, "all": agents.is_none(), "completed_only": completed_only},
        "pruned": pruned,
        "skipped_active": skipped_active,
        "unknown": unknown,
        "errors": [],
        "counts": {
            "pruned": pruned.len(),
            "skipped_active": skipped_active.len(),
            "unknown": unknown.len(),
            "errors": 0,
        },
    })
}

/// An agent as items show it.
fn called(view: &AgentView) -> CalledAgent {
    let (status, message) = agent_json::state(view);
    let (thread, nickname, role) =
        (view.summary.session_id, view.summary.label.clone(), view.summary.agent_role.clone());
    CalledAgent { thread, nickname, role, status, message }
}
