//! The text that a person has not sent yet, as it is saved.

use codex_terminal::editor::Part;
use serde_json::{Value, json};

/// A draft as text.
#[must_use]
pub fn encode(parts: &[Part]) -> String {
    let part = |part: &Part| match part {
        Part::Typed(text) => json!({"text": text}),
        Part::Pasted(text) => json!({"paste": text}),
        Part::Picture(path) => json!({"picture": path}),
    };
    Value::from(parts.iter().map(part).collect::<Vec<_>>()).to_string()
}

/// A text as a draft. Parts that are not understood are left out.
#[must_use]
pub fn decode(draft: &str) -> Vec<Part> {
    let parts: Vec<Value> = serde_json::from_str(draft).unwrap_or_default();
    let text = |part: &Value, name: &str| part.get(name)?.as_str().map(str::to_owned);
    let part = |part: &Value| {
        let typed = text(part, "text").map(Part::Typed).or_else(|| text(part, "paste").map(Part::Pasted));
        typed.or_else(|| text(part, "picture").map(|path| Part::Picture(path.into())))
    };
    parts.iter().filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_comes_back_and_a_file_that_is_none_is_empty() {
        let parts =
            [Part::Typed("a".to_owned()), Part::Pasted("b\nc".to_owned()), Part::Picture("/w/p.png".into())].to_vec();
        assert_eq!(decode(&encode(&parts)), parts);
        assert_eq!(decode("[{\"later\": 1}, {\"text\": \"x\"}]"), [Part::Typed("x".to_owned())]);
        assert!(decode("no draft").is_empty() && decode("{}").is_empty());
    }
}
