//! Answers that break off, and the part of them that is kept.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use codex_engine::Setup;
use codex_log::{Abort, Body, Outcome};
use codex_model::{Answer, Model, ModelEvent, Prompt};
use codex_thread::{ExplicitOverrides, InitialHistory};
use codex_wire::ids::ThreadId;
use codex_wire::response::{ContentItem, Message, ResponseItem};
use expect_test::expect;
use futures_util::{StreamExt, stream};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::world::{Client, World, check, outcome, start};

/// An answer that stops after its first part.
const HALF: &str = r#"[{"items": [{"text": "whole"}, {"text": "ha", "done": false}, {"hang": true}]}]"#;

/// Starts a turn and waits until a part of the answer was published.
async fn half_said(script: &str) -> Client {
    let mut client = start(script).await;
    client.say("1", "hi").await;
    client.until(|body| matches!(body, Body::ItemDelta { delta, .. } if format!("{delta:?}").contains("ha"))).await;
    client
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_keeps_the_partial_answer() {
    let mut client = half_said(HALF).await;
    assert_eq!(client.thread.interrupt().await, Ok(true));
    check(
        &client.until_ended().await,
        expect![[r#"
            1 broke off agent msg-1-2 "ha"
            1 ended Aborted(Interrupted)
        "#]],
    );
    let kinds = client.line_kinds();
    assert_eq!(kinds[kinds.len() - 2..], ["event_msg item_interrupted", "event_msg turn_aborted"]);
    let line = client.lines().swap_remove(kinds.len() - 2);
    assert_eq!((&line["payload"]["turn_id"], &line["payload"]["item_id"]), (&"1".into(), &"msg-1-2".into()));
    assert_eq!(line["payload"]["item"]["content"][0]["text"], "ha");
}

#[tokio::test(start_paused = true)]
async fn a_failure_keeps_the_partial_answer() {
    let script = r#"[{"items": [{"text": "ha", "done": false}], "end": "cut"}]"#;
    let world = World::new().set("model_providers.scripted.stream_max_retries=0");
    let mut client = world.start(script).await;
    let events = client.turn("1", "hi").await;
    assert!(matches!(outcome(&events), Outcome::Failed(_)));
    let broken_off = events.iter().filter(|event| matches!(event.body, Body::ItemInterrupted(_))).count();
    assert_eq!(broken_off, 1);
    let kinds = client.line_kinds();
    let last = ["event_msg item_interrupted", "event_msg error", "event_msg task_complete"];
    assert_eq!(kinds[kinds.len() - 3..], last);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_asked_for_again_leaves_nothing() {
    let script = r#"[{"items": [{"text": "ha", "done": false}], "end": "cut"}, {"items": [{"hang": true}]}]"#;
    let mut client = start(script).await;
    client.say("1", "hi").await;
    client.until(|body| matches!(body, Body::AnswerRetried { .. })).await;
    client.until(|body| matches!(body, Body::TokensCounted { .. })).await;
    let events = client.close().await;
    assert_eq!(outcome(&events), Outcome::Aborted(Abort::Interrupted));
    assert!(!client.line_kinds().contains(&"event_msg item_interrupted".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_item_that_has_only_started_leaves_nothing() {
    let script = r#"[{"items": [{"text": "", "done": false}, {"hang": true}]}]"#;
    let mut client = start(script).await;
    client.say("1", "hi").await;
    client.until(|body| matches!(body, Body::ItemStarted(item) if item.answer().is_some())).await;
    client.close().await;
    assert!(!client.line_kinds().contains(&"event_msg item_interrupted".to_owned()));
}

/// A model that streams the events that the test sends.
struct Dictated(Mutex<Option<mpsc::UnboundedReceiver<ModelEvent>>>);

impl Model for Dictated {
    fn ask(&self, _: Prompt) -> Answer {
        let events = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let events = stream::unfold(events, |events| async {
            let mut events = events?;
            Some((events.recv().await?, Some(events)))
        });
        Box::pin(events.map(Ok))
    }
}

/// A turn whose answer the test sends event by event.
struct Dictation {
    client: Client,
    words: mpsc::UnboundedSender<ModelEvent>,
}

impl Dictation {
    async fn begin(change: impl FnOnce(Setup) -> Setup) -> Self {
        let world = World::new();
        let (setup, prompts) = world.setup("[]");
        let (words, heard) = mpsc::unbounded_channel();
        let setup = change(Setup { model: Arc::new(Dictated(Mutex::new(Some(heard)))), ..setup });
        let (thread, feed) = setup.start().await.expect("it starts");
        let client = Client { world, thread, feed, prompts };
        client.say("1", "hi").await;
        Self { client, words }
    }

    fn send(&self, event: ModelEvent) {
        self.words.send(event).expect("the model is asked");
    }

    /// Sends more text and waits until the subscriber has received it.
    async fn say(&mut self, text: &str) {
        self.send(ModelEvent::TextDelta { item_id: "m".to_owned(), delta: text.to_owned() });
        self.client.until(|body| matches!(body, Body::ItemDelta { .. })).await;
    }

    /// Completes the message.
    async fn end(&mut self, text: &str) {
        let content = vec![ContentItem::OutputText { text: text.into() }];
        let message = Message { id: Some("m".to_owned()), role: "assistant".to_owned(), content };
        self.send(ModelEvent::ItemDone(ResponseItem::Message(message), None));
        self.client.until(|body| matches!(body, Body::ItemCompleted(item) if item.answer().is_some())).await;
    }

    fn beside(&self) -> PathBuf {
        let id = self.client.thread.id().to_string();
        let id = id.rsplit('-').next().expect("an id has parts");
        self.client.rollout().with_file_name(format!("rollout-{id}.partial"))
    }

    /// The content of the draft file next to the rollout.
    fn kept(&self) -> Option<String> {
        let text = std::fs::read_to_string(self.beside()).ok()?;
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line is JSON"));
        Some(lines.filter_map(|line| line["text"].as_str().map(str::to_owned)).collect())
    }
}

/// A little more than the interval at which drafts are written.
const SOON: Duration = Duration::from_millis(101);

#[tokio::test(start_paused = true)]
async fn growing_items_are_saved_every_100_ms_and_when_they_pause() {
    let mut dictation = Dictation::begin(|setup| setup).await;
    dictation.say("one ").await;
    assert_eq!(dictation.kept(), None);
    sleep(Duration::from_millis(98)).await;
    dictation.say("two ").await;
    assert_eq!(dictation.kept(), None, "it is too early");
    sleep(Duration::from_millis(4)).await;
    assert_eq!(dictation.kept().as_deref(), Some("one two "));
    dictation.say("three ").await;
    sleep(Duration::from_millis(90)).await;
    dictation.say("four").await;
    assert_eq!(dictation.kept().as_deref(), Some("one two "), "it was written a moment ago");
    sleep(Duration::from_millis(12)).await;
    assert_eq!(dictation.kept().as_deref(), Some("one two three four"));
    let written = std::fs::metadata(dictation.beside()).expect("it is there");
    assert_eq!(written.permissions().mode() & 0o777, 0o600);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(std::fs::metadata(dictation.beside()).expect("it is there").len(), written.len());
    dictation.end("one two three four").await;
    assert_eq!(dictation.kept(), None, "nothing is open");
}

#[tokio::test(start_paused = true)]
async fn no_draft_is_kept_of_short_or_unsaved_items() {
    let mut dictation = Dictation::begin(|setup| setup).await;
    dictation.say("one").await;
    sleep(Duration::from_millis(90)).await;
    dictation.end("one").await;
    sleep(SOON).await;
    assert_eq!(dictation.kept(), None);
    let unsaved =
        |setup: Setup| Setup { initial_history: InitialHistory::Unsaved(Box::new(setup.initial_history)), ..setup };
    let mut dictation = Dictation::begin(unsaved).await;
    dictation.say("one").await;
    sleep(SOON).await;
    assert_eq!(dictation.kept(), None);
}

#[tokio::test(start_paused = true)]
async fn drafts_are_dropped_with_their_turn() {
    let mut dictation = Dictation::begin(|setup| setup).await;
    dictation.say("one").await;
    sleep(SOON).await;
    assert_eq!(dictation.kept().as_deref(), Some("one"));
    assert_eq!(dictation.client.thread.interrupt().await, Ok(true));
    dictation.client.until_ended().await;
    assert_eq!(dictation.kept(), None);
    assert!(dictation.client.line_kinds().contains(&"event_msg item_interrupted".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn drafts_are_dropped_when_a_request_is_retried() {
    let mut dictation = Dictation::begin(|setup| setup).await;
    dictation.say("one").await;
    sleep(SOON).await;
    assert_eq!(dictation.kept().as_deref(), Some("one"));
    // Closes the stream without an end of the answer.
    dictation.words = mpsc::unbounded_channel().0;
    dictation.client.until(|body| matches!(body, Body::AnswerRetried { .. })).await;
    assert_eq!(dictation.kept(), None);
    assert!(matches!(outcome(&dictation.client.until_ended().await), Outcome::Failed(_)));
    assert!(!dictation.client.line_kinds().contains(&"event_msg item_interrupted".to_owned()));
}

/// The thread at the moment when its program dies, in the middle of a word.
fn killed() -> (World, ThreadId, PathBuf) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let runtime = runtime.expect("a runtime can be made");
    let dictation = runtime.block_on(async {
        let mut dictation = Dictation::begin(|setup| setup).await;
        dictation.say("one ").await;
        sleep(SOON).await;
        dictation.say("two").await;
        dictation
    });
    // Its tasks are dropped at their current await.
    drop(runtime);
    let beside = dictation.beside();
    assert!(beside.exists());
    let Client { world, thread, .. } = dictation.client;
    (world, thread.id(), beside)
}

/// Resumes a thread.
async fn resume(world: World, thread: ThreadId) -> Client {
    let (setup, prompts) = world.setup(r#"[{"items": [{"text": "again"}]}]"#);
    let initial_history = InitialHistory::Resumed { thread, explicit: ExplicitOverrides::default() };
    let (thread, feed) = Setup { initial_history, ..setup }.start().await.expect("it starts");
    Client { world, thread, feed, prompts }
}

fn texts_left(client: &Client) -> Vec<String> {
    let lines = client.lines().into_iter().filter(|line| line["payload"]["type"] == "item_interrupted");
    lines.map(|line| line["payload"]["item"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn stored_lines_survive_the_program() {
    let (world, thread, beside) = killed();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
    runtime.block_on(async {
        let mut client = resume(world, thread).await;
        assert_eq!(texts_left(&client), ["one "]);
        assert!(!beside.exists());
        assert!(!client.turn("2", "go on").await.iter().any(|event| matches!(event.body, Body::ItemInterrupted(_))));
        assert_eq!(client.last_input(), ["hi", "go on"], "the model is not told of it");
        client.close().await;
        let client = resume(client.world, thread).await;
        assert_eq!(texts_left(&client), ["one "], "it is there once");
    });
}

#[test]
fn leftovers_of_another_turn_are_ignored() {
    let (world, thread, beside) = killed();
    let left = std::fs::read(&beside).expect("it is there");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
    runtime.block_on(async {
        let mut client = resume(world, thread).await;
        client.turn("2", "go on").await;
        client.close().await;
        for garbage in [left, b"{}\n".to_vec(), vec![b'x'; 20_000_000]] {
            std::fs::write(&beside, garbage).expect("it can be written");
            client = resume(client.world, thread).await;
            assert_eq!(texts_left(&client), ["one "]);
            assert!(!beside.exists());
            client.close().await;
        }
    });
}
