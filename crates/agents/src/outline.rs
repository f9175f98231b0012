//! A tree of agents as lines, for people.

use codex_log::agents::{AgentsState, ChildState, UnnumberedChild};
use codex_log::state::Interrupted;
use codex_log::store::ThreadStore;
use codex_wire::agent::{AgentId, SubagentCompletion};
use codex_wire::ids::ThreadId;

/// The greatest depth that is shown, should files name each other in a circle.
const MOST_DEPTH: usize = 16;

/// The agents of a stored thread, one line for each: its number, thread, label, status, header and tokens, indented by its
/// depth. It reads files.
pub fn outline(store: &dyn ThreadStore, root: ThreadId) -> Vec<String> {
    let (agents, tokens) = read(store, root);
    let mut lines = vec![format!("{} {root} ({tokens} tokens)", AgentId::ROOT)];
    add(store, &agents, 1, &mut lines);
    lines
}

/// The agents of a thread and its token usage, as its log tells them.
fn read(store: &dyn ThreadStore, thread: ThreadId) -> (AgentsState, i64) {
    let Ok(history) = store.history(thread, Interrupted::Kept) else { return Default::default() };
    let tokens = history.state.tokens.info.map_or(0, |info| info.total_token_usage.total_tokens);
    (history.state.agents, tokens)
}

fn add(store: &dyn ThreadStore, agents: &AgentsState, depth: usize, lines: &mut Vec<String>) {
    if depth > MOST_DEPTH {
        return;
    }
    for child in &agents.children {
        let (below, tokens) = read(store, child.summary.session_id);
        lines.push(format!("{}{}", "  ".repeat(depth), line(child, tokens)));
        add(store, &below, depth + 1, lines);
    }
    for child in &agents.unnumbered {
        let (below, tokens) = read(store, child.thread);
        lines.push(format!("{}{}", "  ".repeat(depth), unnumbered_line(child, tokens)));
        add(store, &below, depth + 1, lines);
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
