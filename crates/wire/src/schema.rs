//! Types as JSON Schema (draft 7).
//!
//! Decoding is more lenient than the schemas: old names of members and other spellings of words are accepted as well.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// Describes a type that is an ordinary string on the wire.
macro_rules! string_schema {
    ($name:ident) => {
        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                String::schema_name()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                String::json_schema(generator)
            }
        }
    };
}

pub(crate) use string_schema;

/// The accepted forms of a type.
#[must_use]
pub fn read_form<T: JsonSchema>() -> Value {
    SchemaSettings::draft07().for_deserialize().into_generator().into_root_schema_for::<T>().into()
}

/// The written form of a type.
#[must_use]
pub fn written_form<T: JsonSchema>() -> Value {
    SchemaSettings::draft07().for_serialize().into_generator().into_root_schema_for::<T>().into()
}

/// A schema in which open enums (`x-open`) accept any kind other than theirs.
#[must_use]
pub fn opened(schema: Value) -> Value {
    match schema {
        Value::Object(members) => {
            let mut members: Map<String, Value> =
                members.into_iter().map(|(name, member)| (name, opened(member))).collect();
            let choices = if members.contains_key("oneOf") { "oneOf" } else { "anyOf" };
            if members.get("x-open") == Some(&Value::Bool(true))
                && let Some(Value::Array(kinds)) = members.get_mut(choices)
            {
                let claims: Vec<Value> = kinds.iter().map(claim).collect();
                kinds.push(json!({"not": {"anyOf": claims}}));
            }
            Value::Object(members)
        }
        Value::Array(items) => Value::Array(items.into_iter().map(opened).collect()),
        schema => schema,
    }
}

/// The tag that assigns a value to a kind, well-formed or not.
fn claim(kind: &Value) -> Value {
    if let Some(word) = kind.get("const") {
        return json!({"const": word});
    }
    let members = kind.get("properties").and_then(Value::as_object).into_iter().flatten();
    let labels: Map<String, Value> = members
        .filter(|(_, member)| member.get("const").is_some())
        .map(|(name, member)| (name.clone(), member.clone()))
        .collect();
    if labels.is_empty() {
        return json!({"type": "object", "required": kind.get("required")});
    }
    json!({"required": labels.keys().collect::<Vec<_>>(), "properties": labels})
}
