//! Budgets: each limit ends the turn, what was used outlives the program, and agents below count.

use std::sync::Arc;
use std::time::Duration;

use codex_config::BudgetConfig;
use codex_engine::Setup;
use codex_log::history::ForkPoint;
use codex_log::{Body, Event, Failure, Outcome};
use codex_thread::{ExplicitOverrides, InitialHistory};
use codex_wire::budget::{BudgetEvent, Used};
use codex_wire::error_info::CodexErrorInfo;
use tokio::time::Instant;

use crate::world::{Client, FakeAgents, World, outcome, resumed};

/// A model that plans again and again, with 110 tokens for each answer.
const PLANS: &str = r#"[{"items": [{"call": "update_plan", "args": {"plan": []}}], "repeat": true}]"#;
const ANSWERS: &str = r#"[{"items": [{"text": "Yes."}], "repeat": true}]"#;

#[track_caller]
fn failure(events: &[Arc<Event>]) -> Failure {
    match outcome(events) {
        Outcome::Failed(failure) => failure,
        other => panic!("the turn has not failed: {other:?}"),
    }
}

#[track_caller]
fn check_exhausted(events: &[Arc<Event>], message: &str) {
    let failure = failure(events);
    assert_eq!((failure.message.as_str(), &failure.info), (message, &CodexErrorInfo::SessionBudgetExceeded));
    let is_reached = |event: &&Arc<Event>| matches!(event.body, Body::Budget(BudgetEvent::Reached { .. }));
    assert_eq!(events.iter().filter(is_reached).count(), 1, "it is logged once");
}

async fn used(client: &Client) -> Used {
    let state = client.thread.state().await.expect("the thread is open").expect("it is in a file");
    state.used.expect("the log tells what was used")
}

/// Starts a thread with one limit, and runs a turn that reaches it.
async fn check_limit(limit: &str, script: &str, requests: usize, message: &str) -> Client {
    let mut client = World::new().set(limit).start(script).await;
    let events = client.turn("1", "go").await;
    check_exhausted(&events, message);
    assert_eq!(client.prompts.all().len(), requests);
    assert!(client.line_kinds().contains(&"event_msg budget_reached".to_owned()), "{:?}", client.line_kinds());
    client
}

#[tokio::test(start_paused = true)]
async fn tokens_end_the_turn_and_further_turns_until_there_are_more() {
    let mut client = check_limit("budget.max_tokens=300", PLANS, 3, "budget of 300 tokens exhausted: 330 used").await;
    check_exhausted(&client.turn("2", "again").await, "budget of 300 tokens exhausted: 330 used");
    assert_eq!(client.prompts.all().len(), 3, "the model is not asked any more");
    let mut client = client.start_again(PLANS, resumed).await;
    check_exhausted(&client.turn("3", "and again").await, "budget of 300 tokens exhausted: 330 used");
    client.world = client.world.set("budget.max_tokens=500");
    let mut client = client.start_again(PLANS, resumed).await;
    check_exhausted(&client.turn("4", "go on").await, "budget of 500 tokens exhausted: 550 used");
    assert_eq!(client.prompts.all().len(), 2, "what was used before counts");
    let told = used(&client).await;
    assert_eq!((told.tokens, told.requests), (550, 5));
}

#[tokio::test(start_paused = true)]
async fn a_turn_may_use_its_budget_to_the_last_token() {
    let mut client = World::new().set("budget.max_tokens=110").start(ANSWERS).await;
    let events = client.turn("1", "go").await;
    assert!(matches!(outcome(&events), Outcome::Completed { .. }));
    check_exhausted(&client.turn("2", "again").await, "budget of 110 tokens exhausted: 110 used");
    let mut client = World::new().set("budget.max_tokens=109").start(ANSWERS).await;
    check_exhausted(&client.turn("1", "go").await, "budget of 109 tokens exhausted: 110 used");
}

