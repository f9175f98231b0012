//! The default values of a form that a server asks a person to fill in.

use serde_json::{Value, json};

/// The content of a form with the defaults of its schema for members that the person left out.
pub(crate) fn with_defaults(content: Option<Value>, schema: &Value) -> Value {
    let mut content = content.filter(Value::is_object).unwrap_or_else(|| json!({}));
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(default) = member.get("default").filter(|_| content.get(name).is_none()) {
            content[name] = default.clone();
        }
    }
    content
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_fill_what_was_left_out_and_nothing_else() {
        let schema = json!({"properties": {
            "name": {"type": "string", "default": "John"}, "age": {"type": "integer", "default": 30}, "city": {},
        }});
        assert_eq!(with_defaults(None, &schema), json!({"name": "John", "age": 30}));
        assert_eq!(with_defaults(Some(json!({"age": 7, "x": 1})), &schema), json!({"age": 7, "x": 1, "name": "John"}));
        assert_eq!(with_defaults(Some(json!({"age": null})), &schema), json!({"age": null, "name": "John"}));
        assert_eq!(with_defaults(Some(json!("x")), &json!("odd")), json!({}));
        assert_eq!(with_defaults(None, &json!({"properties": [1]})), json!({}));
    }
}
