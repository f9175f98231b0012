//! Laws that every store has to obey, for the tests of its implementation.
//!
//! Each law takes an empty store and panics if the store breaks it.
#![expect(clippy::expect_used, reason = "a law that is broken ends the test where it stands")]

mod long_lines;
mod searching;

use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use codex_wire::ids::ThreadId;
use codex_wire::rollout::{SessionLineage, SessionMeta};
use serde_json::{Value, json};

use super::{
    Commit, Entry, ListQuery, LogWriter, Opened, Pending, ReadFrom, ReadMark, SearchQuery, StoreErrorKind, ThreadStore,
};
use crate::draft::Drafts;
use crate::encode::LineSink;
use crate::history::ForkPoint;
use crate::state::Interrupted;
use crate::{AgentMessage, Body, Delta, Event, ItemId, Seq, TurnId};

/// A moment in milliseconds of Unix time, the same in all laws.
const AT_MS: i64 = 1_767_323_045_678;

/// A law, by its name.
pub type Law = (&'static str, fn(&dyn ThreadStore));

/// All laws.
pub const LAWS: &[Law] = &[
    ("what was committed is read back, and nothing else is", committed_lines_are_read_back),
    ("the position is the length of what was written", the_position_is_the_length),
    ("long lines are read back", long_lines::long_lines_are_read_back),
    ("a thread has one writer at a time", one_writer_at_a_time),
    ("what is left of an answer is told once, and only while nobody writes", leftovers_are_reported_once),
    ("a fork is a prefix with a first line of its own", a_fork_is_a_prefix),
    ("a thread is found by what was said and what it is called", a_thread_is_found),
    ("searches are filtered and sorted", searching::searches_are_filtered_and_sorted),
    ("threads are put away, taken back and deleted", threads_are_archived),
    ("a thread takes along those that it has started", agents_go_with_their_root),
    ("a bundle has the threads that its thread has started", bundles_have_agents),
    ("a thread that is not kept leaves nothing", unsaved_threads_leave_nothing),
    ("a thread that was given up leaves nothing", discarded_threads_leave_nothing),
    ("a thread that was exported can be taken in again", exports_can_be_imported),
    ("notes go with their thread", notes_go_with_their_thread),
    ("prompts are kept in order", prompts_are_kept),
];

fn meta(thread: ThreadId) -> SessionMeta {
    SessionMeta {
        id: thread,
        timestamp: "2026-01-02T03:04:05.678Z".to_owned(),
        cwd: PathBuf::from("/work"),
        originator: "laws".to_owned(),
        cli_version: "0".to_owned(),
        instructions: None,
        source: None,
        model_provider: None,
        lineage: SessionLineage::default(),
        git: None,
    }
}

fn append(writer: &mut dyn LogWriter, kind: &str, payload: &Value) {
    writer.line(AT_MS, kind, payload).expect("a line is taken");
}

fn commit(writer: &mut dyn LogWriter, durably: bool) {
    match writer.commit(durably) {
        Commit::Done(done) => done.expect("what was appended can be written"),
        Commit::Sync(sync) => sync().expect("what was written can be made durable"),
        Commit::Later(written) => wait_for(written).expect("what was appended can be written"),
    }
}

/// Wakes the thread that waits for a commit.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a commit on this thread.
#[must_use]
pub fn wait_for<T>(mut pending: Pending<T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match pending.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return done,
            Poll::Pending => thread::park(),
        }
    }
}

/// Appends a turn of two lines.
fn append_turn(writer: &mut dyn LogWriter, text: &str) {
    let content = json!([{"type": "input_text", "text": text}]);
    append(writer, "response_item", &json!({"type": "message", "role": "user", "content": content}));
    append(writer, "event_msg", &json!({"type": "user_message", "message": text}));
}

