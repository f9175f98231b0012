use codex_wire::ids::ThreadId;
use codex_wire::input::UserInput;
use codex_wire::response::{FunctionCall, FunctionCallOutput, FunctionCallOutputPayload, Message, ResponseItem};
use codex_wire::rollout::{SessionLineage, SessionMeta};
use expect_test::{Expect, expect};

use super::*;
use crate::{Abort, Compacted, Failure, ItemId, QuestionId, QuestionKind, RolledBack, Seq, review};

pub(super) fn meta() -> SessionMeta {
    SessionMeta {
        id: ThreadId::unknown(),
        timestamp: String::new(),
        cwd: "/w".into(),
        originator: String::new(),
        cli_version: String::new(),
        instructions: None,
        source: None,
        model_provider: None,
        lineage: SessionLineage::default(),
        git: None,
    }
}

pub(super) fn event(turn: &str, body: Body) -> Event {
    let turn = Some(TurnId::new(turn)).filter(|_| !turn.is_empty());
    Event { thread: ThreadId::unknown(), seq: Seq::default(), at_ms: 0, turn, body }
}

fn state(interrupted: Interrupted, bodies: impl IntoIterator<Item = Body>) -> ThreadState {
    let mut state = ThreadState::new(meta(), interrupted);
    bodies.into_iter().for_each(|body| state.apply(&event("t", body)));
    state
}

fn recorded(item: ResponseItem) -> Body {
    Body::Recorded(Record::new(item).unwrap())
}

pub(super) fn answer(text: &str) -> Body {
    recorded(ResponseItem::Message(Message { role: "assistant".to_owned(), ..Message::user(text) }))
}

pub(super) fn told(text: &str) -> Body {
    recorded(ResponseItem::Message(Message::user(text)))
}

pub(super) fn call(tool: &str, id: &str, arguments: &str) -> Body {
    let (name, arguments, call_id) = (tool.to_owned(), arguments.to_owned(), id.to_owned());
    recorded(ResponseItem::FunctionCall(FunctionCall { id: None, name, namespace: None, arguments, call_id }))
}

pub(super) fn output(id: &str, text: &str) -> Body {
    let output = FunctionCallOutputPayload::Text(text.to_owned());
    recorded(ResponseItem::FunctionCallOutput(FunctionCallOutput { call_id: id.to_owned(), output }))
}

pub(super) fn said_as(id: &str, key: Option<&str>, text: &str) -> [Body; 3] {
    let content = vec![UserInput::text(text)];
    let item = Item::UserMessage(UserMessage { id: ItemId::new(id), key: key.map(Into::into), content });
    [told(text), Body::ItemStarted(item.clone()), Body::ItemCompleted(item)]
}

fn said(text: &str) -> [Body; 3] {
    said_as("u", None, text)
}

fn started() -> Body {
    Body::TurnStarted { context_window: None }
}

fn ended() -> Body {
    Body::TurnEnded(Outcome::Completed { last_message: None, bookmark: None })
}

/// A turn with a message of the user and an answer.
fn turn(text: &str) -> Vec<Body> {
    [vec![started()], said(text).into(), vec![answer("ok"), ended()]].concat()
}

fn texts(state: &ThreadState) -> Vec<String> {
    let text = |item: &codex_wire::conversation_item::ConversationItem| match &*item.typed().unwrap() {
        ResponseItem::Message(message) => format!("{}: {}", message.role, &*message.text()),
        other => other.kind().to_owned(),
    };
    state.conversation.items().iter().map(text).collect()
}

#[track_caller]
fn check(interrupted: Interrupted, bodies: Vec<Body>, expected: Expect) {
    let state = state(interrupted, bodies);
    let conversation = &state.conversation;
    let said: Vec<_> = conversation.said_messages().into_iter().map(|(place, _)| place).collect();
    let shown = format!(
        "{} preface, {} replaced, said {said:?}, {} turns, open {:?}\n{}\n",
        conversation.preface().len(),
        conversation.replaced(),
        conversation.turns().len(),
        state.turn,
        texts(&state).join("\n")
    );
    expected.assert_eq(&shown);
}

