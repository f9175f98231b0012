//! Finds, renames, merges and nests definitions that refer to each other.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::Definitions;
use super::naming::Use;

const PREFIX: &str = "#/definitions/";

/// The name that a schema refers to, if it is only a reference.
pub(super) fn target(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix(PREFIX)
}

/// Adds all names that a schema refers to.
pub(super) fn targets(schema: &Value, found: &mut BTreeSet<String>) {
    found.extend(target(schema).map(str::to_owned));
    match schema {
        Value::Object(members) => members.values().for_each(|member| targets(member, found)),
        Value::Array(items) => items.iter().for_each(|item| targets(item, found)),
        _ => {}
    }
}

/// All definitions that can be reached from some of them.
pub(super) fn reachable(definitions: &Definitions, from: BTreeSet<String>) -> BTreeSet<String> {
    let mut found = from.clone();
    let mut open: Vec<String> = from.into_iter().collect();
    while let Some(name) = open.pop() {
        let mut next = BTreeSet::new();
        targets(definitions.get(&name).unwrap_or(&Value::Null), &mut next);
        open.extend(next.into_iter().filter(|name| found.insert(name.clone())));
    }
    found
}

/// A schema with renamed references.
pub(super) fn renamed(schema: Value, name: &impl Fn(&str) -> String) -> Value {
    match schema {
        Value::Object(members) => {
            let rename = |(key, value): (String, Value)| match value {
                Value::String(text) if key == "$ref" => {
                    let other = text.strip_prefix(PREFIX).map(|old| format!("{PREFIX}{}", name(old)));
                    (key, Value::String(other.unwrap_or(text)))
                }
                value => (key, renamed(value, name)),
            };
            Value::Object(members.into_iter().map(rename).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(|item| renamed(item, name)).collect()),
        schema => schema,
    }
}

/// Removes details that help nobody outside: default values of omitted members, and links of Rust's documentation.
pub(super) fn normalized(definitions: Map<String, Value>) -> Definitions {
    fn tidy(schema: &mut Value, is_member_list: bool) {
        match schema {
            Value::Object(members) => {
                if !is_member_list {
                    members.shift_remove("default");
                    if let Some(Value::String(text)) = members.get_mut("description") {
                        *text = text.replace("[`", "`").replace("`]", "`");
                    }
                }
                members.iter_mut().for_each(|(key, member)| tidy(member, key == "properties" && !is_member_list));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| tidy(item, false)),
            _ => {}
        }
    }
    let tidy = |(name, mut definition)| {
        tidy(&mut definition, false);
        (name, definition)
    };
    definitions.into_iter().map(tidy).collect()
}

/// Both directions in one. A type that is read differently from how it is written gets a separate name.
pub(super) fn merged(read: Definitions, written: Definitions, uses: &mut [Use]) -> Definitions {
    let mut different: BTreeSet<String> = read
        .iter()
        .filter(|(name, form)| written.get(*name).is_some_and(|other| other != *form))
        .map(|(name, _)| name.clone())
        .collect();
    loop {
        let refers = |form: &Value| {
            let mut names = BTreeSet::new();
            targets(form, &mut names);
            !names.is_disjoint(&different)
        };
        let more: Vec<String> = read
            .iter()
            .filter(|(name, form)| written.contains_key(*name) && !different.contains(*name) && refers(form))
            .map(|(name, _)| name.clone())
            .collect();
        if more.is_empty() {
            break;
        }
        different.extend(more);
    }
    let input = |name: &str| if different.contains(name) { format!("{name}Input") } else { name.to_owned() };
    for message in uses.iter_mut().filter(|message| message.is_read) {
        message.schema = renamed(message.schema.take(), &input);
    }
    let mut all = written;
    all.extend(read.into_iter().map(|(name, form)| (input(&name), renamed(form, &input))));
    all
}

/// Nests definitions with a slash in their names.
pub(super) fn nested(definitions: Definitions) -> Value {
    let mut spaces: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    let mut all = Map::new();
    for (name, definition) in definitions {
        match name.split_once('/') {
            Some((space, name)) => {
                spaces.entry(space.to_owned()).or_default().insert(name.to_owned(), definition);
            }
            None => {
                all.insert(name, definition);
            }
        }
    }
    all.extend(spaces.into_iter().map(|(space, definitions)| (space, Value::Object(definitions))));
    Value::Object(all)
}
