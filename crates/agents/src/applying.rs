//! Isolated agents as tools know them: the parameter that isolates one, and the tool that takes its changes over.

use std::sync::Arc;

use codex_log::ItemId;
use codex_tools::call::{Concurrency, ToolCall};
use codex_tools::context::ToolContext;
use codex_tools::grants::Grants;
use codex_tools::lifecycle::Call;
use codex_tools::registry::{Offer, Tool};
use codex_tools::worktrees::Report;
use codex_tools::{ForeignChanges, apply_changes};
use codex_wire::agent::{AgentId, AgentTool};
use codex_wire::ids::ThreadId;
use codex_wire::tool_spec::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::call::{Outcome, RunningCall, Shown, arguments_of};
use crate::handle::Inner;
use crate::namespace::{self, NAMESPACE};
use crate::options::ToolSet;
use crate::tree::{AgentView, Request};

/// The instructions of an isolated agent.
pub(crate) const CHILD_INSTRUCTIONS: &str = "You work in a git worktree of your own, which began with the files of the agent that started you. Change files only \
     there. Whether you commit or not, all your changes are shown to that agent at the end, and it decides what becomes of \
     them.";

const ABOUT: &str = "Applies the changes that an isolated agent has made in its worktree to your folder. Wait until it is done. With \
                     `discard` its changes, its worktree and the agent are removed instead.";

/// The parameter of calls that start an agent.
pub(crate) fn isolation_parameter() -> Value {
    let about = "`worktree` gives it a git worktree of its own, which begins with your files as they are, uncommitted changes \
                 included. By default it works in your folder.";
    json!({"type": "string", "enum": ["worktree"], "description": about})
}

/// The tool in the namespace.
pub(crate) fn namespace_spec() -> ToolSpec {
    let target = json!({"type": "string", "description": "The id of the agent."});
    ToolSpec::function("apply_agent", ABOUT, parameters("target", target))
}

fn parameters(name: &str, target: Value) -> Value {
    let discard = json!({"type": "boolean", "description": "Remove the changes instead."});
    let properties = json!({name: target, "discard": discard});
    json!({"type": "object", "properties": properties, "required": [name], "additionalProperties": false})
}

/// A report as the parent reads it, with the next step.
pub(crate) fn told(report: &Report, agent: AgentId, thread: ThreadId, tools: ToolSet) -> String {
    let call = match tools {
        ToolSet::Subagents => format!("subagent_apply with agent_id {agent}"),
        ToolSet::Namespace | ToolSet::Paths | ToolSet::Off => format!("apply_agent with target {thread}"),
    };
    if report.has_changes {
        format!("{}\n\nApply them with {call}, or drop them with `discard`.", report.text)
    } else {
        report.text.clone()
    }
}

/// The tool of an agent.
pub(crate) fn tool(agent: &Arc<Inner>) -> Arc<dyn Tool> {
    Arc::new(ApplyTool { agent: Arc::clone(agent) })
}

struct ApplyTool {
    agent: Arc<Inner>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Arguments {
    agent_id: Option<u64>,
    target: Option<String>,
    discard: bool,
}

impl ApplyTool {
    fn tool_set(&self) -> ToolSet {
        self.agent.shared.tool_set()
    }

