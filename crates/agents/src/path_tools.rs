//! The tools that address agents by paths, over the same tree.

mod specs;

use std::sync::Arc;

use codex_log::item::{AgentActivity, CalledAgent};
use codex_log::{ItemId, settings::Settings};
use codex_tools::call::{Concurrency, ToolCall};
use codex_tools::context::ToolContext;
use codex_tools::grants::Grants;
use codex_tools::lifecycle::Call;
use codex_tools::registry::{Offer, Tool};
use codex_wire::agent::{AgentActivityKind, AgentId, AgentState, AgentTool, SubagentOrigin};
use codex_wire::ids::ThreadId;
use codex_wire::reasoning::ReasoningEffort;
use codex_wire::tool_spec::ToolSpec;
use serde::Deserialize;
use serde_json::json;

use crate::agent_json;
use crate::call::{self, Caller, Outcome, Told};
use crate::handle::Inner;
use crate::namespace::{agent_reply, called, nickname_for, wait_time};
use crate::spawning::{self, ChildOptions};
use crate::task::{Details, ForkDetails};
use crate::tree::{AgentView, AwaitRequest, Reply, Request, SendRequest, SpawnRequest, Target};

/// A tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathVerb {
    Spawn,
    Message,
    Followup,
    Wait,
    List,
    Interrupt,
}

impl PathVerb {
    const ALL: [Self; 6] = [Self::Spawn, Self::Message, Self::Followup, Self::Wait, Self::Interrupt, Self::List];

    fn name(self) -> &'static str {
        match self {
            Self::Spawn => "spawn_agent",
            Self::Message => "send_message",
            Self::Followup => "followup_task",
            Self::Wait => "wait_agent",
            Self::List => "list_agents",
            Self::Interrupt => "interrupt_agent",
        }
    }

    fn shown(self) -> AgentTool {
        match self {
            Self::Spawn => AgentTool::SpawnAgent,
            Self::Message => AgentTool::SendMessage,
            Self::Followup => AgentTool::FollowupTask,
            Self::Wait => AgentTool::Wait,
            Self::List => AgentTool::ListAgents,
            Self::Interrupt => AgentTool::InterruptAgent,
        }
    }
}

/// The tools of an agent. One that can start no others can still answer those above.
pub(crate) fn tools(agent: &Arc<Inner>, is_leaf: bool) -> Vec<Arc<dyn Tool>> {
    let is_offered = |verb: &PathVerb| !is_leaf || matches!(verb, PathVerb::Message | PathVerb::Wait);
    let tool = |verb| Arc::new(PathTool { verb, agent: Arc::clone(agent) }) as Arc<dyn Tool>;
    PathVerb::ALL.into_iter().filter(is_offered).map(tool).collect()
}

struct PathTool {
    verb: PathVerb,
    agent: Arc<Inner>,
}

/// The arguments of all tools. Each reads those that it knows.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Arguments {
    agent_type: Option<String>,
    fork_turns: Option<String>,
    isolation: Option<String>,
    message: Option<String>,
    model: Option<String>,
    path_prefix: Option<String>,
    reasoning_effort: Option<ReasoningEffort>,
    /// Accepted, but requests name no tier.
    #[serde(rename = "service_tier")]
    _service_tier: Option<String>,
    target: Option<String>,
    task_name: Option<String>,
    timeout_ms: Option<u64>,
}

impl Tool for PathTool {
    fn spec(&self, _: Offer) -> Option<ToolSpec> {
        Some(specs::spec(self.verb, &self.agent.shared.options.roles))
    }

    fn takes(&self, call: &ToolCall) -> bool {
        call.tool == self.verb.name()
    }

    fn concurrency(&self, _: &ToolCall) -> Concurrency {
        Concurrency::Beside
    }

    fn begin(&self, call: ToolCall, cx: &Arc<ToolContext>, _: &Grants) -> Box<dyn Call> {
        let verb = self.verb;
        let tell = |arguments: &Arguments| {
            let wishes = (arguments.model.clone(), arguments.reasoning_effort.clone());
            Told {
                tool: verb.shown(),
                receivers: Vec::new(),
                prompt: arguments.message.clone(),
                new_agent: (verb == PathVerb::Spawn).then_some(wishes),
            }
        };
        call::begin(&self.agent, &call, cx, tell, move |caller, arguments| run(caller, verb, arguments))
    }
}

