//! Encodings that many types share: words in any case, three-state options, Base64, lenient member names.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// A word that is not one of the known ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown value `{word}`, expected one of {}", .known.join(", "))]
pub struct UnknownWord {
    word: String,
    known: &'static [&'static str],
}

impl UnknownWord {
    /// Creates the error with a word and the known ones.
    #[must_use]
    pub fn new(word: &str, known: &'static [&'static str]) -> Self {
        Self { word: word.to_owned(), known }
    }
}

/// Whether a word is one of the known ones, in any case and with any separators.
#[must_use]
pub fn same_word(word: &str, known: &[&str]) -> bool {
    known.iter().any(|known| letters(word).eq(letters(known)))
}

fn letters(word: &str) -> impl Iterator<Item = char> + '_ {
    word.chars().filter(|c| !matches!(c, '-' | '_')).map(|c| c.to_ascii_lowercase())
}

/// Decodes a member that may be absent, `null` or a value as `None`, `Some(None)` or `Some(Some(value))`.
///
/// Use it with `#[serde(default, deserialize_with = "nullable", skip_serializing_if = "Option::is_none")]`.
pub fn nullable<'de, T, D>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    Option::deserialize(deserializer).map(Some)
}

/// Removes the first of several spellings of a member from an object.
pub(crate) fn take(object: &mut Map<String, Value>, spellings: &[&str]) -> Option<Value> {
    spellings.iter().find_map(|name| object.shift_remove(*name))
}

/// Removes one member from a value, so that an undecoded payload does not repeat its own label.
#[must_use]
pub fn without(mut value: Value, member: &str) -> Value {
    if let Value::Object(object) = &mut value {
        object.shift_remove(member);
    }
    value
}

/// Rewrites `{"Kind": {..}}`, the form of releases before 0.59, as `{"type": "Kind", ..}`.
pub(crate) fn tag_inside(value: Value) -> Value {
    match value {
        Value::Object(object) if !object.contains_key("type") && object.len() == 1 => {
            object.into_iter().next().map_or(Value::Null, |(kind, body)| match body {
                Value::Object(mut body) => {
                    body.shift_insert(0, "type".to_owned(), Value::String(kind));
                    Value::Object(body)
                }
                body => Value::Object(Map::from_iter([(kind, body)])),
            })
        }
        value => value,
    }
}

/// Bytes that are encoded as standard Base64 with padding.
pub mod base64_bytes {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        STANDARD.decode(text.as_bytes()).map_err(D::Error::custom)
    }
}

#[cfg(feature = "arbitrary")]
pub use arbitrary::any_other;
#[cfg(feature = "arbitrary")]
pub(crate) use arbitrary::{any_json, any_object, any_score, few, few_lists, few_named};

#[cfg(feature = "arbitrary")]
mod arbitrary {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    /// Any JSON value without numbers that do not survive a round trip as text.
    pub(crate) fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z]{1,6}", inner, 0..4).prop_map(|map| map.into_iter().collect()),
            ]
        })
    }

    /// A value of an unknown kind, labelled by the given member.
    pub fn any_other(tag: &'static str) -> impl Strategy<Value = Value> {
        any_json().prop_map(move |extra| json!({tag: "from_the_future", "extra": extra}))
    }

    /// Any JSON object, or nothing. `null` is left out because it is decoded as nothing.
    pub(crate) fn any_object() -> impl Strategy<Value = Option<Value>> {
        prop::option::of(any_json().prop_map(|inner| json!({"inner": inner})))
    }

    /// A number between 0 and 100 that survives being written in decimal.
    pub(crate) fn any_score() -> impl Strategy<Value = f64> {
        (0..10_000u32).prop_map(|hundredths| f64::from(hundredths) / 100.0)
    }

    /// A short list, because nested lists of some messages would take minutes to generate.
    pub(crate) fn few<T: Arbitrary>() -> impl Strategy<Value = Vec<T>> {
        prop::collection::vec(any::<T>(), 0..4)
    }

    /// A small map, for the same reason.
    pub(crate) fn few_named<K: Arbitrary + Ord, T: Arbitrary>() -> impl Strategy<Value = BTreeMap<K, T>> {
        prop::collection::btree_map(any::<K>(), any::<T>(), 0..4)
    }

    /// A small map of short lists, for the same reason.
    pub(crate) fn few_lists<T: Arbitrary>() -> impl Strategy<Value = BTreeMap<String, Vec<T>>> {
        prop::collection::btree_map(any::<String>(), few::<T>(), 0..4)
    }
}
