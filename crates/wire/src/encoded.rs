//! Items of a conversation as they go into requests and files.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::response::{ContentItem, ResponseItem};

/// From how many bytes of text on a message is encoded only when that is needed.
const LARGE_BYTES: usize = 64 * 1024;

/// An item of a conversation, encoded once for all requests and the file.
///
/// A large message is not: it shares its text with all that show it, and is encoded whenever it is sent.
#[derive(Debug, Clone)]
pub struct EncodedItem {
    form: Form,
    bytes: usize,
}

#[derive(Debug, Clone)]
enum Form {
    Json(Arc<RawValue>),
    Item(Arc<ResponseItem>),
}

impl EncodedItem {
    /// Encodes an item.
    ///
    /// # Errors
    /// Only if an item held something JSON cannot express, which none does.
    pub fn new(item: &Arc<ResponseItem>) -> Result<Self, serde_json::Error> {
        if text_bytes(item) < LARGE_BYTES {
            return serde_json::value::to_raw_value(&**item).map(|json| Self::from(Arc::<RawValue>::from(json)));
        }
        let mut counter = Counter(0);
        serde_json::to_writer(&mut counter, &**item)?;
        Ok(Self { form: Form::Item(Arc::clone(item)), bytes: counter.0 })
    }

    /// How many bytes of JSON it is.
    #[must_use]
    pub fn json_bytes(&self) -> usize {
        self.bytes
    }

    /// The JSON.
    #[must_use]
    pub fn json(&self) -> Cow<'_, str> {
        match &self.form {
            Form::Json(json) => json.get().into(),
            // It was encoded before.
            Form::Item(item) => serde_json::to_string(&**item).unwrap_or_default().into(),
        }
    }

    /// Adds the JSON to a buffer.
    pub fn append_to(&self, buffer: &mut Vec<u8>) {
        match &self.form {
            Form::Json(json) => buffer.extend_from_slice(json.get().as_bytes()),
            // It was encoded before, and a buffer takes everything.
            Form::Item(item) => drop(serde_json::to_writer(buffer, &**item)),
        }
    }
}

impl From<Arc<RawValue>> for EncodedItem {
    fn from(json: Arc<RawValue>) -> Self {
        Self { bytes: json.get().len(), form: Form::Json(json) }
    }
}

impl Serialize for EncodedItem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.form {
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
            let encoded = EncodedItem::new(&item).unwrap();
            assert_eq!(matches!(encoded.form, Form::Item(_)), text.len() >= LARGE_BYTES);
            let expected = serde_json::to_string(&*item).unwrap();
            let mut buffer = Vec::new();
            encoded.append_to(&mut buffer);
            assert_eq!(buffer, expected.as_bytes());
            assert_eq!(encoded.json(), expected);
            assert_eq!(encoded.json_bytes(), expected.len());
            assert_eq!(serde_json::to_string(&encoded).unwrap(), expected);
        }
    }
}
