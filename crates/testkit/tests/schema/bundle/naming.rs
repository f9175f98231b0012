//! The names of definitions: messages are named after their method, and those of the second version have their own
//! namespace.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Definitions;
use super::references::{reachable, renamed, target};

/// Precedes the name of a message while its definition has none yet.
pub(super) const MESSAGE: &str = "message:";
/// Precedes the name of a type if an older dialect has a type with the same name.
const SECOND: &str = "v2_";
/// The type of empty messages.
const EMPTY: &str = "Empty";

/// A message of a table and its type.
#[derive(Debug)]
pub(super) struct Use {
    pub(super) schema: Value,
    /// Whether clients send it.
    pub(super) is_read: bool,
    /// Its name, after its method.
    pub(super) wanted: String,
    /// Whether it belongs to the first version.
    pub(super) is_first: bool,
}

impl Use {
    /// Whether the type already has the name of a message: `…Params`, `…Response` or `…Notification`.
    fn is_named(&self, name: &str) -> bool {
        ["Params", "Response", "Notification"].iter().any(|end| self.wanted.ends_with(end) && name.ends_with(end))
    }
}

/// Gives every message a name, and moves definitions that only the second version has below `v2/`.
///
/// A type of one message takes the name of the message unless it has one already; a type of several is unchanged, and
/// each message is an alias of it.
pub(super) fn name(mut definitions: Definitions, uses: &[Use]) -> Definitions {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    uses.iter().filter_map(|message| target(&message.schema)).for_each(|name| *counts.entry(name).or_default() += 1);
    let mut messages: BTreeMap<String, String> = BTreeMap::new();
    let mut types: BTreeMap<String, String> = BTreeMap::new();
    for message in uses {
        let wanted = message.wanted.clone();
        let known = match target(&message.schema) {
            Some(EMPTY) if wanted.ends_with("Params") => EMPTY.to_owned(),
            Some(name) if counts.get(name) == Some(&1) && message.is_named(name) => name.to_owned(),
            Some(name) if counts.get(name) == Some(&1) => {
                types.insert(name.to_owned(), wanted.clone());
                wanted.clone()
            }
            _ => {
                let clash = definitions.insert(wanted.clone(), message.schema.clone());
                assert!(clash.is_none(), "{wanted} is both a type and the name of a message of another type");
                wanted.clone()
            }
        };
        messages.insert(wanted, known);
    }
    let call = |name: &str| match name.strip_prefix(MESSAGE) {
        Some(message) => messages.get(message).cloned().unwrap_or_default(),
        None => types.get(name).cloned().unwrap_or_else(|| name.to_owned()),
    };
    let renaming = definitions.into_iter().map(|(name, form)| (call(&name), renamed(form, &call)));
    let definitions: Definitions = renaming.collect();
    let roots = |is_first: bool| uses.iter().filter(move |message| message.is_first == is_first);
    let first = roots(true).filter_map(|message| messages.get(&message.wanted).cloned());
    let second = roots(false).filter_map(|message| messages.get(&message.wanted).cloned());
    in_spaces(definitions, first.collect(), second.collect())
}

/// Moves definitions that only the second version has below `v2/`.
fn in_spaces(definitions: Definitions, mut first: BTreeSet<String>, second: BTreeSet<String>) -> Definitions {
    first.extend(["Submission", "Event", "RequestId", "JSONRPCErrorError"].map(str::to_owned));
    let is_twin = |name: &&String| name.strip_suffix('2').is_some_and(|first| definitions.contains_key(first));
    let twin = definitions.keys().find(is_twin);
    assert_eq!(twin, None, "two types have that name without its number: give one `schemars(rename = \"v2_…\")`");
    let shared = reachable(&definitions, first);
    let second = reachable(&definitions, second);
    let place = |name: &str| match name.strip_prefix(SECOND) {
        Some(name) => format!("v2/{name}"),
        None if second.contains(name) && !shared.contains(name) => format!("v2/{name}"),
        None => name.to_owned(),
    };
    let mut placed = Definitions::new();
    for (name, form) in definitions {
        let name = place(&name);
        let clash = placed.insert(name.clone(), renamed(form, &place));
        assert_eq!(clash, None, "two types are called {name}: give one `schemars(rename = \"…\")`");
    }
    placed
}
