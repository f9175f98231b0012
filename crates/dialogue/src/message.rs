//! A message of the person: its text, and the pictures and skills that go with it.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::editor::Part;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Message {
    pub text: String,
    /// Everything besides the text, as the protocol has it.
    pub more: Vec<Value>,
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Self { text, more: Vec::new() }
    }
}

impl Message {
    #[must_use]
    pub fn with_pictures(text: String, pictures: Vec<PathBuf>) -> Self {
        let more = pictures.into_iter().map(|path| json!({"type": "localImage", "path": path})).collect();
        Self { text, more }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.more.is_empty()
    }

    /// The input of a turn.
    #[must_use]
    pub fn input(&self) -> Vec<Value> {
        let text = (!self.text.is_empty()).then(|| json!({"type": "text", "text": self.text}));
        text.into_iter().chain(self.more.iter().cloned()).collect()
    }

    /// The message that an input is.
    pub fn from_input(input: &Value) -> Self {
        let (mut texts, mut more) = (Vec::new(), Vec::new());
        for part in input.as_array().into_iter().flatten() {
            match part.get("text").and_then(Value::as_str) {
                Some(text) => texts.push(text),
                None => more.push(part.clone()),
            }
        }
        Self { text: texts.join("\n"), more }
    }

    /// The parts for the composer: pictures are chips again.
    pub fn parts(&self) -> Vec<Part> {
        let (mut parts, mut rest) = (Vec::new(), self.text.as_str());
        for picture in &self.more {
            let is_local = matches!(picture["type"].as_str(), Some("localImage" | "local_image"));
            let Some(path) = picture["path"].as_str().filter(|_| is_local).map(PathBuf::from) else { continue };
            let label = format!("[Image {}]", path.file_name().unwrap_or_default().to_string_lossy());
            if let Some((before, after)) = rest.split_once(&label) {
                parts.extend((!before.is_empty()).then(|| Part::Typed(before.to_owned())));
                rest = after;
            }
            parts.push(Part::Picture(path));
        }
        parts.extend((!rest.is_empty()).then(|| Part::Typed(rest.to_owned())));
        parts
    }
}
