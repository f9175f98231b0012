//! `codex exec` always terminates, with the right exit status, whatever is wrong around it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

use codex_testkit::FakeModel;

use crate::exec::{exec, scripted};
use crate::program::{Place, Run};

const HELLO: &str = r#"[{"items": [{"text": "Hello."}]}]"#;
const HANGS: &str = r#"[{"items": [{"text": "Hal", "done": false}, {"hang": true}]}]"#;
const FLAGS: [&str; 3] = ["exec", "--json", "--skip-git-repo-check"];

/// A place whose provider is at the given address.
fn provider(url: &str) -> Place {
    let config = format!(
        "model = 'nobody-knows-it'\nmodel_provider = 'm'\n[model_providers.m]\nname = 'M'\nbase_url = '{url}/v1'\n\
         request_max_retries = 1\nstream_max_retries = 0\n"
    );
    Place::new().file("home/config.toml", &config)
}

fn failure(run: &Run) -> String {
    let last = run.lines().pop().expect("there are lines");
    assert_eq!(last["type"], "turn.failed", "{}", run.stdout);
    let why = last["error"]["message"].as_str().expect("it says why").to_owned();
    let line = why.lines().map(str::trim).collect::<Vec<_>>().join("; ");
    assert!(run.stderr.ends_with(&format!("error: {line}\n")), "one line on standard error says why: {}", run.stderr);
    why
}

#[test]
fn with_a_pipe_that_stays_open() {
    let place = scripted(HELLO);
    let run = place.start(&[&FLAGS[..], &["hi"]].concat()).wait();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    // Also if the prompt should come from there, once there is a deadline.
    let run = place.start(&["exec", "--skip-git-repo-check", "--timeout", "100ms", "-"]).wait();
    assert_eq!((run.code, run.stderr.as_str()), (Some(124), "error: timed out while reading standard input\n"));
    // And on wrong usage.
    assert_eq!(place.start(&["exec", "--no-such-flag"]).wait().code, Some(2));
}

#[test]
fn input_is_read_to_its_end_before_a_failure() {
    // More than a pipe holds, so that writing fails if nobody reads.
    let prompt = "x".repeat(1 << 20);
    let broken = || Place::new().file("home/config.toml", "model = \n");
    let folder = "--skip-git-repo-check";
    for (place, args, code) in [
        (Place::new(), &["exec", "--no-such-flag"][..], 2),
        (Place::new(), &["--no-such-flag", "exec", "-"][..], 2),
        (Place::new(), &["exec", "resume"][..], 2),
        (Place::new(), &["exec", "--image"][..], 2),
        (Place::new(), &["say", "exec", "this"][..], 2),
        (broken(), &["exec", "--experimental-json"][..], 1),
        (broken(), &["review", "-"][..], 1),
        (Place::new(), &["review", "--no-such-flag"][..], 2),
        (scripted(HELLO), &["exec", "--json"][..], 1),
        (scripted(HELLO), &["exec", folder, "--cd", "gone"][..], 1),
        (scripted(HELLO), &["exec", folder, "--profile", "gone"][..], 1),
        (scripted(HELLO), &["exec", folder, "--output-schema", "gone.json"][..], 1),
        (scripted(HELLO), &["exec", folder, "--image", "gone.png"][..], 1),
        (scripted(HELLO), &["exec", folder, "resume", "gone"][..], 1),
    ] {
        let mut child = place.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(prompt.as_bytes()).unwrap_or_else(|error| panic!("{args:?}: nobody reads: {error}"));
        drop(input);
        assert_eq!(child.wait().unwrap().code(), Some(code), "{args:?}");
    }
}

