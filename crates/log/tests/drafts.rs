//! Drafts of growing items: they are restored as far as they were written, unless the log has more.
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

use codex_log::draft::{Drafts, MOST_BYTES, MOST_LINES, Partial};
use codex_log::encode::{LineSink, encode};
use codex_log::line::Line;
use codex_log::store::write_line;
use codex_log::{
    Abort, AgentMessage, Body, CommandItem, Delta, Event, Item, ItemId, Outcome, Reasoning, Seq, Status, TurnId,
};
use codex_wire::event::ExecOutputStream;
use codex_wire::ids::ThreadId;
use proptest::prelude::*;
use serde::Serialize;

/// A log with its draft lines.
#[derive(Default)]
struct World {
    log: Vec<u8>,
    drafts: Drafts,
    beside: Vec<u8>,
}

impl LineSink for World {
    type Error = serde_json::Error;

    fn line<P: Serialize + ?Sized>(&mut self, at_ms: i64, kind: &str, payload: &P) -> Result<(), Self::Error> {
        let payload = serde_json::to_vec(payload)?;
        write_line(&mut self.log, at_ms, kind, &mut |out| out.write_all(&payload).map_err(serde_json::Error::io))
            .unwrap();
        Ok(())
    }
}

impl World {
    /// A turn has started.
    fn new() -> Self {
        let mut world = Self::default();
        world.tell(Body::TurnStarted { context_window: None });
        world
    }

    fn tell(&mut self, body: Body) {
        let turn = Some(TurnId::new("turn"));
        let event = Event { thread: ThreadId::unknown(), seq: Seq::default(), at_ms: 0, turn, body };
        encode(&event, self).unwrap();
        self.drafts.take(&event, self.log.len() as u64);
    }

    fn say(&mut self, id: &str, text: &str) {
        self.tell(Body::ItemDelta { item: ItemId::new(id), delta: Delta::Text(text.into()) });
    }

    fn write(&mut self) {
        self.drafts.write(&mut self.beside);
        if self.drafts.forget_lines() {
            self.beside.clear();
        }
    }

    /// The items that a reader restores from this many bytes of the draft lines.
    fn broken_off(&self, length: usize) -> Vec<Item> {
        let mut partial = Partial::read(&self.beside[..length]);
        let Some(position) = partial.position() else { return Vec::new() };
        let mut end = position;
        for text in std::str::from_utf8(&self.log[usize::try_from(position).unwrap()..]).unwrap().lines() {
            let start = end;
            end += text.len() as u64 + 1;
            partial.take(&Line { range: start..end, ..Line::parse(text).unwrap() });
        }
        let events = partial.broken_off(ThreadId::unknown(), 5).into_iter();
        let item = |event: Event| match event.body {
            Body::ItemInterrupted(item) => {
                assert_eq!((event.turn, event.at_ms), (Some(TurnId::new("turn")), 5));
                item
            }
            body => panic!("{body:?} is no item that broke off"),
        };
        events.map(item).collect()
    }

    fn texts(&self) -> Vec<String> {
        self.broken_off(self.beside.len()).iter().map(|item| item.title().into_owned()).collect()
    }
}

fn message(id: &str, text: &str) -> Item {
    Item::AgentMessage(AgentMessage { id: ItemId::new(id), text: text.into() })
}

fn started(id: &str) -> Body {
    Body::ItemStarted(message(id, ""))
}

#[test]
fn written_drafts_of_open_items_are_restored() {
    let mut world = World::new();
    world.tell(started("a"));
    world.tell(Body::ItemStarted(Reasoning::empty(ItemId::new("r")).into()));
    world.say("a", "one \"two\"\n");
    world.tell(Body::ItemDelta { item: ItemId::new("r"), delta: Delta::Summary { index: 0, text: "Hm".into() } });
    assert!(world.drafts.has_unsaved());
    world.write();
    assert!(!world.drafts.has_unsaved());
    world.say("a", "three");
    world.tell(Body::ItemDelta { item: ItemId::new("r"), delta: Delta::Raw { index: 0, text: "x".into() } });
    world.write();
    world.say("a", " and what nobody wrote");
    let thought = Reasoning { id: ItemId::new("r"), summary: vec!["Hm".to_owned()], raw: vec!["x".to_owned()] };
    let expected = [message("a", "one \"two\"\nthree"), thought.into()];
    assert_eq!(world.broken_off(world.beside.len()), expected);
}

