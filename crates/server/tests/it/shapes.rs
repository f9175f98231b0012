//! Checks messages against schemas: ours, and those that 0.77 generates.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use codex_dialects::ProtocolRelease;
use codex_protocol::schema::BUNDLE;
use serde_json::Value;

static OURS: LazyLock<Checker> = LazyLock::new(|| Checker::of(BUNDLE));
/// The output of `codex app-server generate-json-schema` of 0.77, reduced to messages of the server.
static OF_077: LazyLock<Checker> = LazyLock::new(|| Checker::of(include_str!("protocol-0.77.json")));

/// Fails if the server sends a message that its own schema does not allow, or that a client of 0.77 cannot read.
#[track_caller]
pub(crate) fn check(message: &Value, asked: Option<&str>, release: ProtocolRelease) {
    if let Some(complaint) = OURS.complaint(message, asked) {
        panic!("our schema does not allow this (if a type has changed, write `schema/` anew): {message}\n{complaint}");
    }
    if release == ProtocolRelease::V077
        && !is_wrong_in_077(message)
        && !is_about_agents(message)
        && let Some(complaint) = OF_077.complaint(message, asked)
    {
        panic!("a client of 0.77 cannot read this: {message}\n{complaint}");
    }
}

/// Whether the schemas of 0.77 differ from the messages of its binary, which we follow: the output of a call is a
/// string and not an object, reasoning has no id, and the windows of `token_count` have names in snake case.
fn is_wrong_in_077(message: &Value) -> bool {
    if message.pointer("/params/msg/rate_limits/primary").is_some_and(Value::is_object) {
        return true;
    }
    let item = ["/params/item/type", "/params/msg/item/type"].iter().find_map(|place| message.pointer(place)?.as_str());
    item.is_some_and(|item| item == "reasoning" || item.ends_with("_call_output"))
}

/// Whether it is one of the events about child agents, which only a client that turns them on receives. No release of
/// that time had them.
fn is_about_agents(message: &Value) -> bool {
    let kind = message.pointer("/params/msg/type").and_then(Value::as_str);
    kind.is_some_and(|kind| kind == "subagent_lifecycle" || kind == "agent_inbox")
}

/// The definitions of the server's messages, by method.
struct Checker {
    schemas: boon::Schemas,
    told: BTreeMap<String, boon::SchemaIndex>,
    asked: BTreeMap<String, boon::SchemaIndex>,
    answered: BTreeMap<String, boon::SchemaIndex>,
    event: boon::SchemaIndex,
    error: boon::SchemaIndex,
}

impl Checker {
    fn of(bundle: &str) -> Self {
        let bundle: Value = serde_json::from_str(bundle).expect("a bundle is JSON");
        let told = rows(&bundle, "ServerNotification", "/properties/params/$ref");
        let asked = rows(&bundle, "ServerRequest", "/properties/params/$ref");
        let mut answered = rows(&bundle, "ClientRequest", "/x-response/$ref");
        let listed = bundle["responses"].as_object().into_iter().flatten();
        answered.extend(
            listed.filter_map(|(method, name)| Some((method.clone(), format!("#/definitions/{}", name.as_str()?)))),
        );
        assert!(told.len() > 10 && asked.len() > 1 && answered.len() > 20, "the tables were not understood");
        let (mut compiler, mut schemas) = (boon::Compiler::new(), boon::Schemas::new());
        compiler.add_resource("http://test/bundle.json", bundle).expect("a bundle can be added");
        let mut compile = |definition: &str| {
            let place = format!("http://test/bundle.json{definition}");
            compiler.compile(&place, &mut schemas).expect("a definition can be compiled")
        };
        let mut compile_all = |rows: BTreeMap<String, String>| {
            rows.into_iter().map(|(method, name)| (method, compile(&name))).collect::<BTreeMap<_, _>>()
        };
        let (told, asked, answered) = (compile_all(told), compile_all(asked), compile_all(answered));
        let (event, error) = (compile("#/definitions/EventMsg"), compile("#/definitions/JSONRPCError"));
        Self { schemas, told, asked, answered, event, error }
    }

    /// The fault of a message. A message that the bundle does not contain has none.
    fn complaint(&self, message: &Value, asked: Option<&str>) -> Option<String> {
        let (definition, body) = match (message["method"].as_str(), message.get("id"), message.get("result")) {
            (Some(method), None, _) if method.starts_with("codex/event/") => (self.event, &message["params"]["msg"]),
            (Some(method), None, _) => (*self.told.get(method)?, &message["params"]),
            (Some(method), Some(_), _) => (*self.asked.get(method)?, &message["params"]),
            (None, _, Some(result)) => (*self.answered.get(asked?)?, result),
            (None, _, None) => (self.error, message),
        };
        self.schemas.validate(body, definition).err().map(|error| format!("{error:#}"))
    }
}

/// The type of each method of a table.
fn rows(bundle: &Value, table: &str, place: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for row in bundle["definitions"][table]["oneOf"].as_array().into_iter().flatten() {
        let target = row.pointer(place).and_then(Value::as_str);
        for method in row["properties"]["method"]["enum"].as_array().into_iter().flatten() {
            let method = method.as_str().map(str::to_owned);
            found.extend(method.zip(target.map(str::to_owned)));
        }
    }
    found
}

#[test]
fn values_that_no_schema_allows_are_noticed() {
    let bad = serde_json::json!({"method": "turn/started", "params": {"threadId": 1, "turn": {}}});
    let event = serde_json::json!({"method": "codex/event/warning", "params": {"msg": {"type": "warning"}}});
    let answer = serde_json::json!({"id": 1, "result": {"turn": null}});
    for checker in [&*OURS, &*OF_077] {
        assert!(checker.complaint(&bad, None).is_some());
        assert!(checker.complaint(&event, None).is_some());
        assert!(checker.complaint(&answer, Some("turn/start")).is_some());
    }
}