#[test]
fn with_an_input_that_never_ends() {
    for (args, code) in [(&["exec", "--no-such-flag"][..], 2), (&["exec", "--skip-git-repo-check", "-"][..], 1)] {
        let place = scripted(HELLO);
        let endless = std::fs::File::open("/dev/zero").unwrap();
        let output = place.command(args).stdin(endless).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn with_nothing_open_at_all() {
    let place = scripted(HELLO);
    let mut command = place.command(&[&FLAGS[..], &["hi"]].concat());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    assert_eq!(command.status().unwrap().code(), Some(0));
}

#[test]
fn with_a_closed_standard_output() {
    let place = scripted(HELLO);
    let mut child = place.command(&[&FLAGS[..], &["hi"]].concat()).stdin(Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "error: could not write to standard output: Broken pipe (os error 32)\n");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn when_its_reader_leaves_in_the_middle_of_the_work() {
    let place = scripted(HANGS);
    let mut child = place.command(&[&FLAGS[..], &["hi"]].concat()).stdin(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("thread.started"), "{line}");
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn with_a_full_disk() {
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for flags in [&FLAGS[..], &FLAGS[..1]] {
        let place = scripted(HELLO);
        let args = [flags, &["--skip-git-repo-check", "hi"]].concat();
        let args = if flags.len() > 1 { [flags, &["hi"]].concat() } else { args };
        let output = place.command(&args).stdin(Stdio::null()).stdout(full()).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("error: could not write to standard output: No space left"), "{said}");
    }
    let run = exec(&scripted(HELLO), &["-o", "/dev/full", "hi"], "");
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("error: could not write the last message to /dev/full"), "{}", run.stderr);
    // A thread that cannot be saved does not start, unless it is ephemeral.
    let place = scripted(HELLO).file("home/sessions", "in the way");
    let run = exec(&place, &["--json", "hi"], "");
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("error: could not create the folder "), "{}", run.stderr);
    assert!(run.stderr.contains("Not a directory"), "{}", run.stderr);
    assert_eq!(exec(&place, &["--ephemeral", "hi"], "").code, Some(0));
}

/// Runs the program from a shell, which changes something before or while it starts it.
fn from_shell(place: &Place, script: &str, args: &[&str]) -> Output {
    let codex = place.command(&[]).get_program().to_owned();
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).arg(codex).args(args).stdin(Stdio::null());
    command.env_clear().env("CODEX_HOME", place.path("home")).env("TMPDIR", place.path("tmp"));
    command.current_dir(place.path("project")).output().expect("there is a shell")
}

