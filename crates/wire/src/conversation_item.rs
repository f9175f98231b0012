//! Items of a conversation as they go into requests and files.

use std::borrow::Cow;
use std::io;
use std::sync::{Arc, OnceLock};

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::response::{ContentItem, ResponseItem};

/// From how many bytes of text on a message is encoded only when that is needed.
const LARGE_BYTES: usize = 64 * 1024;

/// An item of a conversation, encoded once for all requests and the file. Cloning it copies no text.
///
/// The JSON of the Responses API is what it is: rollouts hold these bytes, and each request begins with those of the one
/// before. Other wires encode what they read from it.
///
/// A large message is not encoded: it shares its text with all that show it, and is encoded whenever it is sent.
#[derive(Debug, Clone)]
pub struct ConversationItem(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    form: Form,
    bytes: usize,
    other: OnceLock<OtherForm>,
}

#[derive(Debug)]
enum Form {
    Json(Box<RawValue>),
    Item(Arc<ResponseItem>),
}

/// The item on another wire.
#[derive(Debug)]
struct OtherForm {
    wire: &'static str,
    json: Box<str>,
}

impl ConversationItem {
    /// Encodes an item.
    ///
    /// # Errors
    /// Only if an item held something JSON cannot express, which none does.
    pub fn new(item: &Arc<ResponseItem>) -> Result<Self, serde_json::Error> {
        if text_bytes(item) < LARGE_BYTES {
            return serde_json::value::to_raw_value(&**item).map(Self::from);
        }
        let mut counter = Counter(0);
        serde_json::to_writer(&mut counter, &**item)?;
        Ok(Self::of(Form::Item(Arc::clone(item)), counter.0))
    }

    fn of(form: Form, bytes: usize) -> Self {
        Self(Arc::new(Inner { form, bytes, other: OnceLock::new() }))
    }

    /// How many bytes of JSON it is.
    #[must_use]
    pub fn json_bytes(&self) -> usize {
        self.0.bytes
    }

    /// The JSON.
    #[must_use]
    pub fn json(&self) -> Cow<'_, str> {
        match &self.0.form {
            Form::Json(json) => json.get().into(),
            // It was encoded before.
            Form::Item(item) => serde_json::to_string(&**item).unwrap_or_default().into(),
        }
    }

    /// Adds the JSON to a buffer.
    pub fn append_to(&self, buffer: &mut Vec<u8>) {
        match &self.0.form {
            Form::Json(json) => buffer.extend_from_slice(json.get().as_bytes()),
            // It was encoded before, and a buffer takes everything.
            Form::Item(item) => drop(serde_json::to_writer(buffer, &**item)),
        }
    }

    /// What it says. It is read anew each time, because hardly anybody asks and both forms would take twice the memory.
    ///
    /// # Errors
    /// If the JSON, which may come from a file, is no item.
    pub fn typed(&self) -> Result<Arc<ResponseItem>, serde_json::Error> {
        match &self.0.form {
            Form::Json(json) => serde_json::from_str(json.get()).map(Arc::new),
            Form::Item(item) => Ok(Arc::clone(item)),
        }
    }

    /// The item on another wire. The first wire that asks is remembered, so its requests too begin with the same bytes and
    /// nothing is encoded twice; for a second one it is encoded each time.
    ///
    /// # Errors
    /// If the JSON, which may come from a file, is no item.
    pub fn on_wire(
        &self,
        wire: &'static str,
        encode: impl FnOnce(&ResponseItem) -> String,
    ) -> Result<Cow<'_, str>, serde_json::Error> {
        if let Some(form) = self.0.other.get().filter(|form| form.wire == wire) {
            return Ok(Cow::Borrowed(&form.json));
        }
        let json = encode(&*self.typed()?);
        if self.0.other.get().is_some() {
            return Ok(Cow::Owned(json));
        }
        let form = self.0.other.get_or_init(|| OtherForm { wire, json: json.as_str().into() });
        Ok(if form.wire == wire { Cow::Borrowed(&form.json) } else { Cow::Owned(json) })
    }
}

impl From<Box<RawValue>> for ConversationItem {
    fn from(json: Box<RawValue>) -> Self {
        let bytes = json.get().len();
        Self::of(Form::Json(json), bytes)
    }
}

impl Serialize for ConversationItem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0.form {
            Form::Json(json) => json.serialize(serializer),
            Form::Item(item) => item.serialize(serializer),
        }
    }
}

/// How much text a message has.
fn text_bytes(item: &ResponseItem) -> usize {
    match item {
        ResponseItem::Message(message) => {
            message.content.iter().filter_map(ContentItem::text).map(|text| text.len()).sum()
        }
        _ => 0,
    }
}

/// Counts what is written.
struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response::Message;

    #[test]
    fn small_and_large_items_are_encoded_alike() {
        for text in ["a \"word\"".to_owned(), "ü\n".repeat(LARGE_BYTES)] {
            let item = Arc::new(ResponseItem::Message(Message::user(text.as_str())));
            let encoded = ConversationItem::new(&item).unwrap();
            assert_eq!(matches!(encoded.0.form, Form::Item(_)), text.len() >= LARGE_BYTES);
            let expected = serde_json::to_string(&*item).unwrap();
            let mut buffer = Vec::new();
            encoded.append_to(&mut buffer);
            assert_eq!(buffer, expected.as_bytes());
            assert_eq!(encoded.json(), expected);
            assert_eq!(encoded.json_bytes(), expected.len());
            assert_eq!(serde_json::to_string(&encoded).unwrap(), expected);
            assert_eq!(encoded.typed().unwrap(), item);
        }
    }

    #[test]
    fn one_other_wire_is_remembered() {
        let item = ConversationItem::new(&Arc::new(ResponseItem::Message(Message::user("hi")))).unwrap();
        let said = |item: &ResponseItem| match item {
            ResponseItem::Message(message) => format!("[{}]", message.text()),
            _ => String::new(),
        };
        assert_eq!(item.on_wire("chat", said).unwrap(), "[hi]");
        let again = item.clone();
        assert!(matches!(again.on_wire("chat", |_| unreachable!("it is encoded")).unwrap(), Cow::Borrowed("[hi]")));
        assert_eq!(item.on_wire("other", |_| "anew".to_owned()).unwrap(), "anew");
        assert_eq!(item.on_wire("other", |_| "each time".to_owned()).unwrap(), "each time");
        assert_eq!(item.on_wire("chat", |_| unreachable!("it stays")).unwrap(), "[hi]");
    }

    #[test]
    fn what_a_file_holds_need_not_be_an_item() {
        let raw = RawValue::from_string("[ ]".to_owned()).unwrap();
        let item = ConversationItem::from(raw);
        assert_eq!(item.json(), "[ ]");
        assert!(item.typed().is_err() && item.on_wire("chat", |_| String::new()).is_err());
    }
}
