//! Uses of the binary in test programs of other releases.

use std::path::PathBuf;

use codex_testkit::FakeModel;
use serde_json::{Value, json};

use crate::exec::{exec, scripted};
use crate::program::Place;

/// A stream as such programs keep it in a file.
const RECORDED: &str = concat!(
    "event: response.created\n",
    "data: {\"type\":\"response.created\",\"response\":{\"id\":\"r1\"}}\n\n",
    "event: response.output_item.done\n",
    "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"message\",\"role\":\"assistant\",",
    "\"content\":[{\"type\":\"output_text\",\"text\":\"from the file\"}]}}\n\n",
    "event: response.completed\n",
    "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r1\",\"output\":[]}}\n",
);

/// A place whose provider is the fake model.
fn over_http(model: &FakeModel) -> Place {
    let provider = format!(
        "model_provider = 'mock'\n[model_providers.mock]\nname = 'mock'\nbase_url = '{}/v1'\nrequest_max_retries = 0\n\
         stream_max_retries = 0\n",
        model.url()
    );
    Place::new().file("home/config.toml", &provider)
}

fn rollouts(place: &Place) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![place.path("home/sessions")]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the folder is there") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files
}

#[test]
fn a_recorded_stream_stands_for_a_model_and_a_session_continues_in_its_file() {
    let place = Place::new().file("home/recorded.sse", RECORDED).variable("CODEX_API_KEY", "dummy");
    let recorded = place.path("home/recorded.sse").display().to_string();
    let place = place.variable("CODEX_RS_SSE_FIXTURE", &recorded).variable("OPENAI_BASE_URL", "http://unused.local");
    let run = exec(&place, &["hello"], "");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "from the file\n"), "{}", run.stderr);
    let files = rollouts(&place);
    assert_eq!(files.len(), 1);
    let text = || std::fs::read_to_string(&files[0]).expect("it can be read");
    let first: Value = serde_json::from_str(text().lines().next().expect("it has lines")).expect("it is JSON");
    assert_eq!(first["type"], "session_meta");
    let id = first["payload"]["id"].as_str().expect("it has a name");
    assert!(files[0].display().to_string().contains(id));
    // The prompt may come before `resume`, and flags on either side.
    for (args, marker) in [
        (&["marker-2", "resume", "--last"][..], "marker-2"),
        (&["marker-3", "resume", id], "marker-3"),
        (&["--json", "resume", "--last", "marker-4"], "marker-4"),
    ] {
        let run = exec(&place, args, "");
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert_eq!(rollouts(&place), files);
        assert!(text().contains("hello") && text().contains(marker));
    }
}

#[test]
fn a_recorded_stream_that_is_not_there_or_breaks_off_is_an_error() {
    let place = Place::new().file("home/cut.sse", "data: {\"type\":\"response.created\"}\n");
    let cut = place.path("home/cut.sse").display().to_string();
    for (path, expected) in [("/nowhere.sse", "CODEX_RS_SSE_FIXTURE"), (&cut, "stream closed")] {
        let config = ["-c", "model_providers.mock={name='mock',base_url='http://x',stream_max_retries=0}"];
        let args = [&config[..], &["-c", "model_provider=mock", "hello"]].concat();
        let run = exec(&Place::new().variable("CODEX_RS_SSE_FIXTURE", path), &args, "");
        assert_eq!(run.code, Some(1));
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    }
}

