use std::sync::Arc;
use std::time::Duration;

use codex_log::{
    AgentMessage, Answer, Body, CommandEnd, CommandItem, CommandStatus, Event, Failure, Item, ItemId, Outcome,
    QuestionId, Seq,
};
use codex_wire::decision::ReviewDecision;
use codex_wire::error_info::CodexErrorInfo;
use codex_wire::ids::ThreadId;
use codex_wire::plan::{PlanItemArg, StepStatus, UpdatePlanArgs};
use codex_wire::tokens::{TokenUsage, TokenUsageInfo};
use expect_test::{Expect, expect};

use super::Projector;

/// Plays a log and shows its lines.
#[track_caller]
fn check(bodies: Vec<Body>, expected: Expect) {
    let mut projector = Projector::default();
    let mut events = Vec::new();
    let thread = ThreadId::fresh();
    for (seq, body) in (0..).zip(bodies) {
        projector.project(&Event { thread, seq: Seq::new(seq), at_ms: 0, turn: None, body }, &mut events);
    }
    let lines: Vec<String> = events.iter().map(|event| serde_json::to_string(event).unwrap() + "\n").collect();
    expected.assert_eq(&lines.concat());
}

fn counted(input_tokens: i64) -> Body {
    let usage = TokenUsage { input_tokens, output_tokens: 1, ..TokenUsage::default() };
    let info = TokenUsageInfo { total_token_usage: usage, last_token_usage: usage, ..TokenUsageInfo::new(None) };
    Body::TokensCounted { info: Some(info), rate_limits: None }
}

fn costing(input_tokens: i64, turn_cost: Option<f64>) -> Body {
    let Body::TokensCounted { info, rate_limits } = counted(input_tokens) else { unreachable!() };
    Body::TokensCounted { info: info.map(|info| TokenUsageInfo { turn_cost, ..info }), rate_limits }
}

