//! User input: text, images, and the skills named in it.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::{Map, Value};

use crate::event::UserMessageEvent;
use crate::forms::{same_word, take};

/// One part of user input.
///
/// It is read in every form that clients have used: flat or with a `data` member, `image_url`, `imageUrl` or `url`,
/// `local_image` or `localImage`. It is written flat and in snake case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub enum UserInput {
    /// Plain text.
    Text {
        text: String,
        /// Spans of it that a client shows as one element, such as a mentioned file.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[cfg_attr(feature = "schema", schemars(default))]
        #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::few()"))]
        text_elements: Vec<TextElement>,
    },
    /// An image by URL, usually a `data:` URL.
    Image {
        /// The path of the image.
        image_url: String,
    },
    /// An image on the engine's disk, read when the turn starts.
    LocalImage {
        /// The file.
        path: PathBuf,
    },
    /// A skill the user named.
    Skill {
        /// Its name.
        name: String,
        /// Its `SKILL.md`.
        path: PathBuf,
    },
    /// A file or an app the user mentioned.
    Mention {
        /// Its name in the text.
        name: String,
        /// Its path or URL.
        path: String,
    },
}

/// A span of a text that a client shows as one element.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct TextElement {
    /// Its range in the text.
    #[serde(alias = "byteRange")]
    pub byte_range: ByteRange,
    /// The text shown in its place.
    #[serde(default)]
    pub placeholder: Option<String>,
}

/// A range of a text in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ByteRange {
    /// The first byte.
    pub start: usize,
    /// The first byte after it.
    pub end: usize,
}

impl UserInput {
    /// Plain text without marked spans.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), text_elements: Vec::new() }
    }

    /// Joins the parts into one message. Spans move with the text before them.
    #[must_use]
    pub fn said(content: &[Self]) -> UserMessageEvent {
        let (mut message, mut images, mut text_elements) = (String::new(), Vec::new(), Vec::new());
        for part in content {
            match part {
                Self::Text { text, text_elements: marked } => {
                    let at = message.len();
                    text_elements.extend(marked.iter().cloned().map(|mut element| {
                        let ByteRange { start, end } = element.byte_range;
                        element.byte_range = ByteRange { start: start.saturating_add(at), end: end.saturating_add(at) };
                        element
                    }));
                    message.push_str(text);
                }
                Self::Image { image_url } => images.push(image_url.clone()),
                Self::LocalImage { .. } | Self::Skill { .. } | Self::Mention { .. } => {}
            }
        }
        UserMessageEvent { message, images: Some(images), text_elements }
    }
}

impl<'de> Deserialize<'de> for UserInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut object = Map::deserialize(deserializer)?;
        let kind = take(&mut object, &["type"]).ok_or_else(|| D::Error::missing_field("type"))?;
        let kind = kind.as_str().ok_or_else(|| D::Error::custom("the `type` of an input item is a string"))?;
        let mut body = match take(&mut object, &["data"]) {
            Some(Value::Object(data)) => data,
            Some(_) => return Err(D::Error::custom("the `data` of an input item is an object")),
            None => object,
        };
        let mut text = |spellings: &[&'static str]| match take(&mut body, spellings) {
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(D::Error::custom(format_args!("`{}` of an input item is a string", spellings[0]))),
            None => Err(D::Error::missing_field(spellings[0])),
        };
        if same_word(kind, &["text"]) {
            let text = text(&["text"])?;
            let marked = take(&mut body, &["text_elements", "textElements"]).filter(|marked| !marked.is_null());
            let text_elements = marked.map(serde_json::from_value).transpose().map_err(D::Error::custom)?;
            Ok(Self::Text { text, text_elements: text_elements.unwrap_or_default() })
        } else if same_word(kind, &["image"]) {
            Ok(Self::Image { image_url: text(&["image_url", "imageUrl", "url"])? })
        } else if same_word(kind, &["local_image"]) {
            Ok(Self::LocalImage { path: text(&["path"])?.into() })
        } else if same_word(kind, &["skill"]) {
            Ok(Self::Skill { name: text(&["name"])?, path: text(&["path"])?.into() })
        } else if same_word(kind, &["mention"]) {
            Ok(Self::Mention { name: text(&["name"])?, path: text(&["path"])? })
        } else {
            Err(D::Error::unknown_variant(kind, &["text", "image", "local_image", "skill", "mention"]))
        }
    }
}
