//! Mail in the form in which a model is told it.

use codex_tools::agents::{Unread, UnreadForm};
use codex_wire::agent::AgentId;
use serde_json::json;

use crate::agent_json;
use crate::mailbox::InboxMessage;
use crate::options::ToolSet;
use crate::task::Shared;

/// The mail of an inbox: messages from above one by one, and one call for each other sender, in the order of its first
/// mail.
pub(crate) fn grouped(messages: Vec<InboxMessage>, agent: AgentId, shared: &Shared) -> Vec<Unread> {
    let mut groups: Vec<Vec<InboxMessage>> = Vec::new();
    for message in messages {
        let sender = message.mail.message.sender_agent_id;
        let is_single = is_from_above(&message, agent) && shared.options.uses_user_messages;
        let same = groups.iter_mut().find(|group| group[0].mail.message.sender_agent_id == sender);
        match same {
            Some(group) if !is_single => group.push(message),
            _ => groups.push(vec![message]),
        }
    }
    groups.into_iter().map(|group| unread(group, agent, shared)).collect()
}

/// Whether the sender is above the recipient: agents are numbered from the root down.
fn is_from_above(message: &InboxMessage, agent: AgentId) -> bool {
    message.mail.completion.is_none() && message.mail.message.sender_agent_id < agent
}

fn unread(group: Vec<InboxMessage>, agent: AgentId, shared: &Shared) -> Unread {
    let mail = group.iter().map(|message| message.mail.id).collect();
    let from_above = group.len() == 1 && is_from_above(&group[0], agent);
    let tools = shared.tool_set();
    let form = match tools {
        _ if from_above && (shared.options.uses_user_messages || tools != ToolSet::Subagents) => {
            UnreadForm::User(group[0].mail.message.prompt.clone().unwrap_or_default())
        }
        ToolSet::Namespace | ToolSet::Paths | ToolSet::Off => UnreadForm::Note(notification(&group, tools)),
        ToolSet::Subagents => call(&group),
    };
    Unread { mail, form }
}

/// Whether mail is told as a call.
pub(crate) fn is_call(message: &InboxMessage, agent: AgentId, shared: &Shared) -> bool {
    let is_of_user = is_from_above(message, agent) && shared.options.uses_user_messages;
    shared.tool_set() == ToolSet::Subagents && !is_of_user
}

fn notification(group: &[InboxMessage], tools: ToolSet) -> String {
    let lines: Vec<String> = group
        .iter()
        .map(|message| {
            let status = match &message.mail.completion {
                Some(completion) => agent_json::ended(completion),
                None => json!({"message": message.mail.message.prompt}),
            };
            let sender = message.sender.as_ref();
            if tools == ToolSet::Paths {
                return json!({"agent_path": sender.map(|sender| &sender.path), "status": status}).to_string();
            }
            json!({"agent_id": sender.map(|sender| sender.summary.session_id), "status": status}).to_string()
        })
        .collect();
    format!("<subagent_notification>\n{}\n</subagent_notification>", lines.join("\n"))
}

fn call(group: &[InboxMessage]) -> UnreadForm {
    let first = &group[0].mail;
    let call_id = format!("await-{}-{}", first.message.sender_agent_id, first.id);
    let messages: Vec<_> = group.iter().map(|message| message.mail.clone()).collect();
    let completion = group.iter().rev().find_map(|message| message.mail.completion.clone());
    let sender = group[0].sender.as_ref();
    let output = agent_json::awaited(sender, &messages, completion.as_ref(), false, true).to_string();
    UnreadForm::Call { call_id, tool: "subagent_await", arguments: json!({"timeout_s": 0}).to_string(), output }
}
