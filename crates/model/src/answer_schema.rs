//! Checks an answer against a JSON schema, as far as providers support schemas.
//!
//! Unknown keywords forbid nothing: the provider decides about them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::StreamExt;
use serde_json::{Map, Value};

use crate::{Answer, Model, ModelEvent, Prompt};

/// The maximum depth of references between schemas.
const DEEPEST: usize = 64;

/// The schema that an answer has to follow.
#[derive(Debug, Clone)]
pub struct AnswerSchema {
    root: Value,
}

/// Whether the provider claimed, with its last answer, to enforce schemas. One that did not would only make the same
/// mistake again.
#[derive(Debug, Clone, Default)]
pub struct SchemaSupport(Arc<AtomicBool>);

impl SchemaSupport {
    /// Wraps a model to record its claim.
    #[must_use]
    pub fn watch(&self, model: Arc<dyn Model>) -> Arc<dyn Model> {
        Arc::new(Watched { model, pledge: self.clone() })
    }

    /// Whether the last answer came with the claim.
    #[must_use]
    pub fn is_given(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A model whose claim to enforce schemas is recorded.
struct Watched {
    model: Arc<dyn Model>,
    pledge: SchemaSupport,
}

impl Model for Watched {
    fn ask(&self, prompt: Prompt) -> Answer {
        let pledge = self.pledge.clone();
        Box::pin(self.model.ask(prompt).inspect(move |event| {
            if let Ok(ModelEvent::Completed { follows_schema, .. }) = event {
                pledge.0.store(*follows_schema, Ordering::Relaxed);
            }
        }))
    }
}

impl AnswerSchema {
    /// A schema; `None` if it is not a JSON object.
    #[must_use]
    pub fn new(root: Value) -> Option<Self> {
        root.is_object().then_some(Self { root })
    }

    /// The schema as sent to the provider.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.root
    }

    /// The problem with an answer; `None` if it matches.
    #[must_use]
    pub fn complaint(&self, answer: &str) -> Option<String> {
        match serde_json::from_str::<Value>(answer.trim()) {
            Ok(value) => self.check(&self.root, &value, "", 0).err(),
            Err(error) => Some(format!("it is not JSON: {error}")),
        }
    }

    fn check(&self, schema: &Value, value: &Value, place: &str, depth: usize) -> Result<(), String> {
        let here = || if place.is_empty() { "the whole answer".to_owned() } else { format!("`{place}`") };
        let schema = match schema {
            Value::Bool(false) => return Err(format!("{} must not be there", here())),
            Value::Object(schema) if depth < DEEPEST => schema,
            _ => return Ok(()),
        };
        if let Some(target) = schema.get("$ref").and_then(Value::as_str)
            && let Some(target) = target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer))
        {
            self.check(target, value, place, depth + 1)?;
        }
        check_kind(schema, value).map_err(|wrong| format!("{} {wrong}", here()))?;
        check_limits(schema, value).map_err(|wrong| format!("{} {wrong}", here()))?;
        self.check_choices(schema, value, place, depth)?;
        match value {
            Value::Object(members) => self.check_members(schema, members, place, depth),
            Value::Array(items) => items.iter().enumerate().try_for_each(|(number, item)| {
                let of = schema.get("items").unwrap_or(&Value::Bool(true));
                self.check(of, item, &format!("{place}[{number}]"), depth + 1)
            }),
            _ => Ok(()),
        }
    }

    fn check_members(
        &self,
        schema: &Map<String, Value>,
        members: &Map<String, Value>,
        place: &str,
        depth: usize,
    ) -> Result<(), String> {
        let inside = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        for name in required.filter_map(Value::as_str) {
            if !members.contains_key(name) {
                return Err(format!("`{}` is missing", inside(name)));
            }
        }
        let known = schema.get("properties").and_then(Value::as_object);
        for (name, member) in members {
            let of = known.and_then(|known| known.get(name)).or(schema.get("additionalProperties"));
            if let Some(of) = of {
                self.check(of, member, &inside(name), depth + 1)?;
            }
        }
        Ok(())
    }

    fn check_choices(
        &self,
        schema: &Map<String, Value>,
        value: &Value,
        place: &str,
        depth: usize,
    ) -> Result<(), String> {
        for all in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.check(all, value, place, depth + 1)?;
        }
        for (word, most) in [("anyOf", usize::MAX), ("oneOf", 1)] {
            let Some(choices) = schema.get(word).and_then(Value::as_array) else { continue };
            let fits = choices.iter().filter(|choice| self.check(choice, value, place, depth + 1).is_ok()).count();
            if fits == 0 || fits > most {
                let place = if place.is_empty() { "the whole answer".to_owned() } else { format!("`{place}`") };
                return Err(format!("{place} fits {fits} of the choices of {word}"));
            }
        }
        Ok(())
    }
}

