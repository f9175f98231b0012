//! Servers themselves: how they start, fail, change, and are shared.

use std::time::Duration;

use codex_log::Body;
use codex_testkit::mcp_server::config;
use codex_tools::servers::{ServerState, ToolServers as _};
use serde_json::json;
use tokio::time::Instant;

use crate::world::{World, soon};

fn pid(output: &str) -> u32 {
    let digits: String = output.chars().filter(char::is_ascii_digit).collect();
    digits.parse().expect("it is the number of a process")
}

#[tokio::test]
async fn a_server_that_ends_at_once_fails_with_its_last_lines() {
    let world = World::new(&config("s", "crash", ""));
    let mut thread = world.thread();
    let error = thread.until("failed").await.expect("it says why");
    assert!(error.starts_with("MCP client for `s` failed to start") && error.ends_with("MCP-STDERR-TEXT"), "{error}");
    let Body::ServersStarted(complete) = thread.next_event().await else { panic!("all have settled") };
    assert_eq!((complete.ready.len(), complete.failed.len()), (0, 1));
    let called = thread.call("mcp__s__echo", &json!({})).await;
    assert!(called.output.contains("cannot be used") && called.output.contains("MCP-STDERR-TEXT"), "{}", called.output);
    assert!(matches!(&thread.settled().await[0].state, ServerState::Failed(_)));
}

#[tokio::test]
async fn a_program_that_does_not_exist_fails() {
    let world = World::new("[mcp_servers.s]\ncommand = 'no-such-program-at-all'\n");
    let error = world.thread().until("failed").await.expect("it says why");
    assert!(error.contains("`no-such-program-at-all` was not found"), "{error}");
}

#[tokio::test]
async fn a_silent_or_noisy_server_fails_at_its_time_limit() {
    for mode in ["silent", "garbage"] {
        let table = config("s", mode, "").replace("startup_timeout_sec = 20", "startup_timeout_sec = 0.3");
        let world = World::new(&table);
        let error = world.thread().until("failed").await.expect("it says why");
        assert!(error.contains("no answer within 0.3 s"), "{mode}: {error}");
    }
}

#[tokio::test]
async fn the_first_turn_waits_a_moment_for_a_server_and_fails_without_a_required_one() {
    let table = |more: &str| config("s", "silent", more).replace("startup_timeout_sec = 20", "startup_timeout_sec = 1");
    let world = World::new(&table(""));
    let thread = world.thread();
    let begun = Instant::now();
    soon(thread.servers.before_turn().expect("the server is starting")).await.expect("it is not required");
    assert!(begun.elapsed() >= Duration::from_millis(240) && begun.elapsed() < Duration::from_millis(900));
    assert!(thread.servers.before_turn().is_none(), "later turns do not wait");
    let world = World::new(&table("required = true"));
    let thread = world.thread();
    for _ in 0..2 {
        let begun = Instant::now();
        let waited = soon(thread.servers.before_turn().expect("every turn needs the server")).await;
        assert!(begun.elapsed() >= Duration::from_millis(900), "{:?}", begun.elapsed());
        let why = waited.expect_err("the server does not start");
        assert!(why.starts_with("the required MCP server `s` cannot be used: ") && why.contains("within 1 s"), "{why}");
    }
}

#[tokio::test]
async fn a_required_server_that_starts_is_waited_for_and_then_no_more() {
    let world = World::new(&config("s", "good", "required = true"));
    let thread = world.thread();
    soon(thread.servers.before_turn().expect("the server is starting")).await.expect("it starts");
    assert!(thread.servers.before_turn().is_none());
    assert!(thread.offered().contains(&"mcp__s__echo".to_owned()));
}

