//! The laws of the codec: stored events are decoded unchanged, and a truncated file gives a prefix of them.
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use codex_log::decode::{Decoder, Wanted};
use codex_log::encode::{LineSink, encode};
use codex_log::item::{AgentActivity, AgentCall, CalledAgent, McpCall, McpCallEnd};
use codex_log::line::Line;
use codex_log::store::write_line;
use codex_log::{
    Abort, AgentMessage, Body, CommandEnd, CommandItem, Event, Failure, Item, ItemId, Outcome, PatchEnd, PatchItem,
    Reasoning, Seq, Status, TurnId, UserMessage, WebSearch,
};
use codex_wire::agent::{AgentActivityKind, AgentState, AgentTool};
use codex_wire::change::FileChange;
use codex_wire::error_info::CodexErrorInfo;
use codex_wire::ids::ThreadId;
use codex_wire::input::UserInput;
use codex_wire::mcp::{CallToolResult, McpInvocation};
use proptest::prelude::*;
use serde::Serialize;
use serde_json::json;

#[derive(Default)]
struct File(Vec<u8>);

impl LineSink for File {
    type Error = serde_json::Error;

    fn line<P: Serialize + ?Sized>(&mut self, at_ms: i64, kind: &str, payload: &P) -> Result<(), Self::Error> {
        let payload = serde_json::to_vec(payload)?;
        write_line(&mut self.0, at_ms, kind, &mut |out| out.write_all(&payload).map_err(serde_json::Error::io))
            .unwrap();
        Ok(())
    }
}

/// Texts with everything that JSON escapes.
fn text() -> impl Strategy<Value = String> {
    proptest::string::string_regex("[a-z \"\\\\\n\u{e9}\u{1f980}]{0,12}").unwrap()
}

fn ended() -> impl Strategy<Value = Status> {
    prop_oneof![Just(Status::Completed), Just(Status::Failed), Just(Status::Declined)]
}

fn command() -> impl Strategy<Value = Item> {
    (prop::collection::vec(text(), 1..3), text(), ended(), any::<i32>(), 0..5000_u64, any::<bool>()).prop_map(
        |(argv, output, status, exit_code, millis, is_users_own)| {
            let stdout = format!("{output}, by itself");
            let end = CommandEnd {
                exit_code,
                duration: Duration::from_millis(millis),
                stdout,
                stderr: "elsewhere".to_owned(),
                aggregated: output.clone(),
                formatted: format!("{output}, for the model"),
            };
            Item::Command(Arc::new(CommandItem {
                id: ItemId::new(""),
                argv,
                cwd: "/w".into(),
                parsed: Vec::new(),
                terminal: None,
                is_users_own,
                status,
                end: Some(end),
            }))
        },
    )
}

fn mcp_call() -> impl Strategy<Value = Item> {
    (text(), prop_oneof![text().prop_map(Ok), text().prop_map(Err)]).prop_map(|(tool, result)| {
        let status = if result.is_ok() { Status::Completed } else { Status::Failed };
        let answer =
            |text| CallToolResult { content: vec![json!({"text": text})], structured_content: None, is_error: None };
        Item::McpCall(Arc::new(McpCall {
            id: ItemId::new(""),
            invocation: McpInvocation { server: "s".to_owned(), tool, arguments: Some(json!({"a": 1})) },
            status,
            end: Some(McpCallEnd { duration: Duration::from_millis(7), result: result.map(answer) }),
        }))
    })
}

fn agent_call() -> impl Strategy<Value = Item> {
    (text(), proptest::option::of(text()), ended()).prop_map(|(prompt, message, status)| {
        let thread = ThreadId::unknown();
        let agent = CalledAgent {
            thread,
            nickname: Some("Ada".to_owned()),
            role: None,
            status: AgentState::Completed,
            message,
        };
        Item::AgentCall(Arc::new(AgentCall {
            id: ItemId::new(""),
            tool: AgentTool::SendInput,
            status,
            sender: thread,
            receivers: vec![thread],
            prompt: Some(prompt),
            model: None,
            effort: None,
            agents: vec![agent],
        }))
    })
}