fn check_kind(schema: &Map<String, Value>, value: &Value) -> Result<(), String> {
    let is = |kind: &str| match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => true,
    };
    let kinds: Vec<&str> = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !kinds.is_empty() && !kinds.iter().any(|kind| is(kind)) {
        return Err(format!("must be of type {}", kinds.join(" or ")));
    }
    if schema.get("enum").and_then(Value::as_array).is_some_and(|words| !words.contains(value)) {
        return Err("is none of the allowed values".to_owned());
    }
    if schema.get("const").is_some_and(|only| only != value) {
        return Err("is not the one allowed value".to_owned());
    }
    Ok(())
}

fn check_limits(schema: &Map<String, Value>, value: &Value) -> Result<(), String> {
    let limit = |word: &str| schema.get(word).and_then(Value::as_f64);
    let within = |size: f64, least: &str, most: &str, what: &str| {
        if limit(least).is_some_and(|least| size < least) || limit(most).is_some_and(|most| size > most) {
            return Err(format!("has {what} {size}, which is out of bounds"));
        }
        Ok(())
    };
    #[expect(clippy::cast_precision_loss, reason = "no answer is long enough for the difference to show")]
    let count = |count: usize| count as f64;
    match value {
        Value::Number(number) => within(number.as_f64().unwrap_or_default(), "minimum", "maximum", "the value"),
        Value::String(text) => within(count(text.chars().count()), "minLength", "maxLength", "the length"),
        Value::Array(items) => within(count(items.len()), "minItems", "maxItems", "the length"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: Value, answer: &str, complaint: Option<&str>) {
        assert_eq!(AnswerSchema { root: schema }.complaint(answer).as_deref(), complaint, "{answer}");
    }

    #[test]
    fn objects_have_the_members_they_must() {
        let schema = || {
            json!({"type": "object", "required": ["a"], "additionalProperties": false,
                   "properties": {"a": {"type": "string"}, "b": {"type": ["integer", "null"]}}})
        };
        check(schema(), r#" {"a": "x", "b": null} "#, None);
        check(schema(), r#"{"b": 1}"#, Some("`a` is missing"));
        check(schema(), r#"{"a": 1}"#, Some("`a` must be of type string"));
        check(schema(), r#"{"a": "", "b": 1.5}"#, Some("`b` must be of type integer or null"));
        check(schema(), r#"{"a": "", "c": 1}"#, Some("`c` must not be there"));
        check(schema(), "[]", Some("the whole answer must be of type object"));
        check(schema(), "yes", Some("it is not JSON: expected value at line 1 column 1"));
    }

    #[test]
    fn nested_commands_are_checked_too() {
        let schema = || {
            json!({"$defs": {"word": {"enum": ["yes", "no"]}}, "type": "array", "minItems": 1,
                   "items": {"anyOf": [{"$ref": "#/$defs/word"}, {"type": "number", "maximum": 3}]}})
        };
        check(schema(), r#"["yes", 3]"#, None);
        check(schema(), r#"["maybe"]"#, Some("`[0]` fits 0 of the choices of anyOf"));
        check(schema(), "[]", Some("the whole answer has the length 0, which is out of bounds"));
    }

    #[test]
    fn a_recursive_schema_terminates() {
        check(json!({"$ref": "#"}), "1", None);
    }
}
