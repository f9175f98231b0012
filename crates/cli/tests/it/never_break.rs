//! Behaviour that existing clients depend on: launch, events and rollouts.

use codex_testkit::FakeModel;
use serde_json::Value;

use crate::exec::{exec, scripted};
use crate::program::Place;
use crate::pty::Pty;

const HELLO: &str = r#"[{"items": [{"text": "Hello."}], "repeat": true}]"#;

#[test]
fn sdks_move_the_provider_by_variable_and_by_configuration() {
    let model = FakeModel::start(HELLO);
    let url = format!("{}/v1", model.url());
    let base = || {
        let place = Place::new().variable("CODEX_API_KEY", "sk-sdk");
        place.variable("CODEX_INTERNAL_ORIGINATOR_OVERRIDE", "codex_sdk_ts")
    };
    let run = exec(&base().variable("OPENAI_BASE_URL", &url), &["--experimental-json"], "hi");
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    let config = format!("openai_base_url=\"{url}\"");
    let run = exec(&base(), &["--experimental-json", "--config", &config], "hi");
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    let requests = model.requests();
    assert_eq!(requests.len(), 2);
    for request in requests {
        assert_eq!(request.header("originator"), Some("codex_sdk_ts"));
        assert_eq!(request.header("authorization"), Some("Bearer sk-sdk"));
    }
}

#[test]
fn the_complete_command_line_of_an_sdk() {
    let place = scripted(HELLO).file("project/schema.json", "{\"type\": \"string\"}");
    let place = place.file("home/answers.json", r#"[{"items": [{"text": "\"Hello.\""}], "repeat": true}]"#);
    let project = place.path("project").display().to_string();
    let args = [
        "exec",
        "--experimental-json",
        "--config",
        "model_reasoning_effort=\"high\"",
        "--model",
        "o3",
        "--sandbox",
        "workspace-write",
        "--cd",
        &project,
        "--add-dir",
        "/var/tmp",
        "--skip-git-repo-check",
        "--output-schema",
        "schema.json",
        "--config",
        "sandbox_workspace_write.network_access=true",
        "--config",
        "web_search=\"disabled\"",
        "--config",
        "approval_policy=\"on-request\"",
    ];
    let run = place.run(&args, "hi");
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    let id = run.lines()[0]["thread_id"].as_str().unwrap().to_owned();
    let again = place.run(&[&args[..], &["resume", &id]].concat(), "more");
    assert_eq!((again.code, &again.lines()[0]["thread_id"]), (Some(0), &id.into()), "{}", again.stderr);
}

#[test]
fn the_command_lines_of_other_programs() {
    let place = scripted(r#"[{"items": [{"text": "{}"}], "repeat": true}]"#).file("project/schema.json", "{}");
    let folder = "--skip-git-repo-check";
    for args in [
        &["--json", "--output-last-message", "last.txt", "--color", "never", folder][..],
        &["--ephemeral", "--output-schema", "schema.json", "--output-last-message", "last.txt", folder],
        &["--experimental-json", "--config", "features.web_search_request=true", folder],
        &["--json", "-s", "read-only", "-m", "o3", folder, "-"],
        &["--json", "--dangerously-bypass-approvals-and-sandbox"],
        &["--json", "--yolo"],
    ] {
        let run = place.run(&[&["exec"], args].concat(), "hi");
        assert_eq!(run.code, Some(0), "{args:?}: {}{}", run.stdout, run.stderr);
    }
    assert_eq!(std::fs::read_to_string(place.path("project/last.txt")).unwrap(), "{}");
}

#[test]
fn a_server_starts_wherever_its_options_stand() {
    let (key, listen) = ("model=\"o3\"", "stdio://");
    for args in [
        &["--config", key, "app-server"][..],
        &["-c", key, "app-server", "--listen", listen],
        &["app-server", "--config", key],
        &["app-server", "--listen", listen, "-c", key],
        &["-c", "model=other", "app-server", "-c", key],
    ] {
        let place = scripted(HELLO);
        let mut server = place.start(args);
        // A `jsonrpc` member, a string id, missing params: clients send all of these.
        server.send("{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"method\":\"initialize\",");
        server.send("\"params\":{\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}}\n{\"method\":\"initialized\"}\n");
        let hello = server.message();
        assert_eq!(hello["id"], "1", "{hello}");
        let agent = hello["result"]["userAgent"].as_str().unwrap();
        let version = agent.split_once('/').and_then(|(_, rest)| rest.split(' ').next());
        assert_eq!(version, Some(env!("CARGO_PKG_VERSION")), "{agent}");
        server.send("{\"id\":2,\"method\":\"thread/start\"}\n");
        let started = std::iter::repeat_with(|| server.message()).find(|message| message["id"] == 2).unwrap();
        assert_eq!(started["result"]["model"], "o3", "{args:?}: {started}");
        let run = server.finish();
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn a_server_serves_a_client_over_a_terminal() {
    let place = scripted(HELLO);
    let mut server = Pty::start(&place, &["app-server"]);
    server.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",");
    server.send("\"params\":{\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}}\n");
    server.until("\"userAgent\":");
    server.send("{\"id\":2,\"method\":\"thread/start\",\"params\":null}\n");
    server.until("\"result\":{\"thread\":");
    // Ctrl-D on an empty line is the end of the input there.
    server.send("\x04");
    assert_eq!(server.wait().code, Some(0));
}

#[test]
fn standard_output_holds_nothing_but_events() {
    let place = scripted(HELLO).file("project/noise.sh", "echo noise; echo more >&2");
    let script = format!("notify=[\"/bin/sh\", \"{}\"]", place.path("project/noise.sh").display());
    let run = exec(&place, &["--json", "-c", &script, "hi"], "");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.lines().iter().all(Value::is_object), "{}", run.stdout);
}

#[test]
fn a_line_stays_short_however_much_a_command_prints() {
    let script = r#"[{"items": [{"call": "shell", "args": {"command": ["bash", "-c", "head -c 300000 /dev/zero | tr '\\0' x"]}}]},
                     {"items": [{"text": "Printed."}]}]"#;
    let place = scripted(script).variable("PATH", &std::env::var("PATH").unwrap_or_default());
    let run = exec(&place, &["--json", "print"], "");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let longest = run.stdout.lines().map(str::len).max();
    assert!(longest.is_some_and(|longest| longest > 10_000 && longest < 64 * 1024), "{longest:?}");
}

#[test]
fn a_file_change_is_reported_once() {
    let script = r#"[
        {"items": [{"call": "apply_patch", "args": {"input":
            "*** Begin Patch\n*** Add File: new.txt\n+first\n*** End Patch"}}]},
        {"items": [{"text": "Patched."}]}]"#;
    let run = exec(&scripted(script), &["--json", "--full-auto", "patch"], "");
    let changes: Vec<Value> = run.lines().into_iter().filter(|line| line["item"]["type"] == "file_change").collect();
    assert_eq!(changes.len(), 1, "{}", run.stdout);
    assert_eq!((&changes[0]["type"], &changes[0]["item"]["status"]), (&"item.completed".into(), &"completed".into()));
    assert_eq!(changes[0]["item"]["changes"][0]["kind"], "add");
}