#[test]
fn with_every_stream_closed() {
    let place = scripted(HELLO);
    let args = ["exec", "--skip-git-repo-check", "-o", "last.txt", "hi"];
    let output = from_shell(&place, "exec \"$0\" \"$@\" <&- >&- 2>&-", &args);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(std::fs::read_to_string(place.path("project/last.txt")).unwrap(), "Hello.");
    // Without a prompt there is nothing to do, and nobody to tell.
    let output = from_shell(&place, "exec \"$0\" \"$@\" <&- >&- 2>&-", &args[..4]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

/// The system's limits on open files of a process: soft and hard.
fn open_files(limits: &str) -> Vec<&str> {
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("the system tells the limits");
    line.split_whitespace().skip(3).take(2).collect()
}

#[test]
fn with_more_descriptors_than_its_commands() {
    let look = r#"{"call": "shell", "args": {"command": ["cat", "/proc/self/limits"]}}"#;
    let place = scripted(&format!(r#"[{{"items": [{look}]}}, {{"items": [{{"hang": true}}]}}]"#));
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "ulimit -Sn 300; exec \"$0\" \"$@\""]).arg(place.command(&[]).get_program());
    command
        .args(FLAGS)
        .arg("hi")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .env_clear()
        .env("CODEX_HOME", place.path("home"))
        .env("TMPDIR", place.path("tmp"))
        .env("PATH", "/usr/bin:/bin");
    let mut child = command.current_dir(place.path("project")).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    let outputs = lines.map(|line| serde_json::from_str::<serde_json::Value>(&line).unwrap());
    let mut outputs = outputs.filter_map(|line| line["item"]["aggregated_output"].as_str().map(str::to_owned));
    let of_command = outputs.find(|output| !output.is_empty()).expect("the command says something");
    let of_program = std::fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let [soft, hard] = open_files(&of_command)[..] else { panic!("{of_command}") };
    assert_eq!(soft, "300");
    assert_eq!(open_files(&of_program), [hard, hard]);
}

#[test]
fn with_files_that_may_not_grow() {
    let place = scripted(HELLO);
    let limited = |args: &[&str]| from_shell(&place, "ulimit -f 0; exec \"$0\" \"$@\"", args);
    let output = limited(&[&FLAGS[..], &["hi"]].concat());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("could not write to the thread's file") && said.contains("File too large"), "{said}");
    let day = chrono::Local::now().format("home/sessions/%Y/%m/%d").to_string();
    let left = std::fs::read_dir(place.path(&day)).unwrap().count();
    assert_eq!(left, 0, "nothing is left of a thread that could not start");
    let output = limited(&["exec", "--skip-git-repo-check", "--ephemeral", "-o", "last.txt", "hi"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("error: could not write the last message to last.txt: File too large"), "{said}");
}

#[test]
fn with_a_provider_that_is_dead() {
    // A port that was free a moment ago, and that nobody listens on now.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let place = provider(&format!("http://127.0.0.1:{port}"));
    let run = exec(&place, &["--json", "hi"], "");
    assert_eq!(run.code, Some(1));
    assert!(!failure(&run).is_empty());
}

#[test]
fn with_a_provider_that_never_answers() {
    // Every connection hangs.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = provider(&format!("http://{}", listener.local_addr().unwrap()));
    let patience =
        ["-c", "model_providers.m.stream_idle_timeout_ms=200", "-c", "model_providers.m.request_max_retries=0"];
    let run = exec(&place, &[&patience[..], &["--json", "hi"]].concat(), "");
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(!failure(&run).is_empty());
    // However long the configured timeouts, the caller's limit applies.
    let run = exec(&place, &["--json", "--timeout", "300ms", "hi"], "");
    assert_eq!(run.code, Some(124), "{}", run.stderr);
}

#[test]
fn with_an_unknown_model() {
    let script = r#"[{"status": 404, "body": {"error": {"message": "The model `nobody-knows-it` does not exist"}}}]"#;
    let model = FakeModel::start(script);
    let run = exec(&provider(&model.url()), &["--json", "hi"], "");
    assert_eq!(run.code, Some(1));
    assert!(failure(&run).contains("does not exist"), "{}", run.stdout);
    let run = exec(&provider(&model.url()), &["hi"], "");
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    assert!(run.stderr.contains("error: "), "{}", run.stderr);
}

#[test]
fn after_a_timeout() {
    for (flag, why) in [("--timeout", "timed out after 0.3 s"), ("--idle-timeout", "no activity for 0.3 s")] {
        let run = exec(&scripted(HANGS), &["--json", flag, "300ms", "hi"], "");
        assert_eq!((run.code, failure(&run).as_str()), (Some(124), why), "{flag}");
    }
}

#[test]
fn when_a_budget_is_spent() {
    let loops = r#"[{"items": [{"call": "update_plan", "args": {"plan": []}}], "repeat": true,
                     "usage": {"input": 90, "output": 20}}]"#;
    let run = exec(&scripted(loops), &["--json", "--max-requests", "2", "hi"], "");
    assert_eq!((run.code, failure(&run).as_str()), (Some(4), "budget of 2 requests exhausted"));
    let run = exec(&scripted(loops), &["--json", "--max-tokens", "300", "hi"], "");
    assert_eq!((run.code, failure(&run).as_str()), (Some(4), "budget of 300 tokens exhausted"));
}

#[test]
fn when_more_was_spent_than_it_may_cost() {
    let loops = r#"[{"items": [{"call": "update_plan", "args": {"plan": []}}], "repeat": true,
                     "usage": {"input": 90, "output": 20}}]"#;
    let prices = ["-c", "model=m-1", "-c", "prices.m-1.input=1000", "-c", "prices.m-1.output=10000"];
    let run = exec(&scripted(loops), &[&prices[..], &["--json", "--max-cost", "0.5", "hi"]].concat(), "");
    assert_eq!((run.code, failure(&run).as_str()), (Some(4), "budget of 0.5 exhausted: spent 0.5800"));
    let run = exec(&scripted(loops), &[&prices[..], &["--max-cost", "0.5", "hi"]].concat(), "");
    // A fast model may have answered again before it is stopped.
    assert_eq!(run.code, Some(4));
    assert!(run.stderr.contains(" reasoning)\ncost: "), "{}", run.stderr);
    // A budget that cannot be enforced is refused before anything is spent.
    let run = exec(&scripted(loops), &["-c", "model=other", "--max-cost", "1", "hi"], "");
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    assert_eq!(
        run.stderr,
        "error: --max-cost: no price is set for the model other\n\
         hint: add a table [prices.\"other\"] to config.toml, with what a million tokens cost: input = …, output = …\n"
    );
    for wrong in ["-1", "nan", "much"] {
        assert_eq!(exec(&scripted(loops), &["--max-cost", wrong, "hi"], "").code, Some(2), "{wrong}");
    }
}

