//! What is kept on disk, and when.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use codex_engine::Feed;
use codex_engine::log::{Body, Event, Item, Outcome};
use expect_test::expect;
use tokio::sync::Notify;

use crate::shown;
use crate::world::{World, check, check_lines, one_turn, outcome, start};

/// Reads the thread's file at the very moment an event is published, inside the call that publishes it.
struct Witness {
    file: PathBuf,
    seen: Mutex<String>,
    woken: Notify,
}

impl Wake for Witness {
    fn wake(self: Arc<Self>) {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = text;
        self.woken.notify_one();
    }
}

impl Witness {
    /// The next event, with the file as it was when the batch it belongs to was published.
    async fn next(self: &Arc<Self>, feed: &mut Feed) -> Option<(Arc<Event>, String)> {
        let waker = Waker::from(Arc::clone(self));
        let mut next = pin!(feed.next());
        loop {
            if let Poll::Ready(event) = next.as_mut().poll(&mut Context::from_waker(&waker)) {
                let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
                return event.map(|event| (event, seen));
            }
            self.woken.notified().await;
        }
    }
}

/// What must be in the file before the event is told; none for events that are not kept, and for those that may come
/// right behind another publication, which nobody witnesses.
fn trace(body: &Body) -> Option<String> {
    match body {
        Body::Recorded(record) if record.item.kind() != "function_call_output" => Some(record.json.json().into_owned()),
        Body::ItemCompleted(Item::UserMessage { .. }) => Some(r#""type":"user_message","message":"hi""#.to_owned()),
        Body::ItemCompleted(Item::AgentMessage { text, .. }) => {
            Some(format!(r#""type":"agent_message","message":"{text}""#))
        }
        Body::ItemCompleted(Item::Reasoning { summary, .. }) => {
            Some(format!(r#""type":"agent_reasoning","text":"{}""#, summary[0]))
        }
        Body::TurnEnded(Outcome::Aborted(_)) => Some(r#""type":"turn_aborted""#.to_owned()),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_is_in_the_file_before_anyone_hears_of_it() {
    // A pause before each whole item gives it a publication of its own.
    let script = r#"[{"items": [
        {"pause_ms": 10}, {"event": {"type": "response.output_item.done", "item":
            {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "think"}]}}},
        {"text": "one", "deltas": ["one", {"pause_ms": 10}]},
        {"pause_ms": 10}, {"call": "update_plan", "args": {"plan": []}}
    ]}, {"items": [{"text": "two", "deltas": ["two", {"pause_ms": 10}]}, {"hang": true}]}]"#;
    let mut client = start(script).await;
    while client.feed.try_next().is_some() {}
    let witness = Arc::new(Witness { file: client.rollout().to_owned(), seen: Mutex::default(), woken: Notify::new() });
    let thread = client.thread.clone();
    let speaking = tokio::spawn(async move {
        let hi = vec![crate::world::said("hi")];
        thread.say(codex_engine::log::TurnId::new("1"), hi, codex_engine::settings::SettingsChange::default()).await
    });
    let mut checked = 0;
    while let Some((event, seen)) = witness.next(&mut client.feed).await {
        if let Some(trace) = trace(&event.body) {
            assert!(seen.contains(&trace), "{} was told before it was saved:\n{seen}", shown::event(&event));
            checked += 1;
        }
        match &event.body {
            Body::ItemCompleted(Item::AgentMessage { text, .. }) if text == "two" => {
                let thread = client.thread.clone();
                tokio::spawn(async move { thread.interrupt().await });
            }
            Body::TurnEnded(_) => break,
            _ => {}
        }
    }
    speaking.await.unwrap().unwrap();
    assert_eq!(checked, 10, "not everything was looked at");
}

#[tokio::test(start_paused = true)]
async fn the_file_keeps_what_a_resumed_client_is_shown() {
    let script = r#"[{"items": [{"reasoning": ["think"], "raw": "deep"}, {"call": "update_plan", "args": {"plan": []}}]},
                     {"items": [{"text": "done"}]}]"#;
    let client = one_turn(script).await;
    check_lines(
        &client.line_kinds(),
        expect![[r#"
            session_meta
            response_item
            event_msg task_started
            response_item
            event_msg user_message
            turn_context
            event_msg token_count
            event_msg agent_reasoning
            event_msg agent_reasoning_raw_content
            response_item
            response_item
            event_msg token_count
            response_item
            turn_context
            event_msg token_count
            event_msg agent_message
            response_item
            event_msg token_count
            event_msg task_complete
        "#]],
    );
    for line in client.lines() {
        let members: Vec<_> = line.as_object().unwrap().keys().cloned().collect();
        assert_eq!(members, ["timestamp", "type", "payload"]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_sent_is_what_is_saved() {
    let client =
        one_turn(r#"[{"items": [{"call": "odd", "args": {"b": 1, "a": "ä"}}]}, {"items": [{"text": "done"}]}]"#).await;
    let text = std::fs::read_to_string(client.rollout()).unwrap();
    for item in &client.prompts.all()[1].input {
        assert!(text.contains(&format!(r#""type":"response_item","payload":{}}}"#, item.json())), "{}", item.json());
    }
}

#[tokio::test(start_paused = true)]
async fn a_thread_that_cannot_be_saved_says_so_once_and_works() {
    let world = World::new().file("home/sessions", "in the way");
    let mut client = world.start(r#"[{"items": [{"text": "still here"}]}]"#).await;
    let mut events = client.turn("1", "hi").await;
    assert_eq!(outcome(&events), Outcome::Completed { last_message: Some("still here".into()), bookmark: None });
    events
        .retain(|event| matches!(event.body, Body::Warning { .. } | Body::ThreadStarted(_) | Body::TurnStarted { .. }));
    let shown: Vec<String> = events.iter().map(|event| shown::event(event)).collect();
    let shown: Vec<String> = shown.iter().map(|line| client.world.without_path(line)).collect();
    let day = client.rollout().parent().unwrap().strip_prefix(client.world.path("home")).unwrap().display().to_string();
    let shown: Vec<String> = shown.iter().map(|line| line.replace(&day, "sessions/DAY")).collect();
    check_lines(
        &shown,
        expect![[r#"
            - thread started
            - warning: this thread is not being saved: could not make the folder TEMP/home/sessions/DAY: Not a directory (os error 20)
            1 turn started, window Some(258400)
        "#]],
    );
    assert!(client.close().await.is_empty());
    assert!(!client.rollout().exists());
}

#[tokio::test(start_paused = true)]
async fn a_link_out_of_the_project_is_not_read_and_that_is_told() {
    let world = World::new().file("home/secret", "key");
    std::os::unix::fs::symlink(world.path("home/secret"), world.path("project/AGENTS.md")).unwrap();
    let mut client = world.start("[]").await;
    let events = client.close().await;
    let warning = client.world.without_path(&shown::event(events.last().unwrap()));
    expect!["- warning: TEMP/project/AGENTS.md was not read: it is a link that leads out of TEMP/project"]
        .assert_eq(&warning);
    assert!(!std::fs::read_to_string(client.rollout()).unwrap().contains("key\""));
    check(
        &events[..events.len() - 1],
        expect![[r#"
        - thread started
        - recorded user: (environment)
    "#]],
    );
}