async fn run(caller: Caller, verb: PathVerb, arguments: Arguments) -> Result<Outcome, String> {
    let agent = &*caller.agent;
    match verb {
        PathVerb::Spawn => spawn(caller, arguments).await,
        PathVerb::Message | PathVerb::Followup => send(agent, verb, arguments).await,
        PathVerb::Wait => wait(agent, &arguments).await,
        PathVerb::List => list(agent, arguments).await,
        PathVerb::Interrupt => interrupt(agent, arguments).await,
    }
}

/// The part of the conversation that a new agent begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ForkTurns {
    None,
    All,
    Last(usize),
}

impl ForkTurns {
    fn of(text: Option<&str>) -> Result<Self, String> {
        match text.map(str::trim).filter(|text| !text.is_empty()) {
            None => Ok(Self::All),
            Some(word) if word.eq_ignore_ascii_case("all") => Ok(Self::All),
            Some(word) if word.eq_ignore_ascii_case("none") => Ok(Self::None),
            Some(number) => match number.parse() {
                Ok(turns) if turns > 0 => Ok(Self::Last(turns)),
                _ => Err("fork_turns must be `none`, `all` or the number of turns, of at least 1".to_owned()),
            },
        }
    }
}

async fn spawn(caller: Caller, arguments: Arguments) -> Result<Outcome, String> {
    let Caller { agent, cx, call_id } = caller;
    let Arguments { agent_type, fork_turns, isolation, message, model, reasoning_effort, task_name, .. } = arguments;
    let task = task_name.ok_or("`task_name` is required")?;
    let prompt = message.ok_or("`message` is required")?;
    let turns = ForkTurns::of(fork_turns.as_deref())?;
    let options =
        ChildOptions { model, effort: reasoning_effort, role: agent_type, isolation, ..ChildOptions::default() };
    let child = spawning::new_child(&cx.settings, options, &agent.shared.options.roles).await?;
    let thread = ThreadId::fresh();
    let nickname = nickname_for(&child, &agent.shared.options.roles);
    let fork = (turns != ForkTurns::None).then(|| ForkDetails {
        call_id,
        output: json!({"role": "child", "parent_thread_id": agent.thread(), "task_name": task}).to_string(),
        turns: if let ForkTurns::Last(turns) = turns { Some(turns) } else { None },
    });
    let request = SpawnRequest {
        thread,
        origin: if fork.is_some() { SubagentOrigin::Fork } else { SubagentOrigin::Spawn },
        prompt: Some(prompt),
        label: Some(nickname.clone()),
        task: Some(task),
        role: child.role.clone(),
    };
    let settings = Arc::clone(&child.settings);
    let details = Details {
        settings: child.settings,
        role: child.role,
        nickname: Some(nickname.clone()),
        instructions: child.instructions,
        fork,
        isolation: child.isolation,
    };
    let view = agent_reply(&agent, Request::Spawn(request), Some(details)).await?;
    let text = json!({"task_name": view.path, "nickname": nickname}).to_string();
    let started = CalledAgent { status: AgentState::PendingInit, message: None, ..called(&agent, &view) };
    let outcome = Outcome { text, is_success: true, agents: vec![started], activity: None };
    Ok(outcome.with_activity(activity(AgentActivityKind::Started, &view, Some(&settings))))
}

async fn send(agent: &Inner, verb: PathVerb, arguments: Arguments) -> Result<Outcome, String> {
    let target = found(agent, arguments.target).await?;
    let is_task = verb == PathVerb::Followup;
    if is_task && target.summary.agent_id == AgentId::ROOT {
        return Err("follow-up tasks cannot target the root agent; use send_message".to_owned());
    }
    let prompt = Some(arguments.message.ok_or("`message` is required")?);
    let to = target.summary.agent_id;
    let send = SendRequest { agent: to, prompt, label: None, interrupt: false, is_quiet: !is_task };
    agent.call(Request::Send(send), None).reply().await.map_err(|error| error.to_string())?;
    let agents = vec![called(agent, &target)];
    let outcome = Outcome { text: String::new(), is_success: true, agents, activity: None };
    Ok(outcome.with_activity(activity(AgentActivityKind::Interacted, &target, None)))
}

