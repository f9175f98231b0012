use codex_config::{Config, Env, Home, Overrides};
use codex_log::settings::Settings;
use codex_log::{Item, QuestionKind};
use codex_shell::Rules;
use codex_wire::decision::ReviewDecision;
use codex_wire::policy::{ApprovalsReviewer, AskForApproval, SandboxPolicy};
use codex_wire::reasoning::ReasoningSummary;
use codex_wire::tool_spec::ToolSpec;

use super::*;
use crate::call::{Concurrency, ToolInput};
use crate::context::ToolSetup;
use crate::registry::{Offer, Tool, ToolSource};

/// A tool that asks twice and then ends.
struct Asking;

struct AskingCall {
    next: QuestionId,
    answers: Vec<bool>,
}

impl ToolSource for Asking {
    fn version(&self) -> u64 {
        0
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![Arc::new(Asking)]
    }
}

impl Tool for Asking {
    fn spec(&self, _: Offer) -> Option<ToolSpec> {
        None
    }

    fn takes(&self, call: &ToolCall) -> bool {
        call.tool == "ask"
    }

    fn concurrency(&self, _: &ToolCall) -> Concurrency {
        Concurrency::Beside
    }

    fn begin(&self, call: ToolCall, _: &Arc<ToolContext>, _: &Grants) -> Box<dyn Call> {
        Box::new(AskingCall { next: QuestionId::first(call.id), answers: Vec::new() })
    }
}

impl AskingCall {
    fn ask(&mut self) -> Effect {
        let id = self.next.clone();
        self.next = id.next();
        let kind = QuestionKind::Patch { changes: Arc::default(), grant_root: None };
        Effect::Ask(Question { id, reason: None, kind, deadline: Some(Duration::from_secs(5)) })
    }
}

impl Call for AskingCall {
    fn begun(&mut self) -> Vec<Effect> {
        vec![self.ask()]
    }

    fn answered(&mut self, answer: Answer) -> Vec<Effect> {
        if answer.decision() == ReviewDecision::Abort {
            return vec![Effect::EndTurn];
        }
        self.answers.push(answer.allows());
        if self.answers.len() < 2 {
            return vec![self.ask()];
        }
        vec![Effect::End(ToolOutput::Text(format!("{:?}", self.answers)))]
    }

    fn next(&mut self) -> BoxFuture<'_, Vec<Effect>> {
        Box::pin(std::future::pending())
    }

    fn stop(&mut self) -> Vec<Effect> {
        vec![Effect::End(ToolOutput::Text("stopped".to_owned()))]
    }
}

/// A gate that admits only questions, and marks outputs.
struct Narrow;

impl Gate for Narrow {
    fn enter(&self, call: &ToolCall, _: &ToolContext) -> Result<(), String> {
        if call.tool == "ask" { Ok(()) } else { Err(format!("no {} today", call.tool)) }
    }

    fn leave(&self, _: &ItemId, output: ToolOutput) -> ToolOutput {
        match output {
            ToolOutput::Text(text) => ToolOutput::Text(format!("seen {text}")),
            parts @ ToolOutput::Parts(_) => parts,
        }
    }
}

fn context(calls: &Lifecycle) -> (tempfile::TempDir, Arc<ToolContext>) {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    let config = Config::load(&home, &Env::from_iter::<[(&str, &str); 0]>([]), &Overrides::default()).unwrap();
    let settings = Arc::new(Settings {
        cwd: folder.path().to_owned(),
        approval_policy: AskForApproval::OnRequest,
        reviewer: ApprovalsReviewer::User,
        sandbox_policy: SandboxPolicy::DangerFullAccess,
        withheld: None,
        model: "m".to_owned(),
        effort: None,
        summary: ReasoningSummary::Auto,
        verbosity: None,
        mode: codex_log::settings::Mode::default(),
        agent_tools: None,
    });
    let thread = Arc::clone(calls.thread());
    let setup = ToolSetup {
        config: &config,
        home: &home,
        programs: None,
        shell: None,
        is_verbatim: false,
        answer_within: None,
        settings,
        thread,
        sampler: None,
    };
    let cx = Arc::new(ToolContext::new(setup));
    (folder, cx)
}

fn lifecycle(gate: Arc<dyn Gate>) -> Lifecycle {
    let registry = Registry::new(vec![Arc::new(Asking)]);
    Lifecycle::new(Arc::new(registry), gate, Grants::by(Rules::empty()))
}

