//! A supervisor with servers that are small shell scripts.

use std::time::Duration;

use codex_client::approvals::Approvals;
use codex_client::supervisor::Launch;
use codex_client::{Options, ServerState, Supervisor};
use serde_json::json;
use tokio::sync::mpsc;

/// Answers each request with the process ids of itself and of a child that it has started.
const SERVER: &str = r#"
sleep 1000 & child=$!
echo "server starts" >&2
n=1
while read -r line; do
  case "$line" in
    *'"id":'*) echo "{\"id\":$n,\"result\":{\"userAgent\":\"sh\",\"pids\":[$$,$child]}}"; n=$((n+1));;
  esac
done
AFTER
"#;

fn launch(after: &str) -> Launch {
    let script = SERVER.replace("AFTER", after);
    Launch { program: "/bin/sh".into(), args: vec!["-c".into(), script.into()], env: Vec::new(), cwd: None }
}

fn is_alive(pid: &serde_json::Value) -> bool {
    // A process that has ended and was not waited for has no memory any more.
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.contains("VmRSS")
}

/// Waits until a process is gone; a signal takes a moment.
async fn is_gone(pid: &serde_json::Value) -> bool {
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while is_alive(pid) {
        if std::time::Instant::now() > deadline {
            return false;
        }
        tokio::task::yield_now().await;
    }
    true
}

fn start(launch: Launch) -> (Supervisor, mpsc::UnboundedReceiver<String>) {
    let (sender, lines) = mpsc::unbounded_channel();
    let options = Options { deadline: Duration::from_secs(20), ..Options::new("test", "1.0") };
    let sink = move |line: &str| {
        let _: Result<(), _> = sender.send(line.to_owned());
    };
    (Supervisor::start(launch, options, Approvals::deny_all(), sink), lines)
}

#[tokio::test]
async fn a_server_runs_until_it_is_stopped_and_leaves_no_child() {
    // It does not end with its input, so it has to be killed.
    let (mut supervisor, mut lines) = start(launch("sleep 1000"));
    let (client, _events) = supervisor.connection().await.unwrap();
    assert_eq!(lines.recv().await.as_deref(), Some("server starts"));
    let pids = client.raw("pids", json!({})).await.unwrap()["pids"].clone();
    assert!(is_alive(&pids[0]) && is_alive(&pids[1]), "{pids}");
    let states = supervisor.states();
    assert_eq!(*states.borrow(), ServerState::Running);
    supervisor.stop().await;
    assert_eq!(*states.borrow(), ServerState::Stopped);
    assert!(is_gone(&pids[0]).await && is_gone(&pids[1]).await, "{pids}");
}

#[tokio::test]
async fn a_server_that_is_killed_is_started_again() {
    let (mut supervisor, _lines) = start(launch("kill $child"));
    let mut states = supervisor.states();
    let (client, mut events) = supervisor.connection().await.unwrap();
    let first = client.raw("pids", json!({})).await.unwrap()["pids"].clone();
    let pid = rustix::process::Pid::from_raw(first[0].as_i64().unwrap().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    // The value is borrowed only within the statement: the supervisor cannot change it meanwhile.
    let is_first = |state: &ServerState| matches!(state, ServerState::Restarting { attempt: 1, .. });
    assert!(states.wait_for(is_first).await.is_ok());
    while events.next().await.is_some() {}
    let (client, _events) = supervisor.connection().await.unwrap();
    let second = client.raw("pids", json!({})).await.unwrap()["pids"].clone();
    assert_ne!(first[0], second[0]);
    assert!(is_gone(&first[1]).await, "the child of the first went with it");
    supervisor.stop().await;
}

#[tokio::test]
async fn a_sink_that_panics_loses_its_line_alone() {
    let (sender, mut lines) = mpsc::unbounded_channel();
    let sink = move |line: &str| {
        let _: Result<(), _> = sender.send(line.to_owned());
        assert!(line != "one", "a mistake in the program");
    };
    let script = "echo one >&2; echo two >&2; read -r line; echo '{\"id\":1,\"result\":{}}'; read -r line";
    let server = Launch { program: "/bin/sh".into(), args: vec!["-c".into(), script.into()], ..Launch::codex() };
    let options = Options::new("test", "1.0");
    let mut supervisor = Supervisor::start(server, options, Approvals::deny_all(), sink);
    assert!(supervisor.connection().await.is_some());
    assert_eq!((lines.recv().await.as_deref(), lines.recv().await.as_deref()), (Some("one"), Some("two")));
}

#[tokio::test]
async fn a_program_or_a_folder_that_is_missing_is_named() {
    for (program, cwd, expected) in [
        ("/nowhere/codex", None, "cannot start /nowhere/codex: there is no such program"),
        ("/bin/sh", Some("/nowhere"), "cannot start /bin/sh: there is no folder /nowhere"),
    ] {
        let missing = Launch { program: program.into(), cwd: cwd.map(Into::into), ..Launch::codex() };
        let (supervisor, _lines) = start(missing);
        let mut states = supervisor.states();
        let failed = states.wait_for(|state| matches!(state, ServerState::Failed { .. })).await.unwrap().clone();
        let ServerState::Failed { error, restart_in } = failed else { unreachable!("it was just seen") };
        assert_eq!(error, expected);
        assert!(restart_in.is_some_and(|wait| wait <= Duration::from_secs(1)));
        supervisor.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_starts_is_tried_ten_times_after_growing_waits() {
    let missing = Launch { program: "/nowhere/codex".into(), ..Launch::codex() };
    let (supervisor, _lines) = start(missing);
    let mut states = supervisor.states();
    let (mut waits, begun) = (Vec::new(), tokio::time::Instant::now());
    while states.changed().await.is_ok() {
        if let ServerState::Failed { restart_in, .. } = &*states.borrow_and_update() {
            waits.push(*restart_in);
        }
    }
    assert_eq!(waits.pop(), Some(None), "it is given up");
    let longest = [1, 2, 4, 8, 16, 30, 30, 30, 30, 30].map(Duration::from_secs);
    let is_in_bounds = |(wait, longest): (&Option<Duration>, &Duration)| {
        wait.is_some_and(|it| it <= *longest && it >= *longest * 4 / 5)
    };
    assert_eq!(waits.len(), longest.len(), "{waits:?}");
    assert!(waits.iter().zip(&longest).all(is_in_bounds), "{waits:?}");
    assert!(begun.elapsed() >= waits.iter().flatten().sum(), "each wait is waited");
}
