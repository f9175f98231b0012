//! `codex exec` with models that need no network.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::thread;

use expect_test::expect;
use serde_json::Value;

use crate::program::{Place, Run};

/// A place whose model plays a script.
pub(crate) fn scripted(script: &str) -> Place {
    Place::new()
        .file("home/answers.json", script)
        .file("home/config.toml", "model_provider = 'scripted'\n[model_providers.scripted]\nscript = 'answers.json'\n")
}

/// Runs `codex exec` outside of a repository.
pub(crate) fn exec(place: &Place, args: &[&str], input: &str) -> Run {
    place.run(&[&["exec", "--skip-git-repo-check"], args].concat(), input)
}

fn said(run: &Run) -> Vec<String> {
    let said = |line: &Value| line["item"]["text"].as_str().map(str::to_owned);
    run.lines().iter().filter_map(said).collect()
}

fn thread_of(run: &Run) -> String {
    run.lines()[0]["thread_id"].as_str().expect("it has a thread").to_owned()
}

const HELLO: &str = r#"[{"items": [{"text": "Hello."}]}, {"items": [{"text": "Again."}]}]"#;

/// Asks to leave the sandbox for a command, then reports the outcome.
const ESCALATE: &str = r#"[
    {"items": [{"call": "shell", "args": {"command": ["bash", "-lc", "echo granted > got.txt"],
        "with_escalated_permissions": true, "justification": "needed"}}]},
    {"items": [{"text": "Done."}]}]"#;

#[test]
fn the_last_message_alone_is_on_standard_output() {
    let place = scripted(HELLO);
    let run = exec(&place, &["hi"], "");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "Hello.\n"));
    assert!(run.stderr.contains("> hi") && run.stderr.contains("tokens: "), "{}", run.stderr);
    assert!(!run.stderr.contains('\x1b'), "{}", run.stderr);
    let run = exec(&scripted(HELLO), &["--color", "always", "hi"], "");
    assert!(run.stderr.contains('\x1b') && !run.stdout.contains('\x1b'), "{}", run.stderr);
}

#[test]
fn events_under_both_names_of_the_flag() {
    for flag in ["--json", "--experimental-json"] {
        let run = exec(&scripted(HELLO), &[flag, "hi"], "");
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
        expect![[r#"
            thread.started
            turn.started
            item.completed agent_message
            turn.completed
        "#]]
        .assert_eq(&run.line_kinds());
    }
}

#[test]
fn a_prompt_on_standard_input_and_data_next_to_one() {
    let script = r#"[{"when": "<stdin>\ndata\n</stdin>", "items": [{"text": "beside"}]},
                     {"when": "from the pipe", "items": [{"text": "piped"}]}]"#;
    for (args, input, expected) in [
        (&["-"][..], "from the pipe\n", "piped\n"),
        (&[][..], "from the pipe\n", "piped\n"),
        (&["look at this"][..], "data\n", "beside\n"),
    ] {
        let script = script.replace("\\n", "\\\\n");
        let run = exec(&scripted(&script), args, input);
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), expected), "{}", run.stderr);
    }
    let run = exec(&scripted(HELLO), &[], " \n");
    assert_eq!(run.code, Some(1));
    assert_eq!(run.stderr, "error: no prompt: pass one as an argument or on standard input\n");
}

#[test]
fn a_folder_outside_of_a_repository_is_refused_unless_it_is_trusted() {
    let place = scripted(HELLO);
    let run = place.run(&["exec", "hi"], "");
    assert_eq!(run.code, Some(1));
    assert_eq!(
        place.without_path(&run.stderr),
        "error: Not inside a trusted directory and --skip-git-repo-check was not specified.\n\
         hint: TEMP/project is not inside a trusted git repository; use --skip-git-repo-check to run anyway\n"
    );
    codex_files::testing::make_git_folder(&place.path("project/.git")).unwrap();
    assert_eq!(place.run(&["exec", "hi"], "").code, Some(0));
}

#[test]
fn commands_may_write_in_a_trusted_project_unless_something_else_is_set() {
    let patch = "*** Begin Patch\\n*** Add File: new\\n+x\\n*** End Patch";
    let script = format!(
        r#"[{{"items": [{{"call": "shell", "args": {{"command": ["apply_patch", "{patch}"]}}}}]}}, {{"items": [{{"text": "done"}}]}}]"#
    );
    let writes = |config: &str, args: &[&str]| {
        let place = scripted(&script);
        codex_files::testing::make_git_folder(&place.path("project/.git")).unwrap();
        let project = std::fs::canonicalize(place.path("project")).unwrap();
        let kept = std::fs::read_to_string(place.path("home/config.toml")).unwrap();
        let trust = config.replace("PROJECT", &project.display().to_string());
        std::fs::write(place.path("home/config.toml"), format!("{trust}\n{kept}")).unwrap();
        let run = place.run(&[&["exec"], args, &["go"]].concat(), "");
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        place.path("project/new").exists()
    };
    let trusted = "projects.'PROJECT'.trust_level = 'trusted'";
    assert!(writes(trusted, &[]));
    assert!(!writes("", &[]));
    assert!(!writes("projects.'PROJECT'.trust_level = 'untrusted'", &[]));
    assert!(!writes(trusted, &["--sandbox", "read-only"]));
    assert!(!writes(&format!("sandbox_mode = 'read-only'\n{trusted}"), &[]));
}

