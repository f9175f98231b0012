//! The child agents of the open thread, as notifications tell of them.

use codex_client::Event;
use codex_client::event::Members;
use codex_protocol::v2::item::{CollabAgentToolCall, SubAgentActivity};
use codex_wire::ids::RequestId;
use serde_json::Value;

/// The number of agents that are remembered; older ones make way.
const MOST: usize = 256;
/// The greatest depth that is shown, should threads name each other in a circle.
const MOST_DEPTH: usize = 16;

/// The child agents of the open thread.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    known: Vec<Agent>,
    /// Their questions, which outlast the turn of the open thread.
    asked: Vec<RequestId>,
}

#[derive(Debug, Default)]
struct Agent {
    thread: String,
    /// The thread that has started it.
    parent: String,
    status: String,
    /// Its path, if it is known by one.
    path: Option<String>,
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
        if let Event::ItemCompleted { item, .. } = event {
            self.item(item);
        }
        let Some(agent) = self.known.iter_mut().find(|agent| Some(agent.thread.as_str()) == event.thread()) else {
            return;
        };
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

    /// Takes note of the earlier turns of the thread.
    pub(crate) fn earlier(&mut self, turns: &[Value]) {
        let items = turns.iter().filter_map(|turn| turn["items"].as_array()).flatten().filter_map(Value::as_object);
        items.for_each(|item| self.item(item));
    }

    fn item(&mut self, item: &Members) {
        match kind(item) {
            "collabAgentToolCall" => self.called(item),
            "subAgentActivity" => {
                let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
                let agent = self.known.iter_mut().find(|agent| agent.thread == text("agentThreadId"));
                if let Some(agent) = agent {
                    agent.path = Some(text("agentPath").to_owned());
                } else {
                    let (thread, status) = (text("agentThreadId").to_owned(), text("kind").to_owned());
                    self.add(Agent { thread, status, path: Some(text("agentPath").to_owned()), ..Agent::default() });
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, agent: Agent) {
        if self.known.len() == MOST {
            self.known.remove(0);
        }
        self.known.push(agent);
    }

    fn called(&mut self, item: &Members) {
        let parent = item.get("senderThreadId").and_then(Value::as_str).unwrap_or_default();
        let is_closed = item.get("tool").is_some_and(|tool| tool == "closeAgent");
        for (thread, state) in item.get("agentsStates").and_then(Value::as_object).into_iter().flatten() {
            let status = if is_closed { "closed" } else { state["status"].as_str().unwrap_or_default() };
            if let Some(agent) = self.known.iter_mut().find(|agent| agent.thread == *thread) {
                status.clone_into(&mut agent.status);
                if agent.parent.is_empty() {
                    parent.clone_into(&mut agent.parent);
                }
                continue;
            }
            let task = item.get("prompt").and_then(Value::as_str).unwrap_or_default();
            let task = task.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(60).collect();
            let (thread, status) = (thread.clone(), status.to_owned());
            self.add(Agent { thread, parent: parent.to_owned(), status, task, ..Agent::default() });
        }
    }

    /// One line for each agent, for people: its id, name, status, header and tokens, below the agent that started it.
    pub(crate) fn lines(&self) -> Vec<String> {
        let is_known = |thread: &str| self.known.iter().any(|agent| agent.thread == thread);
        let mut lines = Vec::new();
        for agent in self.known.iter().filter(|agent| !is_known(&agent.parent)) {
            self.add_lines(agent, 0, &mut lines);
        }
        lines
    }

    fn add_lines(&self, agent: &Agent, depth: usize, lines: &mut Vec<String>) {
        if depth > MOST_DEPTH || lines.len() > MOST {
            return;
        }
        let id = agent.thread.get(agent.thread.len().saturating_sub(8)..).unwrap_or_default();
        let name = agent.path.as_deref().unwrap_or(&agent.task);
        let header = agent.header.as_deref().map(|header| format!(" · {header}")).unwrap_or_default();
        let (indent, status) = ("  ".repeat(depth), &agent.status);
        lines.push(format!("{indent}{id}  {status:<11} {name}{header} ({} tokens)", agent.tokens));
        for child in self.known.iter().filter(|child| child.parent == agent.thread) {
            self.add_lines(child, depth + 1, lines);
        }
    }
}

/// A call about agents on one line.
pub(crate) fn title(call: &CollabAgentToolCall) -> String {
    format!("{} {}", call.tool, call.prompt.as_deref().unwrap_or_default())
}

/// Something that has happened to an agent, on one line.
pub(crate) fn activity(told: &SubAgentActivity) -> String {
    format!("{} {}", told.agent_path, told.kind.as_str())
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
        assert_eq!(agents.lines(), ["12345678  completed   Look at it · Reading (7 tokens)"]);
    }

    #[test]
    fn agents_are_listed_below_the_one_that_started_them() {
        let spawned = |parent: &str, child: &str| {
            json!({"type": "collabAgentToolCall", "tool": "spawnAgent", "prompt": "Look", "senderThreadId": parent,
                "agentsStates": {child: {"status": "running"}}})
        };
        let named =
            json!({"type": "subAgentActivity", "kind": "started", "agentThreadId": "b", "agentPath": "/root/a/b"});
        let mut agents = Agents::default();
        agents.earlier(&[json!({"items": [spawned("root", "a"), spawned("root", "c")]})]);
        agents.event(&completed("a", &named));
        agents.event(&completed("a", &spawned("a", "b")));
        let expected = [
            "a  running     Look (0 tokens)",
            "  b  running     /root/a/b (0 tokens)",
            "c  running     Look (0 tokens)",
        ];
        assert_eq!(agents.lines(), expected);
        agents.event(&completed("x", &spawned("y", "x")));
        agents.event(&completed("y", &spawned("x", "y")));
        assert_eq!(agents.lines().len(), 3, "a circle is left out");
    }
}