async fn wait(agent: &Inner, arguments: &Arguments) -> Result<Outcome, String> {
    let timeout_ms = wait_time(arguments.timeout_ms)?;
    let request = AwaitRequest { agents: Vec::new(), timeout_ms, target: Target::AnyMail };
    let reply = agent.call(Request::Await(request), None).reply().await.map_err(|error| error.to_string())?;
    let Reply::Awaited(awaited) = reply else { return Err("the wait was broken off".to_owned()) };
    let message = match (awaited.is_timed_out, awaited.is_interrupted) {
        (true, _) => "Wait timed out.",
        (false, true) => "Wait interrupted by new input.",
        (false, false) => "Wait completed.",
    };
    let over = awaited.agents.iter().filter(|view| view.completion.is_some());
    let agents = over.map(|view| called(agent, view)).collect();
    let text = json!({"message": message, "timed_out": awaited.is_timed_out}).to_string();
    Ok(Outcome { text, is_success: true, agents, activity: None })
}

async fn list(agent: &Inner, arguments: Arguments) -> Result<Outcome, String> {
    let prefix = arguments.path_prefix.filter(|prefix| !prefix.trim().is_empty());
    let reply = agent.call(Request::ListBelow(prefix), None).reply().await.map_err(|error| error.to_string())?;
    let Reply::Agents(views) = reply else { return Err("no agents are known".to_owned()) };
    let listed = |view: &AgentView| {
        json!({
            "agent_name": view.path,
            "agent_status": agent_json::status_value(view),
            "last_task_message": view.summary.summary,
        })
    };
    let text = json!({"agents": views.iter().map(listed).collect::<Vec<_>>()}).to_string();
    let agents = views.iter().map(|view| called(agent, view)).collect();
    Ok(Outcome { text, is_success: true, agents, activity: None })
}

async fn interrupt(agent: &Inner, arguments: Arguments) -> Result<Outcome, String> {
    let target = found(agent, arguments.target).await?;
    let id = target.summary.agent_id;
    if id == AgentId::ROOT {
        return Err("the root was not started by an agent, and cannot be interrupted".to_owned());
    }
    if id == agent.agent {
        return Err("an agent cannot interrupt itself; end with a message instead".to_owned());
    }
    let view = agent_reply(agent, Request::Cancel { agent: id, reason: None }, None).await?;
    let text = json!({"previous_status": agent_json::status_value(&target)}).to_string();
    Ok(Outcome { text, is_success: true, agents: vec![called(agent, &view)], activity: None })
}

/// The agent that a call names.
async fn found(agent: &Inner, target: Option<String>) -> Result<AgentView, String> {
    agent_reply(agent, Request::Find(target.ok_or("`target` is required")?), None).await
}

/// Something that has happened to an agent, with the settings of a new one.
fn activity(kind: AgentActivityKind, view: &AgentView, settings: Option<&Settings>) -> AgentActivity {
    AgentActivity {
        id: ItemId::new(ThreadId::fresh().to_string()),
        kind,
        thread: view.summary.session_id,
        path: view.path.clone(),
        model: settings.map(|settings| settings.model.clone()),
        effort: settings.and_then(|settings| settings.effort.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_of_an_agent_is_all_none_or_a_number_of_turns() {
        for (text, expected) in [
            (None, Some(ForkTurns::All)),
            (Some(" "), Some(ForkTurns::All)),
            (Some("ALL"), Some(ForkTurns::All)),
            (Some("none"), Some(ForkTurns::None)),
            (Some(" 3 "), Some(ForkTurns::Last(3))),
            (Some("0"), None),
            (Some("-1"), None),
            (Some("some"), None),
            (Some("99999999999999999999999"), None),
        ] {
            assert_eq!(ForkTurns::of(text).ok(), expected, "{text:?}");
        }
    }
}
