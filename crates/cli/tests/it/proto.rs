//! `codex proto` with models that need no network.

use expect_test::expect;

use crate::program::{Place, say};

#[test]
fn the_version_is_the_one_clients_look_for() {
    let run = Place::new().run(&["--version"], "");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    assert!(run.stdout.starts_with("codex-cli 0.200.0"), "{}", run.stdout);
}

#[test]
fn the_offline_model_answers_and_the_end_of_the_input_ends_the_program() {
    let place = Place::new();
    let run = place.run(&["proto", "-c", "model_provider=scripted"], &say("1", "hello"));
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let events = run.events();
    let kinds: Vec<_> = events.iter().map(|event| event["msg"]["type"].as_str().unwrap()).collect();
    assert_eq!((kinds[0], kinds[1]), ("session_configured", "task_started"));
    let last = &events.last().unwrap()["msg"];
    assert_eq!(last["type"], "task_complete");
    assert!(last["last_agent_message"].as_str().unwrap().starts_with("Hello! I am the built-in offline model"));
    let cwd = events[0]["msg"]["cwd"].as_str().unwrap();
    assert_eq!(place.without_path(cwd), "TEMP/project");
    let rollout = events[0]["msg"]["rollout_path"].as_str().unwrap();
    assert!(std::fs::read_to_string(rollout).unwrap().contains("built-in offline model"));
    assert!(place.without_path(rollout).starts_with("TEMP/home/sessions/"), "{rollout}");
}

