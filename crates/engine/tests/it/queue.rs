//! The queue: input that waits for the running turn, what pauses it, and what outlives the program.

use std::sync::Arc;

use codex_engine::Setup;
use codex_log::history::ForkPoint;
use codex_log::queue::{QueueEvent, QueuedInput};
use codex_log::{Body, Event, Outcome, TurnId};
use codex_thread::goal::GoalChange;
use codex_thread::queue::QueueError;
use codex_thread::{ExplicitOverrides, InitialHistory};
use codex_wire::goal::GoalStatus;
use expect_test::expect;
use serde_json::json;

use crate::world::{Client, FakeAgents, World, check_lines, resumed, said, start};

/// Answers, the first of which takes until the clock is advanced.
fn slowly(texts: &[&str]) -> String {
    let answer = |(place, text): (usize, &&str)| {
        let pause = if place == 0 { 5_000 } else { 0 };
        json!({"items": [{"pause_ms": pause}, {"text": text}]})
    };
    serde_json::Value::Array(texts.iter().enumerate().map(answer).collect()).to_string()
}

fn entry(id: &str) -> QueuedInput {
    QueuedInput { id: id.to_owned(), client_id: format!("key-{id}"), input: vec![said(&format!("text {id}"))] }
}

async fn enqueue(client: &Client, id: &str) -> Arc<QueuedInput> {
    client.thread.enqueue(entry(id)).await.expect("the thread is open").expect("there is room")
}

async fn ids(client: &Client) -> String {
    let queue = client.thread.queue().await.expect("the thread is open");
    let ids: Vec<&str> = queue.entries.iter().map(|entry| entry.id.as_str()).collect();
    format!("{}{}", ids.join(" "), if queue.is_paused { " (paused)" } else { "" })
}

/// Starts, ends and messages of turns, and changes of the queue.
fn told(events: &[Arc<Event>]) -> Vec<String> {
    let line = |event: &Arc<Event>| {
        let turn = event.turn.as_ref().map_or("-", TurnId::as_str);
        let what = match &event.body {
            Body::TurnStarted { .. } => "started".to_owned(),
            Body::ItemCompleted(item) => format!("said {:?}", item.said()?.texts().join(" ")),
            Body::TurnEnded(Outcome::Completed { .. }) => "completed".to_owned(),
            Body::TurnEnded(outcome) => format!("{outcome:?}").split('{').next().unwrap_or_default().trim().to_owned(),
            Body::Queue(told) => format!("queue {}", json!(**told)["type"].as_str().unwrap_or_default()),
            _ => return None,
        };
        Some(format!("{turn} {what}"))
    };
    events.iter().filter_map(line).collect()
}

async fn until_ends(client: &mut Client, turns: usize) -> Vec<Arc<Event>> {
    let mut events = Vec::new();
    for _ in 0..turns {
        events.extend(client.until_ended().await);
    }
    events
}

