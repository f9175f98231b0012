//! A law of the fold: a truncated file gives the state of its complete events.

use std::fmt::Write as _;

use codex_wire::conversation_item::ConversationItem;
use codex_wire::input::UserInput;
use codex_wire::tokens::TokenUsage;
use proptest::prelude::*;
use serde::Serialize;

use super::tests::{answer, call, event, meta, output, said_as, told};
use super::*;
use crate::encode::{LineSink, encode};
use crate::line::Line;
use crate::queue::{QueueEvent, QueuedInput};
use crate::{Abort, Answer, Compacted, Failure, ItemId, QuestionId, QuestionKind, RolledBack};
use codex_wire::budget::{BudgetEvent, BudgetLimit, BudgetReached, Used};

/// Lines, and the positions where they end.
#[derive(Default)]
struct File {
    text: String,
}

impl LineSink for File {
    type Error = serde_json::Error;

    fn line<P: Serialize + ?Sized>(&mut self, _: i64, kind: &str, payload: &P) -> Result<(), Self::Error> {
        let payload = serde_json::to_string(payload)?;
        let line = format!(r#"{{"timestamp":"2026-01-02T03:04:05.006Z","type":"{kind}","payload":{payload}}}"#);
        writeln!(self.text, "{line}").unwrap();
        Ok(())
    }
}

/// A step of a random thread.
#[derive(Debug, Clone)]
enum Step {
    Said(String, Option<String>),
    Told(String),
    Answered(String),
    Called(String),
    CutOff(String),
    Planned(String, bool),
    Asked(String, bool),
    Limited(i64, bool),
    Settings,
    Tokens(i64),
    Budget(i64, bool),
    Goal(Option<String>),
    Queue(u8, String),
    Summary(bool),
    Back,
    Begun,
    Ended(u8),
    TakenBack(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let word = || "[a-c]{1,2}";
    prop_oneof![
        4 => (word(), proptest::option::of(word())).prop_map(|(text, key)| Step::Said(text, key)),
        1 => word().prop_map(Step::Told),
        2 => word().prop_map(Step::Answered),
        2 => word().prop_map(Step::Called),
        1 => word().prop_map(Step::CutOff),
        1 => (word(), any::<bool>()).prop_map(|(id, taken)| Step::Planned(id, taken)),
        1 => (word(), any::<bool>()).prop_map(|(id, answered)| Step::Asked(id, answered)),
        1 => (0..100_i64, any::<bool>()).prop_map(|(until_ms, goes_on)| Step::Limited(until_ms, goes_on)),
        1 => Just(Step::Settings),
        1 => (0..100_i64).prop_map(Step::Tokens),
        1 => (0..100_i64, any::<bool>()).prop_map(|(tokens, is_over)| Step::Budget(tokens, is_over)),
        1 => proptest::option::of(word()).prop_map(Step::Goal),
        2 => (0..6_u8, word()).prop_map(|(kind, id)| Step::Queue(kind, id)),
        1 => any::<bool>().prop_map(Step::Summary),
        1 => Just(Step::Back),
        4 => Just(Step::Begun),
        4 => (0..3_u8).prop_map(Step::Ended),
        1 => (1..3_usize).prop_map(Step::TakenBack),
    ]
}

fn left(state: &ThreadState) -> Vec<ConversationItem> {
    state.conversation.items().iter().step_by(2).cloned().collect()
}

fn planned(id: &str, taken: bool) -> Vec<Body> {
    let arguments = format!(r#"{{"plan":[{{"step":"{id}","status":"pending"}}]}}"#);
    let made = call("update_plan", id, &arguments);
    if taken {
        let plan = Body::PlanUpdated(serde_json::from_str(&arguments).unwrap());
        vec![made, plan, output(id, "Plan updated")]
    } else {
        vec![made, output(id, "aborted")]
    }
}

fn asked(id: &str, is_answered: bool) -> Vec<Body> {
    let question = QuestionId::first(ItemId::new(id));
    let kind = QuestionKind::Patch { changes: Arc::default(), grant_root: None };
    let asked = Body::Asked(Arc::new(Question { id: question.clone(), reason: None, kind, deadline: None }));
    let answered = is_answered.then_some(Body::Answered { question, answer: Answer::Declined, item: None });
    [call("shell", id, "{}"), asked].into_iter().chain(answered).collect()
}

fn ended(how: u8) -> Body {
    let info = codex_wire::error_info::CodexErrorInfo::Other;
    Body::TurnEnded(match how {
        0 => Outcome::Completed { last_message: None, bookmark: None },
        1 => Outcome::Aborted(Abort::Interrupted),
        _ => Outcome::Failed(Failure { message: "no".to_owned(), hint: None, info }),
    })
}

fn goal(objective: &str) -> Body {
    let goal = serde_json::json!({"objective": objective, "status": "active", "tokens_used": 7});
    Body::GoalChanged(Arc::new(serde_json::from_value(goal).unwrap()))
}

fn queued(kind: u8, id: String) -> Body {
    let entry = |text: &str| QueuedInput { id: id.clone(), client_id: id.clone(), input: vec![UserInput::text(text)] };
    Body::Queue(Arc::new(match kind {
        0 | 1 => QueueEvent::Added { entry: entry("first") },
        2 => QueueEvent::Updated { entry: entry("then") },
        3 => QueueEvent::Removed { id },
        4 => QueueEvent::Paused,
        _ => QueueEvent::All { entries: vec![entry("all")], is_paused: false },
    }))
}

fn counted(total_tokens: i64) -> Body {
    let used = TokenUsage { total_tokens, ..TokenUsage::default() };
    let info = TokenUsageInfo { total_token_usage: used, last_token_usage: used, ..TokenUsageInfo::new(Some(9)) };
    Body::TokensCounted { info: Some(info), rate_limits: Some(Box::default()) }
}

fn budget(tokens: i64, is_over: bool) -> Body {
    let used = Used { tokens, cost: 0.5, time_ms: 7, ..Used::default() };
    let reached = BudgetReached { limit: BudgetLimit::Cost(0.25), spent: used };
    Body::Budget(if is_over { BudgetEvent::Reached { reached, used } } else { BudgetEvent::Used { used } })
}

/// The events that an engine would emit for a step in a thread with this state.
fn bodies(step: Step, state: &ThreadState) -> Vec<Body> {
    match step {
        Step::Said(text, key) => said_as("u", key.as_deref(), &text).into(),
        Step::Told(text) => vec![told(&format!("<environment_context>{text}"))],
        Step::Answered(text) => vec![answer(&text)],
        Step::Called(id) => vec![call("shell", &id, "{}"), output(&id, "done")],
        Step::CutOff(id) => vec![call("shell", &id, "{}")],
        Step::Planned(id, taken) => planned(&id, taken),
        Step::Asked(id, answered) => asked(&id, answered),
        Step::Limited(until_ms, goes_on) => {
            let info = codex_wire::error_info::CodexErrorInfo::UsageLimitExceeded;
            let failure = Failure { message: "later".to_owned(), hint: None, info };
            vec![Body::LimitReached { failure, until_ms, goes_on }]
        }
        Step::Settings => vec![Body::ModelAsked(Arc::new(Settings::of_folder("/w".into())))],
        Step::Tokens(tokens) => vec![counted(tokens)],
        Step::Budget(tokens, is_over) => vec![budget(tokens, is_over)],
        Step::Goal(objective) => vec![objective.map_or(Body::GoalCleared, |objective| goal(&objective))],
        Step::Queue(kind, id) => vec![queued(kind, id)],
        Step::Summary(is_complete) => {
            let replacement = is_complete.then(|| left(state));
            let summary = "sum".to_owned();
            vec![Body::Compacted(Arc::new(Compacted { summary, replacement, before: 0, after: 0 }))]
        }
        Step::Back => vec![Body::WentBack { response_id: "r".to_owned(), replacement: left(state) }],
        Step::Begun => vec![Body::TurnStarted { context_window: None }],
        Step::Ended(how) => vec![ended(how)],
        Step::TakenBack(turns) => {
            let gone: Option<RolledBack> = state.conversation.last_turns(turns);
            gone.map(Body::RolledBack).into_iter().collect()
        }
    }
}

/// The state that results from the complete lines of a text.
fn read(text: &str, interrupted: Interrupted) -> ThreadState {
    let mut reader = StateReader::new(meta(), interrupted);
    for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        reader.line(&Line::parse(line).unwrap());
    }
    reader.finish()
}

fn law(steps: Vec<Step>, interrupted: Interrupted, cut: usize) -> Result<(), TestCaseError> {
    let (mut file, mut state, mut turn) = (File::default(), ThreadState::new(meta(), interrupted), 0);
    // The state up to here, and the end of the first line of the last event.
    let mut states = vec![(0, state.canonical())];
    for step in steps {
        turn += usize::from(matches!(step, Step::Begun));
        for body in bodies(step, &state) {
            let event = event(&format!("turn {turn}"), body);
            let before = file.text.len();
            encode(&event, &mut file).unwrap();
            state.apply(&event);
            if let Some(line) = file.text[before..].find('\n') {
                states.push((before + line + 1, state.canonical()));
            }
        }
    }
    let cut = (0..=cut % (file.text.len() + 1)).rev().find(|place| file.text.is_char_boundary(*place)).unwrap();
    let whole = states.iter().rfind(|(end, _)| *end <= cut).unwrap();
    prop_assert_eq!(&read(&file.text[..cut], interrupted).canonical(), &whole.1);
    prop_assert_eq!(read(&file.text, interrupted).canonical(), state.canonical());
    Ok(())
}

proptest! {
    #[test]
    fn a_truncated_file_gives_the_state_of_its_complete_events(
        steps in prop::collection::vec(step(), 0..30),
        forgets in any::<bool>(),
        cut in any::<usize>(),
    ) {
        law(steps, if forgets { Interrupted::Forgotten } else { Interrupted::Kept }, cut)?;
    }
}
