//! The body of a request.

use codex_wire::provider_traits::{CacheForm, ReasoningField, SchemaForm};
use serde_json::{Map, Value, json};

use super::messages;
use crate::Prompt;
use crate::encoding::{Function, RequestFormat, json_of, write_string};

/// Encodes a request. Parts that were encoded for the previous one are copied byte for byte.
pub(crate) fn request_body(prompt: &Prompt, format: &RequestFormat<'_>) -> Vec<u8> {
    let mut body = Vec::with_capacity(prompt.instructions.len() + 4096);
    body.extend_from_slice(br#"{"model":"#);
    write_string(&mut body, &prompt.model);
    body.extend_from_slice(br#","messages":[{"role":"system","content":"#);
    write_string(&mut body, &prompt.instructions);
    body.push(b'}');
    messages::write(&mut body, &prompt.input, format);
    body.push(b']');
    let tools = prompt.tools.on_wire(&format.tools_name(), |specs| {
        json_of(&Function::all(specs, format).iter().map(tool).collect::<Vec<_>>())
    });
    // Not every server accepts an empty list.
    if tools != "[]" {
        body.extend_from_slice(br#","tools":"#);
        body.extend_from_slice(tools.as_bytes());
    }
    let tail = Value::Object(tail(prompt, format)).to_string();
    body.push(b',');
    body.extend_from_slice(tail.strip_prefix('{').unwrap_or_default().as_bytes());
    body
}

fn tool(function: &Function<'_>) -> Value {
    let Function { name, description, strict, parameters } = function;
    let mut function = json!({"name": name, "description": description, "parameters": parameters});
    if *strict {
        function["strict"] = true.into();
    }
    json!({"type": "function", "function": function})
}

/// The members after the tools. Members that a provider is not known to accept are left out.
fn tail(prompt: &Prompt, format: &RequestFormat<'_>) -> Map<String, Value> {
    let traits = format.traits;
    let mut tail = Map::new();
    tail.insert("stream".to_owned(), true.into());
    if traits.stream_usage {
        tail.insert("stream_options".to_owned(), json!({"include_usage": true}));
    }
    if prompt.parallel_tool_calls && !prompt.tools.specs().is_empty() {
        tail.insert("parallel_tool_calls".to_owned(), true.into());
    }
    if let Some(effort) = prompt.reasoning.as_ref().and_then(|reasoning| reasoning.effort.as_ref()) {
        match traits.reasoning {
            ReasoningField::None => {}
            ReasoningField::Effort => drop(tail.insert("reasoning_effort".to_owned(), effort.as_str().into())),
            ReasoningField::Object => drop(tail.insert("reasoning".to_owned(), json!({"effort": effort}))),
        }
    }
    if let Some(most) = prompt.max_output_tokens.filter(|_| traits.reasoning != ReasoningField::None) {
        tail.insert("max_completion_tokens".to_owned(), most.into());
    }
    if let Some(verbosity) = prompt.verbosity.as_ref().filter(|_| traits.reasoning == ReasoningField::Effort) {
        tail.insert("verbosity".to_owned(), verbosity.as_str().into());
    }
    if let Some(schema) = &prompt.output_schema {
        let strict = format.schemas == SchemaForm::Strict;
        let schema = json!({"name": "codex_output_schema", "strict": strict, "schema": format.schema(schema)});
        tail.insert("response_format".to_owned(), json!({"type": "json_schema", "json_schema": schema}));
    }
    if traits.cache == CacheForm::Key {
        tail.insert("prompt_cache_key".to_owned(), prompt.cache_key.to_string().into());
    }
    tail
}

#[cfg(test)]
mod tests;
