//! Trees of real agents: how their turns and requests wait for each other.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use codex_agents::LocalTrees;
use codex_engine::Setup;
use codex_log::agents::AgentEvent;
use codex_log::{Body, Event, Outcome};
use codex_model::{Answer, Model, ModelEvent, Prompt, StreamExt as _};
use codex_wire::agent::{SubagentCompletion, SubagentLifecycleEvent};
use codex_wire::ids::ThreadId;
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::world::{Client, World, check_lines, outcome};

/// The answers of a model in the order in which they began.
#[derive(Clone, Default)]
pub(crate) struct Answers(Arc<Mutex<Vec<Begun>>>);

#[derive(Clone, Copy)]
struct Begun {
    /// The second since the start.
    second: u64,
    /// The task of the agent that had asked; none for the root.
    task: Option<u32>,
}

impl Answers {
    /// One line for each, in which agents have the numbers of their first answers. Answers that began in the same second
    /// are sorted, because nothing decides which of them is the first.
    pub(crate) fn named(&self) -> Vec<String> {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut tasks: Vec<u32> = Vec::new();
        for task in answers.iter().filter_map(|answer| answer.task) {
            if !tasks.contains(&task) {
                tasks.push(task);
            }
        }
        let name = |task: u32| tasks.iter().position(|seen| *seen == task).map(|place| format!("agent {}", place + 1));
        let mut lines: Vec<(u64, String)> = answers
            .iter()
            .map(|answer| (answer.second, answer.task.and_then(name).unwrap_or_else(|| "root".to_owned())))
            .collect();
        lines.sort();
        lines.into_iter().map(|(second, name)| format!("{second} s: {name}")).collect()
    }
}

/// A model that records when its answers begin. A request that waits in the queue of its tree has no answer yet.
struct Timed {
    model: Arc<dyn Model>,
    begun: Instant,
    answers: Answers,
    /// The root is the first to ask.
    root: OnceLock<ThreadId>,
}

impl Model for Timed {
    fn ask(&self, prompt: Prompt) -> Answer {
        let input: String = prompt.input.iter().map(|item| item.json().to_string()).collect();
        let is_root = *self.root.get_or_init(|| prompt.thread) == prompt.thread;
        let task = [1, 2, 3].into_iter().find(|task| !is_root && input.contains(&helper_task(*task)));
        let (begun, answers) = (self.begun, self.answers.clone());
        Box::pin(self.model.ask(prompt).inspect(move |event| {
            if matches!(event, Ok(ModelEvent::Opened { .. })) {
                let second = begun.elapsed().as_secs();
                answers.0.lock().unwrap_or_else(PoisonError::into_inner).push(Begun { second, task });
            }
        }))
    }
}

/// Starts a thread that may start agents.
pub(crate) async fn start(world: World, script: &Value) -> (Client, Answers) {
    start_as(world, script, |setup| setup).await
}

/// Starts a thread that may start agents, with another setup.
pub(crate) async fn start_as(world: World, script: &Value, change: impl FnOnce(Setup) -> Setup) -> (Client, Answers) {
    let answers = Answers::default();
    let (setup, prompts) = world.setup(&script.to_string());
    let timed = Timed {
        model: Arc::clone(&setup.model),
        begun: Instant::now(),
        answers: answers.clone(),
        root: OnceLock::new(),
    };
    let mut setup = change(Setup { model: Arc::new(timed), ..setup });
    setup.offer_agents(&LocalTrees);
    let (thread, feed) = setup.start().await.expect("the thread starts");
    (Client { world, thread, feed, prompts }, answers)
}

pub(crate) fn world() -> World {
    World::new().set("features.subagent_tools=true")
}

pub(crate) fn call(id: &str, tool: &str, args: Value) -> Value {
    json!({"call": tool, "id": id, "args": args})
}

pub(crate) fn helper_task(number: u32) -> String {
    format!("helper task {number}")
}

pub(crate) fn plan(id: &str) -> Value {
    call(id, "update_plan", json!({"plan": []}))
}

pub(crate) fn wait_for(id: &str, agent: u32) -> Value {
    call(id, "subagent_await", json!({"agent_ids": [agent]}))
}

/// A root that starts three agents and goes on as `root` says. Its agents answer as `helpers` say.
fn three_helpers(root: &[Value], beside: &[Value], helpers: &[Value]) -> Value {
    let spawn =
        |number: u32| call(&format!("id-spawn-{number}"), "subagent_spawn", json!({"prompt": helper_task(number)}));
    // A request of the root has all that was said before, so its last call comes first, and its agents last.
    let spawns = [1, 2, 3].map(spawn);
    let begin = json!({"items": spawns.iter().chain(beside).collect::<Vec<_>>()});
    Value::Array(root.iter().chain(helpers).chain([&begin]).cloned().collect())
}

/// The ends of agents that the log of their root tells.
pub(crate) fn ends(events: &[Arc<Event>]) -> Vec<SubagentCompletion> {
    let results = events.iter().filter_map(|event| match &event.body {
        Body::Agent(event) => match &**event {
            AgentEvent::Result(result) => Some(result.completion.clone()),
            _ => None,
        },
        _ => None,
    });
    results.collect()
}

/// The words for all statuses that agents had, without repetitions.
fn statuses(events: &[Arc<Event>]) -> Vec<String> {
    let mut words: Vec<String> = events
        .iter()
        .filter_map(|event| match &event.body {
            Body::Agent(event) => match &**event {
                AgentEvent::Lifecycle(SubagentLifecycleEvent::Status(change)) => {
                    Some(change.status.as_str().to_owned())
                }
                _ => None,
            },
            _ => None,
        })
        .collect();
    words.sort();
    words.dedup();
    words
}