#[test]
fn a_command_is_restored_with_its_output() {
    let mut world = World::new();
    let command = CommandItem {
        id: ItemId::new("c"),
        argv: vec!["make".to_owned()],
        cwd: "/w".into(),
        parsed: Vec::new(),
        terminal: None,
        is_users_own: false,
        status: Status::Running,
        end: None,
    };
    world.tell(Body::ItemStarted(Item::Command(command.into())));
    for (stream, bytes) in [(ExecOutputStream::Stdout, &b"a\xe2\x82"[..]), (ExecOutputStream::Stderr, b"\xac\xff b")] {
        world.tell(Body::ItemDelta { item: ItemId::new("c"), delta: Delta::Output { stream, bytes: bytes.to_vec() } });
        world.write();
    }
    let items = world.broken_off(world.beside.len());
    let command = items[0].command().unwrap();
    assert_eq!((command.argv.as_slice(), command.status), (&["make".to_owned()][..], Status::Failed));
    assert_eq!(command.end.as_ref().unwrap().aggregated, "a€\u{fffd} b");
}

#[test]
fn items_of_the_log_are_not_repeated() {
    let mut world = World::new();
    world.tell(started("a"));
    world.say("a", "one");
    world.write();
    assert_eq!(world.texts(), ["one"]);
    world.tell(Body::ItemCompleted(message("a", "one more")));
    assert!(world.texts().is_empty());
    // Models may use one id for all their items.
    world.write();
    assert!(world.beside.is_empty());
    world.tell(started("a"));
    world.say("a", "two");
    world.write();
    assert_eq!(world.texts(), ["two"]);
}

#[test]
fn an_item_that_is_over_does_not_come_back_while_another_is_open() {
    let mut world = World::new();
    world.tell(started("a"));
    world.tell(started("b"));
    world.say("a", "one");
    world.say("b", "two");
    world.write();
    let failure =
        codex_log::Failure { message: String::new(), hint: None, info: codex_wire::error_info::CodexErrorInfo::Other };
    let (mut retried, delay) = (World::new(), std::time::Duration::ZERO);
    retried.tell(started("a"));
    retried.say("a", "one");
    retried.write();
    retried.tell(Body::AnswerRetried { failure, attempt: 1, limit: 1, delay });
    retried.write();
    assert!(retried.beside.is_empty(), "nothing else is open");
    world.tell(Body::ItemInterrupted(message("a", "one")));
    assert!(world.drafts.has_unsaved());
    world.write();
    assert_eq!(world.texts(), ["two"]);
    world.tell(started("a"));
    world.say("a", "three");
    world.write();
    assert_eq!(world.texts(), ["two", "three"]);
}

#[test]
fn nothing_is_restored_of_a_turn_that_has_ended() {
    let over = [Body::TurnEnded(Outcome::Aborted(Abort::Interrupted)), Body::TurnStarted { context_window: None }];
    for body in over {
        let mut world = World::new();
        world.tell(started("a"));
        world.say("a", "one");
        world.write();
        world.tell(body);
        assert!(world.texts().is_empty());
    }
}

#[test]
fn lines_have_an_end() {
    let mut world = World::new();
    for number in 0..8 {
        let id = number.to_string();
        world.tell(started(&id));
        world.say(&id, &"\u{1}".repeat(2 * MOST_BYTES));
        world.write();
    }
    assert!(world.beside.len() as u64 <= MOST_LINES, "{}", world.beside.len());
    assert_eq!(world.texts()[0].len(), MOST_BYTES);
}

proptest! {
    #[test]
    fn truncated_draft_lines_give_a_prefix(texts in prop::collection::vec("[a-z\"\n\u{e9}]{1,8}", 1..6),
                                                    cut in any::<prop::sample::Index>()) {
        let mut world = World::new();
        world.tell(started("a"));
        for text in &texts {
            world.say("a", text);
            world.write();
        }
        let whole = texts.concat();
        prop_assert_eq!(world.texts(), [whole.clone()]);
        let part: String = world.broken_off(cut.index(world.beside.len() + 1)).iter().map(Item::title).collect();
        prop_assert!(whole.starts_with(&part));
    }

    #[test]
    fn garbage_is_passed_over(garbage in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut world = World::new();
        world.tell(started("a"));
        world.say("a", "one");
        world.write();
        let before = world.beside.len();
        world.beside.extend_from_slice(&garbage);
        prop_assert_eq!(world.texts(), ["one"]);
        world.beside.drain(..before);
        prop_assert!(world.texts().is_empty());
    }
}
