mod calls;
mod endless;
mod interleavings;
mod limits;
mod repeats;

use codex_log::Abort;
use codex_wire::error_info::CodexErrorInfo;
use codex_wire::response::{
    ContentItem, FunctionCall, Reasoning, ReasoningSummaryText, WebQuery, WebSearchAction, WebSearchCall,
};
use expect_test::{Expect, expect};

use codex_log::Item;
use codex_wire::input::UserInput;
use codex_wire::response::Message;

use super::*;

/// The limit of running calls in these tests.
const MOST_AT_ONCE: usize = 3;

fn said(text: &str) -> UserMessage {
    UserMessage {
        key: None,
        id: ItemId::new(format!("u-{text}")),
        content: vec![UserInput::text(text)],
        message: Message::user(text),
        is_echoed: true,
        context: Vec::new(),
    }
}

fn policy(compact_at: Option<i64>) -> TurnPolicy {
    TurnPolicy {
        request_limit: 1000,
        retry_limit: 2,
        backoff: Backoff::seeded(1),
        forgets_interrupted: false,
        compact_at,
        calls_at_once: MOST_AT_ONCE,
        waits_for_limits: true,
        tools: Arc::default(),
        agents: None,
        is_mail_first: false,
    }
}

fn start(text: &str) -> (Turn, Vec<Effect>) {
    Turn::start(&TurnId::new("t"), said(text), Window::default(), policy(None))
}

fn message(id: &str, text: &str) -> ResponseItem {
    let content = vec![ContentItem::OutputText { text: text.into() }];
    ResponseItem::Message(Message { id: Some(id.to_owned()), role: "assistant".to_owned(), content })
}

fn reasoning(id: &str, text: &str) -> ResponseItem {
    let summary = vec![ReasoningSummaryText::SummaryText { text: text.to_owned() }];
    ResponseItem::Reasoning(Reasoning { id: id.to_owned(), summary, content: None, encrypted_content: None })
}

