//! Concurrent calls of one answer, with real processes.

use std::sync::Arc;

use codex_log::{Abort, Body, CommandStatus, Delta, Event, Item, Outcome};
use codex_wire::decision::ReviewDecision;
use serde_json::{Value, json};

use crate::commands::{ended, outputs, wait_until_gone};
use crate::world::{Client, World, outcome};

fn shell(command: &str) -> Value {
    json!({"call": "shell", "args": {"command": ["sh", "-c", command], "timeout_ms": 60_000}})
}

/// A script whose model makes all calls in one answer, and then is done.
fn script(calls: &[Value]) -> String {
    json!([{"items": calls}, {"items": [{"text": "done"}]}]).to_string()
}

fn world(approval: &str) -> World {
    World::new().set(&format!("approval_policy={approval}")).set("sandbox_mode=danger-full-access")
}

/// Two commands that can only end if both are running: each waits for the other to open its pipe.
fn meeting() -> [Value; 2] {
    ["echo one > left; cat right", "cat left; echo two > right"].map(shell)
}

fn with_pipes(world: &World) {
    let made = std::process::Command::new("mkfifo").args(["left", "right"]).current_dir(world.path("project")).status();
    assert!(made.expect("mkfifo runs").success());
}

/// The output of each command for the model, in order.
fn printed(client: &Client) -> Vec<String> {
    let text = |output: &String| {
        let output: Value = serde_json::from_str(output).expect("the output is JSON");
        output["output"].as_str().unwrap_or_default().to_owned()
    };
    outputs(client).iter().map(text).collect()
}

/// Reads until this many questions were asked, and returns their calls.
async fn asked(client: &mut Client, count: usize) -> Vec<String> {
    let mut asked = Vec::new();
    while asked.len() < count {
        let events = client.until(|body| matches!(body, Body::Asked(_))).await;
        if let Some(Body::Asked(question)) = events.last().map(|event| &event.body) {
            asked.push(question.item().as_str().to_owned());
        }
    }
    asked
}

async fn answer(client: &Client, name: &str, decision: ReviewDecision) -> bool {
    client.thread.answer_named(name.to_owned(), decision.into()).await.expect("the thread is open")
}

#[tokio::test]
async fn commands_of_one_answer_run_at_the_same_time_and_their_outputs_keep_its_order() {
    for sandbox in ["danger-full-access", "workspace-write"] {
        let world = world("never").set(&format!("sandbox_mode={sandbox}"));
        with_pipes(&world);
        let mut client = world.start(&script(&meeting())).await;
        client.turn("1", "hi").await;
        assert_eq!(printed(&client), ["two\n", "one\n"], "{sandbox}");
        assert!(client.prompts.all().iter().all(|prompt| prompt.parallel_tool_calls));
        let left: Vec<_> = std::fs::read_dir(client.world.path("project")).expect("a folder").collect();
        assert_eq!(left.len(), 2, "only the pipes are left: {left:?}");
    }
}

#[tokio::test]
async fn where_the_model_makes_one_call_at_a_time_commands_run_in_order() {
    for setting in ["features.parallel=false", "model=unheard-of", "model_reasoning_effort=minimal"] {
        let calls = [shell("test ! -e ended; touch ended; echo first"), shell("rm ended && echo second")];
        let mut client = world("never").set(setting).start(&script(&calls)).await;
        client.turn("1", "hi").await;
        assert_eq!(printed(&client), ["first\n", "second\n"], "{setting}");
        assert!(client.prompts.all().iter().all(|prompt| !prompt.parallel_tool_calls), "{setting}");
    }
}

#[tokio::test]
async fn a_patch_runs_after_earlier_calls_and_before_later_ones() {
    let patch = "*** Begin Patch\n*** Add File: made\n+by the patch\n*** End Patch";
    let calls = [
        shell("test ! -e made && echo before"),
        shell("test ! -e made && echo before"),
        json!({"call": "shell", "args": {"command": ["sh", "-c", format!("apply_patch <<'EOF'\n{patch}\nEOF\n")]}}),
        shell("cat made"),
        shell("cat made"),
    ];
    let mut client = world("never").start(&script(&calls)).await;
    client.turn("1", "hi").await;
    let printed = printed(&client);
    assert_eq!(printed[..2], ["before\n", "before\n"]);
    assert_eq!(printed[3..], ["by the patch\n", "by the patch\n"]);
}

#[tokio::test]
async fn several_questions_are_open_at_once_and_each_is_answered_by_its_call() {
    let mut client = world("untrusted").start(&script(&["touch a", "touch b", "touch c"].map(shell))).await;
    client.say("1", "hi").await;
    assert_eq!(asked(&mut client, 3).await, ["call-1-1", "call-1-2", "call-1-3"]);
    assert!(!answer(&client, "1", ReviewDecision::Approved).await, "the turn's name does not say which one");
    assert!(answer(&client, "call-1-3", ReviewDecision::Approved).await);
    assert!(!answer(&client, "call-1-3", ReviewDecision::Approved).await, "it was answered");
    assert!(answer(&client, "call-1-1", ReviewDecision::Denied).await);
    assert!(answer(&client, "1", ReviewDecision::Approved).await, "only one is left");
    client.until_ended().await;
    let there = |name: &str| client.world.path("project").join(name).exists();
    assert_eq!(["a", "b", "c"].map(there), [false, true, true]);
    assert_eq!(outputs(&client)[0], "exec command rejected by user");
}