#[tokio::test(start_paused = true)]
async fn requests_are_refused_before_they_begin() {
    check_limit("budget.max_requests=2", PLANS, 2, "budget of 2 requests exhausted: 2 used").await;
}

/// The clock runs, because a paused one jumps to the time limit of a command while its process starts.
#[tokio::test]
async fn commands_are_refused_before_they_begin() {
    let script = r#"[{"items": [{"call": "shell", "args": {"command": ["touch", "one"]}}]},
                     {"items": [{"call": "shell", "args": {"command": ["touch", "two"]}}]}]"#;
    let mut client = World::new()
        .set("budget.max_commands=1")
        .set("sandbox_mode=danger-full-access")
        .set("approval_policy=never")
        .start(script)
        .await;
    check_exhausted(&client.turn("1", "go").await, "budget of 1 commands exhausted: 1 used");
    assert!(client.world.path("project/one").exists());
    assert!(!client.world.path("project/two").exists(), "it was not started");
}

#[tokio::test(start_paused = true)]
async fn costs_follow_the_prices_and_need_one() {
    let priced = || World::new().set("model=m-1").set("prices.m-1.input=1000").set("prices.m-1.output=10000");
    let mut client = priced().set("budget.max_cost=0.5").start(PLANS).await;
    check_exhausted(&client.turn("1", "go").await, "budget of 0.5 exhausted: spent 0.6000");
    assert_eq!(client.prompts.all().len(), 3);
    let mut client = World::new().set("model=other").set("budget.max_cost=1").start(PLANS).await;
    let failed = failure(&client.turn("1", "go").await);
    assert_eq!(failed.message, "no price is set for the model other, so its cost cannot be limited");
    assert!(client.prompts.all().is_empty(), "nothing is spent");
}

#[tokio::test(start_paused = true)]
async fn time_ends_a_turn_that_hangs() {
    let begun = Instant::now();
    let hangs = r#"[{"items": [{"text": "Hal", "done": false}, {"hang": true}]}]"#;
    check_limit("budget.max_seconds=90", hangs, 1, "budget of 90 seconds exhausted: 90.0 used").await;
    assert_eq!(begun.elapsed().as_secs(), 90);
}

#[tokio::test(start_paused = true)]
async fn waits_for_a_person_do_not_count() {
    let script = r#"[{"items": [{"call": "shell", "args": {"command": ["touch", "one"]}}]},
                     {"items": [{"text": "Done."}]}]"#;
    let mut client = World::new().set("budget.max_seconds=90").set("approval_policy=untrusted").start(script).await;
    client.say("1", "go").await;
    let events = client.until(|body| matches!(body, Body::Asked(_))).await;
    let Some(Body::Asked(question)) = events.last().map(|event| &event.body) else { panic!("nobody is asked") };
    tokio::time::sleep(Duration::from_secs(10_000)).await;
    let answered = client.thread.answer(question.id.clone(), codex_log::Answer::Declined).await;
    assert_eq!(answered, Ok(true));
    assert!(matches!(outcome(&client.until_ended().await), Outcome::Completed { .. }));
}

#[tokio::test(start_paused = true)]
async fn limits_of_a_run_count_this_run_only() {
    let client = World::new().start(ANSWERS).await;
    let limited = |thread, setup| Setup {
        run_budget: BudgetConfig { tokens: Some(200), ..BudgetConfig::default() },
        ..resumed(thread, setup)
    };
    let mut client = client.start_again(PLANS, limited).await;
    check_exhausted(&client.turn("1", "go").await, "budget of 200 tokens exhausted: 220 used");
    let mut client = client.start_again(PLANS, limited).await;
    check_exhausted(&client.turn("2", "go").await, "budget of 200 tokens exhausted: 220 used");
    assert_eq!(used(&client).await.tokens, 440);
}

