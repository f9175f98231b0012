//! The protocol as JSON Schema (draft 7), from the same tables that requests are dispatched by.
//!
//! Messages from a client are described as they are read, messages to it as they are written: a member that may be left
//! out of a request is always present in a response. A type that goes both ways and differs has a second form,
//! `…Input`. Reading is more lenient than these descriptions: old member names and other spellings are accepted as
//! well.

mod naming;
mod references;

use std::any::type_name;
use std::collections::BTreeMap;

use codex_protocol::methods::{Row, Scope};
use codex_protocol::rpc::ErrorObject;
use codex_protocol::schema::{self, Message, Tables};
use codex_wire::event::{Event, EventMsg};
use codex_wire::ids::RequestId;
use codex_wire::op::Submission;
use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Value, json};

use self::naming::Use;

/// Definitions by name.
type Definitions = BTreeMap<String, Value>;

/// The whole protocol: all definitions, those of the second version below `v2`, and those that `T` uses below `exec`.
pub(crate) fn bundle<T: JsonSchema>() -> Value {
    let mut definitions = Collected::filled().definitions();
    let mut written = SchemaSettings::draft07().for_serialize().into_generator();
    written.subschema_for::<T>();
    for (name, definition) in references::normalized(written.take_definitions(true)) {
        let definition = references::renamed(definition, &|name| format!("exec/{name}"));
        definitions.insert(format!("exec/{name}"), definition);
    }
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "CodexAppServerProtocol",
        "type": "object",
        "definitions": references::nested(definitions),
    })
}

/// The contents of the tables, while they are collected.
struct Collected {
    read: SchemaGenerator,
    written: SchemaGenerator,
    uses: Vec<Use>,
    requests: Vec<Value>,
    notifications: Vec<Value>,
    server_requests: Vec<Value>,
}

impl Collected {
    fn filled() -> Self {
        let mut tables = Self {
            read: SchemaSettings::draft07().for_deserialize().into_generator(),
            written: SchemaSettings::draft07().for_serialize().into_generator(),
            uses: Vec::new(),
            requests: Vec::new(),
            notifications: Vec::new(),
            server_requests: Vec::new(),
        };
        schema::describe(&mut tables);
        tables.read.subschema_for::<Submission>();
        tables.written.subschema_for::<Event>();
        tables.written.subschema_for::<EventMsg>();
        tables.written.subschema_for::<RequestId>();
        tables.written.subschema_for::<ErrorObject>();
        tables
    }

    fn takes<T: JsonSchema>(&mut self, wanted: &str, method: &str) -> Value {
        let schema = self.read.subschema_for::<T>().into();
        self.note::<T>(schema, true, wanted, method)
    }

    fn gives<T: JsonSchema>(&mut self, wanted: &str, method: &str) -> Value {
        let schema = self.written.subschema_for::<T>().into();
        self.note::<T>(schema, false, wanted, method)
    }

    /// Records that a message consists of a type, and refers to it by the message's name for it.
    fn note<T: JsonSchema>(&mut self, schema: Value, is_read: bool, wanted: &str, method: &str) -> Value {
        let module = type_name::<T>();
        let is_first = module.contains("::v1::") || module.ends_with("Empty") && !method.contains('/');
        self.uses.push(Use { schema, is_read, wanted: wanted.to_owned(), is_first });
        json!({"$ref": format!("#/definitions/{}{wanted}", naming::MESSAGE)})
    }

    fn definitions(mut self) -> Definitions {
        let messages = [
            ("ClientRequest", "What a client may ask.", self.requests),
            ("ServerNotification", "What the server tells a client.", self.notifications),
            ("ServerRequest", "What the server asks of a client.", self.server_requests),
        ];
        let read = references::normalized(self.read.take_definitions(true));
        let written = references::normalized(self.written.take_definitions(true));
        let mut definitions = references::merged(read, written, &mut self.uses);
        for (name, description, choices) in messages {
            definitions.insert(name.to_owned(), json!({"description": description, "oneOf": choices}));
        }
        definitions.extend(fixed());
        let mut definitions = naming::name(definitions, &self.uses);
        if let Some(requests) = definitions.get("ClientRequest").cloned() {
            definitions.insert("ClientRequest".to_owned(), with_optional_params(requests, &definitions));
        }
        describe_notifications(&mut definitions);
        definitions
    }
}

impl Tables for Collected {
    fn method<P: Message, R: Message>(&mut self, name: &str, row: Option<&Row>) {
        let Some(row) = row else { return };
        let names: Vec<_> = std::iter::once(&row.name).chain(row.aliases).collect();
        let params = self.takes::<P>(&format!("{name}Params"), row.name);
        let response = self.gives::<R>(&format!("{name}Response"), row.name);
        let scope = match row.scope {
            Scope::Connection => "connection",
            Scope::Process => "process",
            Scope::Thread => "thread",
        };
        self.requests.push(json!({
            "title": format!("{name}Request"),
            "description": row.about,
            "type": "object",
            "properties": {"id": reference("RequestId"), "method": {"type": "string", "enum": names}, "params": params},
            "required": ["id", "method", "params"],
            "x-response": response,
            "x-since": row.since,
            "x-scope": scope,
        }));
    }

