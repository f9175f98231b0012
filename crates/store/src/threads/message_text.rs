//! Texts of a conversation, for display.

use serde::Deserialize;
use serde_json::Value;

/// The prefixes of messages that releases write in the user's name.
const HARNESS_MARKS: &[&str] = &[
    "<environment_context>",
    "<user_instructions>",
    "<INSTRUCTIONS>",
    "# AGENTS.md instructions",
    "<skill>",
    "<user_shell_command>",
    "<turn_aborted>",
    "<goal>",
    "<external_",
    "<subagent_notification>",
    "Warning: apply_patch was requested via ",
];

/// Whether a message of the role `user` was written by the program around the model, not by a person.
pub(crate) fn is_generated(text: &str) -> bool {
    let text = text.trim_start();
    HARNESS_MARKS.iter().any(|mark| text.starts_with(mark))
}

/// The start of a text, at most `most` bytes.
pub(crate) fn beginning(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

#[derive(Deserialize)]
struct Parts {
    #[serde(default)]
    content: Vec<Part>,
}

#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    text: Option<String>,
}

/// The text of a message, its parts on separate lines.
pub(crate) fn message_text(item: &str) -> Option<String> {
    let parts: Parts = serde_json::from_str(item).ok()?;
    let texts: Vec<String> = parts.content.into_iter().filter_map(|part| part.text).collect();
    Some(texts.join("\n"))
}

/// The text of a model's call: the command, the patch, or the raw arguments.
pub(crate) fn call_text(item: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Call {
        arguments: Option<String>,
        input: Option<String>,
        action: Option<Value>,
    }
    let call: Call = serde_json::from_str(item).ok()?;
    if let Some(input) = call.input {
        return Some(input);
    }
    let Some(arguments) = call.arguments else { return command(&call.action?) };
    let parsed: Option<Value> = serde_json::from_str(&arguments).ok();
    Some(parsed.as_ref().and_then(command).unwrap_or(arguments))
}

/// The command line among the arguments of a call.
fn command(arguments: &Value) -> Option<String> {
    let command = ["command", "cmd", "input"].iter().find_map(|name| arguments.get(name))?;
    match command {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            // A shell's script is more informative than the shell.
            match words.as_slice() {
                [shell, "-lc" | "-c", script] if shell.ends_with("sh") => Some((*script).to_owned()),
                _ => Some(words.join(" ")),
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_show_what_they_do() {
        let cases = [
            (r#"{"arguments":"{\"command\":[\"bash\",\"-lc\",\"ls -la\"]}"}"#, "ls -la"),
            (r#"{"arguments":"{\"command\":[\"git\",\"log\"]}"}"#, "git log"),
            (r#"{"arguments":"{\"cmd\":\"make\"}"}"#, "make"),
            (r#"{"arguments":"{\"plan\":[]}"}"#, r#"{"plan":[]}"#),
            (r#"{"input":"*** Begin Patch"}"#, "*** Begin Patch"),
            (r#"{"action":{"type":"exec","command":["ls"]}}"#, "ls"),
        ];
        for (item, text) in cases {
            assert_eq!(call_text(item).as_deref(), Some(text), "{item}");
        }
    }
}