#[test]
fn no_file_names_a_recorded_stream_and_no_scripted_model_plays_one() {
    let place = scripted(r#"[{"items": [{"text": "scripted"}]}]"#).file("home/recorded.sse", RECORDED);
    let place = place.file("project/.env", "CODEX_RS_SSE_FIXTURE=../home/recorded.sse\n");
    assert_eq!(exec(&place, &["hello"], "").stdout, "scripted\n");
}

#[test]
fn the_prompt_of_the_command_line_reaches_the_model() {
    let model = FakeModel::start(r#"[{"items": [{"text": "{\"answer\":\"x\"}"}], "repeat": true}]"#);
    let schema = json!({"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"],
        "additionalProperties": false});
    let place = over_http(&model).file("project/schema.json", &schema.to_string()).file("home/how.md", "Speak softly.");
    let how = format!("experimental_instructions_file=\"{}\"", place.path("home/how.md").display());
    let run = exec(&place, &["--output-schema", "schema.json", "-m", "gpt-5.1", "-c", &how, "hi"], "");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let run = exec(&place, &["-m", "gpt-5.1-high", "--sandbox", "workspace-write", "more", "resume", "--last"], "");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("gpt-5.1-high") && run.stderr.contains("workspace-write"), "{}", run.stderr);
    let requests = model.requests();
    assert_eq!(requests[0].header("originator"), Some("codex_exec"));
    let first = requests[0].json();
    let format = json!({"name": "codex_output_schema", "type": "json_schema", "strict": true, "schema": schema});
    assert_eq!((&first["text"]["format"], &first["model"]), (&format, &json!("gpt-5.1")));
    assert!(first["instructions"].as_str().is_some_and(|text| text.contains("Speak softly.")));
    assert_eq!(requests[1].json()["model"], "gpt-5.1-high");
}

#[test]
fn folders_that_are_added_can_be_written_and_others_cannot() {
    let place = Place::new().variable("PATH", &std::env::var("PATH").unwrap_or_default());
    let folders = ["one", "two", "three"].map(|name| place.path(&format!("user/{name}")).display().to_string());
    let writes = folders.each_ref().map(|folder| format!("echo x > {folder}/f")).join("; ");
    let script =
        json!([{"items": [{"call": "shell_command", "args": {"command": writes}}]}, {"items": [{"text": "ok"}]}]);
    let config = "model_provider = 'scripted'\n[model_providers.scripted]\nscript = 'answers.json'\n\
                  [sandbox_workspace_write]\nexclude_slash_tmp = true\n";
    let place = place.file("home/answers.json", &script.to_string()).file("home/config.toml", config);
    for folder in &folders {
        std::fs::create_dir(folder).expect("a folder can be made");
    }
    let args = ["--sandbox", "workspace-write", "--add-dir", &folders[0], "--add-dir", &folders[1], "go"];
    assert_eq!(exec(&place, &args, "").code, Some(0));
    let written = folders.each_ref().map(|folder| PathBuf::from(folder).join("f").exists());
    assert_eq!(written, [true, true, false]);
}

#[test]
fn both_forms_of_a_patch_change_files() {
    let patches = [
        "*** Begin Patch\n*** Add File: a.py\n+def f():\n+  return False\n*** End Patch",
        "*** Begin Patch\n*** Update File: a.py\n@@ def f():\n-  return False\n+\n+  return True\n*** End Patch",
    ];
    let script = json!([{"items": [{"custom": "apply_patch", "input": patches[0]}]},
        {"items": [{"call": "apply_patch", "args": {"input": patches[1]}}]}, {"items": [{"text": "ok"}]}]);
    let place = scripted(&script.to_string());
    assert_eq!(exec(&place, &["-s", "danger-full-access", "go"], "").code, Some(0));
    let made = std::fs::read_to_string(place.path("project/a.py")).expect("it is there");
    assert_eq!(made, "def f():\n\n  return True\n");
}

