//! The file that `codex exec` writes its last message to.

use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use crate::exec::{exec, scripted};
use crate::program::Place;

const HELLO: &str = r#"[{"items": [{"text": "Hello."}]}]"#;

fn text(place: &Place, name: &str) -> Option<String> {
    std::fs::read_to_string(place.path(name)).ok()
}

/// A model that runs a script in the project and then answers.
fn running(script: &str) -> Place {
    let script = serde_json::json!([
        {"items": [{"call": "shell", "args": {"command": ["/bin/sh", "-c", script]}}]},
        {"items": [{"text": "Hello."}]},
    ]);
    let place = scripted(&script.to_string()).variable("PATH", "/usr/bin:/bin");
    std::fs::create_dir(place.path("outside")).expect("a folder can be made");
    std::fs::create_dir(place.path("project/sub")).expect("a folder can be made");
    place.file("outside/file", "theirs")
}

#[test]
fn a_model_cannot_send_it_elsewhere() {
    for (file, script, told) in [
        ("last.txt", "rm -f last.txt; ln -s ../outside/file last.txt", "it is a link"),
        ("last.txt", "rm -f last.txt; ln -s ../outside/new last.txt", "it is a link"),
        ("last.txt", "rm -f last.txt; mkfifo last.txt", "it is a pipe or a socket without a reader"),
        ("sub/file", "mv sub sub2; ln -s ../outside sub", "it was moved or replaced in the meantime"),
    ] {
        let place = running(script);
        // Not all machines have a sandbox, and this test is not about it.
        let run = exec(&place, &["--sandbox", "danger-full-access", "-o", file, "go"], "");
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), "Hello.\n"), "{}", run.stderr);
        let error = format!("error: could not write the last message to {file}: {told}");
        assert!(run.stderr.contains(&error), "{}", run.stderr);
        assert_eq!(text(&place, "outside/file").as_deref(), Some("theirs"), "{script}");
        assert_eq!(text(&place, "outside/new"), None);
    }
    let place = running("rm last.txt");
    let run = exec(&place, &["--sandbox", "danger-full-access", "-o", "last.txt", "go"], "");
    assert_eq!((run.code, text(&place, "project/last.txt").as_deref()), (Some(0), Some("Hello.")), "{}", run.stderr);
}

#[test]
fn an_unwritable_target_is_reported_before_the_first_request() {
    let place = scripted(HELLO);
    symlink("elsewhere", place.path("project/link")).expect("a link can be made");
    for (file, why) in [
        ("gone/last.txt", "No such file or directory (os error 2)\n"),
        (".", "it is a folder\n"),
        ("link", "it is a link, and links are not followed here\nhint: name its target instead\n"),
    ] {
        let run = exec(&place, &["-o", file, "hi"], "");
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
        assert_eq!(run.stderr, format!("error: could not write the last message to {file}: {why}"));
    }
    assert!(!place.path("home/sessions").exists());
}

#[test]
fn the_old_content_stays_without_an_answer() {
    let failing = r#"[{"status": 400, "body": {"error": {"message": "no"}}}]"#;
    let place = scripted(failing).file("project/last.txt", "an earlier answer");
    for (file, left) in [("last.txt", Some("an earlier answer")), ("new.txt", None)] {
        let run = exec(&place, &["-o", file, "hi"], "");
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        assert_eq!(text(&place, &format!("project/{file}")).as_deref(), left);
    }
}

/// Runs a bash script in the project, with the program as its first argument.
fn bash(place: &Place, script: &str) -> String {
    let codex = place.command(&[]).get_program().to_owned();
    let mut command = Command::new("bash");
    command.args(["-c", script]).arg(codex).stdin(Stdio::null()).env("CODEX_HOME", place.path("home"));
    let output = command.current_dir(place.path("project")).output().expect("there is a bash");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout).expect("it is text")
}

#[test]
fn devices_and_descriptors_still_work() {
    let repeated = HELLO.replace("]}]", "], \"repeat\": true}]");
    let place = scripted(&repeated).file("project/schema.json", "{}");
    let run = |rest: &str| bash(&place, &format!("\"$0\" exec --skip-git-repo-check {rest}"));
    assert_eq!(run("-o /dev/null hi 2>/dev/null"), "Hello.\n");
    assert_eq!(run("-o /dev/stdout hi 2>/dev/null"), "Hello.\n");
    assert!(run("--json -o /dev/stdout hi 2>/dev/null").ends_with("}\nHello."));
    assert_eq!(run("-o /dev/stderr hi 2>&1 >/dev/null | tail -c 6"), "Hello.");
    assert_eq!(run("-o /dev/fd/3 hi 3>three >/dev/null 2>&1; cat three"), "Hello.");
    // Process substitution yields a pipe with a number.
    let substituted = "{ \"$0\" exec --skip-git-repo-check -o >(cat) hi >/dev/null 2>&1; } | cat";
    assert_eq!(bash(&place, substituted), "Hello.");
    assert_eq!(run("--output-schema <(echo '[]') hi 2>&1 | grep -o 'not a JSON object'"), "not a JSON object\n");
}
