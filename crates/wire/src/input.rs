//! What a user sends: text, pictures, and the skills named in it.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::{Map, Value};

use crate::forms::{same_word, take};

/// One piece of user input.
///
/// It is read in every form clients have used: flat or with a `data` member, `image_url`, `imageUrl` or `url`,
/// `local_image` or `localImage`. It is written flat and in snake case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub enum UserInput {
    /// Plain text.
    Text {
        /// What the user wrote.
        text: String,
    },
    /// A picture by URL, usually a `data:` URL.
    Image {
        /// Where the picture is.
        image_url: String,
    },
    /// A picture on the engine's disk, read when the turn starts.
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
        /// What it is called in the text.
        name: String,
        /// Where it is; a path or a URL.
        path: String,
    },
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
            Ok(Self::Text { text: text(&["text"])? })
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
