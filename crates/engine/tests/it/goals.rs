//! Goals: turns that a thread starts by itself, and everything that ends them.

use std::collections::HashMap;
use std::sync::Arc;

use codex_engine::Setup;
use codex_log::history::ForkPoint;
use codex_log::{Abort, Body, Event, Outcome, TurnId};
use codex_thread::goal::{GoalChange, GoalError};
use codex_thread::{ExplicitOverrides, InitialHistory, TurnStart};
use codex_wire::goal::{Goal, GoalStatus};
use codex_wire::response::ResponseItem;
use codex_wire::review::{ReviewRequest, ReviewTarget};
use expect_test::expect;

use crate::shown;
use crate::world::{Client, World, check_lines, start};

const COMPLETE: &str = r#"{"items": [{"call": "update_goal", "args": {"status": "complete"}}]}"#;
const LOOK: &str = r#"{"items": [{"call": "update_plan", "args": {"plan": []}}]}"#;

fn wish(objective: &str) -> GoalChange {
    GoalChange { objective: Some(objective.to_owned()), ..GoalChange::default() }
}

fn status(status: GoalStatus) -> GoalChange {
    GoalChange { status: Some(status), ..GoalChange::default() }
}

async fn set(client: &Client, change: GoalChange) -> Goal {
    client.thread.set_goal(change).await.expect("the thread is open").expect("the goal is right")
}

async fn goal(client: &Client) -> Goal {
    client.thread.goal().await.expect("the thread is open").expect("there is a goal")
}

/// Reads until the goal has this status and no turn is running.
async fn until(client: &mut Client, wanted: GoalStatus) -> Vec<Arc<Event>> {
    let mut events = client.until(|body| matches!(body, Body::GoalChanged(goal) if goal.status == wanted)).await;
    if !matches!(events.last().map(|event| event.turn.is_some()), Some(false)) {
        events.extend(client.until_ended().await);
    }
    events
}

/// The relevant parts of events, one per line; turns are numbered in order.
fn told(events: &[Arc<Event>]) -> Vec<String> {
    let mut names: HashMap<TurnId, usize> = HashMap::new();
    let line = |event: &Arc<Event>| {
        let count = names.len() + 1;
        let turn = event.turn.clone().map(|turn| *names.entry(turn).or_insert(count));
        let turn = turn.map_or("-".to_owned(), |turn| turn.to_string());
        let what = match &event.body {
            Body::TurnStarted { .. } => "started".to_owned(),
            Body::GoalChanged(goal) => format!("goal {} {} tokens", goal.status.as_str(), goal.tokens_used),
            Body::GoalCleared => "goal cleared".to_owned(),
            Body::Recorded(record) => {
                let item = record.item().map(|item| shown::item(&item)).unwrap_or_default();
                item.split_once("\\n").map_or(item.clone(), |(first, rest)| format!("{first}… {}", &rest[..24]))
            }
            Body::TurnEnded(Outcome::Completed { .. }) => "completed".to_owned(),
            Body::TurnEnded(outcome) => format!("{outcome:?}").split('{').next().unwrap_or_default().trim().to_owned(),
            Body::Warning { message } => format!("warning: {message}"),
            _ => return None,
        };
        Some(format!("{turn} {what}"))
    };
    events.iter().filter_map(line).collect()
}

