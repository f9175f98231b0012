//! Items of a conversation as they are written to requests and files.

use std::borrow::Cow;
use std::io;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::response::{ContentItem, ResponseItem};

/// The size of a text from which on a message is encoded only on demand.
const LARGE_BYTES: usize = 64 * 1024;

/// An item of a conversation, encoded once for all requests and the file. Cloning it copies no text.
///
/// The JSON is that of the Responses API: rollouts contain these bytes, and each request begins with those of the
/// previous one. Other APIs encode the parsed item.
///
/// A large message is not encoded in advance: it shares its text with all its holders, and is encoded whenever it is
/// sent.
#[derive(Debug, Clone)]
pub struct ConversationItem(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    form: Form,
    bytes: usize,
    origin: Option<Arc<ItemOrigin>>,
    other: OnceLock<OtherForm>,
}

/// The provider of an item with data that only it can read. The item is sent to no other provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemOrigin {
    /// The provider, by its id in the configuration.
    pub provider: String,
    /// The account, if the provider has accounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Data that the provider expects back with the item although it is not part of it, such as signatures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Value>,
}

impl ItemOrigin {
    /// Whether both come from one provider and account.
    #[must_use]
    pub fn is_same_provider(&self, other: &Self) -> bool {
        self.provider == other.provider && self.account == other.account
    }
}

#[derive(Debug)]
enum Form {
    Json(Box<RawValue>),
    Item(Arc<ResponseItem>),
}

/// The encoding for another API.
#[derive(Debug)]
struct OtherForm {
    form: Arc<str>,
    json: Box<str>,
}

impl ConversationItem {
    /// Encodes an item.
    ///
    /// # Errors
    /// Only if an item contained a value that JSON cannot express, which none does.
    pub fn new(item: &Arc<ResponseItem>) -> Result<Self, serde_json::Error> {
        if text_bytes(item) < LARGE_BYTES {
            return serde_json::value::to_raw_value(&**item).map(Self::from);
        }
        let mut counter = Counter(0);
        serde_json::to_writer(&mut counter, &**item)?;
        Ok(Self::of(Form::Item(Arc::clone(item)), counter.0))
    }

    fn of(form: Form, bytes: usize) -> Self {
        Self(Arc::new(Inner { form, bytes, origin: None, other: OnceLock::new() }))
    }

    /// The same item, created by this provider.
    #[must_use]
    pub fn made_by(self, origin: Option<Arc<ItemOrigin>>) -> Self {
        if origin.is_none() {
            return self;
        }
        let form = match Arc::try_unwrap(self.0) {
            Ok(Inner { form, bytes, .. }) => (form, bytes),
            Err(shared) => match &shared.form {
                Form::Json(json) => (Form::Json(json.clone()), shared.bytes),
                Form::Item(item) => (Form::Item(Arc::clone(item)), shared.bytes),
            },
        };
        let (form, bytes) = form;
        Self(Arc::new(Inner { form, bytes, origin, other: OnceLock::new() }))
    }

    /// Its provider, if it contains data that only that provider can read.
    #[must_use]
    pub fn origin(&self) -> Option<&Arc<ItemOrigin>> {
        self.0.origin.as_ref()
    }

    /// Its size as JSON, in bytes.
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

    /// Appends the JSON to a buffer.
    pub fn append_to(&self, buffer: &mut Vec<u8>) {
        match &self.0.form {
            Form::Json(json) => buffer.extend_from_slice(json.get().as_bytes()),
            // It was encoded before, and writing to a buffer cannot fail.
            Form::Item(item) => drop(serde_json::to_writer(buffer, &**item)),
        }
    }

    /// The parsed item. It is parsed on each call, because calls are rare and keeping both forms would double the
    /// memory.
    ///
    /// # Errors
    /// If the JSON, which may come from a file, is not an item.
    pub fn typed(&self) -> Result<Arc<ResponseItem>, serde_json::Error> {
        match &self.0.form {
            Form::Json(json) => serde_json::from_str(json.get()).map(Arc::new),
            Form::Item(item) => Ok(Arc::clone(item)),
        }
    }

    /// The item in another form, identified by the name of an API and further parameters. The first requested form is
    /// cached, so requests in that form also begin with the same bytes; other forms are encoded each time.
    ///
    /// # Errors
    /// If the JSON, which may come from a file, is not an item.
    pub fn on_wire(
        &self,
        form: &Arc<str>,
        encode: impl FnOnce(&ResponseItem) -> String,
    ) -> Result<Cow<'_, str>, serde_json::Error> {
        let is_same = |known: &&OtherForm| Arc::ptr_eq(&known.form, form) || known.form == *form;
        if let Some(known) = self.0.other.get().filter(is_same) {
            return Ok(Cow::Borrowed(&known.json));
        }
        let json = encode(&*self.typed()?);
        if self.0.other.get().is_some() {
            return Ok(Cow::Owned(json));
        }
        let known = self.0.other.get_or_init(|| OtherForm { form: Arc::clone(form), json: json.as_str().into() });
        Ok(if is_same(&known) { Cow::Borrowed(&known.json) } else { Cow::Owned(json) })
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

/// The size of the text in a message.
fn text_bytes(item: &ResponseItem) -> usize {
    match item {
        ResponseItem::Message(message) => {
            message.content.iter().filter_map(ContentItem::text).map(|text| text.len()).sum()
        }
        _ => 0,
    }
}

/// Counts bytes.
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
        let (chat, other) = (Arc::from("chat"), Arc::from("other"));
        assert_eq!(item.on_wire(&chat, said).unwrap(), "[hi]");
        let again = item.clone();
        assert!(matches!(again.on_wire(&chat, |_| unreachable!("it is encoded")).unwrap(), Cow::Borrowed("[hi]")));
        assert_eq!(item.on_wire(&other, |_| "anew".to_owned()).unwrap(), "anew");
        assert_eq!(item.on_wire(&other, |_| "each time".to_owned()).unwrap(), "each time");
        assert_eq!(item.on_wire(&Arc::from("chat"), |_| unreachable!("it stays")).unwrap(), "[hi]");
    }

    #[test]
    fn the_provider_of_an_item_is_not_encoded() {
        let item = ConversationItem::new(&Arc::new(ResponseItem::Message(Message::user("hi")))).unwrap();
        let maker = |account: Option<&str>| ItemOrigin {
            provider: "one".to_owned(),
            account: account.map(str::to_owned),
            opaque: Some(serde_json::json!({"signature": "x"})),
        };
        let made = item.clone().made_by(Some(Arc::new(maker(None))));
        assert_eq!(made.json(), item.json());
        assert_eq!((item.origin(), made.origin().map(|origin| &**origin)), (None, Some(&maker(None))));
        assert!(
            maker(Some("a")).is_same_provider(&maker(Some("a"))) && !maker(Some("a")).is_same_provider(&maker(None))
        );
    }

    #[test]
    fn a_line_of_a_file_need_not_be_an_item() {
        let raw = RawValue::from_string("[ ]".to_owned()).unwrap();
        let item = ConversationItem::from(raw);
        assert_eq!(item.json(), "[ ]");
        assert!(item.typed().is_err() && item.on_wire(&Arc::from("chat"), |_| String::new()).is_err());
    }
}