#[test]
fn thoughts_can_be_hidden() {
    let script = r#"[{"items": [{"reasoning": ["ponder"]}, {"text": "done"}], "repeat": true}]"#;
    let place = scripted(script);
    for args in [&["--json", "go"][..], &["go"]] {
        let run = exec(&place, args, "");
        assert!(format!("{}{}", run.stdout, run.stderr).contains("ponder"), "{}{}", run.stdout, run.stderr);
        let run = exec(&place, &[&["-c", "hide_agent_reasoning=true"], args].concat(), "");
        assert!(!format!("{}{}", run.stdout, run.stderr).contains("ponder"), "{}{}", run.stdout, run.stderr);
    }
}

#[test]
fn a_thread_is_resumed_by_id_by_name_and_as_the_last() {
    let place = scripted(r#"[{"when": "remember me", "items": [{"text": "I do."}], "repeat": true}]"#);
    let first = exec(&place, &["--json", "remember me"], "");
    let id = thread_of(&first);
    let rename = place.run(&["threads", "rename", &id, "my work"], "");
    assert_eq!((rename.code, rename.stderr.as_str()), (Some(0), ""));
    let beginning = &id[..id.len() - 2];
    for args in [&["resume", &id, "more"], &["resume", "my work", "more"], &["resume", beginning, "more"]] {
        let run = exec(&place, &[&["--json"], &args[..]].concat(), "");
        assert_eq!((run.code, thread_of(&run)), (Some(0), id.clone()), "{}", run.stderr);
        assert_eq!(said(&run), ["I do."]);
    }
    let run = exec(&place, &["resume", "--last", "--json", "more"], "");
    assert_eq!((run.code, thread_of(&run)), (Some(0), id.clone()), "{}", run.stderr);
    let run = exec(&place, &["--json", "fork", &id], "more, on standard input");
    assert_eq!((run.code, said(&run)), (Some(0), vec!["I do.".to_owned()]), "{}", run.stderr);
    assert_ne!(thread_of(&run), id);
}

#[test]
fn a_thread_that_is_not_there_is_an_error() {
    let place = scripted(HELLO);
    for (args, what) in [
        (&["resume", "--last", "hi"][..], "no threads in"),
        (&["resume", "--last", "--all", "hi"][..], "no threads yet"),
        (&["resume", "01a1de3b-14fd-7922-828f-0d0916245388", "hi"][..], "thread not found: 01a1de3b-14fd"),
        (&["resume", "nobody", "hi"][..], "thread not found: nobody"),
    ] {
        let run = exec(&place, args, "");
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
        assert!(run.stderr.contains(what) && run.stderr.contains("\nhint: "), "{}", run.stderr);
    }
}

#[test]
fn a_picture_has_one_value_and_stands_on_either_side_of_resume() {
    // An image of one pixel.
    let png = [
        137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 1, 0, 0, 0, 1, 8, 6, 0, 0, 0, 31, 21,
        196, 137, 0, 0, 0, 10, 73, 68, 65, 84, 120, 156, 99, 0, 1, 0, 0, 5, 0, 1, 13, 10, 45, 180, 0, 0, 0, 0, 73, 69,
        78, 68, 174, 66, 96, 130,
    ];
    let place = scripted(
        r#"[{"when": "data:image/png", "items": [{"text": "seen"}], "repeat": true},
                             {"items": [{"text": "begun"}]}]"#,
    );
    std::fs::write(place.path("project/a.png"), png).unwrap();
    let id = thread_of(&exec(&place, &["--json", "begin"], ""));
    for args in [&["--image", "a.png", "resume", &id], &["resume", &id, "--image", "a.png"]] {
        let run = exec(&place, &[&["--experimental-json"], &args[..]].concat(), "and now?");
        assert_eq!((run.code, thread_of(&run)), (Some(0), id.clone()), "{}", run.stderr);
        assert_eq!(said(&run), ["seen"]);
    }
    let run = exec(&place, &["--image", "gone.png", "hi"], "");
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.starts_with("error: --image: could not read gone.png"), "{}", run.stderr);
}