/// A thread with such turns, and its writer.
fn begin(store: &dyn ThreadStore, turns: &[&str]) -> (ThreadId, Box<dyn LogWriter>) {
    let thread = ThreadId::fresh();
    let Opened { mut writer, .. } = store.create(thread).expect("a thread can begin");
    writer.line(AT_MS, "session_meta", &meta(thread)).expect("a line is taken");
    for text in turns {
        append_turn(&mut *writer, text);
    }
    commit(&mut *writer, true);
    (thread, writer)
}

/// The lines of a thread, each with the position where it ends.
fn lines(store: &dyn ThreadStore, thread: ThreadId, from: ReadFrom) -> Vec<(String, u64)> {
    let mut source = store.read(thread, from).expect("the thread can be read");
    let mut lines = Vec::new();
    while let Some(entry) = source.next_entry().expect("its lines can be read") {
        match entry {
            Entry::Line(line) => lines.push((line.text.to_owned(), line.range.end)),
            Entry::Bad(bad) => panic!("a line is broken: {bad:?}"),
        }
    }
    lines
}

fn texts(store: &dyn ThreadStore, thread: ThreadId) -> Vec<String> {
    lines(store, thread, ReadFrom::Start).into_iter().map(|(text, _)| text).collect()
}

fn committed_lines_are_read_back(store: &dyn ThreadStore) {
    let (thread, mut writer) = begin(store, &["one"]);
    let before = texts(store, thread);
    assert_eq!(before.len(), 3);
    append_turn(&mut *writer, "two\nlines");
    assert_eq!(texts(store, thread), before, "what waits is not there yet");
    commit(&mut *writer, false);
    let after = texts(store, thread);
    assert_eq!(after[..3], before[..]);
    let last: Value = serde_json::from_str(&after[4]).expect("a line is JSON");
    let payload = json!({"type": "user_message", "message": "two\nlines"});
    let expected = json!({"timestamp": "2026-01-02T03:04:05.678Z", "type": "event_msg", "payload": payload});
    assert_eq!(last, expected);
    assert_eq!(store.meta(thread).expect("it has a first line"), meta(thread));
    let state = store.history(thread, Interrupted::Kept).expect("it can go on").state;
    let conversation = &state.conversation;
    assert_eq!((state.meta.id, conversation.items().len(), conversation.said().len()), (thread, 2, 2));
}

fn the_position_is_the_length(store: &dyn ThreadStore) {
    let (thread, mut writer) = begin(store, &[]);
    let mut positions = vec![writer.position()];
    for text in ["one", "zwei – drei", &"long ".repeat(100_000)] {
        append(&mut *writer, "event_msg", &json!({"type": "user_message", "message": text}));
        positions.push(writer.position());
    }
    commit(&mut *writer, false);
    assert_eq!(Some(&writer.position()), positions.last(), "a commit adds nothing");
    let ends: Vec<u64> = lines(store, thread, ReadFrom::Start).into_iter().map(|(_, end)| end).collect();
    assert_eq!(ends, positions);
    for (count, position) in positions.iter().enumerate() {
        let rest: Vec<u64> = lines(store, thread, ReadFrom::Position(*position)).iter().map(|(_, end)| *end).collect();
        assert_eq!(rest, positions[count + 1..]);
        let refused = store.read(thread, ReadFrom::Position(position - 1)).expect_err("no line ends there");
        assert_eq!(refused.kind(), StoreErrorKind::Refused);
    }
    let end = writer.position();
    drop(writer);
    let opened = store.open(thread).expect("nobody writes it");
    assert_eq!(
        (opened.writer.position(), opened.cut_bytes),
        (end, 0),
        "a position stays when a thread is opened again"
    );
}

fn one_writer_at_a_time(store: &dyn ThreadStore) {
    let (thread, writer) = begin(store, &["one"]);
    let refused = store.open(thread).expect_err("somebody writes it");
    assert_eq!(refused.kind(), StoreErrorKind::Locked);
    for refused in [store.archive(thread).map(drop), store.delete(thread)] {
        assert_eq!(refused.expect_err("somebody writes it").kind(), StoreErrorKind::Locked);
    }
    drop(writer);
    let Opened { mut writer, .. } = store.open(thread).expect("nobody writes it");
    append_turn(&mut *writer, "two");
    commit(&mut *writer, false);
    assert_eq!(texts(store, thread).len(), 5);
    let missing = store.open(ThreadId::fresh()).expect_err("there is no such thread");
    assert_eq!(missing.kind(), StoreErrorKind::Missing);
}

