//! Partial answers next to the file of their thread.
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use codex_log::draft::Drafts;
use codex_log::history::ForkPoint;
use codex_log::store::{Commit, Entry, ListQuery, LogWriter, ReadFrom, ThreadStore};
use codex_log::{AgentMessage, Body, Delta, Event, ItemId, Seq, TurnId};
use codex_store::FileStore;
use codex_wire::ids::ThreadId;
use codex_wire::rollout::SessionMeta;
use expect_test::expect;
use serde_json::{Value, json};

/// A thread in the middle of an answer.
struct World {
    home: tempfile::TempDir,
    store: FileStore,
    thread: ThreadId,
}

fn append(writer: &mut dyn LogWriter, kind: &str, payload: &Value) {
    writer.append(1000, kind, &mut |out| serde_json::to_writer(out, payload)).unwrap();
}

fn meta(thread: ThreadId) -> Value {
    json!({"id": thread, "timestamp": "2026-01-02T03:04:05.678Z", "cwd": "/w", "originator": "o", "cli_version": "0"})
}

/// The lines of a draft of a message that has started here.
fn draft(position: u64, text: &str) -> Vec<u8> {
    let (mut drafts, mut lines) = (Drafts::default(), Vec::new());
    let (turn, item) = (Some(TurnId::new("t")), ItemId::new("m"));
    let begun = Body::ItemStarted(AgentMessage::empty(item.clone()).into());
    for body in [begun, Body::ItemDelta { item, delta: Delta::Text(text.into()) }] {
        let event = Event { thread: ThreadId::unknown(), seq: Seq::default(), at_ms: 0, turn: turn.clone(), body };
        drafts.take(&event, position);
    }
    drafts.write(&mut lines);
    lines
}

impl World {
    /// The program that wrote the thread is gone.
    fn killed() -> Self {
        let (world, writer) = Self::writing();
        drop(writer);
        world
    }

    fn writing() -> (Self, Box<dyn LogWriter>) {
        let home = tempfile::tempdir().unwrap();
        let (store, thread) = (FileStore::of(home.path()), ThreadId::fresh());
        let mut writer = store.create(thread).unwrap().writer;
        append(&mut *writer, "session_meta", &meta(thread));
        append(&mut *writer, "event_msg", &json!({"type": "task_started", "turn_id": "t"}));
        let content = json!([{"type": "input_text", "text": "tell me"}]);
        append(&mut *writer, "response_item", &json!({"type": "message", "role": "user", "content": content}));
        append(&mut *writer, "event_msg", &json!({"type": "user_message", "message": "tell me", "turn_id": "t"}));
        assert!(matches!(writer.commit(false), Commit::Done(Ok(()))));
        let lines = draft(writer.position(), "once upon");
        writer.partial(&lines);
        (Self { home, store, thread }, writer)
    }

    fn rollout(&self) -> PathBuf {
        self.store.place(self.thread).unwrap()
    }

    fn beside(&self) -> PathBuf {
        beside(&self.rollout())
    }

    /// The texts of partial answers.
    fn left(&self) -> Vec<String> {
        left(&self.store, self.thread)
    }
}

fn beside(rollout: &Path) -> PathBuf {
    let stem = rollout.file_stem().unwrap().to_str().unwrap();
    rollout.with_file_name(format!("rollout-{}.partial", stem.rsplit('-').next().unwrap()))
}

fn left(store: &FileStore, thread: ThreadId) -> Vec<String> {
    let mut lines = store.read(thread, ReadFrom::Start).unwrap();
    let mut left = Vec::new();
    while let Some(entry) = lines.next_entry().unwrap() {
        let Entry::Line(line) = entry else { continue };
        let payload: Value = serde_json::from_str(line.payload.get()).unwrap();
        if payload["type"] == "item_interrupted" {
            assert_eq!((&payload["turn_id"], &payload["thread_id"]), (&json!("t"), &json!(thread)));
            left.push(payload["item"]["content"][0]["text"].as_str().unwrap().to_owned());
        }
    }
    left
}

