//! Scripts and their entries, read from JSON.

use std::time::Duration;

use regex_lite::Regex;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::item::{Item, milliseconds};

/// An error in a script.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// It is not JSON.
    #[error("the script is not JSON")]
    NotJson(#[from] serde_json::Error),
    /// It is neither a list nor `{"entries": […]}`.
    #[error("a script is a list of entries, or an object with nothing but `entries`")]
    NotAScript,
    /// An entry is invalid.
    #[error("entry {number} of the script: {why}")]
    Entry {
        /// The number of the entry, from 1.
        number: usize,
        why: String,
    },
}

/// A list of answers.
#[derive(Debug, Clone)]
pub struct Script {
    pub(super) rows: Vec<Row>,
}

/// An entry with the rules for its use.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// Texts that a request has to contain.
    pub(super) when: Vec<String>,
    pub(super) repeat: bool,
    pub(super) find: Vec<(String, Regex)>,
    /// The entry as written, in which `find` is replaced.
    pub(super) written: Value,
    pub(super) entry: Entry,
}

impl Script {
    /// Reads a script.
    pub fn from_json(text: &str) -> Result<Self, ScriptError> {
        let entries = match serde_json::from_str(text)? {
            Value::Array(entries) => entries,
            Value::Object(mut script) if script.len() == 1 => match script.shift_remove("entries") {
                Some(Value::Array(entries)) => entries,
                _ => return Err(ScriptError::NotAScript),
            },
            _ => return Err(ScriptError::NotAScript),
        };
        let rows = entries.into_iter().enumerate().map(|(place, entry)| Row::read(place + 1, entry));
        Ok(Self { rows: rows.collect::<Result<_, _>>()? })
    }
}

impl Row {
    fn read(number: usize, written: Value) -> Result<Self, ScriptError> {
        let wrong = |why: String| ScriptError::Entry { number, why };
        let form = serde_json::from_value::<WrittenEntry>(written.clone()).map_err(|error| wrong(error.to_string()))?;
        let when = match &form.when {
            Value::String(text) if !text.is_empty() => vec![text.clone()],
            Value::Null | Value::String(_) => Vec::new(),
            list => serde_json::from_value(list.clone()).map_err(|error| wrong(format!("`when`: {error}")))?,
        };
        let mut find = Vec::new();
        for (name, pattern) in &form.find {
            let pattern = pattern.as_str().ok_or_else(|| wrong(format!("`find` of `{name}` is not a string")))?;
            let regex = Regex::new(pattern).map_err(|error| wrong(format!("`find` of `{name}`: {error}")))?;
            find.push((name.clone(), regex));
        }
        let repeat = form.repeat;
        let entry = form.into_entry(number)?;
        Ok(Self { when, repeat, find, written, entry })
    }
}

/// One answer.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The id of the response; by default it follows from the entry's position.
    pub id: Option<String>,
    /// The items of the answer, in order.
    pub items: Vec<Item>,
    pub usage: Usage,
    /// Further headers of the answer.
    pub headers: Vec<(String, String)>,
    /// A plain response instead of a stream.
    pub plain: Option<Plain>,
    /// The time before the first byte.
    pub delay: Duration,
    /// The end of the stream.
    pub end: End,
    /// Whether the provider reports that it enforced a schema.
    pub follows_schema: bool,
}

impl Entry {
    /// Decodes a response that is not a stream.
    #[must_use]
    pub fn refusal(status: u16, message: &str) -> Self {
        Self {
            id: None,
            items: Vec::new(),
            usage: Usage::default(),
            headers: Vec::new(),
            plain: Some(Plain { status, body: serde_json::json!({"error": {"message": message}}).to_string() }),
            delay: Duration::ZERO,
            end: End::Completed,
            follows_schema: false,
        }
    }

    /// The value of a header, in any case of its name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Decodes an entry in which `find` was replaced.
    pub(super) fn read(number: usize, written: Value) -> Result<Self, ScriptError> {
        let form = serde_json::from_value::<WrittenEntry>(written);
        form.map_err(|error| ScriptError::Entry { number, why: error.to_string() })?.into_entry(number)
    }
}

/// An HTTP response that is not a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plain {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: String,
}

/// The tokens of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// Tokens sent.
    pub input: i64,
    /// The part of the input that was cached.
    pub cached: i64,
    /// The part of the input that was written to the cache.
    pub written: i64,
    /// Tokens received.
    pub output: i64,
    /// The part of the output that was reasoning.
    pub reasoning: i64,
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 100, cached: 0, written: 0, output: 10, reasoning: 0 }
    }
}

/// The end of a stream.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// With `response.completed`.
    #[default]
    Completed,
    /// Without a last event.
    Cut,
    /// With a reset of the connection.
    Reset,
    /// With `response.failed` and this error.
    Failed(Value),
    /// With `response.incomplete` and this reason.
    Incomplete(String),
}

/// An entry as written.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
#[derive(Default)]
struct WrittenEntry {
    id: Option<String>,
    items: Vec<Value>,
    usage: Usage,
    when: Value,
    repeat: bool,
    find: Map<String, Value>,
    headers: Map<String, Value>,
    status: Option<u16>,
    body: Option<Value>,
    delay_ms: f64,
    end: End,
    follows_schema: bool,
}

impl WrittenEntry {
    fn into_entry(self, number: usize) -> Result<Entry, ScriptError> {
        let wrong = |why: String| ScriptError::Entry { number, why };
        let read =
            |(place, item): (usize, Value)| Item::read(item).map_err(|why| wrong(format!("item {}: {why}", place + 1)));
        Ok(Entry {
            id: self.id,
            items: self.items.into_iter().enumerate().map(read).collect::<Result<_, _>>()?,
            usage: self.usage,
            headers: self.headers.into_iter().map(|(name, value)| (name, plain_text(value))).collect(),
            plain: self
                .status
                .map(|status| Plain { status, body: self.body.map_or_else(|| "{}".to_owned(), plain_text) }),
            delay: milliseconds(self.delay_ms).map_err(|why| wrong(format!("`delay_ms`: {why}")))?,
            end: self.end,
            follows_schema: self.follows_schema,
        })
    }
}

/// A string unchanged, anything else as JSON.
fn plain_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        value => value.to_string(),
    }
}