#[tokio::test]
async fn an_abort_of_one_ends_the_turn_and_all_others() {
    let sleep = json!({"call": "shell", "args": {"command": ["sleep", "600"], "timeout_ms": 600_000}});
    let calls = [sleep, shell("touch a"), shell("touch b")];
    // A rule lets the first command run without a question.
    let world = world("untrusted");
    std::fs::create_dir(world.path("home/rules")).expect("a folder can be made");
    let world = world.file("home/rules/default.rules", "prefix_rule(pattern=[\"sleep\"], decision=\"allow\")\n");
    let mut client = world.start(&script(&calls)).await;
    client.say("1", "hi").await;
    let questions = asked(&mut client, 2).await;
    assert_eq!(questions, ["call-1-2", "call-1-3"]);
    assert!(answer(&client, &questions[1], ReviewDecision::Abort).await);
    let events = client.until_ended().await;
    assert_eq!(outcome(&events), Outcome::Aborted(Abort::Interrupted));
    assert!(!answer(&client, &questions[0], ReviewDecision::Approved).await, "the question went with the turn");
    assert!(!client.world.path("project/a").exists() && !client.world.path("project/b").exists());
    assert_eq!(ended(&events).len(), 3, "every command that has begun is over");
}

#[tokio::test]
async fn an_interrupt_ends_everything_and_the_model_knows_what_had_ended() {
    let calls = [shell("echo $$; exec sleep 600"), shell("echo quick"), shell("echo $$; exec sleep 600")];
    let mut client = world("never").start(&script(&calls)).await;
    client.say("1", "hi").await;
    let mut events = Vec::new();
    let mut pids: Vec<String> = Vec::new();
    while pids.len() < 2 || ended(&events).is_empty() {
        let event = client.next().await;
        if let Body::ItemDelta { item, delta: Delta::Output { bytes, .. } } = &event.body
            && item.as_str() != "call-1-2"
        {
            pids.push(String::from_utf8_lossy(bytes).trim().to_owned());
        }
        events.push(event);
    }
    assert_eq!(client.thread.interrupt().await, Ok(true));
    for pid in &pids {
        wait_until_gone(pid);
    }
    let events = client.until_ended().await;
    assert_eq!(ended(&events).iter().filter(|command| command.status == CommandStatus::Failed).count(), 2);
    client.turn("2", "again").await;
    let outputs = outputs(&client);
    assert!(outputs[0].ends_with("aborted by user") && outputs[2].ends_with("aborted by user"), "{outputs:?}");
    assert!(outputs[1].contains("quick"), "{outputs:?}");
}

#[tokio::test]
async fn a_timeout_of_one_leaves_the_others_alone() {
    let slow = json!({"call": "shell", "args": {"command": ["sleep", "600"], "timeout_ms": 100}});
    let mut client = world("never").start(&script(&[slow, shell("echo fine")])).await;
    let events = client.turn("1", "hi").await;
    assert_eq!(ended(&events).len(), 2);
    let outputs = outputs(&client);
    assert!(outputs[0].contains("timed out") && outputs[1].contains("fine"), "{outputs:?}");
}

#[tokio::test]
async fn no_more_than_eight_run_at_once() {
    // Each command waits for its own pipe, so every started command is still running.
    let world = world("never");
    let names: Vec<String> = (0..10).map(|number| format!("pipe{number}")).collect();
    let made = std::process::Command::new("mkfifo").args(&names).current_dir(world.path("project")).status();
    assert!(made.expect("mkfifo runs").success());
    let calls: Vec<Value> = names.iter().map(|name| shell(&format!("cat {name}"))).collect();
    let mut client = world.start(&script(&calls)).await;
    client.say("1", "hi").await;
    let mut begun = 0;
    while begun < 8 {
        begun += usize::from(has_begun(&client.next().await));
    }
    let written = tokio::task::spawn_blocking({
        let paths: Vec<_> = names.iter().map(|name| client.world.path("project").join(name)).collect();
        move || paths.into_iter().try_for_each(|path| std::fs::write(path, "x"))
    });
    let events = client.until_ended().await;
    written.await.expect("the task ends").expect("the pipes can be written");
    let first_end = events.iter().position(|event| matches!(&event.body, Body::ItemCompleted(Item::Command(_))));
    let ninth = events.iter().position(has_begun);
    assert!(first_end < ninth, "the ninth waits for the first to end");
    assert_eq!(printed(&client), vec!["x"; 10]);
}

fn has_begun(event: &Arc<Event>) -> bool {
    matches!(&event.body, Body::ItemStarted(Item::Command(_)))
}
