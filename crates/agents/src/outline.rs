//! A tree of agents as lines, for people.

use codex_log::agents::{AgentsState, ChildState};
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
}

fn line(child: &ChildState, tokens: i64) -> String {
    let agent = &child.summary;
    let name = agent.label.as_deref().or(agent.summary.as_deref()).unwrap_or("unnamed");
    let status = match &child.completion {
        Some(SubagentCompletion::Failed { message }) => format!("failed: {message}"),
        _ => agent.status.as_str().to_owned(),
    };
    let header = agent.reasoning_header.as_deref().map(|header| format!(" · {header}")).unwrap_or_default();
    format!("{} {} {name} · {status}{header} ({tokens} tokens)", agent.agent_id, agent.session_id)
}
