//! Messages between agents and their root, with real agents: their order and form, and the ends of waits.

use std::sync::Arc;

use codex_engine::Setup;
use codex_log::agents::AgentEvent;
use codex_log::history::ForkPoint;
use codex_log::{Body, Event, Outcome};
use codex_model::Prompt;
use codex_thread::{ExplicitOverrides, InitialHistory};
use codex_wire::agent::SubagentLifecycleEvent;
use codex_wire::ids::ThreadId;
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::agent_trees::{call, ends, helper_task, plan, start, start_as, wait_for, world};
use crate::shown;
use crate::world::{Client, World, check_lines, outcome};

fn spawn(id: &str, number: u32) -> Value {
    call(id, "subagent_spawn", json!({"prompt": helper_task(number)}))
}

fn send(id: &str, agent: u32, prompt: &str, interrupt: bool) -> Value {
    call(id, "subagent_send_message", json!({"agent_id": agent, "prompt": prompt, "interrupt": interrupt}))
}

/// The last request of a thread.
fn last_request(client: &Client, is_wanted: impl Fn(&Prompt) -> bool) -> Vec<String> {
    shown::input(&client.prompts.all().into_iter().rfind(is_wanted).expect("the model was asked"))
}

/// The items of the last request of the root, from a call on: what they are, and the ids of the calls.
fn from_call(client: &Client, id: &str) -> Vec<String> {
    let lines = last_request(client, |prompt| prompt.thread == client.thread.id());
    let start = lines.iter().position(|line| line.starts_with(&format!("call {id}"))).expect("the call is there");
    lines[start..].iter().map(|line| line.splitn(3, ' ').take(2).collect::<Vec<_>>().join(" ")).collect()
}

