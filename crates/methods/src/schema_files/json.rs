//! One schema per message, each self-contained, and bundles of all.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use codex_protocol::schema::{BUNDLE, Definitions, space_and_name, target};

use super::File;

/// The file with everything.
pub const BUNDLE_NAME: &str = "codex_app_server_protocol.schemas.json";
/// The file that contains only the newest dialect, in one namespace.
const FLAT_BUNDLE_NAME: &str = "codex_app_server_protocol.v2.schemas.json";
const DRAFT: &str = "http://json-schema.org/draft-07/schema#";
/// The prefix of references to definitions.
const REFERENCE: &str = "#/definitions/";

/// Definitions with their own file in addition to those that are named like a message of a table.
const FRAMES: &[&str] = &[
    "ClientNotification",
    "ClientRequest",
    "CodexEventNotification",
    "Event",
    "EventMsg",
    "JSONRPCError",
    "JSONRPCErrorError",
    "JSONRPCMessage",
    "JSONRPCNotification",
    "JSONRPCRequest",
    "JSONRPCResponse",
    "Op",
    "RequestId",
    "ServerNotification",
    "ServerRequest",
    "Submission",
    "exec/ThreadEvent",
];

/// All files.
///
/// # Errors
/// If the embedded bundle is not JSON.
pub fn files() -> Result<Vec<File>, serde_json::Error> {
    let bundle: Value = serde_json::from_str(BUNDLE)?;
    let definitions = Definitions::of(&bundle);
    let mut files = vec![file(BUNDLE_NAME, &bundle)?, file(FLAT_BUNDLE_NAME, &flat(&definitions))?];
    for name in definitions.names() {
        if let Some(path) = path(name) {
            files.push(file(&path, &alone(&definitions, name))?);
        }
    }
    Ok(files)
}

fn file(path: &str, schema: &Value) -> Result<File, serde_json::Error> {
    Ok(File { path: path.to_owned(), text: serde_json::to_string_pretty(schema)? + "\n" })
}

/// The file of a message's schema; `None` for types that are only part of messages.
fn path(name: &str) -> Option<String> {
    let is_message = ["Params", "Response", "Notification"].iter().any(|end| name.ends_with(end));
    match space_and_name(name) {
        _ if FRAMES.contains(&name) => Some(format!("{name}.json")),
        ("", name) if is_message => Some(format!("v1/{name}.json")),
        ("v2", _) if is_message => Some(format!("{name}.json")),
        _ => None,
    }
}

/// A definition with all it needs.
fn alone(definitions: &Definitions, name: &str) -> Value {
    let needed = definitions.needed_by(&[name]);
    let mut body = definitions.get(name);
    while let Some(other) = body.and_then(target) {
        body = definitions.get(other);
    }
    let mut schema =
        Map::from_iter([("$schema".to_owned(), json!(DRAFT)), ("title".to_owned(), json!(space_and_name(name).1))]);
    schema.extend(body.and_then(Value::as_object).cloned().unwrap_or_default());
    if !needed.is_empty() {
        let mut spaces: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
        for needed in &needed {
            let (space, name) = space_and_name(needed);
            let definition = definitions.get(needed).cloned().unwrap_or_default();
            spaces.entry(space).or_default().insert(name.to_owned(), definition);
        }
        let mut all = spaces.remove("").unwrap_or_default();
        all.extend(spaces.into_iter().map(|(space, inner)| (space.to_owned(), Value::Object(inner))));
        schema.insert("definitions".to_owned(), Value::Object(all));
    }
    Value::Object(schema)
}

/// The newest dialect in one namespace, for generators that support only one.
fn flat(definitions: &Definitions) -> Value {
    let mut roots = vec!["ClientNotification", "ClientRequest", "ServerNotification", "ServerRequest"];
    roots.extend(definitions.names().filter(|name| space_and_name(name).0 == "v2"));
    let mut needed = definitions.needed_by(&roots);
    needed.extend(roots.into_iter().map(str::to_owned));
    // Types of the event queue with the same name as a type of this dialect get a namespace.
    let twins: BTreeSet<String> =
        needed.iter().filter(|name| needed.contains(&format!("v2/{name}"))).cloned().collect();
    let mut all = BTreeMap::new();
    for name in &needed {
        let definition = definitions.get(name).cloned().unwrap_or_default();
        all.insert(flat_name(name, &twins), without_spaces(definition, &twins));
    }
    json!({"$schema": DRAFT, "title": "CodexAppServerProtocolV2", "type": "object", "definitions": all})
}

fn flat_name(name: &str, twins: &BTreeSet<String>) -> String {
    if twins.contains(name) { format!("Queue{name}") } else { space_and_name(name).1.to_owned() }
}

fn without_spaces(schema: Value, twins: &BTreeSet<String>) -> Value {
    match schema {
        Value::Object(members) => {
            let plain = |(key, value): (String, Value)| match value {
                Value::String(text) if key == "$ref" => {
                    let name = text.strip_prefix(REFERENCE).map(|name| flat_name(name, twins));
                    (key, Value::String(name.map_or(text, |name| format!("{REFERENCE}{name}"))))
                }
                value => (key, without_spaces(value, twins)),
            };
            Value::Object(members.into_iter().map(plain).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(|item| without_spaces(item, twins)).collect()),
        schema => schema,
    }
}