#[test]
fn with_a_cost_only_where_it_is_known() {
    let usage = r#"[{"items": [{"text": "Hello."}], "usage": {"input": 1000, "output": 500}, "repeat": true}]"#;
    let place = scripted(usage);
    let run = exec(&place, &["hi"], "");
    assert!(run.stderr.contains("tokens: 1000 in") && !run.stderr.contains("cost"), "{}", run.stderr);
    let prices = ["-c", "model=m-1", "-c", "prices.m-1.input=1.25", "-c", "prices.m-1.output=10"];
    // A resumed thread starts at zero, so that the costs of all runs add up.
    for args in [&["hi"][..], &["resume", "--last", "again"]] {
        let run = exec(&place, &[&prices[..], args].concat(), "");
        assert_eq!(run.code, Some(0));
        assert!(run.stderr.ends_with("cost: 0.006250\n"), "{}", run.stderr);
    }
    let run = exec(&place, &[&prices[..], &["--json", "hi"]].concat(), "");
    let last: serde_json::Value = serde_json::from_str(run.stdout.lines().last().unwrap_or_default()).expect("JSON");
    assert_eq!(last["usage"]["cost"], 0.00625, "{last}");
    let run = exec(&place, &["-c", "prices.m.input=1", "hi"], "");
    assert_eq!((run.code, run.stderr.as_str()), (Some(1), "error: -c prices.m.input: prices.m: output is missing\n"));
}

#[test]
fn when_it_is_interrupted_and_the_thread_continues_later() {
    let place = scripted(
        r#"[{"when": "again", "items": [{"text": "Here."}]},
                             {"items": [{"text": "Hal", "done": false}, {"hang": true}]}]"#,
    );
    let mut codex = place.start(&[&FLAGS[..], &["hi"]].concat());
    let thread = codex.until("turn.started");
    assert_eq!(thread["type"], "turn.started");
    let pid = rustix::process::Pid::from_raw(i32::try_from(codex.pid()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let run = codex.wait();
    assert_eq!(run.code, Some(130), "{}", run.stderr);
    assert_eq!(failure(&run), "interrupted");
    let run = exec(&place, &["resume", "--last", "again"], "");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "Here.\n"), "{}", run.stderr);
}

#[test]
fn while_it_waits_for_the_allowance_which_a_later_run_goes_on_with() {
    let used_up = r#"[{"status": 429, "body": {"error": {"type": "usage_limit_reached", "message": "limit",
                       "resets_in_seconds": 7200}}}]"#;
    let place = scripted(used_up);
    let patient = ["-c", "wait_for_limits=true", "--json", "--timeout", "300ms"];
    let waits = |run: &Run| {
        let kinds: Vec<String> =
            run.lines().iter().map(|line| line["type"].as_str().unwrap_or_default().to_owned()).collect();
        assert_eq!(kinds, ["thread.started", "turn.started", "error", "error", "turn.failed"], "{}", run.stdout);
        let message = run.lines()[2]["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.contains("waiting until"), "{message}");
        assert_eq!((run.code, failure(run).as_str()), (Some(124), "timed out after 0.3 s"));
        message
    };
    let said = waits(&exec(&place, &[&patient[..], &["hi"]].concat(), ""));
    let again = waits(&exec(&place, &[&patient[..], &["resume", "--last"]].concat(), ""));
    assert_eq!(again, said, "the turn waits until the same time");
    let place = place.file("home/answers.json", r#"[{"when": "hi", "items": [{"text": "back"}]}]"#);
    let run = exec(&place, &["-c", "wait_for_limits=true", "resume", "--last", "go on"], "");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "back\n"), "{}", run.stderr);
    // Nothing waits any more, so a run needs a prompt.
    let run = exec(&place, &["-c", "wait_for_limits=true", "resume", "--last"], "");
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    assert!(run.stderr.contains("no prompt"), "{}", run.stderr);
}