#[test]
fn an_ephemeral_thread_is_not_saved() {
    let place = scripted(HELLO);
    let run = exec(&place, &["--json", "--ephemeral", "hi"], "");
    assert_eq!((run.code, said(&run)), (Some(0), vec!["Hello.".to_owned()]), "{}", run.stderr);
    assert!(!place.path("home/sessions").exists());
    let saved = thread_of(&exec(&place, &["--json", "hi"], ""));
    let files = || place.run(&["threads", "list", "--json"], "").stdout;
    let before = files();
    let run = exec(&place, &["--json", "--ephemeral", "resume", &saved, "more"], "");
    assert_eq!((run.code, thread_of(&run)), (Some(0), saved), "{}", run.stderr);
    assert_eq!(files(), before);
}

#[test]
fn the_head_of_a_run_has_the_lines_that_scripts_look_for() {
    let place = scripted(HELLO);
    let run = exec(&place, &["-m", "other", "-s", "read-only", "hi"], "");
    for line in ["model: other", "provider: scripted", "approval: never", "sandbox: read-only"] {
        assert!(run.stderr.lines().any(|it| it == line), "{}", run.stderr);
    }
}

#[test]
fn the_tokens_of_a_run_have_the_members_of_the_release() {
    let place = scripted(HELLO);
    for (args, cache_write, reasoning) in [
        (&["--json", "hi"][..], false, true),
        (&["--json", "--emulate", "0.77", "hi"], false, false),
        (&["--json", "--emulate", "0.166", "hi"], true, true),
    ] {
        let run = exec(&place, args, "");
        let last: Value = serde_json::from_str(run.stdout.lines().last().unwrap()).unwrap();
        let has = |name: &str| last["usage"].get(name).is_some();
        let found = (has("input_tokens"), has("cache_write_input_tokens"), has("reasoning_output_tokens"));
        assert_eq!(found, (true, cache_write, reasoning), "{last}");
    }
}

#[test]
fn the_source_of_threads_is_exec() {
    let place = scripted(HELLO);
    exec(&place, &["hi"], "");
    let listed = place.run(&["threads", "list", "--json"], "");
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed["threads"][0]["source"], "exec");
    assert_eq!(listed["threads"][0]["preview"], "hi");
}