/// Plays a tree to its end. All agents must complete, and nothing may be told to have failed meanwhile. Agents are named
/// in the order of their answers.
async fn check_answers(world: World, script: &Value, expected: Expect) {
    let (mut client, answers) = start(world.set("subagent_root_inbox_autosubmit=false"), script).await;
    let mut events = client.turn("1", "Have it done.").await;
    let done = Outcome::Completed { last_message: Some("All begun.".into()), bookmark: None };
    assert_eq!(outcome(&events), done);
    while ends(&events).len() < 3 {
        events.push(client.next().await);
    }
    let helped = SubagentCompletion::Completed { last_message: Some("Helped.".to_owned()) };
    assert_eq!(ends(&events), vec![helped; 3]);
    assert!(statuses(&events).iter().all(|status| ["idle", "running", "queued"].contains(&status.as_str())));
    check_lines(&answers.named(), expected);
    client.close().await;
}

fn refusal() -> Value {
    json!({"when": "helper task", "delay_ms": 10_000, "status": 429, "headers": {"retry-after": 30},
           "body": {"error": {"message": "slow down"}}})
}

/// The first agent that asks is refused after ten seconds. The others work for twelve seconds and ask again, and the root
/// for twenty.
fn refused(refusal: Value) -> Value {
    let root = [
        json!({"when": "id-plan", "items": [{"text": "All begun."}]}),
        json!({"when": "id-spawn-3", "items": [{"pause_ms": 20_000}, plan("id-plan")]}),
    ];
    let helpers = [
        json!({"when": ["helper task", "child-plan"], "repeat": true, "items": [{"text": "Helped."}]}),
        refusal,
        json!({"when": "helper task", "repeat": true, "items": [{"pause_ms": 12_000}, plan("child-plan")]}),
    ];
    three_helpers(&root, &[], &helpers)
}

#[tokio::test(start_paused = true)]
async fn after_a_refusal_all_agents_of_a_tree_wait_together() {
    check_answers(
        world(),
        &refused(refusal()),
        expect![[r#"
        0 s: agent 1
        0 s: agent 2
        0 s: root
        0 s: root
        40 s: agent 1
        40 s: agent 2
        40 s: agent 3
        40 s: root
        52 s: agent 3
    "#]],
    )
    .await;
}

/// The answer has begun when the provider refuses it, so the turn of the agent tells that it tries again.
#[tokio::test(start_paused = true)]
async fn a_retry_that_is_told_makes_the_others_wait_too_and_is_no_end() {
    let error = json!({"code": "rate_limit_exceeded", "message": "Rate limit reached. Please try again in 30s."});
    let refusal = json!({"when": "helper task", "delay_ms": 10_000, "end": {"failed": error}});
    check_answers(
        world(),
        &refused(refusal),
        expect![[r#"
        0 s: agent 1
        0 s: agent 2
        0 s: root
        0 s: root
        10 s: agent 3
        40 s: agent 1
        40 s: agent 2
        40 s: agent 3
        40 s: root
        52 s: agent 3
    "#]],
    )
    .await;
}

/// Each answer takes a second, and only one request runs at once. The first agent tells the root that it has begun, and the
/// second one is refused, while the third one, the root and the first one wait.
#[tokio::test(start_paused = true)]
async fn after_a_refusal_the_root_goes_first_and_the_refused_agent_last() {
    let root = [json!({"when": "id-await", "items": [{"pause_ms": 1000}, {"text": "All begun."}]})];
    let begun = call("child-begun", "subagent_send_message", json!({"agent_id": 0, "prompt": "I have begun"}));
    let helped = json!([{"pause_ms": 1000}, {"text": "Helped."}]);
    let helpers = [
        json!({"when": ["helper task", "child-begun"], "items": helped}),
        json!({"when": "helper task", "items": [{"pause_ms": 1000}, begun]}),
        refusal(),
        json!({"when": "helper task", "repeat": true, "items": helped}),
    ];
    let script = three_helpers(&root, &[call("id-await", "subagent_await", json!({}))], &helpers);
    check_answers(
        world().set("agents.concurrent_requests=1"),
        &script,
        expect![[r#"
        0 s: agent 1
        0 s: root
        41 s: root
        42 s: agent 2
        43 s: agent 1
        44 s: agent 3
    "#]],
    )
    .await;
}

/// A turn of an agent waits for one that runs, although a request may be sent.
#[tokio::test(start_paused = true)]
async fn no_more_turns_run_at_once_than_are_allowed() {
    let root = [json!({"when": "id-spawn-3", "items": [{"text": "All begun."}]})];
    let helpers =
        [json!({"when": "helper task", "repeat": true, "items": [{"pause_ms": 10_000}, {"text": "Helped."}]})];
    let script = three_helpers(&root, &[], &helpers);
    for (turns, expected) in [
        (
            1,
            expect![[r#"
        0 s: agent 1
        0 s: root
        0 s: root
        10 s: agent 2
        20 s: agent 3
    "#]],
        ),
        (
            2,
            expect![[r#"
        0 s: agent 1
        0 s: agent 2
        0 s: root
        0 s: root
        10 s: agent 3
    "#]],
        ),
        (
            3,
            expect![[r#"
        0 s: agent 1
        0 s: agent 2
        0 s: agent 3
        0 s: root
        0 s: root
    "#]],
        ),
    ] {
        check_answers(world().set(&format!("agents.concurrent_turns={turns}")), &script, expected).await;
    }
}