/// The draft lines of a message that begins now.
fn draft(writer: &dyn LogWriter, text: &str) -> Vec<u8> {
    let (mut drafts, mut lines) = (Drafts::default(), Vec::new());
    let (turn, item) = (Some(TurnId::new("turn")), ItemId::new("message"));
    let begun = Body::ItemStarted(AgentMessage::empty(item.clone()).into());
    for body in [begun, Body::ItemDelta { item, delta: Delta::Text(text.into()) }] {
        let event = Event { thread: ThreadId::unknown(), seq: Seq::default(), at_ms: AT_MS, turn: turn.clone(), body };
        drafts.take(&event, writer.position());
    }
    drafts.write(&mut lines);
    lines
}

fn leftovers_are_reported_once(store: &dyn ThreadStore) {
    let (thread, mut writer) = begin(store, &["one"]);
    let whole = texts(store, thread);
    let lines = draft(&*writer, "half");
    writer.partial(&lines);
    assert_eq!(texts(store, thread), whole, "somebody writes");
    writer.clear_partial();
    drop(writer);
    assert_eq!(texts(store, thread), whole, "it was thrown away");
    let Opened { mut writer, .. } = store.open(thread).expect("nobody writes it");
    writer.partial(&lines);
    drop(writer);
    let left = texts(store, thread);
    assert_eq!(left[..whole.len()], whole[..]);
    // A store may leave out drafts.
    if let [line] = &left[whole.len()..] {
        let line: Value = serde_json::from_str(line).expect("a line is JSON");
        assert_eq!(line["payload"]["item"]["content"][0]["text"], "half");
    }
    for _ in 0..2 {
        let Opened { writer, .. } = store.open(thread).expect("nobody writes it");
        assert_eq!(texts(store, thread), left);
        assert_eq!(Some(writer.position()), lines_end(store, thread), "what is left has its place");
    }
    let Opened { mut writer, .. } = store.open(thread).expect("nobody writes it");
    writer.partial(&lines);
    drop(writer);
    assert_eq!(texts(store, thread), left, "a line tells it already");
}

fn lines_end(store: &dyn ThreadStore, thread: ThreadId) -> Option<u64> {
    lines(store, thread, ReadFrom::Start).last().map(|(_, end)| *end)
}

fn a_fork_is_a_prefix(store: &dyn ThreadStore) {
    let (of, _pen) = begin(store, &["one", "two", "three"]);
    let whole = texts(store, of);
    let ends: Vec<u64> = lines(store, of, ReadFrom::Start).into_iter().map(|(_, end)| end).collect();
    let positions = ends.iter().zip(1..).map(|(end, length)| (ForkPoint::Position(*end), length));
    let others = [(ForkPoint::Turns(0), 1), (ForkPoint::Turns(2), 5), (ForkPoint::End, 7)];
    for (point, length) in others.into_iter().chain(positions) {
        let thread = ThreadId::fresh();
        let Opened { mut writer, .. } = store.fork(of, point, &meta(thread)).expect("a thread can be copied");
        let copy = lines(store, thread, ReadFrom::Start);
        assert_eq!(copy.last().map(|(_, end)| *end), Some(writer.position()));
        let copied: Vec<&String> = copy.iter().skip(1).map(|(text, _)| text).collect();
        assert_eq!(copied, whole[1..length].iter().collect::<Vec<_>>(), "{point:?}");
        assert_eq!(store.meta(thread).expect("it has a first line").id, thread);
        append_turn(&mut *writer, "another way");
        commit(&mut *writer, false);
        assert_eq!(texts(store, thread).len(), length + 2);
        assert_eq!(texts(store, of), whole, "the thread itself stays as it is");
    }
}