    /// Removes the changes of an agent, and the agent.
    fn discard(&self, id: ItemId, arguments: Arguments) -> Box<dyn Call> {
        let agent = Arc::clone(&self.agent);
        let shown = Shown {
            id,
            tool: AgentTool::CloseAgent,
            sender: agent.thread(),
            receivers: Vec::new(),
            prompt: None,
            model: None,
            effort: None,
        };
        let work = async move {
            let discarded = async {
                let view = done(&agent, &arguments).await?;
                let (worktrees, thread) = (Arc::clone(&agent.shared.worktrees), view.summary.session_id);
                let discarded = tokio::task::spawn_blocking(move || worktrees.discard(thread)).await;
                discarded.map_err(|error| error.to_string())??;
                namespace::agent_reply(&agent, Request::Delete(view.summary.agent_id), None).await?;
                let text = json!({"discarded": thread, "agent_id": view.summary.agent_id}).to_string();
                Ok(Outcome { text, is_success: true, agents: vec![namespace::called(&agent, &view)], activity: None })
            };
            discarded.await.unwrap_or_else(|error: String| Outcome::failed(error))
        };
        RunningCall::begin(shown, Box::pin(work))
    }
}

impl Tool for ApplyTool {
    fn spec(&self, _: Offer) -> Option<ToolSpec> {
        let id = json!({"type": "number", "description": "The number of the agent, from subagent_list."});
        match self.tool_set() {
            ToolSet::Subagents => Some(ToolSpec::function("subagent_apply", ABOUT, parameters("agent_id", id))),
            ToolSet::Paths => {
                let target = json!({"type": "string", "description": "The path of the agent."});
                Some(ToolSpec::function("apply_agent", ABOUT, parameters("target", target)))
            }
            // It is part of the namespace.
            ToolSet::Namespace | ToolSet::Off => None,
        }
    }

    fn takes(&self, call: &ToolCall) -> bool {
        match self.tool_set() {
            ToolSet::Subagents => call.tool == "subagent_apply",
            ToolSet::Paths => call.tool == "apply_agent",
            ToolSet::Namespace | ToolSet::Off => call.tool.strip_prefix(NAMESPACE) == Some("__apply_agent"),
        }
    }

    /// Later calls may depend on the changes.
    fn concurrency(&self, _: &ToolCall) -> Concurrency {
        Concurrency::Alone
    }

    fn begin(&self, call: ToolCall, cx: &Arc<ToolContext>, grants: &Grants) -> Box<dyn Call> {
        let arguments = match arguments_of::<Arguments>(&call) {
            Ok(arguments) if arguments.discard => return self.discard(call.id, arguments),
            arguments => arguments,
        };
        let (agent, cwd) = (Arc::clone(&self.agent), cx.settings.cwd.clone());
        // The changes that are noted as applied are those of the agent that was found.
        let (found, settled) = tokio::sync::oneshot::channel();
        let plan = async move {
            let view = done(&agent, &arguments?).await?;
            let (worktrees, thread) = (Arc::clone(&agent.shared.worktrees), view.summary.session_id);
            let _: Result<(), _> = found.send((Arc::clone(&worktrees), thread));
            let planned = tokio::task::spawn_blocking(move || worktrees.plan(thread, &cwd)).await;
            planned.map_err(|error| error.to_string())?
        };
        let applied = move || {
            let mut settled = settled;
            let Ok((worktrees, thread)) = settled.try_recv() else { return Ok(()) };
            let settled = worktrees.settle(thread);
            settled.map_err(|error| format!("The branch of the agent could not be updated: {error}\n"))
        };
        apply_changes(call.id, cx, grants, ForeignChanges { plan: Box::pin(plan), applied: Box::new(applied) })
    }
}

/// The agent that a call names, which must be done.
async fn done(agent: &Inner, arguments: &Arguments) -> Result<AgentView, String> {
    let view = match (agent.shared.tool_set(), arguments.agent_id) {
        (ToolSet::Subagents, Some(id)) => namespace::agent_reply(agent, Request::Look(AgentId(id)), None).await?,
        (ToolSet::Subagents, None) => return Err("`agent_id` is required".to_owned()),
        (ToolSet::Namespace | ToolSet::Off, _) => namespace::find(agent, arguments.target.as_deref()).await?,
        (ToolSet::Paths, _) => {
            let target = arguments.target.clone().ok_or("`target` is required")?;
            let view = namespace::agent_reply(agent, Request::Find(target), None).await?;
            namespace::agent_reply(agent, Request::Look(view.summary.agent_id), None).await?
        }
    };
    if view.summary.status.is_terminal() {
        Ok(view)
    } else {
        Err("the agent is still at work; wait until it is done, or cancel it".to_owned())
    }
}
