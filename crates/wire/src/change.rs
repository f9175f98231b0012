//! The change of one file by a patch.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::{Map, Value};

#[cfg(feature = "schema")]
use crate::forms::without;
use crate::forms::{same_word, tag_inside, take};

/// The change of one file by a patch.
///
/// It is read with the kind inside (`{"type": "add", ..}`) or around (`{"add": {..}}`, before 0.59), with members
/// in snake or camel case. It is written with the kind inside and in snake case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transform = with_tags_outside))]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub enum FileChange {
    /// A new file.
    Add { content: String },
    /// A deleted file.
    Delete {
        /// The previous content; empty if the writer did not record it.
        content: String,
    },
    /// A modified file.
    Update {
        /// The edit.
        unified_diff: String,
        /// Its new path, if it was renamed.
        move_path: Option<PathBuf>,
    },
}

/// Rewrites an event in the form that clients of the submission queue read: the kind of each file change around its
/// members, as in `{"add": {"content": "…"}}`.
pub fn put_tags_outside(event: &mut Value) {
    let Some(changes) = event.get_mut("changes").and_then(Value::as_object_mut) else { return };
    for change in changes.values_mut() {
        if let Value::Object(members) = change
            && let Some(Value::String(kind)) = members.shift_remove("type")
        {
            let members = Value::Object(std::mem::take(members));
            *change = Value::Object(Map::from_iter([(kind, members)]));
        }
    }
}

/// The schema of both forms: events of the submission queue have the kind around, all others inside.
#[cfg(feature = "schema")]
fn with_tags_outside(schema: &mut schemars::Schema) {
    let inside = schema.remove("oneOf").and_then(|forms| forms.as_array().cloned()).unwrap_or_default();
    let outside = inside.iter().cloned().map(|mut form| {
        let kind = form["properties"]["type"]["const"].as_str().unwrap_or_default().to_owned();
        form["properties"] = without(form["properties"].take(), "type");
        form["required"].as_array_mut().into_iter().for_each(|required| required.retain(|name| name != "type"));
        serde_json::json!({"type": "object", "properties": {&kind: form}, "required": [kind]})
    });
    let forms = inside.iter().cloned().chain(outside).collect();
    schema.insert("anyOf".to_owned(), Value::Array(forms));
}

impl<'de> Deserialize<'de> for FileChange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Value::Object(mut object) = tag_inside(Value::deserialize(deserializer)?) else {
            return Err(D::Error::custom("expected a file change: an object with `type`"));
        };
        let kind = text(&mut object, &["type"])?.ok_or_else(|| D::Error::missing_field("type"))?;
        if same_word(&kind, &["add"]) {
            let content = text(&mut object, &["content"])?.ok_or_else(|| D::Error::missing_field("content"))?;
            Ok(Self::Add { content })
        } else if same_word(&kind, &["delete"]) {
            Ok(Self::Delete { content: text(&mut object, &["content"])?.unwrap_or_default() })
        } else if same_word(&kind, &["update"]) {
            let unified_diff = text(&mut object, &["unified_diff", "unifiedDiff"])?
                .ok_or_else(|| D::Error::missing_field("unified_diff"))?;
            let move_path = text(&mut object, &["move_path", "movePath"])?.map(PathBuf::from);
            Ok(Self::Update { unified_diff, move_path })
        } else {
            Err(D::Error::unknown_variant(&kind, &["add", "delete", "update"]))
        }
    }
}

/// Removes a string from an object; `null` counts as absent.
fn text<E: serde::de::Error>(object: &mut Map<String, Value>, spellings: &[&str]) -> Result<Option<String>, E> {
    match take(object, spellings) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(E::custom(format_args!("`{}` of a file change is a string", spellings[0]))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tags_go_outside_and_can_be_read_there() {
        let mut event = json!({"type": "patch_apply_begin", "changes": {
            "/a": {"type": "add", "content": "x"},
            "/b": {"type": "update", "unified_diff": "@@", "move_path": null},
        }});
        let inside = event["changes"].clone();
        put_tags_outside(&mut event);
        assert_eq!(event["changes"]["/a"], json!({"add": {"content": "x"}}));
        assert_eq!(event["changes"]["/b"], json!({"update": {"unified_diff": "@@", "move_path": null}}));
        for path in ["/a", "/b"] {
            let read = |value: &Value| serde_json::from_value::<FileChange>(value.clone()).unwrap();
            assert_eq!(read(&event["changes"][path]), read(&inside[path]));
        }
    }
}