fn agent_activity() -> impl Strategy<Value = Item> {
    text().prop_map(|path| {
        Item::AgentActivity(Arc::new(AgentActivity {
            id: ItemId::new(""),
            kind: AgentActivityKind::Started,
            thread: ThreadId::unknown(),
            path,
            model: Some("m".to_owned()),
            effort: None,
        }))
    })
}

fn item() -> impl Strategy<Value = Item> {
    let texts = |least: usize| prop::collection::vec(text(), least..3);
    let id = || ItemId::new("");
    prop_oneof![
        (text(), proptest::option::of("[a-z]{1,4}")).prop_map(move |(said, key)| {
            let content = vec![UserInput::text(said)];
            Item::UserMessage(UserMessage { id: id(), key: key.map(Into::into), content })
        }),
        text().prop_map(move |text| Item::AgentMessage(AgentMessage { id: id(), text: text.into() })),
        (texts(1), texts(0)).prop_map(move |(summary, raw)| Item::Reasoning(Reasoning { id: id(), summary, raw })),
        text().prop_map(move |query| Item::WebSearch(WebSearch { id: id(), query })),
        command(),
        (text(), text(), ended()).prop_map(move |(path, content, status)| {
            let changes = BTreeMap::from([(path.into(), FileChange::Add { content })]);
            let end = Some(PatchEnd { stdout: "M a".to_owned(), stderr: String::new() });
            let changes = Arc::new(changes);
            Item::Patch(Arc::new(PatchItem { id: id(), changes, is_auto_approved: false, status, end }))
        }),
        mcp_call(),
        agent_call(),
        agent_activity(),
    ]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let failure = |message| Failure { message, hint: None, info: CodexErrorInfo::UsageLimitExceeded };
    prop_oneof![
        proptest::option::of(text())
            .prop_map(|last| { Outcome::Completed { last_message: last.map(Into::into), bookmark: None } }),
        prop_oneof![Just(Abort::Interrupted), Just(Abort::Replaced), Just(Abort::ReviewEnded)]
            .prop_map(Outcome::Aborted),
        text().prop_map(move |message| Outcome::Failed(failure(message))),
    ]
}

/// An item that breaks off. A message of the user is complete at once.
fn broken_off() -> impl Strategy<Value = Item> {
    let ended = |item: Item| item.status().map_or(item.clone(), |_| item.with_status(Status::Failed));
    item().prop_filter("the user has said it", |item| item.said().is_none()).prop_map(ended)
}

/// Complete turns, as an engine emits them.
fn thread() -> impl Strategy<Value = Vec<Event>> {
    let item =
        || prop_oneof![4 => item().prop_map(Body::ItemCompleted), 1 => broken_off().prop_map(Body::ItemInterrupted)];
    let turn = (prop::collection::vec(item(), 0..5), outcome());
    prop::collection::vec(turn, 1..4).prop_map(|turns| {
        let mut events: Vec<Event> = Vec::new();
        let mut tell = |turn: usize, body: Body| {
            let at_ms = 1_700_000_000_000 + i64::try_from(events.len()).unwrap();
            let turn = Some(TurnId::new(format!("turn {turn}")));
            events.push(Event { thread: ThreadId::unknown(), seq: Seq::default(), at_ms, turn, body });
            events.len()
        };
        for (turn, (items, outcome)) in turns.into_iter().enumerate() {
            let mut number = tell(turn, Body::TurnStarted { context_window: Some(1000) });
            for body in items {
                let name = |item: Item| item.with_id(ItemId::new(format!("item {number}")));
                let (body, begun) = match body {
                    Body::ItemInterrupted(item) => (Body::ItemInterrupted(name(item.clone())), name(item).begun()),
                    Body::ItemCompleted(item) => (Body::ItemCompleted(name(item.clone())), name(item).begun()),
                    body => panic!("{body:?} is no end of an item"),
                };
                tell(turn, Body::ItemStarted(begun));
                number = tell(turn, body);
            }
            tell(turn, Body::TurnEnded(outcome));
        }
        events
    })
}