#[test]
fn a_thread_that_another_process_holds_is_refused_by_name() {
    let script = r#"[{"items": [{"text": "Hal", "done": false}, {"hang": true}]}]"#;
    let place = scripted(script);
    let mut holder = place.start(&["exec", "--json", "--skip-git-repo-check", "hi"]);
    let id = holder.until("thread.started")["thread_id"].as_str().unwrap().to_owned();
    holder.until("turn.started");
    let run = exec(&place, &["--json", "resume", &id, "more"], "");
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    let why = format!(
        "error: This thread is open in another Codex (pid {}). Close it, or run `codex fork {id}`\n",
        holder.pid()
    );
    assert_eq!(run.stderr, why);
    // It can be read, and forked.
    for args in [&["threads", "list"][..], &["threads", "show", &id], &["threads", "export", &id]] {
        let read = place.run(args, "");
        assert_eq!(read.code, Some(0), "{args:?}: {}", read.stderr);
        assert!(read.stdout.contains("hi"), "{args:?}: {}", read.stdout);
    }
    let place = place.file("home/answers.json", HELLO);
    let run = exec(&place, &["fork", &id, "more"], "");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "Hello.\n"), "{}", run.stderr);
    let archived = place.run(&["archive", &id], "");
    let why = format!("error: the thread is open in another Codex (pid {}); close it first\n", holder.pid());
    assert_eq!((archived.code, archived.stderr), (Some(1), why));
}

#[test]
fn rollouts_are_where_and_what_others_look_for() {
    let place = scripted(HELLO);
    let run = exec(&place, &["--json", "hi"], "");
    let id = run.lines()[0]["thread_id"].as_str().unwrap().to_owned();
    let shown: Value = serde_json::from_str(&place.run(&["threads", "show", "--json", &id], "").stdout).unwrap();
    let path = shown["path"].as_str().unwrap();
    assert!(path.contains("/home/sessions/2") && path.ends_with(&format!("-{id}.jsonl")), "{path}");
    assert!(path.rsplit('/').next().is_some_and(|name| name.starts_with("rollout-2")), "{path}");
    let text = std::fs::read_to_string(path).unwrap();
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!((&first["type"], &first["payload"]["id"]), (&"session_meta".into(), &id.into()));
    assert_eq!(first["payload"]["source"], "exec");
}