#[test]
fn the_cost_of_a_run_is_that_of_its_turns() {
    let begun = || Body::TurnStarted { context_window: None };
    check(
        vec![
            costing(0, Some(0.0)),
            costing(10, Some(0.1)),
            costing(20, Some(0.3)),
            completed(),
            begun(),
            completed(),
            costing(20, Some(0.0)),
            costing(30, Some(0.1)),
            completed(),
            costing(40, None),
            completed(),
            costing(50, Some(0.1)),
            completed(),
        ],
        expect![[r#"
            {"type":"turn.completed","usage":{"input_tokens":20,"cached_input_tokens":0,"output_tokens":0,"reasoning_output_tokens":0,"cost":0.3}}
            {"type":"turn.started"}
            {"type":"turn.completed","usage":{"input_tokens":20,"cached_input_tokens":0,"output_tokens":0,"reasoning_output_tokens":0,"cost":0.3}}
            {"type":"turn.completed","usage":{"input_tokens":30,"cached_input_tokens":0,"output_tokens":0,"reasoning_output_tokens":0,"cost":0.4}}
            {"type":"turn.completed","usage":{"input_tokens":40,"cached_input_tokens":0,"output_tokens":0,"reasoning_output_tokens":0}}
            {"type":"turn.completed","usage":{"input_tokens":50,"cached_input_tokens":0,"output_tokens":0,"reasoning_output_tokens":0}}
        "#]],
    );
}

fn command(status: CommandStatus, output: Option<(i32, &str)>) -> Item {
    Item::Command(Arc::new(CommandItem {
        id: ItemId::new("call-1"),
        argv: vec!["bash".to_owned(), "-lc".to_owned(), "ls | wc".to_owned()],
        cwd: "/w".into(),
        parsed: Vec::new(),
        terminal: None,
        is_users_own: false,
        status,
        end: output.map(|(exit_code, text)| CommandEnd {
            exit_code,
            duration: Duration::ZERO,
            stdout: text.to_owned(),
            stderr: String::new(),
            aggregated: text.to_owned(),
            formatted: "not allowed".to_owned(),
        }),
    }))
}

fn plan(status: StepStatus) -> Body {
    Body::PlanUpdated(UpdatePlanArgs { explanation: None, plan: vec![PlanItemArg { step: "Look".to_owned(), status }] })
}

fn said(text: &str) -> Body {
    Body::ItemCompleted(Item::AgentMessage(AgentMessage { id: ItemId::new("msg"), text: text.into() }))
}

fn completed() -> Body {
    Body::TurnEnded(Outcome::Completed { last_message: None, bookmark: None })
}

#[test]
fn a_turn_with_a_command_and_a_message() {
    check(
        vec![
            Body::TurnStarted { context_window: None },
            Body::ItemStarted(command(CommandStatus::Running, None)),
            Body::ItemCompleted(command(CommandStatus::Completed, Some((0, "1\n")))),
            said("Done."),
            completed(),
        ],
        expect![[r#"
            {"type":"turn.started"}
            {"type":"item.started","item":{"id":"item_0","type":"command_execution","command":"bash -lc 'ls | wc'","aggregated_output":"","exit_code":null,"status":"in_progress"}}
            {"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"bash -lc 'ls | wc'","aggregated_output":"1\n","exit_code":0,"status":"completed"}}
            {"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"Done."}}
            {"type":"turn.completed","usage":{"input_tokens":0,"cached_input_tokens":0,"output_tokens":0,"reasoning_output_tokens":0}}
        "#]],
    );
}

#[test]
fn a_command_that_is_asked_about_begins_when_it_is_allowed() {
    let asked = || command(CommandStatus::AwaitingApproval, None);
    let answered = |decision| Body::Answered {
        question: QuestionId::first(asked().id().clone()),
        answer: Answer::Decision(decision),
        item: Some(asked()),
    };
    check(
        vec![Body::ItemStarted(asked()), answered(ReviewDecision::Approved)],
        expect![[r#"
            {"type":"item.started","item":{"id":"item_0","type":"command_execution","command":"bash -lc 'ls | wc'","aggregated_output":"","exit_code":null,"status":"in_progress"}}
        "#]],
    );
    check(
        vec![
            Body::ItemStarted(asked()),
            answered(ReviewDecision::Denied),
            Body::ItemCompleted(command(CommandStatus::Declined, Some((-1, "")))),
        ],
        expect![[r#"
            {"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"bash -lc 'ls | wc'","aggregated_output":"not allowed","exit_code":-1,"status":"failed"}}
        "#]],
    );
}

#[test]
fn a_plan_is_one_item_that_completes_with_its_turn() {
    check(
        vec![
            plan(StepStatus::Pending),
            said("Hm."),
            plan(StepStatus::Completed),
            completed(),
            plan(StepStatus::Pending),
        ],
        expect![[r#"
            {"type":"item.started","item":{"id":"item_0","type":"todo_list","items":[{"text":"Look","completed":false}]}}
            {"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"Hm."}}
            {"type":"item.updated","item":{"id":"item_0","type":"todo_list","items":[{"text":"Look","completed":true}]}}
            {"type":"item.completed","item":{"id":"item_0","type":"todo_list","items":[{"text":"Look","completed":true}]}}
            {"type":"turn.completed","usage":{"input_tokens":0,"cached_input_tokens":0,"output_tokens":0,"reasoning_output_tokens":0}}
            {"type":"item.started","item":{"id":"item_2","type":"todo_list","items":[{"text":"Look","completed":false}]}}
        "#]],
    );
}

#[test]
fn earlier_usage_of_a_resumed_thread_does_not_count() {
    check(
        vec![counted(100), counted(130), counted(135), completed()],
        expect![[r#"
            {"type":"turn.completed","usage":{"input_tokens":35,"cached_input_tokens":0,"output_tokens":0,"reasoning_output_tokens":0}}
        "#]],
    );
}

#[test]
fn a_failure_is_reported_twice_and_a_warning_is_an_item() {
    let failure = Failure { message: "no".to_owned(), hint: Some("try"), info: CodexErrorInfo::Other };
    check(
        vec![
            Body::Warning { message: "not saved".to_owned() },
            Body::AnswerRetried { failure: failure.clone(), attempt: 1, limit: 5, delay: Duration::ZERO },
            Body::TurnEnded(Outcome::Failed(failure)),
        ],
        expect![[r#"
            {"type":"item.completed","item":{"id":"item_0","type":"error","message":"not saved"}}
            {"type":"error","message":"no; retry 1 of 5"}
            {"type":"error","message":"no\ntry"}
            {"type":"turn.failed","error":{"message":"no\ntry"}}
        "#]],
    );
}

#[test]
fn a_line_with_much_output_stays_below_64_kib() {
    let output = "\u{1b}\"é".repeat(100_000);
    let mut events = Vec::new();
    let body = Body::ItemCompleted(command(CommandStatus::Completed, Some((0, &output))));
    let event = Event { thread: ThreadId::fresh(), seq: Seq::default(), at_ms: 0, turn: None, body };
    Projector::default().project(&event, &mut events);
    let line = serde_json::to_string(&events).unwrap();
    assert!(line.len() < 64 * 1024, "{}", line.len());
    assert!(line.contains("bytes left out"));
}
