//! The body of a request.

use codex_wire::provider_traits::{CacheForm, ReasoningField, SchemaForm, ThinkingForm};
use codex_wire::reasoning::ReasoningEffort;
use serde_json::{Map, Value, json};

use super::messages;
use crate::encoding::{Function, RequestFormat, json_of, schema_instruction, write_string};
use crate::{Prompt, ReasoningRequest};

/// The maximum length of an answer of an unknown model. The API requires a number.
const MOST_TOKENS: u32 = 8192;

/// The minimum number of tokens of a reasoning budget.
const LEAST_BUDGET: u32 = 1024;

/// A tool for requests that have calls but no tools, which the API rejects.
const NO_TOOLS: &str =
    r#"[{"name":"none","description":"Not to be called.","input_schema":{"type":"object","properties":{}}}]"#;

/// Encodes a request. Parts that were encoded for the previous one are copied byte for byte, except for cache marks.
pub(crate) fn request_body(prompt: &Prompt, format: &RequestFormat<'_>) -> Vec<u8> {
    let is_marked = format.traits.cache == CacheForm::Marks;
    let mut body = Vec::with_capacity(prompt.instructions.len() + 4096);
    body.extend_from_slice(br#"{"model":"#);
    write_string(&mut body, &prompt.model);
    body.extend_from_slice(br#","system":[{"type":"text","text":"#);
    write_string(&mut body, &instructions(prompt, format));
    // The provider caches the tools before it, so it covers them too.
    body.extend_from_slice(if is_marked { br#","cache_control":{"type":"ephemeral"}}]"# } else { b"}]" });
    body.extend_from_slice(br#","messages":["#);
    let written = messages::write(&mut body, &prompt.input, format, is_marked);
    body.push(b']');
    let tools = prompt.tools.on_wire(&format.tools_name(), |specs| {
        json_of(&Function::all(specs, format).iter().map(tool).collect::<Vec<_>>())
    });
    let mut tail = tail(prompt, format);
    if tools != "[]" || written.has_calls {
        body.extend_from_slice(br#","tools":"#);
        body.extend_from_slice(if tools == "[]" { NO_TOOLS } else { &tools }.as_bytes());
        tail.insert("tool_choice".to_owned(), choice(prompt, tools == "[]"));
    }
    body.push(b',');
    let tail = Value::Object(tail).to_string();
    body.extend_from_slice(tail.strip_prefix('{').unwrap_or_default().as_bytes());
    body
}

/// The instructions, with the schema if the provider cannot enforce it.
fn instructions(prompt: &Prompt, format: &RequestFormat<'_>) -> String {
    match &prompt.output_schema {
        Some(schema) if format.schemas != SchemaForm::Strict => {
            format!("{}\n\n{}", prompt.instructions, schema_instruction(schema))
        }
        _ => prompt.instructions.to_string(),
    }
}

fn tool(function: &Function<'_>) -> Value {
    let Function { name, description, strict, parameters } = function;
    let mut tool = json!({"name": name, "description": description, "input_schema": parameters});
    if *strict {
        tool["strict"] = true.into();
    }
    tool
}

fn choice(prompt: &Prompt, has_none: bool) -> Value {
    match (has_none, prompt.parallel_tool_calls) {
        (true, _) => json!({"type": "none"}),
        (false, true) => json!({"type": "auto"}),
        (false, false) => json!({"type": "auto", "disable_parallel_tool_use": true}),
    }
}

fn tail(prompt: &Prompt, format: &RequestFormat<'_>) -> Map<String, Value> {
    let most = prompt.max_output_tokens.unwrap_or(MOST_TOKENS);
    let mut tail = Map::new();
    tail.insert("max_tokens".to_owned(), most.into());
    tail.insert("stream".to_owned(), true.into());
    let mut output = Map::new();
    let asked = prompt.reasoning.as_ref().filter(|_| format.traits.reasoning != ReasoningField::None);
    if let Some(ReasoningRequest { effort, thinking, .. }) = asked
        && *effort != Some(ReasoningEffort::None)
    {
        match thinking {
            ThinkingForm::None => {}
            ThinkingForm::Adaptive => {
                tail.insert("thinking".to_owned(), json!({"type": "adaptive"}));
                output.extend(effort.as_ref().map(|effort| ("effort".to_owned(), effort_word(effort).into())));
            }
            ThinkingForm::Budget => {
                let budget = budget(effort.as_ref().unwrap_or(&ReasoningEffort::Medium), most);
                tail.insert("thinking".to_owned(), json!({"type": "enabled", "budget_tokens": budget}));
            }
        }
    }
    if let Some(schema) = prompt.output_schema.as_ref().filter(|_| format.schemas == SchemaForm::Strict) {
        output.insert("format".to_owned(), json!({"type": "json_schema", "schema": schema}));
    }
    if !output.is_empty() {
        tail.insert("output_config".to_owned(), output.into());
    }
    tail
}

fn effort_word(effort: &ReasoningEffort) -> &str {
    match effort {
        ReasoningEffort::None | ReasoningEffort::Minimal => "low",
        ReasoningEffort::XHigh => "max",
        effort => effort.as_str(),
    }
}

/// A part of the tokens of an answer: the rest is for the answer itself.
fn budget(effort: &ReasoningEffort, most: u32) -> u32 {
    let eighths = match effort {
        ReasoningEffort::None | ReasoningEffort::Minimal | ReasoningEffort::Low => 1,
        ReasoningEffort::Medium => 2,
        ReasoningEffort::High => 4,
        ReasoningEffort::XHigh | ReasoningEffort::Other(_) => 6,
    };
    (most / 8 * eighths).max(LEAST_BUDGET)
}

#[cfg(test)]
mod tests;