fn call(id: &str, tool: &str) -> ResponseItem {
    let (tool, arguments) = match tool.split_once(' ') {
        Some((tool, terminal)) => (tool, format!(r#"{{"session_id": {terminal}}}"#)),
        None => (tool, "{}".to_owned()),
    };
    let (name, call_id) = (tool.to_owned(), id.to_owned());
    ResponseItem::FunctionCall(FunctionCall { id: None, name, namespace: None, arguments, call_id })
}

fn failure(message: &str) -> Failure {
    Failure { message: message.to_owned(), hint: None, info: CodexErrorInfo::Other }
}

/// One line of a script as an input.
fn input(line: &str) -> Input {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let (first, text) = rest.split_once(' ').unwrap_or((rest, ""));
    let id = || first.to_owned();
    match word {
        "say" => Input::UserSaid(said(rest)),
        "open" => Input::Model(ModelEvent::Opened { rate_limits: Some(RateLimitSnapshot::default()) }),
        "add" => Input::Model(ModelEvent::ItemAdded(message(first, ""))),
        "think" => Input::Model(ModelEvent::ItemAdded(reasoning(first, ""))),
        "part" => Input::Model(ModelEvent::ReasoningPartAdded { item_id: id(), index: 0 }),
        "sum" => Input::Model(ModelEvent::ReasoningSummaryDelta { item_id: id(), index: 0, delta: text.to_owned() }),
        "delta" => Input::Model(ModelEvent::TextDelta { item_id: id(), delta: text.to_owned() }),
        "done" => Input::Model(ModelEvent::ItemDone(message(first, text), None)),
        "thought" => Input::Model(ModelEvent::ItemDone(reasoning(first, text), None)),
        "search" => {
            let query = WebSearchAction::Search(WebQuery { query: Some(text.to_owned()) });
            let search = WebSearchCall { id: Some(id()), status: None, action: Some(query) };
            Input::Model(ModelEvent::ItemDone(ResponseItem::WebSearchCall(search), None))
        }
        "call" => Input::Model(ModelEvent::ItemDone(call(first, text), None)),
        "completed" => {
            Input::Model(ModelEvent::Completed { response_id: String::new(), usage: None, follows_schema: false })
        }
        "used" => {
            let usage = TokenUsage { total_tokens: first.parse().unwrap(), ..TokenUsage::default() };
            Input::Model(ModelEvent::Completed {
                response_id: String::new(),
                usage: Some(usage),
                follows_schema: false,
            })
        }
        "overflow" => {
            let info = CodexErrorInfo::ContextWindowExceeded;
            Input::AnswerFailed(Failure { info, ..failure("too long") }, Retry::Never)
        }
        "cut" => Input::AnswerFailed(failure("cut"), Retry::Stream { after: Some(Duration::from_millis(5)) }),
        "limited" => {
            let after = Duration::from_secs(first.parse().unwrap());
            Input::AnswerFailed(failure("limit"), Retry::AtReset { after })
        }
        "refused" => Input::AnswerFailed(failure("refused"), Retry::Never),
        "due" => Input::RetryDue,
        "ended" => Input::CallEnded(ItemId::new(first), FunctionCallOutputPayload::Text(text.to_owned()), false),
        "failed" => Input::CallEnded(ItemId::new(first), FunctionCallOutputPayload::Text(text.to_owned()), true),
        "stop" if rest.is_empty() => Input::Stop(Outcome::Aborted(Abort::Interrupted), Vec::new()),
        "stop" => {
            let output = FunctionCallOutputPayload::Text(text.to_owned());
            Input::Stop(Outcome::Aborted(Abort::Interrupted), vec![(ItemId::new(first), output)])
        }
        other => panic!("no such input: {other}"),
    }
}

fn show_item(item: &Item) -> String {
    match item {
        Item::UserMessage(said) => format!("user {}", said.id.as_str()),
        Item::AgentMessage(answer) => format!("agent {} {:?}", answer.id.as_str(), answer.text),
        Item::Reasoning(thought) => format!("reasoning {} {:?}", thought.id.as_str(), thought.summary),
        Item::WebSearch(search) => format!("search {} {:?}", search.id.as_str(), search.query),
        Item::Command(_)
        | Item::Patch(_)
        | Item::McpCall(_)
        | Item::DynamicCall(_)
        | Item::AgentCall(_)
        | Item::AgentActivity(_) => {
            format!("call {}", item.id().as_str())
        }
    }
}

fn show_record(item: &ResponseItem) -> String {
    match item {
        ResponseItem::Message(message) => format!("{} {:?}", message.role, message.text()),
        ResponseItem::FunctionCall(call) => format!("call {}", call.call_id),
        ResponseItem::FunctionCallOutput(output) => format!("output {} {:?}", output.call_id, output.output),
        other => other.kind().to_owned(),
    }
}

fn show(effect: &Effect) -> String {
    match effect {
        Effect::Emit(Body::TurnStarted { .. }) => "started".to_owned(),
        Effect::Emit(Body::Recorded(record)) => format!("record {}", show_record(&record.item().unwrap())),
        Effect::Emit(Body::ItemStarted(item)) => format!("start {}", show_item(item)),
        Effect::Emit(Body::ItemCompleted(item)) => format!("complete {}", show_item(item)),
        Effect::Emit(Body::ItemDelta { item, delta }) => format!("grow {} {delta:?}", item.as_str()),
        Effect::Emit(Body::AnswerRetried { attempt, limit, delay, .. }) => format!("retry {attempt}/{limit} {delay:?}"),
        Effect::Emit(other) => format!("{other:?}"),
        Effect::Count { .. } => "count".to_owned(),
        Effect::NoteSettings => "settings".to_owned(),
        Effect::TakeMail(when) => format!("MAIL {when:?}"),
        Effect::AskModel => "ASK".to_owned(),
        Effect::AskAgain => "ASK AGAIN".to_owned(),
        Effect::AskForSummary { halvings } => format!("ASK FOR SUMMARY without {halvings} halves"),
        Effect::Compact(summary) => format!("COMPACT {summary:?}"),
        Effect::Wait(delay) => format!("WAIT {delay:?}"),
        Effect::WaitForLimit(Limit { after, goes_on, .. }) => format!("LIMIT {after:?}, goes on later: {goes_on}"),
        Effect::Run(call) => format!("RUN {}", call.id.as_str()),
        Effect::Cancel => "CANCEL".to_owned(),
        Effect::BreakOff => "BREAK OFF".to_owned(),
        Effect::End(outcome) => format!("END {outcome:?}"),
    }
}

/// Plays a script after the start of a turn, one input per line, and shows the effects below it.
#[track_caller]
fn check(script: &str, expected: Expect) {
    play(start("hi").0, script, expected);
}

#[track_caller]
fn play(mut turn: Turn, script: &str, expected: Expect) {
    let mut shown = String::new();
    for line in script.lines() {
        let effects = turn.step(input(line));
        shown.extend([line, "\n"]);
        shown.extend(effects.iter().flat_map(|effect| ["    ".to_owned(), show(effect), "\n".to_owned()]));
    }
    expected.assert_eq(&shown);
}

#[test]
fn the_start_records_the_input_and_asks() {
    let (_, effects) = start("hi");
    let shown: Vec<String> = effects.iter().map(show).collect();
    expect![[r#"
        [
            "started",
            "record user \"hi\"",
            "start user u-hi",
            "complete user u-hi",
            "settings",
            "ASK",
        ]"#]]
    .assert_eq(&format!("{shown:#?}"));
}

#[test]
fn text_streams_and_the_turn_completes_with_the_last_message() {
    check(
        "open\nadd m\ndelta m He\ndelta m y\ndone m Hey\ncompleted",
        expect![[r#"
            open
                count
            add m
                start agent m ""
            delta m He
                grow m Text("He")
            delta m y
                grow m Text("y")
            done m Hey
                complete agent m "Hey"
                record assistant "Hey"
            completed
                count
                END Completed { last_message: Some("Hey"), bookmark: None }
        "#]],
    );
}

#[test]
fn items_that_were_never_announced_are_started_before_they_grow_or_complete() {
    check(
        "delta m x\nthought r because\ndone m x",
        expect![[r#"
            delta m x
                start agent m ""
                grow m Text("x")
            thought r because
                start reasoning r []
                complete reasoning r ["because"]
                record reasoning
            done m x
                complete agent m "x"
                record assistant "x"
        "#]],
    );
}

#[test]
fn a_search_of_the_provider_is_shown_and_recorded() {
    check(
        "search w rain in Oslo\ndone m It rains.\ncompleted",
        expect![[r#"
            search w rain in Oslo
                start search w "rain in Oslo"
                complete search w "rain in Oslo"
                record web_search_call
            done m It rains.
                start agent m ""
                complete agent m "It rains."
                record assistant "It rains."
            completed
                count
                END Completed { last_message: Some("It rains."), bookmark: None }
        "#]],
    );
}

#[test]
fn input_during_a_turn_joins_it_before_the_next_request() {
    check(
        "call 1 a\ncompleted\nsay more\nended 1 one",
        expect![[r#"
            call 1 a
                record call 1
            completed
                count
                RUN 1
            say more
            ended 1 one
                record output 1 Text("one")
                record user "more"
                start user u-more
                complete user u-more
                settings
                ASK
        "#]],
    );
}

#[test]
fn input_during_the_last_answer_gets_an_answer_of_its_own() {
    check(
        "say more\ndone m Hey\ncompleted",
        expect![[r#"
            say more
            done m Hey
                start agent m ""
                complete agent m "Hey"
                record assistant "Hey"
            completed
                count
                record user "more"
                start user u-more
                complete user u-more
                settings
                ASK
        "#]],
    );
}

#[test]
fn a_cut_answer_is_asked_for_again_until_the_limit() {
    check(
        "cut\ndue\ncut\ndue\ncut",
        expect![[r#"
            cut
                CANCEL
                retry 1/2 5ms
                WAIT 5ms
            due
                ASK AGAIN
            cut
                CANCEL
                retry 2/2 5ms
                WAIT 5ms
            due
                ASK AGAIN
            cut
                CANCEL
                BREAK OFF
                END Failed(Failure { message: "cut", hint: None, info: Other })
        "#]],
    );
}

#[test]
fn each_answer_has_retries_of_its_own() {
    check(
        "cut\ndue\ncut\ndue\ncall 1 a\ncompleted\nended 1 x\ncut",
        expect![[r#"
            cut
                CANCEL
                retry 1/2 5ms
                WAIT 5ms
            due
                ASK AGAIN
            cut
                CANCEL
                retry 2/2 5ms
                WAIT 5ms
            due
                ASK AGAIN
            call 1 a
                record call 1
            completed
                count
                RUN 1
            ended 1 x
                record output 1 Text("x")
                settings
                ASK
            cut
                CANCEL
                retry 1/2 5ms
                WAIT 5ms
        "#]],
    );
}

#[test]
fn calls_before_a_cut_are_run_and_not_asked_for_twice() {
    check(
        "call 1 a\ncut\nended 1 one",
        expect![[r#"
            call 1 a
                record call 1
            cut
                CANCEL
                retry 1/2 0ns
                RUN 1
            ended 1 one
                record output 1 Text("one")
                settings
                ASK
        "#]],
    );
}

#[test]
fn an_error_that_will_not_pass_ends_the_turn_at_once_and_leaves_no_call_open() {
    check(
        "call 1 a\nrefused\ndue\nsay late",
        expect![[r#"
            call 1 a
                record call 1
            refused
                CANCEL
                BREAK OFF
                record output 1 Text("aborted")
                END Failed(Failure { message: "refused", hint: None, info: Other })
            due
            say late
        "#]],
    );
}

#[test]
fn an_interrupt_ends_the_turn_once_and_late_inputs_do_nothing() {
    check(
        "call 1 a\ncall 2 b\ncompleted\nsay more\nstop\nended 1 one\nstop",
        expect![[r#"
            call 1 a
                record call 1
            call 2 b
                record call 2
            completed
                count
                RUN 1
                RUN 2
            say more
            stop
                CANCEL
                BREAK OFF
                record output 1 Text("aborted")
                record output 2 Text("aborted")
                record user "more"
                start user u-more
                complete user u-more
                END Aborted(Interrupted)
            ended 1 one
            stop
        "#]],
    );
}

#[test]
fn an_interrupt_during_the_wait_for_a_retry_cancels_it() {
    check(
        "cut\nstop\ndue",
        expect![[r#"
            cut
                CANCEL
                retry 1/2 5ms
                WAIT 5ms
            stop
                CANCEL
                BREAK OFF
                END Aborted(Interrupted)
            due
        "#]],
    );
}

/// A turn that compacts the conversation when 100 tokens are used.
fn small() -> Turn {
    Turn::start(&TurnId::new("t"), said("hi"), Window::default(), policy(Some(100))).0
}

fn compacting() -> Turn {
    Turn::compact(&TurnId::new("t"), Window::default(), policy(None)).0
}

#[test]
fn a_full_window_is_compacted_before_the_next_request() {
    play(
        small(),
        "call 1 a\nused 100\nended 1 x\ndelta s Sum\ndone s Sum\nused 100\ndone m ok\nused 10",
        expect![[r#"
            call 1 a
                record call 1
            used 100
                count
                RUN 1
            ended 1 x
                record output 1 Text("x")
                settings
                ASK FOR SUMMARY without 0 halves
            delta s Sum
            done s Sum
            used 100
                count
                COMPACT "Sum"
                settings
                ASK
            done m ok
                start agent m ""
                complete agent m "ok"
                record assistant "ok"
            used 10
                count
                END Completed { last_message: Some("ok"), bookmark: None }
        "#]],
    );
}

#[test]
fn a_turn_compacts_once_even_if_that_did_not_help() {
    play(
        small(),
        "call 1 a\nused 100\nended 1 x\ndone s Sum\nused 5\ncall 2 a\nused 100\nended 2 y",
        expect![[r#"
        call 1 a
            record call 1
        used 100
            count
            RUN 1
        ended 1 x
            record output 1 Text("x")
            settings
            ASK FOR SUMMARY without 0 halves
        done s Sum
        used 5
            count
            COMPACT "Sum"
            settings
            ASK
        call 2 a
            record call 2
        used 100
            count
            RUN 2
        ended 2 y
            record output 2 Text("y")
            settings
            ASK
    "#]],
    );
}

#[test]
fn a_summary_on_request_ends_the_turn() {
    play(
        compacting(),
        "open\ndone s Sum\ncompleted",
        expect![[r#"
            open
                count
            done s Sum
            completed
                count
                COMPACT "Sum"
                END Completed { last_message: None, bookmark: None }
        "#]],
    );
}

#[test]
fn input_during_a_summary_is_answered_after_it() {
    play(
        compacting(),
        "say more\ndone s Sum\ncompleted",
        expect![[r#"
        say more
        done s Sum
        completed
            count
            COMPACT "Sum"
            record user "more"
            start user u-more
            complete user u-more
            settings
            ASK
    "#]],
    );
}

#[test]
fn a_conversation_too_long_for_a_summary_is_compacted_in_part() {
    play(
        compacting(),
        "overflow\noverflow\ndone s Sum\ncompleted",
        expect![[r#"
            overflow
                CANCEL
                settings
                ASK FOR SUMMARY without 1 halves
            overflow
                CANCEL
                settings
                ASK FOR SUMMARY without 2 halves
            done s Sum
            completed
                count
                COMPACT "Sum"
                END Completed { last_message: None, bookmark: None }
        "#]],
    );
}

#[test]
fn a_failed_summary_is_named_in_the_error() {
    play(
        compacting(),
        "cut\ndue\nrefused",
        expect![[r#"
            cut
                CANCEL
                retry 1/2 5ms
                WAIT 5ms
            due
                ASK AGAIN
            refused
                CANCEL
                BREAK OFF
                END Failed(Failure { message: "the conversation could not be compacted: refused", hint: None, info: Other })
        "#]],
    );
}

#[test]
fn an_empty_summary_is_asked_for_again_and_then_given_up() {
    play(
        compacting(),
        "completed\ndue\ncompleted\ndue\ncompleted",
        expect![[r#"
            completed
                count
                CANCEL
                retry 1/2 206.28158ms
                WAIT 206.28158ms
            due
                ASK AGAIN
            completed
                count
                CANCEL
                retry 2/2 402.769279ms
                WAIT 402.769279ms
            due
                ASK AGAIN
            completed
                count
                CANCEL
                BREAK OFF
                END Failed(Failure { message: "the conversation could not be compacted: the model gave no summary", hint: None, info: Other })
        "#]],
    );
}