fn a_thread_is_found(store: &dyn ThreadStore) {
    let (thread, _pen) = begin(store, &["mend the lamp"]);
    let (other, _other_pen) = begin(store, &["sew a button"]);
    let found = store.find(thread).expect("it can be looked for").expect("it is there");
    assert_eq!((found.id, &*found.preview, found.name), (thread, "mend the lamp", None));
    store.rename(thread, "lamp").expect("it can be named");
    let query = ListQuery { limit: 10, ..ListQuery::default() };
    let page = store.list(&query).expect("threads can be listed");
    let mut listed: Vec<ThreadId> = page.threads.iter().map(|summary| summary.id).collect();
    listed.sort_unstable();
    let mut both = vec![thread, other];
    both.sort_unstable();
    assert_eq!(listed, both);
    let named = ListQuery { text: Some("lamp".to_owned()), ..query };
    let page = store.list(&named).expect("threads can be listed");
    assert_eq!(page.threads.iter().map(|summary| summary.name.as_deref()).collect::<Vec<_>>(), [Some("lamp")]);
    let query = SearchQuery { words: "button".to_owned(), limit: 10, ..SearchQuery::default() };
    let hits = searching::search(store, &query).hits;
    assert_eq!(hits.iter().map(|hit| hit.thread.id).collect::<Vec<_>>(), [other]);
    let place = store.place(thread).expect("it is somewhere");
    assert_eq!(store.locate(&place).expect("a thread is there").thread, thread);
    let refused = store.rename(ThreadId::fresh(), "x").expect_err("there is no such thread");
    assert_eq!(refused.kind(), StoreErrorKind::Missing);
}

fn threads_are_archived(store: &dyn ThreadStore) {
    let (thread, writer) = begin(store, &["one"]);
    drop(writer);
    let text = texts(store, thread);
    assert!(store.archive(thread).expect("it can be put away").archived);
    assert!(store.archive(thread).expect("it is away already").archived);
    assert_eq!(texts(store, thread), text);
    let listed = |archived| {
        let query = ListQuery { archived, limit: 10, ..ListQuery::default() };
        store.list(&query).expect("threads can be listed").threads.len()
    };
    assert_eq!((listed(false), listed(true)), (0, 1));
    assert!(!store.unarchive(thread).expect("it can be taken back").archived);
    assert_eq!((listed(false), listed(true)), (1, 0));
    assert_eq!(texts(store, thread), text);
    store.delete(thread).expect("it can be deleted");
    assert_eq!((listed(false), listed(true)), (0, 0));
    assert!(store.find(thread).expect("it can be looked for").is_none());
    for refused in [
        store.delete(thread),
        store.archive(thread).map(drop),
        store.unarchive(thread).map(drop),
        store.open(thread).map(drop),
        store.read(thread, ReadFrom::Start).map(drop),
        store.history(thread, Interrupted::Kept).map(drop),
    ] {
        assert_eq!(refused.expect_err("it is gone").kind(), StoreErrorKind::Missing);
    }
}

/// A thread with a child that has a child, none of them open, and another thread. The writer of the last child is open.
fn begin_tree(store: &dyn ThreadStore) -> ([ThreadId; 3], ThreadId, Box<dyn LogWriter>) {
    let (root, writer) = begin(store, &["root"]);
    drop(writer);
    let start = |parent: ThreadId, above: &[ThreadId]| {
        let thread = ThreadId::fresh();
        let lineage = SessionLineage {
            session_id: above.first().copied(),
            parent_thread_id: Some(parent),
            ..SessionLineage::default()
        };
        let Opened { mut writer, .. } = store.create(thread).expect("a thread can begin");
        let meta = SessionMeta { lineage, ..meta(thread) };
        writer.line(AT_MS, "session_meta", &meta).expect("a line is taken");
        append_turn(&mut *writer, &format!("a task of {parent}"));
        commit(&mut *writer, true);
        (thread, writer)
    };
    let (child, writer) = start(root, &[root]);
    drop(writer);
    let (below, writer) = start(child, &[root]);
    let (other, other_writer) = begin(store, &["other"]);
    drop(other_writer);
    ([root, child, below], other, writer)
}

