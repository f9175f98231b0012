//! Texts with many owners.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text of a model, which may be megabytes long: the conversation, the log, and every message share one copy.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Text(Arc<String>);

impl Text {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Appends text. Other owners keep the old text.
    pub fn push_str(&mut self, more: &str) {
        Arc::make_mut(&mut self.0).push_str(more);
    }

    /// Releases unused capacity, unless the text has other owners.
    pub fn shrink_to_fit(&mut self) {
        if let Some(text) = Arc::get_mut(&mut self.0) {
            text.shrink_to_fit();
        }
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(Arc::new(text))
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        Arc::unwrap_or_clone(text.0)
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        self
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(feature = "schema")]
crate::schema::string_schema!(Text);

#[cfg(feature = "arbitrary")]
impl proptest::arbitrary::Arbitrary for Text {
    type Parameters = <String as proptest::arbitrary::Arbitrary>::Parameters;
    type Strategy = proptest::strategy::MapInto<<String as proptest::arbitrary::Arbitrary>::Strategy, Self>;

    fn arbitrary_with(parameters: Self::Parameters) -> Self::Strategy {
        use proptest::strategy::Strategy as _;
        proptest::arbitrary::any_with::<String>(parameters).prop_map_into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_shared_until_it_grows() {
        let mut text = Text::from("one");
        let shared = text.clone();
        assert!(std::ptr::eq(text.as_str(), shared.as_str()));
        text.push_str(" two");
        assert_eq!((&*text, &*shared), ("one two", "one"));
        assert_eq!(serde_json::to_string(&text).unwrap(), r#""one two""#);
        assert_eq!(serde_json::from_str::<Text>(r#""o\nne""#).unwrap(), "o\nne");
    }
}
