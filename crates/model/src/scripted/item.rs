//! The items of a scripted answer.

use std::time::Duration;

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::{Map, Value};

/// One item of an entry.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A pause.
    Pause(Duration),
    /// A pause until the peer disconnects.
    Hang,
    /// Any event, unchanged.
    Event(Value),
    /// A message.
    Text(Text),
    /// Reasoning.
    Reasoning(Reasoning),
    /// A call of a tool that takes JSON.
    Call(Call),
    /// A call of a tool that takes free text.
    Custom(Custom),
    /// A call of the built-in shell.
    LocalShell(LocalShell),
    /// A web search of the provider.
    WebSearch(WebSearch),
}

/// The text of a message.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    #[serde(rename = "text", deserialize_with = "text")]
    pub(super) whole: String,
    pub(super) deltas: Option<Vec<Delta>>,
    #[serde(default = "yes")]
    pub(super) done: bool,
    pub(super) id: Option<String>,
}

/// A delta of a message, or a pause within it.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    /// Text to append.
    Text(String),
    /// A pause.
    Pause(Duration),
}

/// A reasoning item.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reasoning {
    #[serde(rename = "reasoning")]
    pub(super) summary: Vec<String>,
    pub(super) raw: Option<String>,
    pub(super) id: Option<String>,
}

/// A function call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    #[serde(rename = "call")]
    pub(super) name: String,
    #[serde(default = "no_arguments")]
    pub(super) args: Value,
    pub(super) namespace: Option<String>,
    pub(super) id: Option<String>,
}

/// A call of a tool that takes free text.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Custom {
    #[serde(rename = "custom")]
    pub(super) name: String,
    #[serde(deserialize_with = "text")]
    pub(super) input: String,
    pub(super) id: Option<String>,
}

/// A call of the built-in shell.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalShell {
    #[serde(rename = "local_shell")]
    pub(super) command: Vec<String>,
    pub(super) timeout_ms: Option<u64>,
    pub(super) id: Option<String>,
}

/// A web search.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebSearch {
    #[serde(rename = "web_search")]
    pub(super) query: String,
    pub(super) id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pause {
    pause_ms: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hang {
    #[serde(rename = "hang")]
    _hang: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Event {
    event: Map<String, Value>,
}

impl Item {
    /// Decodes an item; its kind follows from its members.
    pub(super) fn read(item: Value) -> Result<Self, String> {
        let has = |name: &str| item.get(name).is_some();
        if has("pause_ms") {
            return Ok(Self::Pause(milliseconds(form::<Pause>(item)?.pause_ms)?));
        }
        if item.get("hang") == Some(&Value::Bool(true)) {
            return form::<Hang>(item).map(|_| Self::Hang);
        }
        if has("event") {
            return form::<Event>(item).map(|event| Self::Event(Value::Object(event.event)));
        }
        if has("text") {
            return form(item).map(Self::Text);
        }
        if has("reasoning") {
            return form(item).map(Self::Reasoning);
        }
        if has("call") {
            return form(item).map(Self::Call);
        }
        if has("custom") {
            return form(item).map(Self::Custom);
        }
        if has("local_shell") {
            return form(item).map(Self::LocalShell);
        }
        if has("web_search") {
            return form(item).map(Self::WebSearch);
        }
        Err(format!("of no known kind: {item}"))
    }
}

impl<'de> Deserialize<'de> for Delta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self::Text(text)),
            value => {
                let pause = form::<Pause>(value).and_then(|pause| milliseconds(pause.pause_ms));
                pause.map(Self::Pause).map_err(serde::de::Error::custom)
            }
        }
    }
}

/// A duration in milliseconds.
pub(super) fn milliseconds(span: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(span / 1000.0).map_err(|error| error.to_string())
}

fn form<T: DeserializeOwned>(item: Value) -> Result<T, String> {
    serde_json::from_value(item).map_err(|error| error.to_string())
}

/// A string; a number that replaced `find` is converted back.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(text) => Ok(text),
        Value::Number(number) => Ok(number.to_string()),
        other => Err(serde::de::Error::custom(format!("{other} is not a string"))),
    }
}

fn yes() -> bool {
    true
}

fn no_arguments() -> Value {
    Value::Object(Map::new())
}