#[test]
fn a_complete_session_with_a_script() {
    let script = r#"[{"items": [{"reasoning": ["Think."]}, {"call": "update_plan", "args": {"plan": []}}]},
                     {"items": [{"text": "one"}]}, {"items": [{"text": "two"}, {"hang": true}]}]"#;
    let place = Place::new()
        .file("home/answers.json", script)
        .file("home/config.toml", "model_provider = 'scripted'\n[model_providers.scripted]\nscript = 'answers.json'\n");
    let mut codex = place.start(&["proto"]);
    codex.until("session_configured");
    codex.send(&say("1", "hi"));
    codex.until("task_complete");
    codex.send("nonsense\n");
    codex.until("warning");
    codex.send(&say("2", "more"));
    codex.until("agent_message");
    codex.send("{\"id\":\"3\",\"op\":{\"type\":\"shutdown\"}}\n");
    // The input stays open: the op alone must end the program.
    let run = codex.wait();
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    expect![[r#"
        "" session_configured
        "1" task_started
        "1" user_message
        "1" token_count
        "1" agent_reasoning_section_break
        "1" agent_reasoning_delta
        "1" agent_reasoning_delta
        "1" agent_reasoning
        "1" plan_update
        "1" token_count
        "1" token_count
        "1" agent_message_delta
        "1" agent_message
        "1" token_count
        "1" task_complete
        "" warning
        "2" task_started
        "2" user_message
        "2" token_count
        "2" agent_message_delta
        "2" agent_message
        "2" turn_aborted
        "3" shutdown_complete
    "#]]
    .assert_eq(&run.kinds());
}

#[test]
fn the_working_directory_is_the_requested_one_without_instructions_of_its_sibling() {
    let place = Place::new();
    codex_files::testing::make_git_folder(&place.path(".git")).unwrap();
    for folder in ["project/x", "project/y"] {
        std::fs::create_dir(place.path(folder)).unwrap();
    }
    let place = place.file("project/x/AGENTS.md", "for x").file("project/y/AGENTS.md", "for y");
    let run = place.run(&["-C", "x/../y", "proto", "-c", "model_provider=scripted"], "");
    let events = run.events();
    let (cwd, rollout) = (&events[0]["msg"]["cwd"], &events[0]["msg"]["rollout_path"]);
    let saved = std::fs::read_to_string(rollout.as_str().unwrap()).unwrap();
    assert!(saved.contains("for y") && !saved.contains("for x"), "{saved}");
    assert_eq!(place.without_path(cwd.as_str().unwrap()), "TEMP/project/y");
}

#[test]
fn a_reader_that_leaves_ends_the_program_well() {
    let place = Place::new();
    let script = "yes '{\"id\":\"1\",\"op\":{\"type\":\"get_path\"}}' | timeout 30 \"$0\" proto -c model_provider=scripted | head -n 1 > out; echo ${PIPESTATUS[1]} > code";
    let status = std::process::Command::new("bash")
        .args(["-c", script, env!("CARGO_BIN_EXE_codex")])
        .env("CODEX_HOME", place.path("home"))
        .current_dir(place.path("project"))
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    assert!(read("project/out").contains("session_configured"));
    assert_eq!(read("project/code").trim(), "0");
}

#[test]
fn a_missing_key_is_reported_by_the_first_request() {
    let place = Place::new();
    let run = place.run(&["proto"], &say("1", "hi"));
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    expect![[r#"
        "" session_configured
        "1" task_started
        "1" user_message
        "1" error
        "1" task_complete
    "#]]
    .assert_eq(&run.kinds());
    let events = run.events();
    let error = events.iter().find(|event| event["msg"]["type"] == "error").unwrap();
    expect![[r#"{"id":"1","msg":{"type":"error","message":"OpenAI needs a login or an API key; set OPENAI_API_KEY to your key","codex_error_info":"unauthorized"}}"#]].assert_eq(&error.to_string());
}

#[test]
fn a_script_of_the_model_finds_apply_patch_on_its_path() {
    let command =
        "printf '%s\\n' '*** Begin Patch' '*** Add File: made.txt' '+by a script' '*** End Patch' | apply_patch";
    let script = serde_json::json!([
        {"items": [{"call": "shell", "args": {"command": ["sh", "-c", command]}}]},
        {"items": [{"text": "done"}]},
    ]);
    let place = Place::new().file("home/script.json", &script.to_string());
    let options = ["-c", "model_provider=scripted", "-c", "model_providers.scripted.script=../home/script.json"];
    let policy = ["-c", "approval_policy=never", "-c", "sandbox_mode=workspace-write"];
    let input = r#"{"id":"1","op":{"type":"user_input","items":[{"type":"text","text":"go"}]}}"#;
    let run = place.run(&[&["proto"][..], &options, &policy].concat(), input);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("A made.txt"), "{}", run.stdout);
    let made = place.entries("project").into_iter().find(|path| path.ends_with("made.txt")).expect("it was made");
    assert_eq!(std::fs::read_to_string(made).expect("it can be read"), "by a script\n");
}

/// Runs a turn and waits for the output that the user's program, a line of shell, writes to the file `$told`.
fn told(place: &Place, line: &str) -> String {
    let told = place.path("user/told");
    let line = format!("told={}; {{ {line}; }} > $told.new; mv $told.new $told", told.display());
    let program = format!("notify=[\"sh\", \"-c\", {}]", serde_json::Value::from(line));
    let input = r#"{"id":"1","op":{"type":"user_input","items":[{"type":"text","text":"go"}]}}"#;
    let run = place.run(&["proto", "-c", "model_provider=scripted", "-c", &program], input);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    loop {
        if let Ok(text) = std::fs::read_to_string(&told) {
            return text;
        }
        assert!(std::time::Instant::now() < deadline, "nobody was told");
        std::thread::yield_now();
    }
}

#[test]
fn the_notify_program_runs_when_a_turn_has_ended() {
    let told: serde_json::Value =
        serde_json::from_str(&told(&Place::new(), "echo \"$0\"")).expect("it is told in JSON");
    assert_eq!((told["type"].as_str(), told["turn-id"].as_str()), (Some("agent-turn-complete"), Some("1")));
    assert_eq!(told["input-messages"], serde_json::json!(["go"]));
}

/// A file in the project folder may have been put there by a sandboxed command.
#[test]
fn nothing_in_the_project_takes_the_place_of_the_users_program() {
    use std::os::unix::fs::PermissionsExt as _;

    let place = Place::new().file("project/sh", "#!/bin/sh\ntouch ../user/canary\n");
    let planted = place.path("project/sh");
    std::fs::set_permissions(&planted, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let path = format!(".:{}:/usr/bin:/bin", place.path("project").display());
    let place = place.variable("PATH", &path);
    let told = told(&place, "pwd -P; echo \"$PATH\"");
    assert_eq!(place.without_path(&told), "TEMP/home\n/usr/bin:/bin\n");
    assert!(!place.path("user/canary").exists());
}