#[test]
fn an_answer_that_breaks_the_schema_is_mended_once() {
    let schema = r#"{"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}"#;
    let mended = r#"[{"items": [{"text": "{\"n\": \"x\"}"}], "follows_schema": true},
                     {"when": "does not follow the required JSON schema", "items": [{"text": "{\"n\": 1}"}]}]"#;
    let place = scripted(mended).file("project/schema.json", schema);
    let args = ["--json", "--output-schema", "schema.json", "-o", "last.txt", "count"];
    let run = exec(&place, &args, "");
    assert_eq!(run.code, Some(0), "{}", run.stdout);
    expect![[r#"
        thread.started
        turn.started
        item.completed agent_message
        item.completed agent_message
        turn.completed
    "#]]
    .assert_eq(&run.line_kinds());
    assert_eq!(std::fs::read_to_string(place.path("project/last.txt")).unwrap(), r#"{"n": 1}"#);

    let stubborn = r#"[{"items": [{"text": "no"}], "follows_schema": true, "repeat": true}]"#;
    let place = scripted(stubborn).file("project/schema.json", schema);
    let run = exec(&place, &args, "");
    assert_eq!(run.code, Some(1));
    let failed = run.lines().pop().unwrap();
    assert_eq!(failed["type"], "turn.failed");
    let why = failed["error"]["message"].as_str().unwrap();
    assert!(why.starts_with("the last message does not follow the schema"));
    // The SDKs show standard error to people, and it was empty.
    assert_eq!(run.stderr, format!("error: {why}\n"));
    assert!(!place.path("project/last.txt").exists());
}

#[test]
fn an_answer_that_breaks_the_schema_is_given_as_it_is_where_mending_is_no_use() {
    let schema = r#"{"type": "object"}"#;
    let args = ["--json", "--output-schema", "schema.json", "-o", "last.txt", "count"];
    let careless = r#"[{"items": [{"text": "no"}]}, {"items": [{"text": "asked again"}]}]"#;
    let broken = r#"[{"items": [{"text": "no"}], "follows_schema": true}, {"status": 400, "body": "broken"}]"#;
    for (script, warning) in [
        (careless, "the last message does not follow the schema: it is not JSON"),
        (broken, "the last message does not follow the schema, and could not be mended: broken"),
    ] {
        let place = scripted(script).file("project/schema.json", schema);
        let run = exec(&place, &args, "");
        assert_eq!(run.code, Some(0), "{}", run.stdout);
        expect![[r#"
            thread.started
            turn.started
            item.completed agent_message
            item.completed error
            turn.completed
        "#]]
        .assert_eq(&run.line_kinds());
        let told = run.lines().into_iter().rev().nth(1).unwrap()["item"]["message"].clone();
        assert!(told.as_str().unwrap().starts_with(warning), "{told}");
        assert_eq!(std::fs::read_to_string(place.path("project/last.txt")).unwrap(), "no");
    }
    let run =
        exec(&scripted(careless).file("project/schema.json", schema), &["--output-schema", "schema.json", "x"], "");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "no\n"));
    assert!(run.stderr.contains("warning: the last message does not follow the schema"), "{}", run.stderr);
}

#[test]
fn nothing_is_asked_unless_approvals_has_an_answerer() {
    let place = scripted(ESCALATE);
    let run = exec(&place, &["--json", "go"], "");
    assert_eq!((run.code, said(&run)), (Some(0), vec!["Done.".to_owned()]), "{}", run.stdout);
    assert!(!place.path("project/got.txt").exists());
    let on_request = ["-c", "approval_policy=on-request"];
    let run = exec(&scripted(ESCALATE), &[&["--json", "--approvals", "deny", "go"], &on_request[..]].concat(), "");
    assert_eq!(run.code, Some(0), "{}", run.stdout);
    let run = exec(&scripted(ESCALATE), &[&["--approvals", "policy", "go"], &on_request[..]].concat(), "");
    assert_eq!(run.code, Some(3));
    assert!(run.stderr.contains("error: an approval is needed"), "{}", run.stderr);
}

#[test]
fn a_caller_grants_one_command_over_standard_input() {
    let place = scripted(ESCALATE);
    let mut codex = place.start(&[
        "exec",
        "--skip-git-repo-check",
        "--json",
        "--approvals",
        "stdio",
        "-c",
        "approval_policy=on-request",
        "go",
    ]);
    let asked = codex.until("approval.requested");
    assert_eq!((&asked["kind"], &asked["reason"]), (&"command".into(), &"needed".into()));
    assert_eq!(asked["command"], "bash -lc 'echo granted > got.txt'");
    codex.send(&format!("{}\n", serde_json::json!({"id": asked["id"], "decision": "approved"})));
    let run = codex.wait();
    assert_eq!((run.code, said(&run)), (Some(0), vec!["Done.".to_owned()]), "{}", run.stdout);
    assert_eq!(std::fs::read_to_string(place.path("project/got.txt")).unwrap(), "granted\n");
    // A missing answer ends the run.
    let args = ["--json", "--approvals", "stdio", "-c", "approval_policy=on-request", "go"];
    let run = exec(&scripted(ESCALATE), &args, "{\"command\":\"something else\",\"decision\":\"approved\"}\n");
    assert_eq!(run.code, Some(3), "{}", run.stdout);
}

#[test]
fn a_caller_grants_one_command_over_a_socket() {
    let place = scripted(ESCALATE);
    let path = place.path("tmp/answers.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let answering = thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut line = String::new();
        BufReader::new(socket.try_clone().unwrap()).read_line(&mut line).unwrap();
        let asked: Value = serde_json::from_str(&line).unwrap();
        let answer = serde_json::json!({"id": asked["id"], "decision": "approved"});
        writeln!(socket, "{answer}").unwrap();
        asked
    });
    let who = format!("unix:{}", path.display());
    let run = exec(&place, &["--approvals", &who, "-c", "approval_policy=on-request", "go"], "");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "Done.\n"), "{}", run.stderr);
    assert_eq!(answering.join().unwrap()["type"], "approval.requested");
    assert_eq!(std::fs::read_to_string(place.path("project/got.txt")).unwrap(), "granted\n");
}

#[test]
fn changes_are_reviewed() {
    let script = r#"[{"when": "untracked files", "items": [{"text": "{\"overall_explanation\": \"Fine.\"}"}]}]"#;
    let run = exec(&scripted(script), &["review", "--uncommitted"], "");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "Fine.\n"), "{}", run.stderr);
}

#[test]
fn the_options_of_the_newest_sdk_are_accepted() {
    let place = scripted(HELLO);
    let options = ["--json", "--thread-source", "nightly", "--cyber-access-program", "standard", "hi"];
    let run = exec(&place, &options, "");
    assert_eq!((run.code, said(&run)), (Some(0), vec!["Hello.".to_owned()]), "{}", run.stderr);
    let (mut stored, mut waiting) = (String::new(), place.entries("home/sessions"));
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(std::fs::read_dir(path).expect("a folder").map(|entry| entry.expect("an entry").path()));
        } else {
            stored += &std::fs::read_to_string(path).expect("a file");
        }
    }
    assert!(stored.contains(r#""thread_source":"nightly""#), "{stored}");
    let refused = exec(&place, &["--thread-source", " ", "hi"], "");
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
}
