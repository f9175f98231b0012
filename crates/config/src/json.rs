//! Trees as JSON, and the version of a layer: a hash of its contents.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json};
use sha2::{Digest as _, Sha256};

use crate::{Table, Tree, Value};

/// The members of a table as JSON, ordered by name.
#[must_use]
pub fn table_json(table: &Table) -> Map<String, Json> {
    table.iter().map(|(name, node)| (name.clone(), value_json(&node.value))).collect()
}

/// A value as JSON. A number that JSON does not have becomes `null`.
#[must_use]
pub fn value_json(value: &Value) -> Json {
    match value {
        Value::String(text) | Value::Datetime(text) => Json::from(text.as_str()),
        Value::Integer(number) => Json::from(*number),
        Value::Float(number) => Json::from(*number),
        Value::Boolean(flag) => Json::from(*flag),
        Value::Array(nodes) => nodes.iter().map(|node| value_json(&node.value)).collect(),
        Value::Table(table) => Json::Object(table_json(table)),
    }
}

/// A hash of a layer's contents. Comments, order and notation do not count, so an edit that only changes those is no
/// change.
pub(crate) fn version(layer: &Tree) -> String {
    let text = Json::Object(table_json(layer.root())).to_string();
    let mut version = "sha256:".to_owned();
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(version, "{byte:02x}");
    }
    version
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn version_of(text: &str) -> String {
        version(&Tree::parse(Path::new("c"), text).unwrap())
    }

    #[test]
    fn an_empty_layer_has_the_recorded_version() {
        assert_eq!(version_of(""), "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
    }

    #[test]
    fn comments_order_and_notation_do_not_change_the_version() {
        assert_eq!(version_of("a = 1\nb.c = 'x'"), version_of("# hi\nb = { c = \"x\" }\na = 1 # one"));
        assert_ne!(version_of("a = 1"), version_of("a = 2"));
        assert_ne!(version_of("a = 1"), version_of("a = 1.0"));
    }
}