fn is_offered(client: &Client) -> Vec<bool> {
    client.prompts.all().iter().map(|prompt| prompt.tools.responses_json().contains("update_goal")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_thread_continues_by_itself_until_the_model_reports_the_goal_complete() {
    let script = format!(
        r#"[{LOOK}, {{"items": [{{"text": "Looked."}}]}}, {LOOK}, {{"items": [{{"text": "More."}}]}}, {COMPLETE},
            {{"items": [{{"text": "Done."}}]}}, {{"items": [{{"text": "Hello."}}]}}]"#
    );
    let mut client = start(&script).await;
    let set = set(&client, wish("ship it")).await;
    assert_eq!((set.status, set.tokens_used, set.token_budget), (GoalStatus::Active, 0, None));
    let events = until(&mut client, GoalStatus::Complete).await;
    check_lines(
        &told(&events),
        expect![[r#"
            - user: (environment)
            - goal active 0 tokens
            1 started
            1 user: "<goal>… The person has set a goa
            1 call call-1-1 update_plan
            1 output call-1-1 "Plan updated"
            1 assistant: "Looked."
            1 goal active 220 tokens
            1 completed
            2 started
            2 user: "<goal>… The goal is still active
            2 call call-3-1 update_plan
            2 output call-3-1 "Plan updated"
            2 assistant: "More."
            2 goal active 440 tokens
            2 completed
            3 started
            3 user: "<goal>… The goal is still active
            3 call call-5-1 update_goal
            3 goal complete 550 tokens
            3 output call-5-1 "Goal updated"
            3 assistant: "Done."
            3 completed
        "#]],
    );
    assert_eq!(goal(&client).await.tokens_used, 5 * 110, "the last words come when it is over");
    client.turn("2", "hi").await;
    assert_eq!(is_offered(&client), [true, true, true, true, true, false, false]);
    let input = client.last_input();
    assert_eq!(input.iter().filter(|text| text.contains("ship it")).count(), 1, "it is told once: {input:?}");
    assert_eq!(client.prompts.all().len(), 7, "nothing more comes by itself");
}

#[tokio::test(start_paused = true)]
async fn a_thread_without_a_goal_knows_nothing_of_goals() {
    let script = format!(r#"[{COMPLETE}, {{"items": [{{"text": "a"}}]}}]"#);
    let mut client = start(&script).await;
    let events = client.turn("1", "hi").await;
    assert!(told(&events).iter().any(|line| line.contains("unsupported call: update_goal")), "{:?}", told(&events));
    assert_eq!(is_offered(&client), [false, false]);
    assert_eq!(client.thread.goal().await, Ok(None));
    assert_eq!(client.thread.clear_goal().await, Ok(false));
    assert!(client.line_kinds().iter().all(|kind| !kind.contains("goal")));
}

#[tokio::test(start_paused = true)]
async fn waiting_input_goes_first() {
    let script = format!(r#"[{{"items": [{{"text": "Hello."}}]}}, {COMPLETE}, {{"items": [{{"text": "Done."}}]}}]"#);
    let mut client = start(&script).await;
    let (_, start) = tokio::join!(client.thread.set_goal(wish("ship it")), client.say("1", "hi"));
    assert_eq!(start, TurnStart::Started);
    let events = until(&mut client, GoalStatus::Complete).await;
    let first = events.iter().find(|event| matches!(event.body, Body::TurnStarted { .. })).expect("a turn begins");
    assert_eq!(first.turn, Some(TurnId::new("1")));
    assert_eq!(events.iter().filter(|event| matches!(event.body, Body::TurnStarted { .. })).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_a_person_stops_pauses_the_goal_and_time_is_counted() {
    let mut client = start(r#"[{"items": [{"text": "a"}, {"hang": true}]}]"#).await;
    set(&client, wish("ship it")).await;
    client.until(|body| matches!(body, Body::ItemDelta { .. })).await;
    tokio::time::advance(std::time::Duration::from_secs(90)).await;
    assert_eq!(client.thread.interrupt().await, Ok(true));
    let events = until(&mut client, GoalStatus::Paused).await;
    assert!(matches!(events.last().expect("it ends").body, Body::TurnEnded(Outcome::Aborted(Abort::Interrupted))));
    let goal = goal(&client).await;
    assert_eq!((goal.status, goal.time_used_ms / 1000), (GoalStatus::Paused, 90));
    assert_eq!(client.thread.running().await, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn a_failure_pauses_the_goal_and_a_used_up_allowance_is_distinguished() {
    let limit = r#"{"status": 429, "body": {"error": {"type": "usage_limit_reached", "message": "limit"}}}"#;
    let refusal = r#"{"status": 400, "body": {"error": {"message": "no"}}}"#;
    for (entry, expected) in [(limit, GoalStatus::UsageLimited), (refusal, GoalStatus::Paused)] {
        let mut client = start(&format!("[{entry}]")).await;
        set(&client, wish("ship it")).await;
        until(&mut client, expected).await;
        assert_eq!(client.thread.running().await, Ok(None));
    }
}

#[tokio::test(start_paused = true)]
async fn an_exhausted_budget_is_reported_at_once_and_starts_nothing_more() {
    let script = format!(r#"[{LOOK}, {LOOK}, {{"items": [{{"text": "As far as I came."}}]}}]"#);
    let mut client = start(&script).await;
    set(&client, GoalChange { token_budget: Some(Some(150)), ..wish("ship it") }).await;
    let events = until(&mut client, GoalStatus::BudgetLimited).await;
    check_lines(
        &told(&events),
        expect![[r#"
            - user: (environment)
            - goal active 0 tokens
            1 started
            1 user: "<goal>… The person has set a goa
            1 call call-1-1 update_plan
            1 output call-1-1 "Plan updated"
            1 call call-2-1 update_plan
            1 goal budgetLimited 220 tokens
            1 output call-2-1 "Plan updated"
            1 user: "<goal>… The tokens set aside for
            1 assistant: "As far as I came."
            1 completed
        "#]],
    );
    assert_eq!(goal(&client).await.tokens_used, 220);
    assert_eq!(client.thread.running().await, Ok(None));
    let refused = client.thread.set_goal(status(GoalStatus::Active)).await.expect("the thread is open");
    assert_eq!(refused, Err(GoalError::BudgetUsedUp { budget: 150 }));
}

#[tokio::test(start_paused = true)]
async fn a_model_that_only_talks_is_not_asked_for_ever() {
    let mut client = start(r#"[{"items": [{"text": "I am working on it."}], "repeat": true}]"#).await;
    set(&client, wish("ship it")).await;
    until(&mut client, GoalStatus::Blocked).await;
    assert_eq!(client.prompts.all().len(), 2);
    assert_eq!(client.thread.running().await, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn the_model_can_only_report_a_goal_as_complete_or_blocked() {
    let call = |args: &str| format!(r#"{{"items": [{{"call": "update_goal", "args": {args}}}]}}"#);
    let script = [
        call(r#"{"status": "active", "tokenBudget": 1000000}"#),
        call(r#"{"status": "nonsense"}"#),
        call("{}"),
        call(r#"{"status": "blocked"}"#),
        r#"{"items": [{"text": "I need a key."}]}"#.to_owned(),
    ];
    let mut client = start(&format!("[{}]", script.join(","))).await;
    set(&client, wish("ship it")).await;
    let events = until(&mut client, GoalStatus::Blocked).await;
    let outputs = events.iter().filter_map(|event| match &event.body {
        Body::Recorded(record) if matches!(*record.item().unwrap(), ResponseItem::FunctionCallOutput(_)) => {
            Some(shown::item(&record.item().unwrap()))
        }
        _ => None,
    });
    check_lines(
        &outputs.collect::<Vec<_>>(),
        expect![[r#"
        output call-1-1 "the status must be `complete` or `blocked`"
        output call-2-1 "failed to parse function arguments: unknown value `nonsense`, expected one of active, paused, blocked, usageLimited, budgetLimited, complete at line 1 column 22"
        output call-3-1 "failed to parse function arguments: missing field `status` at line 1 column 2"
        output call-4-1 "Goal updated"
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn a_goal_that_is_taken_away_or_put_aside_lets_the_turn_end_and_no_other_begin() {
    for is_cleared in [true, false] {
        let slowly = LOOK.replace(r#"[{"call""#, r#"[{"pause_ms": 5000}, {"call""#);
        let script = format!(r#"[{slowly}, {{"items": [{{"text": "Fine."}}]}}]"#);
        let mut client = start(&script).await;
        set(&client, wish("ship it")).await;
        let asked = |body: &Body| matches!(body, Body::ModelAsked(_));
        client.until(asked).await;
        if is_cleared {
            assert_eq!(client.thread.clear_goal().await, Ok(true));
        } else {
            set(&client, status(GoalStatus::Paused)).await;
        }
        client.until_ended().await;
        assert_eq!(client.thread.running().await, Ok(None));
        let input = client.last_input();
        assert!(input.last().is_some_and(|text| text.contains("was put aside")), "{input:?}");
        assert_eq!(is_offered(&client), [true, false]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_goal_and_its_cost_survive_a_restart_and_wait_for_input() {
    let hangs = r#"{"items": [{"text": "a"}, {"hang": true}]}"#;
    let mut client = start(&format!(r#"[{{"items": [{{"text": "Looking."}}]}}, {hangs}]"#)).await;
    set(&client, GoalChange { token_budget: Some(Some(1000)), ..wish("ship it") }).await;
    client.until_ended().await;
    client.until(|body| matches!(body, Body::ItemDelta { .. })).await;
    let before = goal(&client).await;
    assert_eq!(before.tokens_used, 110);
    let script = format!(r#"[{{"items": [{{"text": "Hi."}}]}}, {COMPLETE}, {{"items": [{{"text": "Done."}}]}}]"#);
    let resumed = |thread, setup| Setup {
        initial_history: InitialHistory::Resumed { thread, explicit: ExplicitOverrides::default() },
        ..setup
    };
    let mut client = client.start_again(&script, resumed).await;
    assert_eq!(goal(&client).await, before, "to close a thread is not to stop its goal");
    assert_eq!(client.thread.running().await, Ok(None), "nobody has said anything yet");
    client.say("2", "hi").await;
    client.until_ended().await;
    assert_eq!(client.last_input().iter().filter(|text| text.contains("ship it")).count(), 2, "it is told anew");
    until(&mut client, GoalStatus::Complete).await;
    assert_eq!(goal(&client).await.tokens_used, 330);
}

#[tokio::test(start_paused = true)]
async fn a_copy_of_a_thread_has_its_goal_and_one_that_was_cleared_has_none() {
    let forked = |thread, setup| Setup {
        initial_history: InitialHistory::Forked {
            thread,
            point: ForkPoint::End,
            explicit: ExplicitOverrides::default(),
        },
        ..setup
    };
    let client = start("[]").await;
    set(&client, GoalChange { status: Some(GoalStatus::Paused), ..wish("ship it") }).await;
    let client = client.start_again("[]", forked).await;
    assert_eq!(goal(&client).await.objective, "ship it");
    assert_eq!(client.thread.clear_goal().await, Ok(true));
    let client = client.start_again("[]", forked).await;
    assert_eq!(client.thread.goal().await, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn a_summary_leaves_the_goal_in_the_file_and_in_the_conversation() {
    let script = format!(
        r#"[{{"items": [{{"text": "Looking."}}]}}, {{"items": [{{"hang": true}}]}}, {{"items": [{{"text": "A summary."}}]}},
            {COMPLETE}, {{"items": [{{"text": "Done."}}]}}]"#
    );
    let mut client = start(&script).await;
    set(&client, wish("ship it")).await;
    client.until_ended().await;
    client.until(|body| matches!(body, Body::TokensCounted { .. })).await;
    client.thread.compact(TurnId::new("pack")).await.expect("the thread is open");
    until(&mut client, GoalStatus::Complete).await;
    let input = client.last_input();
    assert_eq!(input.iter().filter(|text| text.contains("ship it")).count(), 1, "{input:?}");
    let kinds = client.line_kinds();
    let summary = kinds.iter().position(|kind| kind == "compacted").expect("it was summed up");
    assert_eq!(kinds[summary + 2], "event_msg goal_changed", "{kinds:?}");
    let resumed = |thread, setup| Setup {
        initial_history: InitialHistory::Resumed { thread, explicit: ExplicitOverrides::default() },
        ..setup
    };
    let client = client.start_again("[]", resumed).await;
    assert_eq!(goal(&client).await.status, GoalStatus::Complete);
}

#[tokio::test(start_paused = true)]
async fn a_reviewer_works_towards_no_goal_and_the_thread_continues_after_it() {
    let script = format!(
        r#"[{{"items": [{{"hang": true}}]}}, {{"items": [{{"text": "{{}}"}}]}}, {COMPLETE}, {{"items": [{{"text": "Done."}}]}}]"#
    );
    let mut client = start(&script).await;
    set(&client, wish("ship it")).await;
    client.until(|body| matches!(body, Body::TokensCounted { .. })).await;
    let request = ReviewRequest { target: ReviewTarget::custom("Look."), user_facing_hint: None };
    client.thread.review(TurnId::new("r"), request).await.expect("the thread is open");
    client.until(|body| matches!(body, Body::ReviewExited(_))).await;
    let reviewer = shown::input(&client.prompts.all()[1]);
    assert_eq!(reviewer.last().map(String::as_str), Some(r#"user: "Look.""#));
    assert!(reviewer.iter().all(|item| !item.contains("ship it")), "{reviewer:?}");
    until(&mut client, GoalStatus::Complete).await;
    assert_eq!(is_offered(&client), [true, false, true, false]);
}

#[tokio::test(start_paused = true)]
async fn goals_can_be_switched_off_and_clients_that_know_none_see_nothing_of_them() {
    let client = World::new().set("features.goals=false").start("[]").await;
    let refused = client.thread.set_goal(wish("ship it")).await.expect("the thread is open");
    assert_eq!(refused, Err(GoalError::SwitchedOff));
    let client = start(r#"[{"items": [{"hang": true}]}]"#).await;
    set(&client, wish("ship it")).await;
    let old = |thread, setup| Setup {
        initial_history: InitialHistory::Resumed { thread, explicit: ExplicitOverrides::default() },
        profile: codex_thread::ClientProfile::EXEC,
        ..setup
    };
    let mut client = client.start_again(r#"[{"items": [{"text": "Hi."}]}]"#, old).await;
    assert_eq!(goal(&client).await.status, GoalStatus::Active);
    let events = client.turn("1", "hi").await;
    assert!(told(&events).iter().all(|line| !line.contains("goal")), "{:?}", told(&events));
    assert_eq!((is_offered(&client), client.thread.running().await), (vec![false], Ok(None)));
}

#[tokio::test(start_paused = true)]
async fn turns_of_a_goal_are_rolled_back_like_any_other_also_in_the_file() {
    let script = format!(
        r#"[{{"items": [{{"text": "Hello."}}]}}, {{"items": [{{"text": "I look."}}]}}, {COMPLETE}, {{"items": [{{"text": "Done."}}]}}]"#
    );
    let mut client = start(&script).await;
    client.turn("1", "hi").await;
    set(&client, wish("ship it")).await;
    until(&mut client, GoalStatus::Complete).await;
    assert_eq!(client.thread.roll_back(1).await, Ok(true));
    let script = r#"[{"items": [{"text": "Yes."}]}, {"items": [{"text": "Yes."}]}]"#;
    let resumed = |thread, setup| Setup {
        initial_history: InitialHistory::Resumed { thread, explicit: ExplicitOverrides::default() },
        ..setup
    };
    let mut client = client.start_again(script, resumed).await;
    client.turn("2", "more").await;
    let input = client.last_input();
    assert_eq!((input[0].as_str(), input[1].as_str(), input[3].as_str()), ("hi", "Hello.", "I look."), "{input:?}");
    assert_eq!((input.len(), input[4].as_str()), (5, "more"), "{input:?}");
    assert_eq!(client.thread.roll_back(2).await, Ok(true), "the turn of before counts after a resume too");
    client.turn("3", "again").await;
    assert_eq!(client.last_input(), ["hi", "Hello.", "again"]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_a_person_joined_is_rolled_back_completely() {
    let script =
        r#"[{"items": [{"text": "a"}]}, {"items": [{"text": "b"}, {"pause_ms": 1000}]}, {"items": [{"text": "c"}]}]"#;
    let mut client = start(script).await;
    client.turn("1", "one").await;
    client.say("2", "two").await;
    client.until(|body| matches!(body, Body::ItemDelta { .. })).await;
    assert_eq!(client.say("3", "and this").await, TurnStart::Joined(TurnId::new("2")));
    client.until_ended().await;
    assert_eq!(client.thread.roll_back(1).await, Ok(true));
    let resumed = |thread, setup| Setup {
        initial_history: InitialHistory::Resumed { thread, explicit: ExplicitOverrides::default() },
        ..setup
    };
    let mut client = client.start_again(r#"[{"items": [{"text": "d"}]}]"#, resumed).await;
    client.turn("4", "four").await;
    assert_eq!(client.last_input(), ["one", "a", "four"]);
}
