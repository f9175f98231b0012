//! The protocol as JSON Schema, for other programs.
//!
//! The output comes from one bundle that a test generates from the types (`schema/` in the repository). It is built
//! into the program as text, so it costs nothing until it is requested.

#[cfg(feature = "schema")]
mod tables;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

#[cfg(feature = "schema")]
pub use tables::{Message, Tables, describe};

/// The whole bundle, one definition per line.
pub const BUNDLE: &str = include_str!("bundle.json");

/// The spaces of names besides the outermost one.
pub const SPACES: &[&str] = &["v2", "exec"];

/// The definitions of a bundle. One in a namespace is named `space/name`.
#[derive(Debug)]
pub struct Definitions(Map<String, Value>);

impl Definitions {
    /// Splits a bundle.
    #[must_use]
    pub fn of(bundle: &Value) -> Self {
        let mut all = Map::new();
        for (name, definition) in bundle["definitions"].as_object().into_iter().flatten() {
            match definition {
                Value::Object(inner) if SPACES.contains(&name.as_str()) => {
                    all.extend(inner.iter().map(|(inner, definition)| (format!("{name}/{inner}"), definition.clone())));
                }
                definition => {
                    all.insert(name.clone(), definition.clone());
                }
            }
        }
        Self(all)
    }

    /// The definitions of this program.
    ///
    /// # Errors
    /// If the embedded bundle is not JSON.
    pub fn built_in() -> Result<Self, serde_json::Error> {
        serde_json::from_str(BUNDLE).map(|bundle| Self::of(&bundle))
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The definition of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Everything that can be reached from some names, without those names unless they refer to themselves.
    #[must_use]
    pub fn needed_by(&self, names: &[&str]) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut open: Vec<&Value> = names.iter().filter_map(|name| self.get(name)).collect();
        while let Some(schema) = open.pop() {
            if let Some(name) = target(schema)
                && found.insert(name.to_owned())
            {
                open.extend(self.get(name));
            }
            match schema {
                Value::Object(members) => open.extend(members.values()),
                Value::Array(items) => open.extend(items),
                _ => {}
            }
        }
        found
    }
}

/// The definition that a schema refers to.
#[must_use]
pub fn target(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix("#/definitions/")
}

/// The space of a name, and the name within it.
#[must_use]
pub fn space_and_name(name: &str) -> (&str, &str) {
    name.split_once('/').unwrap_or(("", name))
}