fn agents_go_with_their_root(store: &dyn ThreadStore) {
    let (tree, other, writer) = begin_tree(store);
    let [root, child, below] = tree;
    for thread in tree {
        store.find(thread).expect("it can be looked for").expect("it is there");
    }
    assert_eq!(store.descendants(root).expect("they can be listed"), [child, below]);
    assert_eq!(store.descendants(child).expect("they can be listed"), [below]);
    assert!(store.descendants(other).expect("they can be listed").is_empty());
    let archived = || {
        let archived = |thread| store.find(thread).expect("it can be looked for").is_some_and(|found| found.archived);
        [root, child, below, other].map(archived)
    };
    let refused = [store.archive(root).map(drop), store.delete(root)];
    for refused in refused {
        assert_eq!(refused.expect_err("one of them is open").kind(), StoreErrorKind::Locked);
        assert_eq!(archived(), [false; 4], "all of them or none");
    }
    drop(writer);
    store.archive(root).expect("they can be put away");
    assert_eq!(archived(), [true, true, true, false]);
    store.unarchive(root).expect("they can be taken back");
    assert_eq!(archived(), [false; 4]);
    store.delete(root).expect("they can be deleted");
    for gone in tree {
        assert!(store.find(gone).expect("it can be looked for").is_none());
    }
    assert!(store.find(other).expect("it can be looked for").is_some());
}

fn bundles_have_agents(store: &dyn ThreadStore) {
    let (tree, _, writer) = begin_tree(store);
    drop(writer);
    let [root, child, below] = tree;
    store.rename(child, "helper").expect("it can be named");
    let mut bundle = Vec::new();
    store.export(root, None, &mut bundle).expect("it can be exported");
    let copy = store.import(&mut &*bundle).expect("it can be taken in");
    assert_eq!((copy.renamed_from, copy.agents.len()), (Some(root), 2));
    let [new_child, new_below] = [copy.agents[0], copy.agents[1]];
    assert!(!tree.contains(&copy.id) && !tree.contains(&new_child) && !tree.contains(&new_below));
    let lineage = |thread| store.meta(thread).expect("it has a first line").lineage;
    assert_eq!(lineage(copy.id).forked_from_id, Some(root));
    assert_eq!((lineage(new_child).parent_thread_id, lineage(new_child).session_id), (Some(copy.id), Some(copy.id)));
    assert_eq!((lineage(new_below).parent_thread_id, lineage(new_below).session_id), (Some(new_child), Some(copy.id)));
    assert!(texts(store, new_below)[1].contains(&format!("a task of {new_child}")), "ids are replaced everywhere");
    let name = store.find(new_child).expect("it can be looked for").and_then(|found| found.name);
    assert_eq!(name.as_deref(), Some("helper"));
    assert_eq!(store.descendants(copy.id).expect("they can be listed"), [new_child, new_below]);
    store.delete(root).expect("they can be deleted");
    let back = store.import(&mut &*bundle).expect("it can be taken in");
    assert_eq!((back.id, back.renamed_from, back.agents), (root, None, vec![child, below]));
    store.delete(root).expect("they can be deleted");
    // A bundle that ends with a thread that it does not contain, or in the middle of one, brings nothing.
    let text = String::from_utf8(bundle).expect("a bundle is text");
    let last = text.rfind("{\"type\":\"codex_thread_bundle\"").expect("it has several threads");
    let other = text[..last].to_owned() + &text[last..].replacen(&below.to_string(), &ThreadId::fresh().to_string(), 1);
    for bad in [&text[..last], &text[..text.len() - 5], &other] {
        let refused = store.import(&mut bad.as_bytes()).expect_err("a part is missing");
        assert_eq!(refused.kind(), StoreErrorKind::Refused);
        for gone in tree {
            assert!(store.find(gone).expect("it can be looked for").is_none());
        }
    }
}

