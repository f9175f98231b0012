//! Schemas for providers that accept only a part of JSON Schema.

use serde_json::{Map, Value, json};

/// The keywords that every provider understands.
const KEPT: [&str; 7] = ["type", "description", "properties", "required", "items", "enum", "nullable"];

/// A schema without anything that a provider may reject. It allows everything that the original does, and more: the
/// tool itself checks the arguments.
pub(crate) fn simplified(schema: &Value) -> Value {
    let Value::Object(members) = schema else { return json!({"type": "object"}) };
    if let Some(choices) = ["anyOf", "oneOf", "allOf"].iter().find_map(|key| members.get(*key)?.as_array()) {
        return one_of(members, choices);
    }
    let mut kept = Map::new();
    for (name, value) in members {
        match name.as_str() {
            "type" => add_type(&mut kept, value),
            "properties" => {
                let properties = value.as_object().into_iter().flatten();
                let simple: Map<_, _> = properties.map(|(name, of)| (name.clone(), simplified(of))).collect();
                kept.insert(name.clone(), simple.into());
            }
            "items" => {
                kept.insert(name.clone(), simplified(value));
            }
            "const" => {
                kept.insert("enum".to_owned(), json!([value]));
            }
            name if KEPT.contains(&name) => {
                kept.insert(name.to_owned(), value.clone());
            }
            _ => {}
        }
    }
    if kept.is_empty() { json!({"type": "string"}) } else { kept.into() }
}

/// Whether the simpler schema differs.
pub(crate) fn is_simple(schema: &Value) -> bool {
    simplified(schema) == *schema
}

/// Of several alternatives, the first one that is not null represents all.
fn one_of(members: &Map<String, Value>, choices: &[Value]) -> Value {
    let is_null = |choice: &&Value| choice["type"] == "null";
    let first = choices.iter().find(|choice| !is_null(choice));
    let mut simple = first.map_or_else(|| json!({"type": "string"}), simplified);
    if choices.iter().any(|choice| is_null(&choice)) {
        simple["nullable"] = true.into();
    }
    if let Some(description) = members.get("description") {
        simple["description"] = description.clone();
    }
    simple
}

/// A list of types becomes the first one that is not null.
fn add_type(kept: &mut Map<String, Value>, value: &Value) {
    let Value::Array(types) = value else {
        kept.insert("type".to_owned(), value.clone());
        return;
    };
    if types.iter().any(|of| of == "null") {
        kept.insert("nullable".to_owned(), true.into());
    }
    let first = types.iter().find(|of| *of != "null").cloned();
    kept.insert("type".to_owned(), first.unwrap_or_else(|| "string".into()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_everybody_understands_is_left() {
        let schema = json!({
            "type": "object", "additionalProperties": false, "$schema": "x", "required": ["a"],
            "properties": {
                "a": {"type": ["string", "null"], "pattern": "^x", "description": "An a."},
                "b": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"const": 1}}], "description": "A b."},
                "c": {"$ref": "#/x"}, "additionalProperties": {"type": "integer", "minimum": 1},
            },
        });
        let expected = json!({
            "type": "object", "required": ["a"],
            "properties": {
                "a": {"nullable": true, "type": "string", "description": "An a."},
                "b": {"type": "array", "items": {"enum": [1]}, "nullable": true, "description": "A b."},
                "c": {"type": "string"}, "additionalProperties": {"type": "integer"},
            },
        });
        assert_eq!(simplified(&schema), expected);
        assert!(is_simple(&expected) && !is_simple(&schema));
        assert_eq!(simplified(&json!(true)), json!({"type": "object"}));
    }
}