#[tokio::test(start_paused = true)]
async fn entries_start_in_order_when_the_turn_before_them_completes() {
    let mut client = start(&slowly(&["One.", "Two.", "Three."])).await;
    client.say("1", "hi").await;
    for id in ["a", "b"] {
        assert_eq!(*enqueue(&client, id).await, entry(id));
    }
    assert_eq!(ids(&client).await, "a b");
    let events = until_ends(&mut client, 3).await;
    check_lines(
        &told(&events),
        expect![[r#"
            1 started
            1 said "hi"
            - queue queue_added
            - queue queue_added
            1 completed
            a started
            a said "text a"
            - queue queue_removed
            a completed
            b started
            b said "text b"
            - queue queue_removed
            b completed
        "#]],
    );
    assert_eq!(ids(&client).await, "");
    assert_eq!(client.thread.running().await, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn an_idle_thread_starts_an_entry_at_once_and_a_repeated_one_is_the_same() {
    let mut client = start(r#"[{"items": [{"text": "One."}]}]"#).await;
    enqueue(&client, "a").await;
    client.until_ended().await;
    let again = QueuedInput { id: "other".to_owned(), ..entry("a") };
    let known = client.thread.enqueue(again).await.expect("the thread is open").expect("it is known");
    assert_eq!(known.id, "a", "the turn that has accepted the message");
    assert_eq!((ids(&client).await, client.prompts.all().len()), (String::new(), 1));
}

#[tokio::test(start_paused = true)]
async fn entries_are_changed_ordered_and_deleted() {
    let mut client = start(&slowly(&["One.", "Two.", "Three."])).await;
    client.say("1", "hi").await;
    for id in ["a", "b", "c"] {
        enqueue(&client, id).await;
    }
    let again = client.thread.enqueue(QueuedInput { id: "other".to_owned(), ..entry("b") }).await;
    assert_eq!(again.expect("the thread is open").expect("it is known").id, "b");
    let changed = client.thread.update_queued("c".to_owned(), vec![said("changed")]).await;
    assert_eq!(changed.expect("the thread is open").expect("it is known").input, [said("changed")]);
    let unknown = client.thread.update_queued("x".to_owned(), vec![said("changed")]).await.expect("it is open");
    assert_eq!(unknown.expect_err("there is no such entry").to_string(), "queued submission not found: x");
    let order = |ids: [&str; 3]| ids.map(str::to_owned).to_vec();
    assert_eq!(client.thread.reorder_queue(order(["c", "a", "b"])).await, Ok(Ok(())));
    assert!(client.thread.reorder_queue(order(["c", "a", "a"])).await.is_ok_and(|ordered| ordered.is_err()));
    assert_eq!(client.thread.delete_queued("a".to_owned()).await, Ok(true));
    assert_eq!(client.thread.delete_queued("a".to_owned()).await, Ok(false));
    assert_eq!(ids(&client).await, "c b");
    assert_eq!(client.thread.start_queue(None).await, Ok(Err(QueueError::Running)));
    let events = until_ends(&mut client, 3).await;
    let said: Vec<String> = told(&events).into_iter().filter(|line| line.contains("said")).collect();
    assert_eq!(said, [r#"1 said "hi""#, r#"c said "changed""#, r#"b said "text b""#]);
    assert_eq!(client.thread.start_queue(None).await, Ok(Err(QueueError::Empty)));
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_or_a_failure_pauses_the_queue_until_it_is_started() {
    let hangs = r#"{"items": [{"text": "a"}, {"hang": true}]}"#;
    let fails = r#"{"status": 400, "body": {"error": {"message": "no"}}}"#;
    for first in [hangs, fails] {
        let script = format!(r#"[{first}, {{"items": [{{"text": "Two."}}]}}, {{"items": [{{"text": "Three."}}]}}]"#);
        let mut client = start(&script).await;
        // All three arrive before the first answer.
        tokio::join!(client.say("1", "hi"), enqueue(&client, "a"), enqueue(&client, "b"));
        if first == hangs {
            client.until(|body| matches!(body, Body::ItemDelta { .. })).await;
            assert_eq!(client.thread.interrupt().await, Ok(true));
        }
        let events = client.until_ended().await;
        assert_eq!(told(&events).iter().filter(|line| line.contains("queue_paused")).count(), 1);
        assert_eq!((ids(&client).await.as_str(), client.thread.running().await), ("a b (paused)", Ok(None)));
        assert_eq!(
            client.thread.start_queue(Some("x".to_owned())).await,
            Ok(Err(QueueError::Unknown { id: "x".to_owned() }))
        );
        assert_eq!(client.thread.start_queue(Some("b".to_owned())).await, Ok(Ok(TurnId::new("b"))));
        let events = until_ends(&mut client, 2).await;
        let started: Vec<String> = told(&events).into_iter().filter(|line| line.ends_with("started")).collect();
        assert_eq!(started, ["b started", "a started"], "the others follow");
        assert_eq!(ids(&client).await, "");
    }
}

#[tokio::test(start_paused = true)]
async fn a_queue_survives_a_restart_and_waits_for_a_person() {
    let mut client = start(r#"[{"items": [{"text": "a"}, {"hang": true}]}]"#).await;
    client.say("1", "hi").await;
    client.until(|body| matches!(body, Body::ItemDelta { .. })).await;
    enqueue(&client, "a").await;
    // The file of a program that was killed ends here.
    let killed = std::fs::read(client.rollout()).expect("the thread has a file");
    client.close().await;
    std::fs::write(client.rollout(), killed).expect("the file can be written");
    let mut client = client.start_again(r#"[{"items": [{"text": "Two."}]}]"#, resumed).await;
    assert_eq!(ids(&client).await, "a (paused)");
    assert_eq!(client.thread.running().await, Ok(None));
    assert_eq!(client.thread.start_queue(None).await, Ok(Ok(TurnId::new("a"))));
    client.until_ended().await;
    assert_eq!(client.last_input().last().map(String::as_str), Some("text a"));
    // The message is in the file, but not that its entry is gone.
    let lines = std::fs::read_to_string(client.rollout()).expect("the thread has a file");
    let removed = lines.find("queue_removed").expect("it is told");
    let cut = lines[..removed].rfind('\n').expect("it is a line") + 1;
    client.close().await;
    std::fs::write(client.rollout(), &lines[..cut]).expect("the file can be written");
    let client = client.start_again("[]", resumed).await;
    assert_eq!(ids(&client).await, "", "a message is not accepted twice");
}

#[tokio::test(start_paused = true)]
async fn a_summary_keeps_the_queue_and_a_copy_has_none() {
    let script = r#"[{"items": [{"text": "a"}, {"hang": true}]}, {"items": [{"text": "A summary."}, {"hang": true}]},
                     {"items": [{"text": "A summary."}]}, {"items": [{"text": "b"}, {"hang": true}]}]"#;
    let mut client = start(script).await;
    client.say("1", "hi").await;
    client.until(|body| matches!(body, Body::ItemDelta { .. })).await;
    enqueue(&client, "a").await;
    enqueue(&client, "b").await;
    client.thread.interrupt().await.expect("the thread is open");
    client.thread.compact(TurnId::new("pack")).await.expect("the thread is open");
    client.thread.compact(TurnId::new("again")).await.expect("the thread is open");
    until_ends(&mut client, 3).await;
    assert_eq!(ids(&client).await, "a b (paused)");
    let kinds = client.line_kinds();
    let summary = kinds.iter().rposition(|kind| kind == "compacted").expect("it was summed up");
    assert!(kinds[summary..].contains(&"event_msg queue_all".to_owned()), "{kinds:?}");
    let client = client.start_again("[]", resumed).await;
    assert_eq!(ids(&client).await, "a b (paused)");
    let forked = |thread, setup| {
        let (point, explicit) = (ForkPoint::End, ExplicitOverrides::default());
        Setup { initial_history: InitialHistory::Forked { thread, point, explicit }, ..setup }
    };
    let copy = client.start_again("[]", forked).await;
    assert_eq!(ids(&copy).await, "");
    let copy = copy.start_again("[]", resumed).await;
    assert_eq!(ids(&copy).await, "");
}

#[tokio::test(start_paused = true)]
async fn a_queued_message_goes_before_a_turn_for_the_goal() {
    let done = r#"{"items": [{"call": "update_goal", "args": {"status": "complete"}}]}"#;
    let script = format!(
        r#"[{{"items": [{{"pause_ms": 5000}}, {{"text": "One."}}]}}, {{"items": [{{"text": "Two."}}]}}, {done},
            {{"items": [{{"text": "Done."}}]}}]"#
    );
    let mut client = start(&script).await;
    client.say("1", "hi").await;
    let goal = GoalChange { objective: Some("ship it".to_owned()), ..GoalChange::default() };
    client.thread.set_goal(goal).await.expect("the thread is open").expect("the goal is right");
    enqueue(&client, "a").await;
    let events = until_ends(&mut client, 3).await;
    let started: Vec<&TurnId> = events
        .iter()
        .filter(|event| matches!(event.body, Body::TurnStarted { .. }))
        .filter_map(|event| event.turn.as_ref())
        .collect();
    assert_eq!(started[..2], [&TurnId::new("1"), &TurnId::new("a")]);
    let goal = client.thread.goal().await.expect("the thread is open").expect("there is a goal");
    assert_eq!((started.len(), goal.status), (3, GoalStatus::Complete));
}

#[tokio::test(start_paused = true)]
async fn a_queued_message_goes_before_a_turn_for_mail_and_its_turn_reads_the_mail() {
    // The order to read it comes with the end of the first turn, when the queue is due too.
    let agents = FakeAgents::with_mail("1", "mail of a child");
    let mut client = World::new().start_with_agents(&slowly(&["One.", "Two."]), &agents).await;
    client.say("1", "hi").await;
    enqueue(&client, "a").await;
    let events = until_ends(&mut client, 2).await;
    let ended: Vec<String> = told(&events).into_iter().filter(|line| line.ends_with("completed")).collect();
    assert_eq!(ended, ["1 completed", "a completed"]);
    let input = client.last_input();
    assert_eq!(input[input.len() - 2..], ["text a", "mail of a child"]);
    assert_eq!(client.thread.running().await, Ok(None), "the mail was read");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_line_of_a_queue_changes_nothing() {
    let odd = QueueEvent::Ordered { ids: vec!["nobody".to_owned()] };
    assert_eq!(json!(odd)["type"], "queue_ordered");
    let mut client = start(r#"[{"items": [{"text": "One."}]}]"#).await;
    client.turn("1", "hi").await;
    client.close().await;
    let mut lines = std::fs::read_to_string(client.rollout()).expect("the thread has a file");
    for payload in [json!({"type": "queue_added", "entry": 3}), json!({"type": "queue_added"}), json!(odd)] {
        let line = json!({"timestamp": "2026-01-02T03:04:05.006Z", "type": "event_msg", "payload": payload});
        lines = format!("{lines}{line}\n");
    }
    std::fs::write(client.rollout(), lines).expect("the file can be written");
    let client = client.start_again("[]", resumed).await;
    assert_eq!(ids(&client).await, "");
}