#[tokio::test]
async fn tools_of_the_last_run_are_offered_before_their_server_has_started() {
    let world = World::new(&config("s", "good", "disabled_tools = ['pid']"));
    world.thread().until("ready").await;
    world.remembers(1).await;
    let world = world.again();
    let mut thread = world.thread();
    let offered = thread.offered();
    assert!(
        offered.contains(&"mcp__s__echo".to_owned()) && !offered.contains(&"mcp__s__pid".to_owned()),
        "{offered:?}"
    );
    assert_eq!(thread.call("mcp__s__echo", &json!({"text": "hi"})).await.output, r#"{"text":"hi"}"#);
    assert_eq!(thread.offered(), offered, "the live list is the same");
}

#[tokio::test]
async fn a_call_of_a_remembered_tool_is_judged_by_what_the_server_says_now() {
    let world = World::new(&config("s", "good", ""));
    world.thread().until("ready").await;
    world.remembers(1).await;
    let world = world.again();
    world.write(&config("s", "claimless", ""));
    let mut thread = world.thread();
    assert!(thread.offered().contains(&"mcp__s__echo".to_owned()));
    thread.asked("mcp__s__echo", &json!({})).await;
}

#[tokio::test]
async fn a_server_that_failed_the_last_time_is_neither_offered_nor_waited_for() {
    let world = World::new(&config("s", "good", ""));
    world.thread().until("ready").await;
    world.remembers(1).await;
    let world = world.again();
    world.write(&config("s", "crash", ""));
    let thread = world.thread();
    thread.until("failed").await;
    assert!(!thread.offered().contains(&"mcp__s__echo".to_owned()));
    let next = world.thread();
    assert!(next.servers.before_turn().is_none(), "a server that has failed is not waited for");
}

#[tokio::test]
async fn a_server_without_a_handshake_is_asked_without_one_the_next_time() {
    let world = World::new(&config("s", "stateless", ""));
    let mut thread = world.thread();
    let first = thread.call("mcp__s__first", &json!({})).await.output;
    assert!(first.contains(r#""initialize""#), "{first}");
    world.remembers(1).await;
    drop(thread);
    let world = world.again();
    let mut thread = world.thread();
    let first = thread.call("mcp__s__first", &json!({})).await.output;
    assert!(first.contains("server/discover"), "{first}");
    world.write(&config("s", "good", ""));
    let world = world.again();
    let mut thread = world.thread();
    let first = thread.call("mcp__s__first", &json!({})).await.output;
    assert!(first.contains("server/discover"), "{first}");
    assert!(thread.call("mcp__s__echo", &json!({"text": "x"})).await.output.contains('x'), "it is greeted after all");
}

#[tokio::test]
async fn one_bad_tool_is_left_out_with_a_warning() {
    let world = World::new(&config("s", "odd", "disabled_tools = ['pid']"));
    let thread = world.thread();
    thread.until("ready").await;
    let mut warnings = Vec::new();
    while let Body::Warning { message } = thread.next_event().await {
        warnings.push(message);
    }
    assert_eq!(warnings.len(), 4, "{warnings:?}");
    assert!(warnings[0].starts_with("MCP server `s`: the tool `no schema` is not offered"), "{warnings:?}");
    let offered = thread.offered();
    for (name, is_offered) in
        [("mcp__s__echo", true), ("mcp__s__round", true), ("mcp__s__huge", false), ("mcp__s__pid", false)]
    {
        assert_eq!(offered.iter().any(|offered| offered == name), is_offered, "{name} in {offered:?}");
    }
}

#[tokio::test]
async fn threads_share_a_server_with_the_same_configuration() {
    let world = World::new(&format!(
        "{}\n{}",
        config("s", "good", ""),
        config("other", "good", "args = []").replace("args = []", "cwd = '/'")
    ));
    let (mut one, mut two) = (world.thread(), world.thread());
    let first = pid(&one.call("mcp__s__pid", &json!({})).await.output);
    assert_eq!(first, pid(&two.call("mcp__s__pid", &json!({})).await.output));
    assert_ne!(first, pid(&two.call("mcp__other__pid", &json!({})).await.output), "another folder is another process");
    drop(one);
    assert_eq!(first, pid(&two.call("mcp__s__pid", &json!({})).await.output));
    assert_eq!(format!("{:?}", world.all), "McpServers { running: 2, .. }");
}

#[tokio::test]
async fn a_list_that_changes_in_mid_thread_is_offered() {
    let world = World::new(&config("s", "good", ""));
    let mut thread = world.thread();
    thread.until("ready").await;
    assert!(!thread.offered().contains(&"mcp__s__extra".to_owned()));
    thread.call("mcp__s__grow", &json!({})).await;
    thread.until("ready").await;
    assert!(thread.offered().contains(&"mcp__s__extra".to_owned()));
    assert!(thread.call("mcp__s__extra", &json!({})).await.output.contains("extra"));
}

#[tokio::test]
async fn a_changed_configuration_is_taken_up() {
    let world = World::new(&config("s", "good", ""));
    let thread = world.thread();
    thread.until("ready").await;
    world.write(&config("t", "good", ""));
    world.all.reload().expect("it can be read");
    thread.until("ready").await;
    let offered = thread.offered();
    assert!(offered.iter().any(|name| name == "mcp__t__echo"), "{offered:?}");
    assert!(!offered.iter().any(|name| name == "mcp__s__echo"), "{offered:?}");
    assert!(world.path().is_dir());
}

#[tokio::test]
async fn a_thread_that_waits_without_servers_hears_of_the_first_one() {
    let world = World::new("");
    let thread = world.thread();
    tokio::join!(thread.until("ready"), async {
        // The thread already waits for an event when the server is configured.
        tokio::task::yield_now().await;
        world.write(&config("s", "good", ""));
        world.all.reload().expect("it can be read");
    });
    assert!(thread.offered().contains(&"mcp__s__echo".to_owned()));
}

#[tokio::test]
async fn a_disabled_server_is_listed_and_not_started() {
    let world = World::new(&config("s", "good", "enabled = false"));
    let thread = world.thread();
    assert_eq!(thread.settled().await[0].state, ServerState::Disabled);
    assert_eq!(format!("{:?}", world.all), "McpServers { running: 0, .. }");
    assert!(thread.servers.before_turn().is_none());
}

#[tokio::test]
async fn a_reload_starts_servers_again_that_have_failed() {
    let world = World::new(&config("s", "crash", ""));
    let thread = world.thread();
    thread.until("failed").await;
    world.all.reload().expect("it can be read");
    thread.until("starting").await;
    thread.until("failed").await;
}

#[tokio::test]
async fn a_running_server_is_restarted_at_once_and_fails_its_open_calls() {
    let world = World::new(&config("s", "good", ""));
    let (mut thread, mut other) = (world.thread(), world.thread());
    let before = pid(&thread.call("mcp__s__pid", &json!({})).await.output);
    thread.until("ready").await;
    let nothing = json!({});
    let (hung, ()) = tokio::join!(thread.call("mcp__s__hang", &nothing), async {
        tokio::task::yield_now().await;
        assert!(world.all.restart("s") && !world.all.restart("t"));
    });
    assert!(hung.output.contains("it is restarted"), "{}", hung.output);
    thread.until("starting").await;
    thread.until("ready").await;
    let after = pid(&thread.call("mcp__s__pid", &json!({})).await.output);
    assert_ne!(before, after);
    assert_eq!(pid(&other.call("mcp__s__pid", &json!({})).await.output), after, "all threads use the new one");
}

#[tokio::test]
async fn a_server_is_disabled_and_enabled_while_a_thread_runs() {
    let world = World::new(&config("s", "good", ""));
    let mut thread = world.thread();
    thread.until("ready").await;
    let first = pid(&thread.call("mcp__s__pid", &json!({})).await.output);
    world.write(&config("s", "good", "enabled = false"));
    world.all.reload().expect("it can be read");
    assert!(!thread.offered().contains(&"mcp__s__echo".to_owned()));
    assert_eq!(thread.settled().await[0].state, ServerState::Disabled);
    world.write(&config("s", "good", ""));
    world.all.reload().expect("it can be read");
    thread.until("ready").await;
    assert_eq!(first, pid(&thread.call("mcp__s__pid", &json!({})).await.output), "it has not ended yet");
}

#[tokio::test]
async fn prompts_of_servers_have_placeholders_for_their_arguments() {
    let world = World::new(&format!("{}\n{}", config("s", "good", ""), config("dead", "crash", "")));
    let prompts = soon(world.thread().servers.prompts()).await;
    let [prompt] = &prompts[..] else { panic!("one has a text: {prompts:?}") };
    assert_eq!((prompt.name.as_str(), prompt.content.as_str()), ("mcp__s__weather", "The weather in $CITY?"));
    assert_eq!((prompt.description.as_deref(), prompt.argument_hint.as_deref()), (Some("Asks."), Some("CITY=")));
}
