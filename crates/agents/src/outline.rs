//! A tree of agents as lines, for people.

use codex_log::agents::{AgentsState, ChildState, UnnumberedChild};
use codex_wire::agent::{AgentId, SubagentCompletion};
use codex_wire::ids::ThreadId;

/// The greatest depth that is shown, should files name each other in a circle.
const MOST_DEPTH: usize = 16;

/// The agents of a thread and its token usage, as its file tells them.
#[derive(Debug, Clone, Default)]
pub struct StoredAgent {
    pub agents: AgentsState,
    pub tokens: i64,
}

/// One line for each agent: its number, thread, label, status, header and tokens, indented by its depth.
pub fn outline(root: ThreadId, read: &mut dyn FnMut(ThreadId) -> Option<StoredAgent>) -> Vec<String> {
    let known = read(root).unwrap_or_default();
    let mut lines = vec![format!("{} {root} ({} tokens)", AgentId::ROOT, known.tokens)];
    add(&known.agents, 1, read, &mut lines);
    lines
}

fn add(
    agents: &AgentsState,
    depth: usize,
    read: &mut dyn FnMut(ThreadId) -> Option<StoredAgent>,
    lines: &mut Vec<String>,
) {
    if depth > MOST_DEPTH {
        return;
    }
    for child in &agents.children {
        let known = read(child.summary.session_id).unwrap_or_default();
        lines.push(format!("{}{}", "  ".repeat(depth), line(child, known.tokens)));
        add(&known.agents, depth + 1, read, lines);
    }
    for child in &agents.unnumbered {
        let known = read(child.thread).unwrap_or_default();
        lines.push(format!("{}{}", "  ".repeat(depth), unnumbered_line(child, known.tokens)));
        add(&known.agents, depth + 1, read, lines);
    }
}

/// A child of another release, which gets its number when its root is resumed.
fn unnumbered_line(child: &UnnumberedChild, tokens: i64) -> String {
    let name = child.nickname.as_deref().or(child.path.as_deref()).unwrap_or("unnamed");
    let status = match &child.completion {
        Some(SubagentCompletion::Completed { .. }) => "idle",
        Some(SubagentCompletion::Canceled { .. }) => "canceled",
        Some(SubagentCompletion::Failed { .. }) => "failed",
        None => "unknown",
    };
    format!("- {} {name}{} · {status} ({tokens} tokens)", child.thread, role(child.role.as_deref()))
}

fn role(role: Option<&str>) -> String {
    role.map(|role| format!(" [{role}]")).unwrap_or_default()
}

fn line(child: &ChildState, tokens: i64) -> String {
    let agent = &child.summary;
    let path = agent.agent_path.as_deref();
    let name = path.or(agent.label.as_deref()).or(agent.summary.as_deref()).unwrap_or("unnamed");
    let status = match &child.completion {
        Some(SubagentCompletion::Failed { message }) => format!("failed: {message}"),
        _ => agent.status.as_str().to_owned(),
    };
    let header = agent.reasoning_header.as_deref().map(|header| format!(" · {header}")).unwrap_or_default();
    let (id, thread, role) = (agent.agent_id, agent.session_id, role(agent.agent_role.as_deref()));
    format!("{id} {thread} {name}{role} · {status}{header} ({tokens} tokens)")
}