#[tokio::test(start_paused = true)]
async fn a_compaction_keeps_what_was_used_and_a_copy_has_used_nothing() {
    let mut client = World::new().set("budget.max_tokens=600").start(ANSWERS).await;
    client.turn("1", "go").await;
    client.thread.compact(codex_log::TurnId::new("2")).await.expect("the thread is open");
    client.until_ended().await;
    let before = used(&client).await;
    assert_eq!((before.tokens, before.requests), (220, 2));
    let client = client.start_again(ANSWERS, resumed).await;
    assert_eq!(used(&client).await, before, "the file is read from the compaction on");
    let forked = |thread, setup| {
        let explicit = ExplicitOverrides::default();
        Setup { initial_history: InitialHistory::Forked { thread, point: ForkPoint::End, explicit }, ..setup }
    };
    let mut client = client.start_again(ANSWERS, forked).await;
    client.turn("3", "go").await;
    assert_eq!(used(&client).await.tokens, 110);
}

#[tokio::test(start_paused = true)]
async fn a_thread_without_a_budget_writes_nothing_about_it() {
    let mut client = World::new().start(ANSWERS).await;
    client.turn("1", "go").await;
    assert!(!client.line_kinds().iter().any(|kind| kind.contains("budget")), "{:?}", client.line_kinds());
}

/// The use of agents below, and the message when it is too much.
const CHARGES: [(&str, Used, &str); 5] = [
    ("max_tokens=500", Used { tokens: 501, ..NOTHING }, "budget of 500 tokens exhausted: 501 used"),
    ("max_cost=2", Used { cost: 2.5, ..NOTHING }, "budget of 2 exhausted: spent 2.5000"),
    ("max_seconds=60", Used { time_ms: 60_500, ..NOTHING }, "budget of 60 seconds exhausted: 60.5 used"),
    ("max_commands=3", Used { commands: 4, ..NOTHING }, "budget of 3 commands exhausted: 4 used"),
    ("max_requests=3", Used { requests: 3, ..NOTHING }, "budget of 3 requests exhausted: 4 used"),
];
const NOTHING: Used = Used { tokens: 0, cost: 0.0, time_ms: 0, commands: 0, requests: 0 };

#[tokio::test(start_paused = true)]
async fn what_agents_below_use_ends_the_turn_of_their_root() {
    for (limit, charge, message) in CHARGES {
        let world = World::new().set(&format!("budget.{limit}")).set("model=m").set("prices.m={input=0,output=0}");
        let below = FakeAgents::new();
        let script = r#"[{"items": [{"text": "Hal", "done": false}, {"hang": true}]}]"#;
        let mut client = world.start_with_agents(script, &below).await;
        client.say("1", "go").await;
        client.until(|body| matches!(body, Body::ItemDelta { .. })).await;
        below.use_up(charge);
        check_exhausted(&client.until_ended().await, message);
        assert_eq!(below.canceled(), [message], "{limit}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_thread_without_a_turn_warns_once_and_ends_its_agents() {
    let world = World::new().set("budget.max_tokens=500");
    let below = FakeAgents::new();
    let mut client = world.start_with_agents(ANSWERS, &below).await;
    let charge = |tokens| below.use_up(Used { tokens, ..NOTHING });
    charge(400);
    charge(200);
    let events = client.until(|body| matches!(body, Body::Warning { .. })).await;
    let Some(Body::Warning { message }) = events.last().map(|event| &event.body) else { panic!("it warns") };
    assert_eq!(message, "budget of 500 tokens exhausted: 600 used");
    assert_eq!(below.canceled().len(), 1);
    charge(1);
    client.until(|body| matches!(body, Body::Budget(BudgetEvent::Used { .. }))).await;
    let events = client.turn("1", "go").await;
    assert_eq!(below.canceled().len(), 2, "for the last charge, and for the turn");
    assert!(!events.iter().any(|event| matches!(event.body, Body::Warning { .. })));
    check_exhausted(&events, "budget of 500 tokens exhausted: 601 used");
    let client = client.start_again(ANSWERS, resumed).await;
    assert_eq!(used(&client).await.tokens, 601, "it is known after a restart");
}
