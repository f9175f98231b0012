//! Decoding of members that a client may omit or send as `null`.

use serde::{Deserialize, Deserializer};

/// Reads `null` as the default.
///
/// Use it with `#[serde(default, deserialize_with = "or_default")]`, so that an absent member reads the same.
pub(crate) fn or_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Deserialize<'de> + Default,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Bytes that are encoded as Base64, or absent.
pub(crate) mod optional_base64 {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use codex_wire::forms::base64_bytes;

    /// Exposes the encoding for bytes that are always present.
    #[derive(Serialize, Deserialize)]
    struct Bytes(#[serde(with = "base64_bytes")] Vec<u8>);

    #[expect(clippy::ref_option, reason = "serde hands over the field as it is")]
    pub(crate) fn serialize<S: Serializer>(bytes: &Option<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
        bytes.as_ref().map(|bytes| Bytes(bytes.clone())).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u8>>, D::Error> {
        Ok(Option::<Bytes>::deserialize(deserializer)?.map(|Bytes(bytes)| bytes))
    }
}