#[test]
fn only_the_owner_can_read_it_and_no_link_is_followed() {
    let (world, mut writer) = World::writing();
    assert_eq!(world.beside().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    writer.clear_partial();
    assert!(!world.beside().exists());
    let elsewhere = world.home.path().join("elsewhere");
    symlink(&elsewhere, world.beside()).unwrap();
    writer.partial(b"x\n");
    assert!(!elsewhere.exists());
}

#[test]
fn a_partial_answer_is_reported_without_a_writer_and_stored_on_open() {
    let (world, writer) = World::writing();
    assert!(world.left().is_empty(), "the answer may still come");
    drop(writer);
    assert_eq!(world.left(), ["once upon"]);
    assert!(world.beside().exists(), "readers write nothing");
    let length = world.rollout().metadata().unwrap().len();
    let opened = world.store.open(world.thread).unwrap();
    assert!(!world.beside().exists());
    assert!(opened.writer.position() > length);
    assert_eq!((world.left(), opened.cut_bytes), (vec!["once upon".to_owned()], 0));
}

#[test]
fn a_partial_answer_of_a_claimed_thread_is_not_reported() {
    // More threads than may be open at once: the files of the first are closed.
    let (world, _pen) = World::writing();
    let others: Vec<_> = (0..200).map(|_| world.store.create(ThreadId::fresh()).unwrap()).collect();
    assert!(world.left().is_empty());
    drop(others);
}

#[test]
fn a_line_that_was_cut_off_costs_what_was_in_it() {
    let world = World::killed();
    let mut lines = fs::read(world.beside()).unwrap();
    lines.extend_from_slice(br#"{"item":"m","kind":"text","index":0,"text":" a ti"#);
    fs::write(world.beside(), &lines).unwrap();
    assert_eq!(world.left(), ["once upon"]);
    // The last line of the thread itself may be truncated too.
    let mut rollout = fs::read(world.rollout()).unwrap();
    rollout.extend_from_slice(br#"{"timestamp":"t","type":"event"#);
    fs::write(world.rollout(), &rollout).unwrap();
    assert_eq!(world.left(), ["once upon"]);
    assert!(world.store.open(world.thread).unwrap().cut_bytes > 0);
    assert_eq!(world.left(), ["once upon"]);
}

#[test]
fn drafts_of_other_threads_and_turns_are_skipped() {
    let world = World::killed();
    let length = world.rollout().metadata().unwrap().len();
    let long = [draft(length, "once upon"), vec![b' '; 20_000_000]].concat();
    let elsewhere = [draft(length - 1, "no line ends there"), draft(length + 10, "nor there"), Vec::new(), long];
    for lines in elsewhere {
        fs::write(world.beside(), lines).unwrap();
        assert!(world.left().is_empty());
    }
    fs::write(world.beside(), draft(length, "once upon")).unwrap();
    assert_eq!(world.left(), ["once upon"]);
    let mut writer = world.store.open(world.thread).unwrap().writer;
    append(&mut *writer, "event_msg", &json!({"type": "turn_aborted", "reason": "interrupted", "turn_id": "t"}));
    assert!(matches!(writer.commit(false), Commit::Done(Ok(()))));
    drop(writer);
    fs::write(world.beside(), draft(length, "once more")).unwrap();
    assert_eq!(world.left(), ["once upon"], "the turn is over");
    fs::remove_file(world.beside()).unwrap();
    fs::create_dir(world.beside()).unwrap();
    assert_eq!(world.left(), ["once upon"]);
    drop(world.store.open(world.thread).unwrap());
}

#[test]
fn it_goes_where_its_thread_goes() {
    let world = World::killed();
    let before = world.beside();
    let archived = world.store.archive(world.thread).unwrap().path;
    assert!(!before.exists() && beside(&archived).exists());
    assert_eq!(world.left(), ["once upon"]);
    world.store.unarchive(world.thread).unwrap();
    assert!(before.exists() && !beside(&archived).exists());
    let listed = world.store.list(&ListQuery { limit: 10, ..ListQuery::default() }).unwrap().threads;
    assert_eq!(listed.iter().map(|summary| summary.id).collect::<Vec<_>>(), [world.thread]);
    let copy: SessionMeta = serde_json::from_value(meta(ThreadId::fresh())).unwrap();
    let fork = world.store.fork(world.thread, ForkPoint::End, &copy).unwrap();
    let text = fs::read_to_string(&fork.place).unwrap();
    assert!(text.contains("once upon") && !beside(&fork.place).exists());
    world.store.delete(world.thread).unwrap();
    assert!(!before.exists());
    let (world, writer) = World::writing();
    let path = world.beside();
    writer.discard();
    assert!(!path.exists());
}

#[test]
fn exports_have_it() {
    let world = World::killed();
    let mut bundle = Vec::new();
    world.store.export(world.thread, None, &mut bundle).unwrap();
    let copy = world.store.import(&mut &*bundle).unwrap();
    let text = fs::read_to_string(copy.path).unwrap();
    assert!(text.contains("item_interrupted") && text.contains("once upon"));
}
