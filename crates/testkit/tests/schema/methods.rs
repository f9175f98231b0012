//! `docs/methods.md`: every method and event, and its dialect.

use std::fmt::Write as _;

use codex_protocol::schema::Definitions;
use serde_json::Value;

const HEAD: &str = "\
# Methods and events

All methods, notifications and events, by dialect. A test generates this page from the dispatch tables. These commands
print the types:

```sh
codex app-server generate-json-schema --out protocol-schema
codex app-server generate-ts --out protocol-ts
```

*Dialect* is that of the app-server: v1 has conversations, v2 has threads; a connection may use both. A dash stands for
no parameters or an empty answer. *Served* is the order: `thread` after earlier requests about the same thread,
`connection` before the next line is read, `process` concurrently with all others. *Since* is the first release of the
protocol that had the method.
";

pub(crate) fn page(bundle: &Value) -> String {
    let definitions = Definitions::of(bundle);
    let mut page = HEAD.to_owned();
    methods(&mut page, choices(&definitions, "ClientRequest"));

    page.push_str("\n## app-server: notifications\n\n| notification | dialect | carries | |\n|---|---|---|---|\n");
    for notification in choices(&definitions, "ServerNotification") {
        let about = notification["description"].as_str().unwrap_or_default();
        let params = &notification["properties"]["params"];
        let is_second = params["$ref"].as_str().is_some_and(|name| name.contains("/v2/"));
        let dialect = if is_second { "v2" } else { "v1" };
        row(&mut page, &[&method_names(notification), dialect, &named(params), about]);
    }
    let about = "An event of the queue below, under the name of its type.";
    row(&mut page, &["`codex/event/TYPE`", "v1, v2", "`Event`", about]);

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

fn methods(page: &mut String, requests: &[Value]) {
    page.push_str("\n## app-server: methods\n\n| method | dialect | takes | answers | served | since | |\n");
    page.push_str("|---|---|---|---|---|---|---|\n");
    for request in requests {
        let [served, since, about] =
            ["x-scope", "x-since", "description"].map(|member| request[member].as_str().unwrap_or_default());
        let params = named(&request["properties"]["params"]);
        let answer = named(&request["x-response"]);
        row(page, &[&method_names(request), dialect(request), &params, &answer, served, since, about]);
    }
}

/// The names of the first dialect are single words. The handshake is the same in both.
fn dialect(request: &Value) -> &'static str {
    let (has_first, has_second) =
        (words(request).any(|name| !name.contains('/')), words(request).any(|name| name.contains('/')));
    let is_handshake = words(request).any(|name| name == "initialize");
    match (has_first, has_second) {
        _ if is_handshake => "v1, v2",
        (true, true) => "v1, v2",
        (true, false) => "v1",
        _ => "v2",
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

/// The name of a method, and its aliases.
fn method_names(request: &Value) -> String {
    words(request).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", also ")
}

fn named(schema: &Value) -> String {
    let name = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()).unwrap_or_default();
    if matches!(name, "" | "Empty") { "–".to_owned() } else { format!("`{name}`") }
}
