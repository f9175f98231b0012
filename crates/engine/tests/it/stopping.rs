//! Interrupting turns and closing threads.

use std::sync::Arc;

use codex_engine::Setup;
use codex_log::settings::SettingsChange;
use codex_log::{Abort, Body, Outcome, TurnId};
use codex_model::{Answer, Model, ModelEvent, Prompt};
use codex_thread::Closed;
use codex_wire::tokens::RateLimitSnapshot;
use expect_test::expect;
use futures_util::stream;

use crate::shown;
use crate::world::{Client, World, check, check_lines, one_turn, outcome, said, start};

const HANG: &str = r#"[{"items": [{"hang": true}]}, {"items": [{"text": "later"}]}]"#;

/// Starts a turn and waits until the model was asked.
async fn busy(script: &str) -> Client {
    let mut client = start(script).await;
    client.say("1", "hi").await;
    client.until(|body| matches!(body, Body::TokensCounted { .. })).await;
    client
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_ends_a_hanging_turn_once() {
    let mut client = busy(HANG).await;
    assert_eq!(client.thread.interrupt().await, Ok(true));
    assert_eq!(client.thread.interrupt().await, Ok(false));
    let events = client.close().await;
    check(
        &events,
        expect![[r#"
        1 ended Aborted(Interrupted)
    "#]],
    );
}

/// A model whose answer never ends.
struct Talkative;

impl Model for Talkative {
    fn ask(&self, _: Prompt) -> Answer {
        let opened = ModelEvent::Opened { rate_limits: Some(RateLimitSnapshot::default()) };
        let more = || ModelEvent::TextDelta { item_id: "m".to_owned(), delta: "x".to_owned() };
        Box::pin(stream::iter(std::iter::once(opened).chain(std::iter::repeat_with(more)).map(Ok)))
    }
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_is_obeyed_while_the_model_never_pauses() {
    let world = World::new();
    let (setup, prompts) = world.setup("[]");
    let (thread, feed) = Setup { model: Arc::new(Talkative), ..setup }.start().await.expect("it starts");
    let mut client = Client { world, thread, feed, prompts };
    client.say("1", "hi").await;
    client.until(|body| matches!(body, Body::ItemDelta { .. })).await;
    assert_eq!(client.thread.interrupt().await, Ok(true));
    assert_eq!(outcome(&client.until_ended().await), Outcome::Aborted(Abort::Interrupted));
}

#[tokio::test(start_paused = true)]
async fn the_end_is_in_the_feed_when_the_interrupt_returns() {
    let mut client = busy(HANG).await;
    assert_eq!(client.thread.interrupt().await, Ok(true));
    let event = client.feed.try_next().expect("the end is there already");
    assert!(matches!(event.body, Body::TurnEnded(Outcome::Aborted(Abort::Interrupted))), "{}", shown::event(&event));
}

#[tokio::test(start_paused = true)]
async fn there_is_nothing_to_interrupt_in_an_idle_thread() {
    let mut client = one_turn(r#"[{"items": [{"text": "a"}]}]"#).await;
    assert_eq!(client.thread.interrupt().await, Ok(false));
    assert!(client.close().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_cancels_the_wait_for_a_retry() {
    let mut client = start(r#"[{"end": "cut"}, {"items": [{"text": "never said"}]}]"#).await;
    client.say("1", "hi").await;
    client.until(|body| matches!(body, Body::AnswerRetried { .. })).await;
    assert_eq!(client.thread.interrupt().await, Ok(true));
    check(
        &client.close().await,
        expect![[r#"
        1 ended Aborted(Interrupted)
    "#]],
    );
    assert_eq!(client.prompts.all().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn messages_before_an_interrupt_stay_and_open_calls_are_answered() {
    let script = r#"[{"items": [{"text": "whole"}, {"call": "update_plan"}, {"text": "ha", "done": false}, {"hang": true}]},
                     {"items": [{"text": "later"}]}]"#;
    let mut client = start(script).await;
    client.say("1", "hi").await;
    client.until(|body| matches!(body, Body::ItemDelta { delta, .. } if format!("{delta:?}").contains("ha"))).await;
    client.say("1b", "joined").await;
    assert_eq!(client.thread.interrupt().await, Ok(true));
    client.until_ended().await;
    client.turn("2", "again").await;
    check_lines(
        &shown::input(&client.prompts.all()[1]),
        expect![[r#"
        user: (environment)
        user: "hi"
        assistant: "whole"
        call call-1-2 update_plan
        output call-1-2 "aborted"
        user: "joined"
        user: "again"
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn closing_stops_the_turn_and_ends_the_feed() {
    let mut client = busy(HANG).await;
    let events = client.close().await;
    assert_eq!(outcome(&events), Outcome::Aborted(Abort::Interrupted));
    assert_eq!(client.line_kinds().last().map(String::as_str), Some("event_msg turn_aborted"));
}

#[tokio::test(start_paused = true)]
async fn a_closed_thread_takes_nothing_more() {
    let client = start("[]").await;
    client.thread.close().await;
    let said = client.thread.say(TurnId::new("1"), vec![said("hi")], SettingsChange::default()).await;
    assert_eq!(said, Err(Closed));
    assert_eq!(client.thread.interrupt().await, Err(Closed));
    assert_eq!(client.thread.configure(SettingsChange::default()).await, Err(Closed));
    client.thread.close().await;
    client.thread.finish().await;
}

#[tokio::test(start_paused = true)]
async fn finishing_lets_the_turn_end() {
    let mut client = busy(r#"[{"items": [{"pause_ms": 60000}, {"text": "done"}]}]"#).await;
    client.thread.finish().await;
    assert_eq!(outcome(&client.rest().await), Outcome::Completed { last_message: Some("done".into()), bookmark: None });
}

#[tokio::test(start_paused = true)]
async fn finishing_an_idle_thread_closes_it() {
    let mut client = start("[]").await;
    client.thread.finish().await;
    client.rest().await;
    assert_eq!(client.thread.interrupt().await, Err(Closed));
}

#[tokio::test(start_paused = true)]
async fn a_turn_can_be_interrupted_while_the_thread_finishes() {
    let mut client = busy(HANG).await;
    let thread = client.thread.clone();
    let finishing = tokio::spawn(async move { thread.finish().await });
    tokio::task::yield_now().await;
    assert_eq!(client.thread.interrupt().await, Ok(true));
    finishing.await.unwrap();
    assert_eq!(outcome(&client.rest().await), Outcome::Aborted(Abort::Interrupted));
}

#[tokio::test(start_paused = true)]
async fn closing_while_the_thread_finishes_satisfies_both() {
    let mut client = busy(HANG).await;
    let thread = client.thread.clone();
    let finishing = tokio::spawn(async move {
        thread.finish().await;
        thread.interrupt().await
    });
    tokio::task::yield_now().await;
    client.thread.close().await;
    assert_eq!(finishing.await.unwrap(), Err(Closed));
    assert_eq!(outcome(&client.rest().await), Outcome::Aborted(Abort::Interrupted));
}

#[tokio::test(start_paused = true)]
async fn dropping_the_last_handle_stops_the_thread() {
    let Client { thread, mut feed, world: _world, .. } = busy(HANG).await;
    let other = thread.clone();
    drop(thread);
    assert_eq!(other.interrupt().await, Ok(true));
    drop(other);
    let last = feed.next().await.expect("the turn has ended");
    assert!(matches!(last.body, Body::TurnEnded(Outcome::Aborted(_))), "{}", shown::event(&last));
    assert!(feed.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_feed_does_not_stop_the_turn() {
    let client = start(r#"[{"items": [{"text": "unheard"}]}]"#).await;
    let Client { thread, feed, world: _world, .. } = client;
    drop(feed);
    thread.say(TurnId::new("1"), vec![said("hi")], SettingsChange::default()).await.unwrap();
    thread.finish().await;
    let text = std::fs::read_to_string(&thread.started().rollout).unwrap();
    assert!(text.contains("unheard"), "{text}");
}
