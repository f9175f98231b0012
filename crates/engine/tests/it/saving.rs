//! The stored lines, and the order of writing and publishing.

use std::fs::{OpenOptions, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use codex_engine::Setup;
use codex_log::history::ForkPoint;
use codex_log::store::ThreadStore;
use codex_log::{AgentMessage, Body, Event, Item, Outcome, Reasoning};
use codex_store::RolloutFile;
use codex_thread::{ExplicitOverrides, Feed, InitialHistory};
use expect_test::expect;
use tokio::sync::Notify;
use tokio::time::{Duration, Instant, sleep};

use crate::shown;
use crate::world::{Client, Prompts, World, check, check_lines, one_turn, outcome, start};

/// Reads the thread's file inside the call that publishes an event.
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
    /// The next event, with the file as it was when the event's batch was published.
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

/// The text that must be in the file before the event is published; `None` for events that are not stored, and for
/// those that may be published directly after others, which the test cannot observe.
fn trace(body: &Body) -> Option<String> {
    match body {
        Body::Recorded(record) if record.item().is_some_and(|item| item.kind() != "function_call_output") => {
            Some(record.json.json().into_owned())
        }
        Body::ItemCompleted(Item::UserMessage(_)) => Some(r#""type":"user_message","message":"hi""#.to_owned()),
        Body::ItemCompleted(Item::AgentMessage(AgentMessage { text, .. })) => {
            Some(format!(r#""type":"agent_message","message":"{text}""#))
        }
        Body::ItemCompleted(Item::Reasoning(Reasoning { summary, .. })) => {
            Some(format!(r#""type":"agent_reasoning","text":"{}""#, summary[0]))
        }
        Body::TurnEnded(Outcome::Aborted(_)) => Some(r#""type":"turn_aborted""#.to_owned()),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_is_in_the_file_before_it_is_published() {
    // A pause before each complete item makes it a separate batch.
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
        thread.say(codex_log::TurnId::new("1"), hi, codex_log::settings::SettingsChange::default()).await
    });
    let mut checked = 0;
    while let Some((event, seen)) = witness.next(&mut client.feed).await {
        if let Some(trace) = trace(&event.body) {
            assert!(seen.contains(&trace), "{} was told before it was saved:\n{seen}", shown::event(&event));
            checked += 1;
        }
        match &event.body {
            Body::ItemCompleted(Item::AgentMessage(AgentMessage { text, .. })) if text == "two" => {
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
async fn sent_items_equal_saved_items() {
    let client =
        one_turn(r#"[{"items": [{"call": "odd", "args": {"b": 1, "a": "ä"}}]}, {"items": [{"text": "done"}]}]"#).await;
    let text = std::fs::read_to_string(client.rollout()).unwrap();
    for item in &client.prompts.all()[1].input {
        assert!(text.contains(&format!(r#""type":"response_item","payload":{}}}"#, item.json())), "{}", item.json());
    }
}

/// Tries to start a thread that cannot be saved, and returns the error, with the day's folder as `DAY`.
async fn refusal(world: &World, setup: Setup) -> String {
    let error = setup.start().await.expect_err("the thread must not start");
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
    let day = chrono::Local::now().format("%Y/%m/%d").to_string();
    world.without_path(&format!("{error}{cause}")).replace(&day, "DAY")
}

#[tokio::test(start_paused = true)]
async fn a_thread_that_cannot_be_saved_does_not_start() {
    let world = World::new().file("home/sessions", "in the way");
    let refused = refusal(&world, world.setup("[]").0).await;
    expect!["could not create the folder TEMP/home/sessions/DAY: Not a directory (os error 20)"].assert_eq(&refused);
    let (setup, _) = world.setup(r#"[{"items": [{"text": "still here"}]}]"#);
    let setup = Setup { initial_history: InitialHistory::Unsaved(Box::default()), ..setup };
    let (thread, feed) = setup.start().await.expect("a thread that is not to be saved starts");
    let mut client = Client { world, thread, feed, prompts: Prompts::default() };
    let events = client.turn("1", "hi").await;
    assert_eq!(outcome(&events), Outcome::Completed { last_message: Some("still here".into()), bookmark: None });
}

#[tokio::test(start_paused = true)]
async fn a_thread_that_cannot_be_saved_is_neither_resumed_nor_forked() {
    let mut client = start("[]").await;
    client.close().await;
    let (world, path, thread) = (&client.world, client.rollout().to_owned(), client.thread.id());
    let explicit = ExplicitOverrides::default();
    std::fs::set_permissions(&path, Permissions::from_mode(0o400)).expect("the file is ours");
    // Root may write everywhere.
    if OpenOptions::new().append(true).open(&path).is_err() {
        let resumed = InitialHistory::Resumed { thread, explicit };
        let refused = refusal(world, Setup { initial_history: resumed, ..world.setup("[]").0 }).await;
        assert!(refused.starts_with("could not open the thread's file TEMP/home/sessions/DAY/rollout-"), "{refused}");
        assert!(refused.ends_with(".jsonl: Permission denied (os error 13)"), "{refused}");
    }
    let away = world.path("home/archived_sessions");
    let aside = away.join(path.file_name().expect("it has a name"));
    std::fs::create_dir(away).expect("a folder can be made");
    std::fs::rename(&path, &aside).expect("the file can be moved");
    std::fs::remove_dir_all(world.path("home/sessions")).expect("the folder can be removed");
    std::fs::write(world.path("home/sessions"), "in the way").expect("a file can be written");
    let thread = world.store.locate(&aside).expect("it is one of a thread").thread;
    let forked = InitialHistory::Forked { thread, point: ForkPoint::End, explicit };
    let refused = refusal(world, Setup { initial_history: forked, ..world.setup("[]").0 }).await;
    expect!["could not create the folder TEMP/home/sessions/DAY: Not a directory (os error 20)"].assert_eq(&refused);
}

#[tokio::test(start_paused = true)]
async fn a_link_out_of_the_project_is_not_read_and_that_is_reported() {
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

#[tokio::test(start_paused = true)]
async fn a_thread_that_another_process_has_open_is_waited_for_two_seconds() {
    let mut client = one_turn(r#"[{"items": [{"text": "one"}]}]"#).await;
    client.close().await;
    let (world, path, thread) = (&client.world, client.rollout().to_owned(), client.thread.id());
    // A process that another test is just starting has a copy of every descriptor until it executes its program.
    let reopen = || {
        let begun = std::time::Instant::now();
        loop {
            match RolloutFile::reopen_in(&world.path("home"), path.clone()) {
                Ok(file) => return file,
                Err(_) if begun.elapsed() < Duration::from_secs(5) => std::thread::yield_now(),
                Err(error) => panic!("nobody has it open: {error:?}"),
            }
        }
    };
    let resume = || {
        let initial_history = InitialHistory::Resumed { thread, explicit: ExplicitOverrides::default() };
        tokio::spawn(Setup { initial_history, ..world.setup("[]").0 }.start())
    };
    let (held, begun) = (reopen(), Instant::now());
    let starting = resume();
    sleep(Duration::from_millis(1500)).await;
    assert!(!starting.is_finished());
    drop(held);
    let (thread, _feed) = starting.await.expect("it does not panic").expect("it is let go of in time");
    assert!(begun.elapsed() < Duration::from_millis(1600), "{:?}", begun.elapsed());
    thread.close().await;
    let (_held, begun) = (reopen(), Instant::now());
    let refused = resume().await.expect("it does not panic").expect_err("somebody has it open");
    assert!((2000..2100).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
    assert!(refused.to_string().starts_with("This thread is open in this process. Close it, or run `codex fork "));
}
