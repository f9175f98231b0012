//! Requests that cannot work are refused before the model is called, with the right reason, and leave no thread behind.

use std::process::{Command, Stdio};

use crate::exec::scripted;
use crate::program::{Place, Run};
use crate::pty::Pty;

const HELLO: &str = r#"[{"items": [{"text": "Hello."}], "repeat": true}]"#;

#[track_caller]
fn check(place: &Place, run: &Run, expected: &str) {
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{}", run.stderr);
    assert_eq!(place.without_path(&run.stderr), expected);
    assert!(!place.path("home/sessions").exists(), "a thread was saved");
}

#[test]
fn a_picture_that_is_none() {
    let place = scripted(HELLO).file("project/notes.txt", "text");
    let args = ["exec", "--skip-git-repo-check", "-i", "notes.txt", "look"];
    let why = "error: --image: could not read notes.txt: it is not a PNG, JPEG, GIF or WebP image\n";
    check(&place, &place.run(&args, ""), why);
    let args = ["exec", "--skip-git-repo-check", "-i", ".", "look"];
    check(&place, &place.run(&args, ""), "error: --image: could not read .: it is not a regular file\n");
    let shown = Pty::start(&place.variable("TERM", "xterm"), &["-i", "notes.txt", "look"]).wait();
    assert_eq!(shown.code, Some(1));
    assert!(shown.text.contains("notes.txt: it is not a PNG, JPEG, GIF or WebP image"), "{}", shown.text);
}

#[test]
fn a_prompt_that_is_no_text() {
    let place = scripted(HELLO).file("project/data", "\u{7f}ELF\0\0");
    let mut command = place.command(&["exec", "--skip-git-repo-check", "-"]);
    let data = std::fs::File::open(place.path("project/data")).expect("it is there");
    let output = command.stdin(data).output().expect("the program runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it is text");
    let run = Run { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) };
    let why = "error: no prompt: standard input is not UTF-8 text (at byte 4)\n\
               hint: attach an image with --image, or name the file in the prompt\n";
    check(&place, &run, why);
}

#[test]
fn a_branch_or_commit_that_is_not_there() {
    let place = scripted(r#"[{"items": [{"text": "{\"overall_explanation\": \"Fine.\"}"}], "repeat": true}]"#);
    let place = place.variable("PATH", "/usr/bin:/bin");
    let git = |words: &[&str]| {
        let who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"];
        let mut git = Command::new("git");
        git.args(who).args(words).current_dir(place.path("project")).stdout(Stdio::null()).stderr(Stdio::null());
        assert!(git.status().expect("git runs").success(), "{words:?}");
    };
    git(&["init"]);
    git(&["commit", "--allow-empty", "-m", "first"]);
    let hint = "hint: `git branch --all` lists the branches, `git log` the commits\n";
    for (option, name, kind) in
        [("--base", "nosuch", "branch"), ("--commit", "deadbeef", "commit"), ("--base", "-x", "branch")]
    {
        let run = place.run(&["review", &format!("{option}={name}")], "");
        check(&place, &run, &format!("error: there is no {kind} `{name}` in TEMP/project\n{hint}"));
    }
    for target in ["--base=main", "--commit=HEAD", "--base=refs/heads/main"] {
        let run = place.run(&["review", target], "");
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), "Fine.\n"), "{}", run.stderr);
    }
}

#[test]
fn a_folder_that_is_not_there() {
    let place = scripted(HELLO).file("project/file", "");
    for (folder, why) in
        [("/nonexistent", "/nonexistent does not exist"), ("file", "TEMP/project/file is not a directory")]
    {
        let run = place.run(&["exec", "-C", folder, "hi"], "");
        check(&place, &run, &format!("error: the working directory {why}\n"));
    }
}

#[test]
fn a_provider_without_a_key() {
    let place = Place::new().variable("TERM", "xterm");
    codex_files::testing::make_git_folder(&place.path("project/.git")).expect("a folder can be made");
    let why = "error: OpenAI needs a login or an API key\n\
               hint: log in with `codex login`, or set OPENAI_API_KEY to your key\n";
    check(&place, &place.run(&["exec", "hi"], ""), why);
    check(&place, &place.run(&["exec", "--json", "hi"], ""), why);
    // A user who has chosen the provider is not asked anything else.
    let shown = Pty::start(&place, &["-c", "model_provider=openai", "hi"]).wait();
    assert_eq!((shown.code, shown.text.as_str()), (Some(1), why));
}

#[test]
fn a_provider_that_cannot_be_reached_is_reported_in_one_line() {
    // A port that was free a moment ago, and that nobody listens on now.
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its number").port();
    let config = format!(
        "model_provider = 'm'\n[model_providers.m]\nbase_url = 'http://127.0.0.1:{port}/v1'\n\
         request_max_retries = 0\nstream_max_retries = 2\n"
    );
    let place = Place::new().file("home/config.toml", &config).variable("TERM", "xterm").variable("NO_COLOR", "1");
    let error = format!("error: cannot reach 127.0.0.1:{port}: connection refused\n");
    let args = ["exec", "--skip-git-repo-check", "hi"];
    let run = place.run(&args, "");
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains(&error), "{}", run.stderr);
    assert_eq!(run.stderr.matches("retry: ").count(), 2, "{}", run.stderr);
    assert!(!run.stderr.contains("sending request"), "{}", run.stderr);
    // On a terminal one line counts the retries, and is removed in the end.
    let shown = Pty::start(&place, &args).wait();
    let raw = String::from_utf8(shown.raw).expect("it is text");
    assert!(raw.contains("retry: 1 of 2: cannot reach ") && raw.contains("\r\u{1b}[Kretry: 2 of 2: "), "{raw:?}");
    assert!(raw.contains(&format!("\r\u{1b}[K{}", error.trim_end())), "{raw:?}");
    let run = place.run(&["exec", "-v", "--skip-git-repo-check", "hi"], "");
    assert!(run.stderr.contains(&error) && run.stderr.contains("sending request"), "{}", run.stderr);
}
