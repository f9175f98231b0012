//! Requests of servers to the model.

use codex_log::{Answer, Body, Question, QuestionKind, Status};
use codex_testkit::mcp_server::config;
use codex_wire::decision::ElicitationDecision;
use codex_wire::policy::{AskForApproval, SandboxPolicy};
use serde_json::json;

use crate::world::{Ended, World};

const ALLOWED: &str = "sampling = true\nsampling_max_tokens = 40";

fn given(action: ElicitationDecision) -> Answer {
    Answer::Given { action, content: None }
}

fn shown(question: &Question) -> &str {
    let QuestionKind::Elicitation(asked) = &question.kind else { panic!("a person is asked: {question:?}") };
    &asked.message
}

fn warns(ended: &Ended, of: &str) -> bool {
    ended.events.iter().any(|body| matches!(body, Body::Warning { message } if message.contains(of)))
}

#[tokio::test]
async fn a_person_sees_each_request_before_the_model_does() {
    for mode in ["good", "stateless"] {
        let world = World::new(&config("s", mode, ALLOWED));
        let mut thread = world.thread();
        for said in ["hello", "again"] {
            let question = thread.asked("mcp__s__sample", &json!({"text": said})).await;
            let shown = shown(&question);
            assert!(
                shown.contains("`s` wants to ask the model") && shown.contains("instructions: Be short."),
                "{shown}"
            );
            assert!(shown.contains(&format!("user: {said}")), "{shown}");
            let ended = thread.answer(&question, given(ElicitationDecision::Accept)).await.ended();
            // The server asked for 50 tokens, and may have 40.
            assert!(ended.output.contains(&format!("Be short. of 40: {said}")), "{mode}: {}", ended.output);
            assert!(ended.output.contains("endTurn") && ended.output.contains("assistant"), "{}", ended.output);
            assert!(ended.progress().iter().any(|told| told.contains("3 input and")), "{:?}", ended.progress());
        }
    }
}

#[tokio::test]
async fn a_request_that_is_declined_or_fails_never_ends_the_turn() {
    let world = World::new(&config("s", "good", ALLOWED));
    let mut thread = world.thread();
    let question = thread.asked("mcp__s__sample", &json!({"text": "hello"})).await;
    let declined = thread.answer(&question, given(ElicitationDecision::Decline)).await.ended();
    assert!(declined.output.contains("the user rejected the request"), "{}", declined.output);
    let question = thread.asked("mcp__s__sample", &json!({"text": "fail"})).await;
    let failed = thread.answer(&question, given(ElicitationDecision::Accept)).await.ended();
    assert!(warns(&failed, "failed: it is busy"), "{:?}", failed.events);
    let huge = "x".repeat(300 * 1024);
    let question = thread.asked("mcp__s__sample", &json!({"text": huge})).await;
    let refused = thread.answer(&question, given(ElicitationDecision::Accept)).await.ended();
    assert!(warns(&refused, "more than 262144 bytes"), "{:?}", refused.events);
    let world = World::new(&config("s", "stateless", ALLOWED));
    let mut thread = world.thread();
    let question = thread.asked("mcp__s__sample", &json!({"text": "hello"})).await;
    let declined = thread.answer(&question, given(ElicitationDecision::Decline)).await.ended();
    assert_eq!(declined.call().status, Status::Failed);
}

#[tokio::test]
async fn a_server_without_permission_cannot_ask_the_model() {
    for mode in ["good", "stateless"] {
        let world = World::new(&config("s", mode, ""));
        let ended = world.thread().call("mcp__s__sample", &json!({"text": "hello"})).await;
        assert!(ended.output.contains("not supported"), "{mode}: {}", ended.output);
    }
    let world = World::new(&config("s", "good", ALLOWED));
    let mut thread = world.thread_under(AskForApproval::Never, SandboxPolicy::DangerFullAccess);
    let ended = thread.call("mcp__s__sample", &json!({"text": "hello"})).await;
    assert!(ended.output.contains("rejected") && warns(&ended, "declined"), "{}", ended.output);
}
