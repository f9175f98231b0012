//! Agents that begin with a copy of their parent's history: their requests, their files and their memory.

use codex_testkit::{FakeModel, Request};
use serde_json::{Value, json};

use crate::program::Place;

const EXEC: [&str; 3] = ["exec", "--json", "--skip-git-repo-check"];

fn call(id: &str, tool: &str, args: &Value) -> Value {
    json!({"call": tool, "id": id, "args": args})
}

/// A root that looks around, forks, and waits for the copy. The copy is asked to do `child`.
fn forking(child: &Value) -> FakeModel {
    let script = json!([
        {"when": "id-await", "items": [{"text": "All done."}]},
        {"when": "id-deeper", "items": [{"text": "I do it myself."}]},
        {"when": "role\\\":\\\"child", "items": child},
        {"when": "id-fork", "items": [call("id-await", "subagent_await", &json!({}))]},
        {"when": "id-look", "items": [{"text": "I see."}, call("id-fork", "subagent_fork", &json!({"prompt": "Go on alone."}))]},
        {"items": [call("id-look", "shell", &json!({"command": ["echo", "a \"quoted\" line \u{fc}"]}))]},
    ]);
    FakeModel::start(&script.to_string())
}

fn place(model: &FakeModel, wire: &str, more: &str) -> Place {
    let config = format!(
        "model = 'mock-model'\nmodel_provider = 'mine'\napproval_policy = 'never'\nsandbox_mode = 'danger-full-access'\n\
         features.subagent_tools = true\n{more}\n[model_providers.mine]\nname = 'Mine'\nbase_url = '{}/v1'\n\
         wire_api = '{wire}'\ncache = '{}'\n",
        model.url(),
        if wire == "anthropic" { "marks" } else { "key" },
    );
    Place::new().file("home/config.toml", &config)
}

/// The last request of the root before the fork, and the first one of the copy.
fn both(model: &FakeModel) -> (Request, Request) {
    let requests = model.requests();
    let is_child = |request: &&Request| String::from_utf8_lossy(&request.body).contains("Go on alone.");
    let child = requests.iter().find(|request| request.entry == Some(3)).expect("the copy asks").clone();
    assert!(is_child(&&child));
    let parent = requests.iter().rfind(|request| request.entry == Some(5)).expect("the root asks").clone();
    (parent, child)
}

/// A request without the marks that tell the provider what to cache, which move on with each request.
fn text(request: &Request) -> String {
    let text = String::from_utf8(request.body.clone()).expect("a request is text");
    text.replace(r#","cache_control":{"type":"ephemeral"}"#, "")
}

/// The items that the request begins with, with everything before them, and the rest.
fn split(request: &str, list: &str) -> (String, String) {
    let value: Value = serde_json::from_str(request).expect("a request is JSON");
    let tools = request.rfind(",\"tools\":").expect("it offers tools");
    assert!(value[list].as_array().is_some_and(|items| items.len() > 2));
    (request[..tools].trim_end_matches(']').to_owned(), request[tools..].to_owned())
}

#[test]
fn the_request_of_a_copy_begins_with_the_bytes_of_its_parents_on_every_wire() {
    for (wire, list) in [("responses", "input"), ("chat", "messages"), ("anthropic", "messages")] {
        let model = forking(&json!([{"text": "Alone."}]));
        let place = place(&model, wire, "");
        let run = place.run(&[&EXEC[..], &["Look, then split up."]].concat(), "");
        assert_eq!(run.code, Some(0), "{wire}: {}{}", run.stdout, run.stderr);
        let (parent, child) = both(&model);
        let ((parent_start, parent_end), (child_start, child_end)) =
            (split(&text(&parent), list), split(&text(&child), list));
        assert!(child_start.starts_with(&parent_start), "{wire}:\n{parent_start}\n{child_start}");
        assert!(child_start.len() > parent_start.len() && child_start.contains("You are a subagent"), "{wire}");
        // The tools, the settings and the key of the cache come after the conversation, and the provider reads them first.
        assert_eq!(parent_end, child_end, "{wire}");
        let session = |request: &Request| request.header("session_id").map(str::to_owned);
        if session(&parent).is_some() {
            assert_ne!(session(&parent), session(&child), "{wire}: each is a thread of its own");
        }
    }
}

#[test]
fn a_copy_at_the_bottom_has_the_tools_of_its_parent_and_cannot_start_others() {
    let child = json!([call("id-deeper", "subagent_spawn", &json!({"prompt": "Deeper."}))]);
    let model = forking(&child);
    let place = place(&model, "responses", "agents.max_depth = 1\n");
    let run = place.run(&[&EXEC[..], &["Look, then split up."]].concat(), "");
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    let (parent, child) = both(&model);
    assert_eq!(parent.json()["tools"], child.json()["tools"]);
    let refused = model.requests().iter().any(|request| {
        let outputs = request.json()["input"].as_array().cloned().unwrap_or_default();
        outputs.iter().any(|item| {
            item["call_id"] == "id-deeper" && item["output"].as_str().is_some_and(|text| text.contains("nested"))
        })
    });
    assert!(refused, "the tree says that it is too deep");
}

#[test]
fn the_file_of_a_copy_begins_with_the_lines_of_its_parent() {
    let model = forking(&json!([{"text": "Alone."}]));
    let place = place(&model, "responses", "");
    let run = place.run(&[&EXEC[..], &["Look, then split up."]].concat(), "");
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    let mut files: Vec<String> = Vec::new();
    let mut folders = vec![place.path("home/sessions")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the folder is there") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(std::fs::read_to_string(path).expect("a file is text"));
            }
        }
    }
    files.sort_by_key(|text| text.contains("\"forked_from_id\""));
    let [parent, child] = &files[..] else { panic!("there are {} files", files.len()) };
    let (_, parent) = parent.split_once('\n').expect("it has lines");
    let (first, child) = child.split_once('\n').expect("it has lines");
    let first: Value = serde_json::from_str(first).expect("a line is JSON");
    assert!(first["payload"]["source"]["subagent"]["thread_spawn"].is_object(), "{first}");
    let shared = parent.lines().zip(child.lines()).take_while(|(one, other)| one == other).count();
    let forked = child.lines().nth(shared - 1).expect("they share lines");
    assert!(child.lines().take(shared).any(|line| line.contains("id-fork")), "the call is shared; last: {forked}");
}
