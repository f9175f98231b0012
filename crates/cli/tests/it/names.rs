//! The program without its usual environment: another name, or no variables.

use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use crate::program::Place;

/// Runs the program as `codex-linux-sandbox`.
fn sandbox(place: &Place, args: &[&str]) -> Output {
    let mut command = place.command(args);
    command.arg0("/opt/bin/codex-linux-sandbox").env("PATH", "/usr/bin:/bin");
    command.output().expect("the program starts")
}

#[test]
fn the_sandbox_under_its_name_in_other_releases() {
    let place = Place::new();
    let project = place.path("project").display().to_string();
    let with = |policy: &str, script: &str| {
        let args = ["--sandbox-policy-cwd", &project, "--sandbox-policy", policy, "--", "sh", "-c", script];
        let output = sandbox(&place, &args);
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    assert_eq!(with(r#"{"type":"read-only"}"#, "echo hi; exit 3"), (Some(3), "hi\n".to_owned()));
    assert_eq!(with(r#"{"type":"danger-full-access"}"#, "pwd >here; cat here").0, Some(0));
    let unknown = sandbox(&place, &["--sandbox-policy-cwd", &project, "--sandbox-policy", r#"{"type":"bad"}"#, "true"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&unknown.stderr).starts_with("error: invalid value '{\"type\":\"bad\"}'"),
        "{unknown:?}"
    );
    assert_eq!(sandbox(&place, &["ls"]).status.code(), Some(2));
    let none = sandbox(&place, &["--sandbox-policy-cwd", &project, "--sandbox-policy", r#"{"type":"read-only"}"#]);
    assert_eq!((none.status.code(), &none.stderr[..]), (Some(1), &b"error: no command given\n"[..]));
    let debug = place.run(&["debug", "landlock", "--", "/bin/sh", "-c", "exit 5"], "");
    assert_eq!(debug.code, Some(if cfg!(target_os = "linux") { 5 } else { 1 }), "{}", debug.stderr);
}

#[test]
fn without_a_variable_for_it_the_folder_of_the_user_counts() {
    let place = Place::new();
    let mut command: Command = place.command(&["login", "status"]);
    let output = command.env_remove("HOME").env_remove("CODEX_HOME").output().expect("the program starts");
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("OpenAI: "), "{output:?}");
}