#[test]
fn the_conversation_knows_its_initial_items_and_the_users_messages() {
    let env = told("<environment_context>a</environment_context>");
    let bodies = [vec![env], turn("one"), vec![told("<environment_context>b</environment_context>")], turn("two")];
    check(
        Interrupted::Kept,
        bodies.concat(),
        expect![[r"
            1 preface, 0 replaced, said [1, 4], 2 turns, open None
            user: <environment_context>a</environment_context>
            user: one
            assistant: ok
            user: <environment_context>b</environment_context>
            user: two
            assistant: ok
        "]],
    );
}

#[test]
fn turns_without_input_are_rolled_back_by_id_too() {
    let own = || vec![started(), answer("by myself"), ended()];
    let mut state = state(Interrupted::Kept, turn("one"));
    for (id, bodies) in [("b", own()), ("c", own()), ("d", turn("two"))] {
        for body in bodies {
            state.apply(&event(id, body));
        }
    }
    assert_eq!(state.conversation.last_turns(5), None);
    let gone = state.conversation.last_turns(2).unwrap();
    assert_eq!(gone, RolledBack { turns: 2, said: 1, first: Some(TurnId::new("c")) });
    state.apply(&event("", Body::RolledBack(gone)));
    assert_eq!(texts(&state), ["user: one", "assistant: ok", "assistant: by myself"]);
    assert_eq!((state.conversation.turns().len(), state.conversation.said()), (2, &[0][..]));
}

#[test]
fn an_interrupted_answer_is_kept_or_removed() {
    let settings = Arc::new(Settings::of_folder("/w".into()));
    let bodies = || {
        let asked = vec![Body::ModelAsked(Arc::clone(&settings)), answer("half"), call("shell", "c", "{}")];
        let stopped = vec![output("c", "aborted"), Body::TurnEnded(Outcome::Aborted(Abort::Interrupted))];
        [vec![started()], said("one").into(), asked, said("more").into(), stopped].concat()
    };
    check(
        Interrupted::Kept,
        bodies(),
        expect![[r"
        0 preface, 0 replaced, said [0, 3], 1 turns, open None
        user: one
        assistant: half
        function_call
        user: more
        function_call_output
    "]],
    );
    check(
        Interrupted::Forgotten,
        bodies(),
        expect![[r"
        0 preface, 0 replaced, said [0, 1], 1 turns, open None
        user: one
        user: more
    "]],
    );
}

#[test]
fn a_replacement_is_the_whole_conversation() {
    let left = |text: &str| Record::new(ResponseItem::Message(Message::user(text))).unwrap().json;
    let replacement = Some(vec![left("<environment_context>"), left("one"), left("summary")]);
    let compacted = |replacement| {
        Body::Compacted(Arc::new(Compacted { summary: "sum".to_owned(), replacement, before: 0, after: 0 }))
    };
    check(
        Interrupted::Kept,
        [turn("one"), vec![started(), compacted(replacement), answer("ok"), ended()], turn("two")].concat(),
        expect![[r"
            1 preface, 3 replaced, said [1, 2, 4], 1 turns, open None
            user: <environment_context>
            user: one
            user: summary
            assistant: ok
            user: two
            assistant: ok
        "]],
    );
    check(
        Interrupted::Kept,
        [turn("one"), turn("two"), vec![compacted(None)], turn("three")].concat(),
        expect![[r"
            0 preface, 3 replaced, said [0, 1, 2, 3], 1 turns, open None
            user: one
            user: two
            user: sum
            user: three
            assistant: ok
        "]],
    );
}

#[test]
fn a_plan_is_the_last_that_was_taken_also_after_going_back() {
    let plan = |step: &str| format!(r#"{{"plan":[{{"step":"{step}","status":"pending"}}]}}"#);
    let bodies = [
        call("update_plan", "a", &plan("first")),
        output("a", "Plan updated"),
        call("update_plan", "b", &plan("second")),
    ];
    let items: Vec<_> = state(Interrupted::Kept, bodies).conversation.items().to_vec();
    let args = |step: &str| serde_json::from_str::<UpdatePlanArgs>(&plan(step)).unwrap();
    let mut state = state(Interrupted::Kept, [Body::PlanUpdated(args("third"))]);
    assert_eq!(state.plan, Some(args("third")));
    state.apply(&event("", Body::WentBack { response_id: String::new(), replacement: items }));
    assert_eq!(state.plan, Some(args("first")));
}

#[test]
fn questions_are_open_until_they_are_answered_or_moot() {
    let asked = |id: QuestionId| {
        let kind = QuestionKind::Command { argv: Vec::new(), cwd: "/".into(), parsed: Vec::new(), amendment: None };
        Body::Asked(Arc::new(Question { id, reason: None, kind, deadline: None }))
    };
    let first = QuestionId::first(ItemId::new("c"));
    let answered = Body::Answered { question: first.clone(), answer: crate::Answer::Declined, item: None };
    let count = |bodies: Vec<Body>| state(Interrupted::Kept, bodies).questions.len();
    assert_eq!(count(vec![asked(first.clone()), asked(first.clone())]), 1, "it was asked again");
    assert_eq!(count(vec![asked(first.clone()), answered, asked(first.next())]), 1);
    assert_eq!(count(vec![asked(first.clone()), output("c", "x")]), 0);
    assert_eq!(count(vec![asked(first), ended()]), 0);
}

#[test]
fn keys_are_accepted_and_review_prompts_have_none() {
    let mut state = state(Interrupted::Kept, said_as("u", Some("k"), "one"));
    assert_eq!(state.keys.turn_of("k"), Some(&TurnId::new("t")));
    let failure = Failure { message: String::new(), hint: None, info: codex_wire::error_info::CodexErrorInfo::Other };
    state.apply(&event("t", Body::TurnEnded(Outcome::Failed(failure))));
    assert_eq!(state.turn, None);
    for body in said_as(&format!("{}x", review::ASKED), None, "look") {
        state.apply(&event("t", body));
    }
    assert_eq!(state.conversation.said(), [0], "nobody has said what a reviewer is asked");
}
