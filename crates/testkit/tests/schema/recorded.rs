//! Checks recordings of other releases against our schemas.
//!
//! Messages from clients must be valid. Responses of other releases need not have every member that we always write,
//! but a member that both have must be of the same kind. Events, which we also read, must be valid.

use std::collections::{BTreeMap, BTreeSet};

use codex_dialects::exec::ThreadEvent;
use codex_wire::event::Event;
use codex_wire::schema::{opened, read_form};
use serde_json::{Value, json};

use crate::bundle::bundle;
use crate::shapes::Checker;

/// Recorded messages that do not match our schemas, and why.
const DIFFERENT: &[(&str, &str)] = &[
    ("0.166 exec item.started", "a patch is not told before it is applied"),
    ("0.166 request turn/start", "a mistake on purpose: nothing was said"),
    ("0.166 response review/start", "a turn always has a root, which is itself"),
    ("0.166 response thread/fork", "there are no profiles of permissions in force"),
    ("0.42 event entered_review_mode", "an older form, which is read too"),
    ("0.42 exec item.completed", "an older form, which nobody reads any more"),
    ("0.42 exec item.started", "an older form, which nobody reads any more"),
    ("0.42 exec session.created", "an older form, which nobody reads any more"),
    ("0.42 submission review", "an older form, which is read too"),
    ("0.42 submission user_turn", "an older form of the policy, which is read too"),
    ("0.58 request thread/start", "other spellings of words, which are read too"),
    ("0.63 request execOneOffCommand", "an older form of the policy, which is read too"),
    ("0.63 request thread/start", "other spellings of words, which are read too"),
    ("0.77 request execOneOffCommand", "an older form of the policy, which is read too"),
    ("0.77 request turn/start", "a mistake on purpose: nothing was said"),
];

/// One message of a recording.
#[derive(serde::Deserialize)]
struct Recorded {
    release: String,
    kind: String,
    method: Option<String>,
    body: Value,
}

/// A schema that requires no members except tags.
fn relaxed(schema: Value) -> Value {
    match schema {
        Value::Object(mut members) => {
            let labels = members.get("properties").cloned().unwrap_or_default();
            let is_closed = members.get("additionalProperties") == Some(&json!(false));
            if let Some(Value::Array(required)) = members.get_mut("required") {
                required.retain(|name| {
                    let member = &labels[name.as_str().unwrap()];
                    is_closed || member.get("const").is_some() || name == "method"
                });
            }
            if let Some(choices) = members.shift_remove("oneOf") {
                members.insert("anyOf".to_owned(), choices);
            }
            Value::Object(members.into_iter().map(|(name, member)| (name, relaxed(member))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(relaxed).collect()),
        schema => schema,
    }
}

/// The definitions of each kind of message in the tables.
struct Tables {
    definitions: BTreeMap<(&'static str, String), String>,
    strict: Checker,
    relaxed: Checker,
    events: Checker,
}

impl Tables {
    fn new() -> Self {
        let bundle = bundle::<ThreadEvent>();
        let mut definitions = BTreeMap::new();
        let name = |schema: &Value| schema["$ref"].as_str().unwrap().trim_start_matches("#/definitions/").to_owned();
        for (of, kind, answer) in [
            ("ClientRequest", "request", Some("response")),
            ("ServerNotification", "notification", None),
            ("ServerRequest", "serverRequest", Some("answer")),
        ] {
            for row in bundle["definitions"][of]["oneOf"].as_array().unwrap() {
                for method in row["properties"]["method"]["enum"].as_array().unwrap() {
                    let method = method.as_str().unwrap().to_owned();
                    definitions.insert((kind, method.clone()), name(&row["properties"]["params"]));
                    if let Some(answer) = answer {
                        definitions.insert((answer, method), name(&row["x-response"]));
                    }
                }
            }
        }
        let events = json!({"definitions": {"Event": {"$ref": "http://test/event.json"}}});
        let mut events = Checker::of(events);
        events.add("http://test/event.json", opened(read_form::<Event>()));
        let (strict, relaxed) = (Checker::of(opened(bundle.clone())), Checker::of(relaxed(opened(bundle))));
        Self { definitions, strict, relaxed, events }
    }

    /// Returns what is wrong with a message.
    fn check(&mut self, message: &Recorded) -> Result<(), String> {
        let complaint = match message.kind.as_str() {
            "submission" => self.strict.complaint("Submission", &message.body),
            "event" => self.events.complaint("Event", &message.body),
            "exec" => self.relaxed.complaint("exec/ThreadEvent", &message.body),
            kind => {
                let method = message.method.clone().unwrap();
                let kind = ["request", "response", "notification", "serverRequest", "answer"]
                    .into_iter()
                    .find(|known| *known == kind)
                    .unwrap_or_else(|| panic!("{kind} is no kind of message"));
                let definition = self.definitions.get(&(kind, method));
                let definition = definition.unwrap_or_else(|| panic!("no table has {:?}", message.method));
                let is_ours = matches!(kind, "request" | "answer");
                let checker = if is_ours { &mut self.strict } else { &mut self.relaxed };
                match &message.body {
                    Value::Null if is_ours => checker.complaint(definition, &json!({})),
                    body => checker.complaint(definition, body),
                }
            }
        };
        complaint.map_or(Ok(()), Err)
    }
}

#[test]
fn messages_of_other_releases_match_the_schemas() {
    let mut tables = Tables::new();
    let (mut fitting, mut different) = (0, BTreeSet::new());
    for line in include_str!("recorded.jsonl").lines() {
        let message: Recorded = serde_json::from_str(line).unwrap();
        let what = format!("{} {} {}", message.release, message.kind, message.method.clone().unwrap_or_default());
        match tables.check(&message) {
            Ok(()) => fitting += 1,
            Err(complaint) => {
                let is_known = DIFFERENT.iter().any(|(known, _)| *known == what);
                assert!(is_known, "{what}: {complaint}\n{}", message.body);
                different.insert(what);
            }
        }
    }
    assert!(fitting > 500, "{fitting}");
    let gone: Vec<_> = DIFFERENT.iter().filter(|(known, _)| !different.contains(*known)).collect();
    assert!(gone.is_empty(), "these fit by now: {gone:?}");
}
