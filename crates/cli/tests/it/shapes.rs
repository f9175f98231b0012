//! The schemas as the program prints them, and whether its output matches them.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use codex_protocol::schema::BUNDLE;
use serde_json::Value;

use crate::program::Place;

struct Checker {
    schemas: boon::Schemas,
    event: boon::SchemaIndex,
    line: boon::SchemaIndex,
}

static OURS: LazyLock<Checker> = LazyLock::new(|| {
    let (mut compiler, mut schemas) = (boon::Compiler::new(), boon::Schemas::new());
    let bundle = serde_json::from_str(BUNDLE).expect("a bundle is JSON");
    compiler.add_resource("http://test/bundle.json", bundle).expect("a bundle can be added");
    let mut compile = |name: &str| {
        let place = format!("http://test/bundle.json#/definitions/{name}");
        compiler.compile(&place, &mut schemas).expect("a definition can be compiled")
    };
    let (event, line) = (compile("Event"), compile("exec/ThreadEvent"));
    Checker { schemas, event, line }
});

/// Fails if a line does not match the schema of the event queue or of `exec`.
#[track_caller]
pub(crate) fn check(definition: &str, line: &Value) {
    let index = if definition == "Event" { OURS.event } else { OURS.line };
    if let Err(complaint) = OURS.schemas.validate(line, index) {
        panic!("our schema does not allow this (if a type has changed, write `schema/` anew): {line}\n{complaint:#}");
    }
}

#[test]
fn invalid_events_are_noticed() {
    let is_noticed = |definition: &'static str, line: &'static str| {
        let line = serde_json::from_str(line).expect("JSON");
        std::panic::catch_unwind(move || check(definition, &line)).is_err()
    };
    assert!(is_noticed("Event", r#"{"id":"1","msg":{"type":"agent_message"}}"#));
    assert!(is_noticed("exec/ThreadEvent", r#"{"type":"turn.completed","usage":null}"#));
    assert!(!is_noticed("exec/ThreadEvent", r#"{"type":"turn.started"}"#));
}

/// All files below a folder, by their relative path.
fn files(folder: &Path, from: &str, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).expect("a folder can be read") {
        let path = entry.expect("an entry can be read").path();
        let name = format!("{from}{}", path.file_name().expect("it has a name").to_string_lossy());
        if path.is_dir() {
            files(&path, &format!("{name}/"), found);
        } else {
            found.push((name, std::fs::read_to_string(&path).expect("a file can be read")));
        }
    }
}

fn printed(command: &str) -> Vec<(String, String)> {
    let place = Place::new();
    let out = place.path("out/put");
    let run = place.run(&["app-server", command, "--out", &out.display().to_string(), "--experimental"], "");
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "", ""));
    let mut found = Vec::new();
    files(&out, "", &mut found);
    found
}

fn targets(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|member| targets(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| targets(item, found)),
        _ => {}
    }
}

#[test]
fn every_schema_is_self_contained() {
    let files = printed("generate-json-schema");
    let names: BTreeSet<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    for name in [
        "codex_app_server_protocol.schemas.json",
        "codex_app_server_protocol.v2.schemas.json",
        "ClientRequest.json",
        "ServerNotification.json",
        "ServerRequest.json",
        "ClientNotification.json",
        "EventMsg.json",
        "Submission.json",
        "exec/ThreadEvent.json",
        "v1/GetAuthStatusResponse.json",
        "v2/ThreadStartParams.json",
        "v2/ThreadStartResponse.json",
        "v2/TurnCompletedNotification.json",
        "v2/CommandExecutionRequestApprovalResponse.json",
    ] {
        assert!(names.contains(name), "{name} is missing");
    }
    for (name, text) in &files {
        let schema: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut found = BTreeSet::new();
        targets(&schema, &mut found);
        for target in found {
            let place = target.strip_prefix('#').expect("it stays in the file");
            assert!(schema.pointer(place).is_some(), "{name}: {target} leads nowhere");
        }
    }
}

#[test]
fn no_two_types_of_the_newest_dialect_have_one_name() {
    let files = printed("generate-json-schema");
    let read = |wanted: &str| -> Value {
        let file = files.iter().find(|(name, _)| name == wanted).expect("the file is there");
        serde_json::from_str(&file.1).expect("it is JSON")
    };
    let (all, flat) =
        (read("codex_app_server_protocol.schemas.json"), read("codex_app_server_protocol.v2.schemas.json"));
    let second = all["definitions"]["v2"].as_object().expect("an object");
    assert!(second.keys().all(|name| flat["definitions"].get(name).is_some()));
    let mut open: Vec<Value> = second.values().cloned().collect();
    open.extend(["ClientRequest", "ServerNotification", "ServerRequest"].map(|name| all["definitions"][name].clone()));
    let mut shared = BTreeSet::new();
    while let Some(schema) = open.pop() {
        let mut found = BTreeSet::new();
        targets(&schema, &mut found);
        let outside = found.into_iter().filter(|target| !target.starts_with("#/definitions/v2/"));
        for target in outside.collect::<Vec<_>>() {
            if shared.insert(target.clone()) {
                open.push(all.pointer(&target[1..]).cloned().expect("it leads somewhere"));
            }
        }
    }
    assert!(shared.len() > 10, "{shared:?}");
    let is_twin = |name: &&str| second.contains_key(*name);
    let twins: Vec<&str> =
        shared.iter().filter_map(|name| name.strip_prefix("#/definitions/")).filter(is_twin).collect();
    assert!(twins.contains(&"CodexErrorInfo"), "{twins:?}");
    for name in twins {
        let [of_queue, newest] = [&flat["definitions"][format!("Queue{name}")], &flat["definitions"][name]];
        assert!(of_queue.is_object() && newest.is_object() && of_queue != newest, "{name} means two things");
    }
    let mut found = BTreeSet::new();
    targets(&flat, &mut found);
    let lost: Vec<&String> = found.iter().filter(|target| flat.pointer(&target[1..]).is_none()).collect();
    assert_eq!(lost, [] as [&String; 0], "every reference leads somewhere");
}

#[test]
fn every_type_is_exported_and_every_import_is_there() {
    let files = printed("generate-ts");
    let names: BTreeSet<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.len() > 300, "{}", names.len());
    for (name, text) in &files {
        let folder = name.rsplit_once('/').map(|(folder, _)| format!("{folder}/")).unwrap_or_default();
        for line in text.lines().filter(|line| line.starts_with("import ") || line.starts_with("export type { ")) {
            let from = line.split('"').nth(1).expect("it says from where");
            let path = match from.strip_prefix("../") {
                Some(outside) => format!("{outside}.ts"),
                None => format!("{folder}{}.ts", from.trim_start_matches("./")),
            };
            assert!(names.contains(path.as_str()), "{name}: {line}");
        }
    }
    let index = &files.iter().find(|(name, _)| name == "index.ts").expect("there is an index").1;
    assert!(index.contains("export type { ClientRequest, ClientRequestMethods } from \"./ClientRequest\";"), "{index}");
    assert!(index.contains("export * as v2 from \"./v2\";"), "{index}");
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error() {
    let place = Place::new().file("project/file", "");
    let run = place.run(&["app-server", "generate-ts", "--out", "file/below"], "");
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("could not create file/below"), "{}", run.stderr);
}
