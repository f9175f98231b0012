//! Prompts of servers, as prompts that a user can call by name.
//!
//! A server fills the arguments of a prompt itself. It is given placeholders, so that the text of the prompt has them
//! where the user's words belong: the argument `city` is `$CITY`.

use std::path::PathBuf;

use codex_tools::command::cut;
use codex_wire::prompt::CustomPrompt;
use futures_util::future::join_all;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::server::Ready;
use crate::thread_servers::{LISTS, Slot, ready};
use crate::{names, session};

/// The most prompts of one server, and the longest text of one.
const MOST_PROMPTS: usize = 50;
const MOST_BYTES: usize = 64 * 1024;

#[derive(Debug, Deserialize)]
struct Described {
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    arguments: Vec<Argument>,
}

#[derive(Debug, Deserialize)]
struct Argument {
    name: String,
    #[serde(default)]
    required: bool,
}

impl Argument {
    fn placeholder(&self) -> String {
        let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
        self.name.chars().map(letter).collect()
    }
}

/// The prompts of all servers that have started or will in their time, by name.
pub(crate) async fn all(slots: Vec<Slot>) -> Vec<CustomPrompt> {
    let listed = join_all(slots.iter().filter(|slot| slot.server().is_some()).map(of_server)).await;
    let mut prompts = listed.concat();
    prompts.sort_by(|a, b| a.name.cmp(&b.name));
    prompts.dedup_by(|a, b| a.name == b.name);
    prompts
}

async fn of_server(slot: &Slot) -> Vec<CustomPrompt> {
    let Ok(ready) = ready(slot).await else { return Vec::new() };
    if !ready.introduction.has("prompts") {
        return Vec::new();
    }
    let listed = session::list::<Described>(&ready.connection, "prompts/list", "prompts", LISTS).await;
    let listed = listed.unwrap_or_default();
    let prompts = join_all(listed.iter().take(MOST_PROMPTS).map(|prompt| filled(slot, &ready, prompt))).await;
    prompts.into_iter().flatten().collect()
}

/// A prompt with its text, unless the server does not give one.
async fn filled(slot: &Slot, ready: &Ready, prompt: &Described) -> Option<CustomPrompt> {
    let placeholder = |argument: &Argument| (argument.name.clone(), format!("${}", argument.placeholder()).into());
    let arguments: serde_json::Map<String, Value> = prompt.arguments.iter().map(placeholder).collect();
    let params = json!({"name": prompt.name, "arguments": arguments});
    let answer = ready.connection.request("prompts/get", params, LISTS).await.ok()?;
    let content = text(&answer);
    let hint = |argument: &Argument| {
        let name = argument.placeholder();
        if argument.required { format!("{name}=") } else { format!("[{name}=]") }
    };
    let hints: Vec<String> = prompt.arguments.iter().map(hint).collect();
    (!content.is_empty()).then(|| CustomPrompt {
        name: names::tool_name(&slot.config.name, &prompt.name, &mut std::collections::BTreeSet::new()),
        path: PathBuf::from(format!("mcp://{}/{}", slot.config.name, prompt.name)),
        content,
        description: prompt.description.clone(),
        argument_hint: Some(hints.join(" ")).filter(|hint| !hint.is_empty()),
    })
}

/// The texts of all messages of a prompt.
fn text(answer: &Value) -> String {
    let messages = answer["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let texts = messages.iter().filter_map(|message| {
        let content = &message["content"];
        content["text"].as_str().or_else(|| content["resource"]["text"].as_str())
    });
    let text = texts.collect::<Vec<_>>().join("\n\n");
    cut(&text, MOST_BYTES, text.len() as u64, text.lines().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_prompt_is_that_of_its_messages() {
        let answer = json!({"messages": [
            {"role": "user", "content": {"type": "text", "text": "one"}},
            {"role": "user", "content": {"type": "image", "data": "AAAA"}},
            {"role": "assistant", "content": {"type": "resource", "resource": {"text": "two"}}},
        ]});
        assert_eq!(text(&answer), "one\n\ntwo");
        assert_eq!(text(&json!({"messages": 7})), "");
        let long = json!({"messages": [{"content": {"text": "x".repeat(MOST_BYTES * 2)}}]});
        assert!(text(&long).len() < MOST_BYTES + 200);
    }
}
