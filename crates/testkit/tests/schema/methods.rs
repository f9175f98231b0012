//! `docs/methods.md`: every method and event, and in which dialect it is.

use std::fmt::Write as _;

use codex_server::schema::Definitions;
use serde_json::Value;

const HEAD: &str = "\
# Methods and events

Everything that crosses the wire, by dialect. This page is written by a test from the tables that requests are
dispatched by; `codex app-server generate-json-schema --out DIR` and `generate-ts --out DIR` print the types.

A dash means nothing: no parameters, or an empty answer. *Served* says in which order: `thread` after earlier requests
about the same thread, `connection` before the next line is read, `process` beside all others. *Since* is the first
release of the protocol that had the method.
";

pub(crate) fn page(bundle: &Value) -> String {
    let definitions = Definitions::of(bundle);
    let mut page = HEAD.to_owned();
    let requests = choices(&definitions, "ClientRequest");
    let is_first = |request: &&Value| !words(request).next().unwrap_or_default().contains('/');
    let (first, second): (Vec<&Value>, Vec<&Value>) = requests.iter().partition(is_first);
    methods(&mut page, "app-server v2: methods", &second);
    methods(&mut page, "app-server v1: methods", &first);

    page.push_str("\n## app-server: notifications\n\n| notification | carries | |\n|---|---|---|\n");
    for notification in choices(&definitions, "ServerNotification") {
        let about = notification["description"].as_str().unwrap_or_default();
        row(&mut page, &[&method_names(notification), &named(&notification["properties"]["params"]), about]);
    }
    row(&mut page, &["`codex/event/TYPE`", "`Event`", "An event of the queue below, under the name of its type."]);

    page.push_str("\n## app-server: requests of the server\n\n| request | carries | answer | |\n|---|---|---|---|\n");
    for request in choices(&definitions, "ServerRequest") {
        let params = named(&request["properties"]["params"]);
        let about = request["description"].as_str().unwrap_or_default();
        row(&mut page, &[&method_names(request), &params, &named(&request["x-response"]), about]);
    }

    kinds(&mut page, &definitions, "SQ (`codex proto`): submissions", "op", "Op");
    kinds(&mut page, &definitions, "EQ (`codex proto`, `codex/event/*`): events", "event", "EventMsg");
    kinds(&mut page, &definitions, "`codex exec --json`: events", "event", "exec/ThreadEvent");
    page
}

fn choices<'a>(definitions: &'a Definitions, name: &str) -> &'a [Value] {
    let definition = definitions.get(name).unwrap();
    let choices = definition.get("oneOf").or(definition.get("anyOf")).and_then(Value::as_array).unwrap();
    assert!(!choices.is_empty(), "{name} has no rows");
    choices
}

fn methods(page: &mut String, title: &str, requests: &[&Value]) {
    let _ =
        write!(page, "\n## {title}\n\n| method | takes | answers | served | since | |\n|---|---|---|---|---|---|\n");
    for request in requests {
        let [served, since, about] =
            ["x-scope", "x-since", "description"].map(|member| request[member].as_str().unwrap_or_default());
        let params = named(&request["properties"]["params"]);
        row(page, &[&method_names(request), &params, &named(&request["x-response"]), served, since, about]);
    }
}

fn kinds(page: &mut String, definitions: &Definitions, title: &str, column: &str, name: &str) {
    let _ = write!(page, "\n## {title}\n\n| {column} | carries | |\n|---|---|---|\n");
    for kind in choices(definitions, name) {
        let label = kind["properties"]["type"]["const"].as_str().unwrap();
        let about = kind["description"].as_str().unwrap_or_default();
        let payload = kind.get("allOf").map(|parts| named(&parts[0]));
        let members = || {
            let members = kind["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
            let members: Vec<String> = members.filter(|name| *name != "type").map(|name| format!("`{name}`")).collect();
            if members.is_empty() { "–".to_owned() } else { members.join(", ") }
        };
        row(page, &[&format!("`{label}`"), &payload.unwrap_or_else(members), about]);
    }
}

fn row(page: &mut String, cells: &[&str]) {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    let _ = writeln!(page, "| {} |", cells.join(" | "));
}

fn words(request: &Value) -> impl Iterator<Item = &str> {
    request["properties"]["method"]["enum"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The name of a method, and what else it is called.
fn method_names(request: &Value) -> String {
    words(request).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", also ")
}

fn named(schema: &Value) -> String {
    let name = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()).unwrap_or_default();
    if matches!(name, "" | "Empty") { "–".to_owned() } else { format!("`{name}`") }
}