fn call(id: &str, tool: &str) -> ToolCall {
    ToolCall { id: ItemId::new(id), tool: tool.to_owned(), input: ToolInput::Function("{}".to_owned()) }
}

fn shown(events: &[CallEvent]) -> String {
    let lines = events.iter().map(|event| match event {
        CallEvent::GoalReported(status) => format!("goal {status:?}"),
        CallEvent::Emit(Body::Asked(question)) => format!("asked {}", question.id),
        CallEvent::Emit(Body::Warning { message }) => message.clone(),
        CallEvent::Emit(Body::ItemCompleted(Item::Command(command))) => format!("completed {}", command.id.as_str()),
        CallEvent::Emit(other) => format!("{other:?}"),
        CallEvent::Ended(id, ToolOutput::Text(text)) => format!("ended {}: {text}", id.as_str()),
        CallEvent::Ended(id, ToolOutput::Parts(_)) => format!("ended {}", id.as_str()),
        CallEvent::Failed(id) => format!("failed {}", id.as_str()),
        CallEvent::TurnStopped => "turn stopped".to_owned(),
    });
    lines.collect::<Vec<_>>().join("; ")
}

fn question(call: &str) -> QuestionId {
    QuestionId::first(ItemId::new(call))
}

fn yes() -> Answer {
    ReviewDecision::Approved.into()
}

#[tokio::test(start_paused = true)]
async fn an_answer_reaches_the_question_it_names_and_no_other() {
    let mut calls = lifecycle(Arc::new(OpenGate));
    let (_folder, cx) = context(&calls);
    assert_eq!(shown(&calls.begin(call("a", "ask"), &cx)), "asked a");
    assert_eq!(shown(&calls.begin(call("b", "ask"), &cx)), "asked b");
    assert!(calls.only_asks());
    assert_eq!(calls.answer(&question("b"), yes()).map(|told| shown(&told)).as_deref(), Some("asked b#2"));
    assert!(calls.answer(&question("b"), yes()).is_none(), "that one was answered");
    let second = question("b").next();
    assert_eq!(
        calls.answer(&second, Answer::Declined).map(|told| shown(&told)).as_deref(),
        Some("failed b; ended b: [true, false]")
    );
    assert!(calls.answer(&second, yes()).is_none(), "it is over");
    assert_eq!(shown(&calls.stop()), "failed a; ended a: stopped");
    assert!(!calls.only_asks());
}

#[tokio::test(start_paused = true)]
async fn a_question_without_an_answer_is_declined() {
    let mut calls = lifecycle(Arc::new(OpenGate));
    let (_folder, cx) = context(&calls);
    calls.begin(call("a", "ask"), &cx);
    assert_eq!(shown(&calls.next().await), "no answer arrived within 5 s, so the patch was denied; asked a#2");
    calls.expect_no_answers();
    assert_eq!(
        shown(&calls.next().await),
        "no client can answer it any more, so the patch was denied; failed a; ended a: [false, false]"
    );
}

#[tokio::test]
async fn an_abort_ends_the_call_and_the_turn() {
    let mut calls = lifecycle(Arc::new(OpenGate));
    let (_folder, cx) = context(&calls);
    calls.begin(call("a", "ask"), &cx);
    let abort = Answer::from(ReviewDecision::Abort);
    assert_eq!(calls.answer(&question("a"), abort).map(|told| shown(&told)).as_deref(), Some("turn stopped"));
    assert_eq!(shown(&calls.stop()), "");
}

#[tokio::test]
async fn every_call_passes_the_gate_twice() {
    let mut calls = lifecycle(Arc::new(Narrow));
    let (_folder, cx) = context(&calls);
    assert_eq!(shown(&calls.begin(call("a", "shell"), &cx)), "failed a; ended a: no shell today");
    let own = ToolInput::UserShell { command: "true".to_owned(), timeout: Duration::from_secs(1) };
    let own = ToolCall { id: ItemId::new("u"), tool: "user_shell".to_owned(), input: own };
    assert_eq!(shown(&calls.begin(own, &cx)), "failed u; ended u: no user_shell today", "the user's own too");
    calls.begin(call("b", "ask"), &cx);
    assert_eq!(shown(&calls.stop()), "failed b; ended b: seen stopped");
}
