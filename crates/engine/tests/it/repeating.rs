//! Models that repeat themselves without end.

use std::sync::Arc;

use codex_log::{Event, Outcome};
use codex_model::Prompt;

use crate::world::{World, outcome};

fn failure(events: &[Arc<Event>]) -> String {
    match outcome(events) {
        Outcome::Failed(failure) => failure.message,
        other => panic!("the turn has not failed: {other:?}"),
    }
}

fn is_told(prompt: &Prompt) -> bool {
    format!("{:?}", prompt.input).contains("<repeated_call>")
}

/// Each of these used to run, and to cost, until somebody stopped it.
#[tokio::test]
async fn a_failing_call_that_is_repeated_is_pointed_out_and_then_ends_the_turn() {
    for (tool, args) in [
        ("shell", r#"{"command": ["false"]}"#),
        ("shell", r#"{"no": "command"}"#),
        ("no_such_tool", "{}"),
        ("apply_patch", r#"{"input": "no patch"}"#),
    ] {
        let script = format!(r#"[{{"items": [{{"call": "{tool}", "args": {args}}}], "repeat": true}}]"#);
        let world = World::new().set("approval_policy=\"never\"").set("sandbox_mode=\"danger-full-access\"");
        let mut client = world.start(&script).await;
        let events = client.turn("1", "go").await;
        assert_eq!(failure(&events), format!("the model made the same failing call of {tool} 10 times"), "{args}");
        let prompts = client.prompts.all();
        let told: Vec<bool> = prompts.iter().map(is_told).collect();
        let expected: Vec<bool> = (0..10).map(|failures| failures >= 3).collect();
        assert_eq!(told, expected, "{tool} {args}");
        client.close().await;
    }
}

#[tokio::test]
async fn calls_that_succeed_are_limited_by_the_number_of_requests() {
    let script = r#"[{"items": [{"call": "update_plan", "args": {"plan": []}}], "repeat": true}]"#;
    let mut client = World::new().set("max_turn_requests=40").start(script).await;
    let events = client.turn("1", "go").await;
    assert_eq!(failure(&events), "the turn has made 40 requests to the model, the maximum (max_turn_requests)");
    let prompts = client.prompts.all();
    assert_eq!(prompts.len(), 40);
    assert!(!prompts.iter().any(is_told));
    client.close().await;
}