fn unsaved_threads_leave_nothing(store: &dyn ThreadStore) {
    let thread = ThreadId::fresh();
    let Opened { mut writer, .. } = store.unsaved(thread);
    append_turn(&mut *writer, "one");
    commit(&mut *writer, true);
    assert!(writer.position() > 0 && !writer.is_kept());
    assert!(store.find(thread).expect("it can be looked for").is_none());
}

fn discarded_threads_leave_nothing(store: &dyn ThreadStore) {
    let (thread, writer) = begin(store, &["one"]);
    writer.discard();
    assert!(store.find(thread).expect("it can be looked for").is_none());
}

fn exports_can_be_imported(store: &dyn ThreadStore) {
    let (thread, writer) = begin(store, &["one", "two"]);
    drop(writer);
    let text = texts(store, thread);
    let mut bundle = Vec::new();
    store.export(thread, Some("lamp"), &mut bundle).expect("it can be exported");
    let copy = store.import(&mut &*bundle).expect("it can be taken in");
    assert_eq!(copy.renamed_from, Some(thread), "there is such a thread already");
    assert_eq!(texts(store, copy.id)[1..], text[1..]);
    let named = store.find(copy.id).expect("it can be looked for").and_then(|found| found.name);
    assert_eq!(named.as_deref(), Some("lamp"));
    store.delete(thread).expect("it can be deleted");
    let back = store.import(&mut &*bundle).expect("it can be taken in");
    assert_eq!((back.id, back.renamed_from), (thread, None));
    let refused = store.import(&mut &bundle[..bundle.len() - 5]).expect_err("a part is missing");
    assert_eq!(refused.kind(), StoreErrorKind::Refused);
}

fn notes_go_with_their_thread(store: &dyn ThreadStore) {
    let (thread, writer) = begin(store, &["one"]);
    drop(writer);
    let untouched = store.read_state(thread);
    let unread = store.turn_ended(thread, "turn").expect("it can be noted");
    assert_eq!(store.read_state(thread), unread);
    let stale = store.mark(thread, &untouched.revision, ReadMark::Read).expect_err("something has happened since");
    assert_eq!(stale.kind(), StoreErrorKind::Refused);
    let (read, is_new) = store.mark(thread, &unread.revision, ReadMark::Read).expect("it can be marked");
    assert!(is_new && read.first_unread.is_none());
    let section = store.create_section("Lamps".to_owned(), None).expect("a section can be made");
    store.move_thread(thread, Some(&section.id), None).expect("it can be sorted");
    let found = store.find(thread).expect("it can be looked for").and_then(|found| found.section);
    assert_eq!(found.map(|found| found.section), Some(section));
    let (_, is_new) = store.attach(thread, "issue", "1", json!({"a": 1})).expect("something can be attached");
    assert!(is_new);
    assert_eq!(store.attached_to("issue", "1").expect("owners can be listed"), [thread]);
    store.delete(thread).expect("it can be deleted");
    assert_eq!(store.read_state(thread), untouched);
    assert!(store.attachments(thread).expect("attachments can be listed").is_empty());
    assert!(store.attached_to("issue", "1").expect("owners can be listed").is_empty());
}

fn prompts_are_kept(store: &dyn ThreadStore) {
    assert_eq!(store.prompts().entries, 0);
    let thread = ThreadId::fresh();
    for text in ["one", "two\nlines"] {
        store.add_prompt(thread, text, None).expect("a prompt can be kept");
    }
    let state = store.prompts();
    assert_eq!(state.entries, 2);
    let said = |offset| store.prompt(state.log_id, offset).map(|entry| entry.text);
    assert_eq!([said(0).as_deref(), said(1).as_deref(), said(2).as_deref()], [Some("one"), Some("two\nlines"), None]);
    assert!(store.prompt(state.log_id + 1, 0).is_none(), "that is another history");
}