    fn notification<P: Message>(&mut self, name: &str, method: &str, about: &str) {
        let params = self.gives::<P>(&format!("{name}Notification"), method);
        self.notifications.push(json!({
            "title": format!("{name}Notification"),
            "description": about.trim(),
            "type": "object",
            "properties": {
                "method": {"type": "string", "enum": [method]},
                "params": params,
                "emittedAtMs": {"description": "When, in milliseconds of Unix time.", "type": "integer"},
                "seq": {
                    "description": "The number of the event that ends with this, for clients of `thread/subscribe`.",
                    "type": "integer",
                },
            },
            "required": ["method", "params", "emittedAtMs"],
        }));
    }

    fn request<P: Message, R: Message>(&mut self, name: &str, method: &str, about: &str) {
        let params = self.gives::<P>(&format!("{name}Params"), method);
        let response = self.takes::<R>(&format!("{name}Response"), method);
        self.server_requests.push(json!({
            "title": format!("{name}Request"),
            "description": about.trim(),
            "type": "object",
            "properties": {
                "id": reference("RequestId"), "method": {"type": "string", "enum": [method]}, "params": params,
            },
            "required": ["id", "method", "params"],
            "x-response": response,
        }));
    }
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/definitions/{name}")})
}

/// Messages that are in no table: the JSON-RPC frame and the event queue within it.
fn fixed() -> Definitions {
    let object = |description: &str, members: Value, required: Value| json!({"description": description, "type": "object", "properties": members, "required": required});
    let (id, any, method) = (reference("RequestId"), json!(true), json!({"type": "string"}));
    let frames = ["JSONRPCRequest", "JSONRPCNotification", "JSONRPCResponse", "JSONRPCError"];
    let event = json!({"allOf": [
        reference("Event"),
        object("", json!({"conversationId": {"type": "string"}, "threadId": {"type": "string"}}), json!(["conversationId"])),
    ]});
    let definitions = [
        (
            "ClientNotification",
            json!({"description": "What a client may tell.", "oneOf": [object(
            "The client has read the answer to `initialize`.",
            json!({"method": {"type": "string", "enum": ["initialized"]}}), json!(["method"]))]}),
        ),
        (
            "CodexEventNotification",
            object(
                "An event of the queue, named by its type: `codex/event/task_started`.",
                json!({"method": {"type": "string", "pattern": "^codex/event/"}, "params": event}),
                json!(["method", "params"]),
            ),
        ),
        (
            "JSONRPCRequest",
            object("Wants an answer.", json!({"id": id, "method": method, "params": any}), json!(["id", "method"])),
        ),
        ("JSONRPCNotification", object("Wants none.", json!({"method": method, "params": any}), json!(["method"]))),
        ("JSONRPCResponse", object("An answer.", json!({"id": id, "result": any}), json!(["id", "result"]))),
        (
            "JSONRPCError",
            object(
                "An answer that says what is wrong.",
                json!({"id": id, "error": reference("JSONRPCErrorError")}),
                json!(["error", "id"]),
            ),
        ),
        ("JSONRPCMessage", json!({"description": "One line.", "anyOf": frames.map(reference)})),
    ];
    definitions.into_iter().map(|(name, definition)| (name.to_owned(), definition)).collect()
}

/// Copies the table's description of a notification to its type, if the type only refers to the table.
fn describe_notifications(definitions: &mut Definitions) {
    let rows = definitions.get("ServerNotification").map(|all| all["oneOf"].clone()).unwrap_or_default();
    for row in rows.as_array().into_iter().flatten() {
        let name = references::target(&row["properties"]["params"]);
        if let Some(definition) = name.and_then(|name| definitions.get_mut(name))
            && definition["description"].as_str().is_some_and(|text| text.starts_with("See `ServerNotification::"))
        {
            definition["description"] = row["description"].clone();
        }
    }
}

/// Makes the parameters of methods without required ones optional.
fn with_optional_params(mut requests: Value, definitions: &Definitions) -> Value {
    for request in requests["oneOf"].as_array_mut().into_iter().flatten() {
        let mut params = &request["properties"]["params"];
        while let Some(target) = references::target(params).and_then(|name| definitions.get(name)) {
            params = target;
        }
        let needs_some =
            params.get("required").is_some() || params.get("oneOf").is_some() || params.get("anyOf").is_some();
        if !needs_some {
            request["required"] = json!(["id", "method"]);
        }
    }
    requests
}
