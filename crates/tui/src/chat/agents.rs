//! The child agents of the open thread, as notifications tell of them.

use codex_client::Event;
use codex_client::event::Members;
use codex_protocol::v2::item::CollabAgentToolCall;
use codex_wire::ids::RequestId;
use serde_json::Value;

use super::session::about;

/// The number of agents that are remembered; older ones make way.
const MOST: usize = 256;

/// The child agents of the open thread.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    known: Vec<Agent>,
    /// Their questions, which outlast the turn of the open thread.
    asked: Vec<RequestId>,
}

#[derive(Debug)]
struct Agent {
    thread: String,
    status: String,
    /// The beginning of its task.
    task: String,
    header: Option<String>,
    tokens: i64,
}

impl Agents {
    /// Whether a thread belongs to one of them.
    pub(crate) fn knows(&self, thread: &str) -> bool {
        self.known.iter().any(|agent| agent.thread == thread)
    }

    /// Forgets all of them, because another thread was opened.
    pub(crate) fn clear(&mut self) {
        self.known.clear();
        self.asked.clear();
    }

    /// Takes note of a question of one of them.
    pub(crate) fn asked(&mut self, id: &RequestId) {
        self.asked.push(id.clone());
    }

    /// Whether one of them has asked this.
    pub(crate) fn has_asked(&self, id: &RequestId) -> bool {
        self.asked.contains(id)
    }

    /// Takes note of an event of any thread.
    pub(crate) fn event(&mut self, event: &Event) {
        if let Event::ItemCompleted { item, .. } = event
            && kind(item) == "collabAgentToolCall"
        {
            self.called(item);
        }
        let Some(agent) = self.known.iter_mut().find(|agent| agent.thread == about(event)) else { return };
        match event {
            Event::Resolved { id, .. } => self.asked.retain(|asked| asked != id),
            Event::TurnStarted { .. } => "running".clone_into(&mut agent.status),
            Event::TurnEnded { status, .. } => agent.status.clone_from(status),
            Event::Usage { usage, .. } => {
                agent.tokens = usage["total"]["totalTokens"].as_i64().unwrap_or(agent.tokens);
            }
            Event::ItemCompleted { item, .. } if kind(item) == "reasoning" && agent.header.is_none() => {
                agent.header = item.get("summary").and_then(|summary| summary[0].as_str()).and_then(bold);
            }
            _ => {}
        }
    }

    fn called(&mut self, item: &Members) {
        let is_closed = item.get("tool").is_some_and(|tool| tool == "closeAgent");
        for (thread, state) in item.get("agentsStates").and_then(Value::as_object).into_iter().flatten() {
            let status = if is_closed { "closed" } else { state["status"].as_str().unwrap_or_default() };
            if let Some(agent) = self.known.iter_mut().find(|agent| agent.thread == *thread) {
                status.clone_into(&mut agent.status);
                continue;
            }
            if self.known.len() == MOST {
                self.known.remove(0);
            }
            let task = item.get("prompt").and_then(Value::as_str).unwrap_or_default();
            let task = task.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(60).collect();
            let (thread, status) = (thread.clone(), status.to_owned());
            self.known.push(Agent { thread, status, task, header: None, tokens: 0 });
        }
    }

    /// One line for each agent, for people.
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |agent: &Agent| {
            let id = agent.thread.get(agent.thread.len().saturating_sub(8)..).unwrap_or_default();
            let doing = agent.header.as_deref().unwrap_or(&agent.task);
            format!("{id}  {:<11} {doing} ({} tokens)", agent.status, agent.tokens)
        };
        self.known.iter().map(line).collect()
    }
}

/// A call about agents on one line.
pub(crate) fn title(call: &CollabAgentToolCall) -> String {
    format!("{} {}", call.tool, call.prompt.as_deref().unwrap_or_default())
}

fn kind(item: &Members) -> &str {
    item.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn bold(text: &str) -> Option<String> {
    let (header, _) = text.split_once("**")?.1.split_once("**")?;
    Some(header.trim().to_owned()).filter(|header| !header.is_empty())
}

#[cfg(test)]
mod tests {
    use codex_client::event::Teller;
    use serde_json::json;

    use super::*;

    fn completed(thread: &str, item: &Value) -> Event {
        let item = item.as_object().cloned().unwrap_or_default();
        let (thread, turn) = (thread.to_owned(), "t".to_owned());
        Event::ItemCompleted { thread, turn, item, teller: Teller::Items, at_ms: None }
    }

    #[test]
    fn a_line_tells_what_an_agent_does() {
        let mut agents = Agents::default();
        let call = json!({"type": "collabAgentToolCall", "tool": "spawnAgent", "prompt": "Look\nat it",
            "agentsStates": {"aaaa-12345678": {"status": "pendingInit"}}});
        agents.event(&completed("root", &call));
        assert!(agents.knows("aaaa-12345678") && !agents.knows("root"));
        let (thread, turn) = ("aaaa-12345678".to_owned(), "t".to_owned());
        agents.event(&Event::TurnStarted { thread: thread.clone(), turn: turn.clone() });
        agents.event(&Event::Usage { thread: thread.clone(), usage: json!({"total": {"totalTokens": 7}}) });
        assert_eq!(agents.lines(), ["12345678  running     Look at it (7 tokens)"]);
        agents.event(&completed(&thread, &json!({"type": "reasoning", "summary": ["**Reading** more"]})));
        let (status, error) = ("completed".to_owned(), Value::Null);
        agents.event(&Event::TurnEnded { thread, turn, status, error, duration_ms: None });
        assert_eq!(agents.lines(), ["12345678  completed   Reading (7 tokens)"]);
    }
}