/// The first agent sends a message while the root waits for the second one, which takes 20 seconds.
async fn check_mail(world: World, expected: Expect) {
    let script = json!([
        {"when": "id-await", "items": [{"text": "All done."}]},
        {"when": "id-spawn-2", "items": [wait_for("id-await", 2), plan("id-plan")]},
        {"when": "id-spawn-1", "items": [spawn("id-spawn-2", 2)]},
        {"when": ["helper task 1", "child-message"], "items": [{"hang": true}]},
        {"when": "helper task 1", "items": [{"pause_ms": 5000}, send("child-message", 0, "half of it", false)]},
        {"when": "helper task 2", "items": [{"pause_ms": 20_000}, {"text": "Helped."}]},
        {"items": [spawn("id-spawn-1", 1)]},
    ]);
    let (mut client, _) = start(world, &script).await;
    client.turn("1", "Go.").await;
    check_lines(&from_call(&client, "id-await"), expected);
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn mail_that_comes_while_calls_run_is_read_after_their_outputs() {
    check_mail(
        world(),
        expect![[r#"
            call id-await
            call id-plan
            output id-await
            output id-plan
            call await-1-3
            output await-1-3
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn mail_is_read_before_the_outputs_of_calls_if_that_is_configured() {
    check_mail(
        world().set("subagent_inbox_inject_before_tools=true"),
        expect![[r#"
            call id-await
            call id-plan
            call await-1-3
            output await-1-3
            output id-await
            output id-plan
        "#]],
    )
    .await;
}

/// Two agents send mail at different times. Each time, there is one call for each sender that has sent some.
#[tokio::test(start_paused = true)]
async fn mail_is_told_once_for_each_sender_and_under_another_id_each_time() {
    let message = |id: &str, text: &str| json!([{"pause_ms": 1000}, send(id, 0, text, false)]);
    let script = json!([
        {"when": "root-3", "items": [{"text": "All done."}]},
        {"when": "root-2", "items": [{"pause_ms": 5000}, plan("root-3")]},
        {"when": "id-spawn-2", "items": [{"pause_ms": 5000}, plan("root-2")]},
        {"when": "id-spawn-1", "items": [spawn("id-spawn-2", 2)]},
        // The first agent sends two messages before the root asks again, and one later.
        {"when": ["helper task 1", "one-c"], "items": [{"hang": true}]},
        {"when": ["helper task 1", "one-b"], "items": [{"pause_ms": 4000}, send("one-c", 0, "third", false)]},
        {"when": ["helper task 1", "one-a"], "items": message("one-b", "second")},
        {"when": "helper task 1", "items": message("one-a", "first")},
        {"when": ["helper task 2", "two-a"], "items": [{"hang": true}]},
        {"when": "helper task 2", "items": [{"pause_ms": 1500}, send("two-a", 0, "another", false)]},
        {"items": [spawn("id-spawn-1", 1)]},
    ]);
    let (mut client, _) = start(world(), &script).await;
    client.turn("1", "Go.").await;
    check_lines(
        &from_call(&client, "root-2"),
        expect![[r#"
        call root-2
        output root-2
        call await-1-3
        output await-1-3
        call await-2-4
        output await-2-4
        call root-3
        output root-3
        call await-1-6
        output await-1-6
    "#]],
    );
    let told = last_request(&client, |prompt| prompt.thread == client.thread.id()).join("\n");
    for text in ["first", "second", "third", "another"] {
        assert_eq!(told.matches(&format!("\\\"prompt\\\":\\\"{text}\\\"")).count(), 1, "{text}: {told}");
    }
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_reads_interrupts_first_and_everything_else_as_it_came() {
    let script = json!([
        {"when": "id-await", "items": [{"text": "All done."}]},
        {"when": "id-now", "items": [wait_for("id-await", 1)]},
        {"when": "id-spawn", "items": [{"pause_ms": 5000}, send("id-a", 1, "first", false),
            send("id-b", 1, "second", false), send("id-now", 1, "stop that!", true)]},
        {"when": ["helper task 1", "stop that!"], "items": [{"text": "Stopped."}]},
        {"when": "helper task 1", "items": [{"pause_ms": 60_000}, {"text": "Never said."}]},
        {"items": [spawn("id-spawn", 1)]},
    ]);
    let (mut client, _) = start(world(), &script).await;
    let begun = Instant::now();
    let events = client.turn("1", "Go.").await;
    assert_eq!(begun.elapsed().as_secs(), 5, "it was stopped at once");
    assert_eq!(ends(&events).len(), 1, "an interrupt is no end");
    let read = last_request(&client, |prompt| prompt.thread != client.thread.id());
    let said: Vec<&String> = read.iter().filter(|line| line.starts_with("user: \"") && !line.contains('<')).collect();
    assert_eq!(
        said,
        ["user: \"helper task 1\"", "user: \"stop that!\"", "user: \"first\"", "user: \"second\""],
        "{read:#?}"
    );
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_over_at_once_when_its_turn_is_interrupted() {
    let script = json!([
        {"when": "id-spawn", "items": [call("id-await", "subagent_await", json!({}))]},
        {"when": "helper task", "items": [{"pause_ms": 60_000}, {"text": "Helped."}]},
        {"items": [spawn("id-spawn", 1)]},
    ]);
    let (mut client, _) = start(world().set("subagent_root_inbox_autosubmit=false"), &script).await;
    client.say("1", "Go.").await;
    client.until(|body| matches!(body, Body::ItemStarted(item) if item.id().as_str() == "id-await")).await;
    let begun = Instant::now();
    assert_eq!(client.thread.interrupt_turn_alone().await, Ok(true));
    assert!(matches!(outcome(&client.until_ended().await), Outcome::Aborted(_)));
    assert_eq!(begun.elapsed().as_secs(), 0);
    client.until(|body| matches!(body, Body::Agent(event) if matches!(**event, AgentEvent::Result(_)))).await;
    assert_eq!(begun.elapsed().as_secs(), 60, "its agent has gone on");
    client.close().await;
}

/// The agent ends a second after its root. Another turn is the first to hear of it, unless mail wakes the root.
#[tokio::test(start_paused = true)]
async fn an_idle_root_begins_a_turn_for_mail_unless_that_is_switched_off() {
    let script = json!([
        {"when": "Helped.", "items": [{"text": "I have heard."}]},
        {"when": "Anything else", "items": [{"text": "Nothing."}]},
        {"when": "id-spawn", "items": [{"text": "Started."}]},
        {"when": "helper task", "items": [{"pause_ms": 1000}, {"text": "Helped."}]},
        {"items": [spawn("id-spawn", 1)]},
    ]);
    for wakes in [true, false] {
        let (mut client, answers) =
            start(world().set(&format!("subagent_root_inbox_autosubmit={wakes}")), &script).await;
        client.turn("1", "Go.").await;
        if !wakes {
            client.until(|body| matches!(body, Body::Agent(event) if matches!(**event, AgentEvent::Result(_)))).await;
            tokio::time::advance(std::time::Duration::from_secs(3600)).await;
            assert_eq!(client.thread.running().await, Ok(None));
            assert_eq!(client.say("2", "Anything else?").await, codex_thread::TurnStart::Started);
        }
        let heard = Outcome::Completed { last_message: Some("I have heard.".into()), bookmark: None };
        assert_eq!(outcome(&client.until_ended().await), heard, "{wakes}");
        let second = if wakes { 1 } else { 3601 };
        assert!(answers.named().contains(&format!("{second} s: root")), "{wakes}: {:?}", answers.named());
        client.close().await;
    }
}

fn headers(events: &[Arc<Event>]) -> Vec<String> {
    let header = |event: &AgentEvent| match event {
        AgentEvent::Lifecycle(SubagentLifecycleEvent::ReasoningHeader(change)) => Some(change.reasoning_header.clone()),
        _ => None,
    };
    events.iter().filter_map(|event| if let Body::Agent(event) = &event.body { header(event) } else { None }).collect()
}

#[tokio::test(start_paused = true)]
async fn the_first_bold_text_of_an_agents_reasoning_is_its_header() {
    let thoughts = json!([{"reasoning": ["**Reading the diff**\n\nIt is long."]}, {"reasoning": ["**Later**"]}, {"text": "Helped."}]);
    let script = json!([
        {"when": "id-await", "items": [{"text": "All done."}]},
        {"when": "id-spawn", "items": [wait_for("id-await", 1)]},
        {"when": "helper task", "items": thoughts},
        {"items": [spawn("id-spawn", 1)]},
    ]);
    let (mut client, _) = start(world(), &script).await;
    let events = client.turn("1", "Go.").await;
    assert_eq!(headers(&events), ["Reading the diff"]);
    let told = last_request(&client, |prompt| prompt.thread == client.thread.id()).join("\n");
    assert!(told.contains("\\\"reasoning_header\\\":\\\"Reading the diff\\\""), "{told}");
    client.close().await;
}

fn forked(thread: ThreadId, setup: Setup) -> Setup {
    let (point, explicit) = (ForkPoint::End, ExplicitOverrides::default());
    Setup { initial_history: InitialHistory::Forked { thread, point, explicit }, ..setup }
}

/// An agent belongs to the root that has started it.
#[tokio::test(start_paused = true)]
async fn a_copy_of_a_root_knows_the_numbers_of_its_agents_and_gives_none_out_twice() {
    let script = json!([
        {"when": "copy-await", "items": [{"text": "All done."}]},
        {"when": "id-spawn-2", "items": [wait_for("copy-await", 1)]},
        {"when": "copy-list", "items": [send("copy-send", 1, "once more", false), spawn("id-spawn-2", 2)]},
        {"when": "Who is there", "items": [call("copy-list", "subagent_list", json!({}))]},
        {"when": "id-await", "items": [{"text": "All done."}]},
        {"when": "id-spawn", "items": [wait_for("id-await", 1)]},
        {"when": "helper task", "repeat": true, "items": [{"text": "Helped."}]},
        {"items": [spawn("id-spawn", 1)]},
    ]);
    let (mut client, _) = start(world(), &script).await;
    client.turn("1", "Go.").await;
    client.close().await;
    let root = client.thread.id();
    let (mut client, _) = start_as(client.world, &script, |setup| forked(root, setup)).await;
    client.turn("2", "Who is there?").await;
    let request = last_request(&client, |prompt| prompt.thread == client.thread.id());
    let output = |id: &str| {
        let line =
            request.iter().find(|line| line.starts_with(&format!("output {id} "))).expect("the call has an output");
        serde_json::from_str::<String>(line.splitn(3, ' ').nth(2).unwrap_or_default()).expect("it is text")
    };
    let json = |id: &str| serde_json::from_str::<Value>(&output(id)).expect("it is JSON");
    assert_eq!(json("copy-list")["sessions"][0]["agent_id"], 1);
    assert_eq!(json("id-spawn-2")["agent_id"], 2);
    let failed = json("copy-await")["completion"]["Failed"]["message"].clone();
    assert!(failed.as_str().is_some_and(|text| text.ends_with("was started by another agent")), "{failed}");
    client.close().await;
}
