//! `thread/agents/read`.

use std::sync::Arc;

use codex_log::agents::AgentsState;
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::thread::ThreadParams;
use codex_protocol::v2::thread_agents::{ThreadAgent, ThreadAgentsReadResponse};
use codex_wire::agent::{AgentId, InboxMessage};
use codex_wire::ids::ThreadId;

use super::connection::Connection;
use super::dispatch::serve;
use super::subscriber::ThreadSubscriber;
use super::turns::closed;

/// The maximum number of agents that are listed.
const MOST_AGENTS: usize = 1000;

serve! {
    subscribed { ThreadAgentsRead => read, }
}

async fn read(subscriber: &mut ThreadSubscriber, _: ThreadParams) -> Result<ThreadAgentsReadResponse, ErrorObject> {
    let state = subscriber.thread.agents().await.map_err(|_| closed(subscriber))?;
    let is_child = |message: &InboxMessage| state.children.iter().any(|child| goes_to(message, child.summary.agent_id));
    let inbox = state.mail.iter().map(|mail| &mail.message).filter(|message| !is_child(message)).cloned().collect();
    Ok(ThreadAgentsReadResponse { data: below(&subscriber.connection, subscriber.thread.id(), *state).await, inbox })
}

fn goes_to(message: &InboxMessage, agent: AgentId) -> bool {
    message.recipient_agent_id == agent
}

/// The agents below a thread, each before those that it has started. Those below a thread that is not loaded rest.
async fn below(connection: &Arc<Connection>, thread: ThreadId, state: AgentsState) -> Vec<ThreadAgent> {
    let mut found = Vec::new();
    let mut open = children(thread, state, 1);
    while let Some(agent) = open.pop().filter(|_| found.len() < MOST_AGENTS) {
        let id = agent.thread_id.parse::<ThreadId>().ok();
        if let Some((id, loaded)) = id.and_then(|id| Some((id, connection.host.start.threads.get(id)?)))
            && let Ok(state) = loaded.agents().await
        {
            open.extend(children(id, *state, agent.depth + 1));
        }
        found.push(agent);
    }
    found
}

/// The children of a thread, the last one first.
fn children(thread: ThreadId, state: AgentsState, depth: u32) -> Vec<ThreadAgent> {
    let AgentsState { children, mail, .. } = state;
    let agent = |child: codex_log::agents::ChildState| {
        let summary = child.summary;
        let messages = mail.iter().map(|mail| &mail.message);
        ThreadAgent {
            agent_id: summary.agent_id.0,
            thread_id: summary.session_id.to_string(),
            parent_thread_id: thread.to_string(),
            depth,
            status: summary.status,
            label: summary.label,
            summary: summary.summary,
            reasoning_header: summary.reasoning_header,
            started_at_ms: summary.started_at_ms,
            inbox: messages.filter(|message| goes_to(message, summary.agent_id)).cloned().collect(),
        }
    };
    children.into_iter().rev().map(agent).collect()
}