#[test]
fn an_error_of_the_server_is_an_exit_status() {
    let model =
        FakeModel::start(r#"[{"items": [], "end": {"failed": {"code": "rate_limit_exceeded", "message": "no"}}}]"#);
    let run = exec(&over_http(&model), &["go", "--experimental-json"], "");
    assert_eq!(run.code, Some(1), "{}", run.stdout);
}

#[test]
fn rules_are_checked_for_programs_in_json() {
    let rules = "prefix_rule(\n    pattern = [\"git\", \"push\"],\n    decision = \"forbidden\",\n)\n";
    let place = Place::new().file("project/some.rules", rules);
    let check = |args: &[&str]| {
        let run = place.run(&[&["execpolicy", "check", "--rules", "some.rules"], args].concat(), "");
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
        run.stdout
    };
    let matched = json!([{"prefixRuleMatch": {"matchedPrefix": ["git", "push"], "decision": "forbidden"}}]);
    let expected = json!({"decision": "forbidden", "matchedRules": matched});
    let line = check(&["git", "push", "origin", "main"]);
    assert_eq!((line.lines().count(), serde_json::from_str::<Value>(&line).ok()), (1, Some(expected.clone())));
    let pretty = check(&["--pretty", "git", "push"]);
    assert!(pretty.lines().count() > 1);
    assert_eq!(serde_json::from_str::<Value>(&pretty).ok(), Some(expected));
    assert_eq!(check(&["ls"]), "{\"matchedRules\":[]}\n");
}

#[test]
fn programs_in_the_sandbox_have_locks_pairs_of_sockets_and_a_user() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        eprintln!("there is no python3 to try it with");
        return;
    }
    let python = "import multiprocessing as m, os, pwd, socket\nlock = m.Lock()\n\
        def work(lock):\n  with lock: pass\n\
        p = m.Process(target=work, args=(lock,)); p.start(); p.join()\n\
        a, b = socket.socketpair(); os.write(a.fileno(), b'hi')\n\
        print(p.exitcode, b.recvfrom(9)[0], pwd.getpwuid(os.getuid()).pw_name != '')";
    let place = Place::new().variable("PATH", &std::env::var("PATH").unwrap_or_default());
    let run = place.run(&["sandbox", "linux", "--full-auto", "python3", "-c", python], "");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "0 b'hi' True\n"), "{}", run.stderr);
}

#[test]
fn a_program_that_does_not_run_in_the_sandbox_has_the_status_that_shells_have_for_it() {
    let place = Place::new().file("project/data", "no program");
    let missing = place.run(&["sandbox", "--", "no-such-program"], "");
    assert_eq!((missing.code, missing.stderr.as_str()), (Some(127), "error: no such program: no-such-program\n"));
    let data = place.path("project/data");
    let other = place.run(&["sandbox", "--", &data.display().to_string()], "");
    assert_eq!(other.code, Some(126), "{}", other.stderr);
    assert!(other.stderr.starts_with("error: cannot execute "), "{}", other.stderr);
}

#[test]
fn a_client_is_the_originator_of_its_requests_unless_a_variable_overrides_it() {
    for (variable, expected) in [(None, "my-client"), (Some("somebody"), "somebody")] {
        let model = FakeModel::start(r#"[{"items": [{"text": "Hello."}]}]"#);
        let place = over_http(&model);
        let place = match variable {
            Some(name) => place.variable("CODEX_INTERNAL_ORIGINATOR_OVERRIDE", name),
            None => place,
        };
        let mut server = place.start(&["app-server"]);
        let mut ask = |request: Value, is_last: fn(&Value) -> bool| {
            server.send(&format!("{request}\n"));
            loop {
                let message = server.message();
                if is_last(&message) {
                    return message;
                }
            }
        };
        let is_answer: fn(&Value) -> bool = |message| message.get("result").is_some();
        let info = json!({"name": "my-client", "version": "1"});
        let hello = ask(json!({"id": 1, "method": "initialize", "params": {"clientInfo": info}}), is_answer);
        let agent = hello["result"]["userAgent"].as_str().expect("a text").to_owned();
        assert!(agent.starts_with(&format!("{expected}/")), "{agent}");
        let opened = ask(json!({"id": 2, "method": "thread/start", "params": {}}), is_answer);
        let thread = &opened["result"]["thread"]["id"];
        let params = json!({"threadId": thread, "input": [{"type": "text", "text": "hi"}]});
        let turn = json!({"id": 3, "method": "turn/start", "params": params});
        ask(turn, |message| message["method"] == "turn/completed");
        drop(server.finish());
        let requests = model.requests();
        assert_eq!(requests[0].header("originator"), Some(expected));
        assert!(requests[0].header("user-agent").is_some_and(|agent| agent.starts_with(&format!("{expected}/"))));
    }
}