/// An item without data that lines do not contain: the separate streams of a command, the reason why it was declined,
/// and the output of a patch.
fn canonical(item: &Item) -> Item {
    if let Some(command) = item.command() {
        let end = command.end.as_ref().filter(|_| command.status != Status::Declined);
        let output = end.map(|end| end.aggregated.clone()).unwrap_or_default();
        let end = CommandEnd {
            exit_code: end.map_or(-1, |end| end.exit_code),
            duration: end.map(|end| end.duration).unwrap_or_default(),
            stdout: output.clone(),
            stderr: String::new(),
            aggregated: output.clone(),
            formatted: output,
        };
        return Item::Command(Arc::new(CommandItem { end: Some(end), ..command.clone() }));
    }
    if let Some(patch) = item.patch() {
        let end = Some(PatchEnd { stdout: String::new(), stderr: String::new() });
        return Item::Patch(Arc::new(PatchItem { is_auto_approved: true, end, ..patch.clone() }));
    }
    item.clone()
}

/// An event as text, without its number and, if it follows from others, without its time.
fn shown(event: &Event) -> String {
    match &event.body {
        Body::ItemStarted(item) => format!("{:?} {:?}", event.turn, Body::ItemStarted(item.clone())),
        Body::ItemCompleted(item) => {
            // Reasoning has a line for each part, with the time of the first.
            format!("{} {:?} {:?}", event.at_ms, event.turn, Body::ItemCompleted(canonical(item)))
        }
        Body::ItemInterrupted(item) => {
            format!("{} {:?} {:?}", event.at_ms, event.turn, Body::ItemInterrupted(canonical(item)))
        }
        body => format!("{} {:?} {body:?}", event.at_ms, event.turn),
    }
}

fn encoded(events: &[Event]) -> Vec<u8> {
    let mut file = File::default();
    for event in events {
        encode(event, &mut file).unwrap();
    }
    file.0
}

/// The events of the complete lines of a file.
fn decoded(file: &[u8]) -> Vec<Event> {
    let (mut decoder, mut events) = (Decoder::new(Wanted::ALL), Vec::new());
    for line in file.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
        let line = std::str::from_utf8(line).unwrap().trim_end();
        decoder.line(&Line::parse(line).unwrap(), &mut events);
    }
    decoder.end(&mut events);
    events
}

/// Whether one reasoning item is a prefix of another: a file may end between its parts.
fn is_beginning(event: &Event, of: &Event) -> bool {
    match (&event.body, &of.body) {
        (Body::ItemCompleted(Item::Reasoning(part)), Body::ItemCompleted(Item::Reasoning(whole))) => {
            part.id == whole.id && whole.summary.starts_with(&part.summary) && whole.raw.starts_with(&part.raw)
        }
        _ => false,
    }
}

proptest! {
    #[test]
    fn stored_events_are_restored(events in thread()) {
        let back = decoded(&encoded(&events));
        let (told, back): (Vec<_>, Vec<_>) = (events.iter().map(shown).collect(), back.iter().map(shown).collect());
        prop_assert_eq!(back, told);
    }

    #[test]
    fn a_truncated_file_gives_a_prefix(events in thread(), cut in any::<prop::sample::Index>()) {
        let file = encoded(&events);
        let (whole, part) = (decoded(&file), decoded(&file[..cut.index(file.len() + 1)]));
        prop_assert!(part.len() <= whole.len());
        for (place, (one, other)) in part.iter().zip(&whole).enumerate() {
            let is_last = place + 1 == part.len();
            let is_same = shown(one) == shown(other) || (is_last && is_beginning(one, other));
            prop_assert!(is_same, "{} is not {}", shown(one), shown(other));
        }
    }
}
