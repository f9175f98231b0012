//! Metadata that clients store about threads, with concurrent writers.
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::fs;
use std::path::Path;

use codex_log::store::{Appearance, ListQuery, ReadMark, RepositoryChange, SectionFilter, SortKey};
use codex_log::{ReadState, Unread};
use codex_store::{IndexError, MetadataError, StoredMetadata, ThreadIndex};
use codex_wire::ids::ThreadId;
use codex_wire::rollout::GitInfo;
use serde_json::{Value, json};

/// Writes the file of a thread, as another process would.
fn begin(home: &Path) -> ThreadId {
    let id = ThreadId::fresh();
    let folder = home.join("sessions/2026/01/02");
    fs::create_dir_all(&folder).unwrap();
    let meta = json!({"id": id, "timestamp": "2026-01-02T10:00:00.000Z", "cwd": "/w", "originator": "o",
        "cli_version": "0.77.0", "git": {"commit_hash": "abc", "branch": "main"}});
    let said = json!({"type": "user_message", "message": "hello"});
    let line = |kind: &str, payload| {
        json!({"timestamp": "2026-01-02T10:00:00.000Z", "type": kind, "payload": payload}).to_string() + "\n"
    };
    let text = line("session_meta", meta) + &line("event_msg", said);
    fs::write(folder.join(format!("rollout-2026-01-02T10-00-00-{id}.jsonl")), text).unwrap();
    id
}

fn files_in(home: &Path) -> usize {
    fs::read_dir(home.join("thread-notes")).unwrap().count()
}

#[test]
fn repository_information_is_changed_and_survives_the_index() {
    let home = tempfile::tempdir().unwrap();
    let thread = begin(home.path());
    let index = ThreadIndex::open(home.path());
    let git = || {
        let listed = index.list(&ListQuery { limit: 9, ..ListQuery::default() }).unwrap().threads.remove(0).git;
        assert_eq!(index.find(thread).unwrap().unwrap().git, listed);
        listed
    };
    let change = |change| index.metadata().change_repository(&index.find(thread).unwrap().unwrap(), change);
    change(RepositoryChange { branch: Some(Some("work".to_owned())), ..RepositoryChange::default() }).unwrap();
    let changed =
        GitInfo { commit_hash: Some("abc".to_owned()), branch: Some("work".to_owned()), ..GitInfo::default() };
    assert_eq!(git(), Some(changed));
    change(RepositoryChange { commit: Some(None), url: Some(Some("u".to_owned())), branch: None }).unwrap();
    fs::remove_file(home.path().join("thread-index.sqlite")).unwrap();
    let changed = GitInfo {
        commit_hash: None,
        branch: Some("work".to_owned()),
        repository_url: Some("u".to_owned()),
        ..GitInfo::default()
    };
    assert_eq!(git(), Some(changed.clone()));
    let empty = change(RepositoryChange { branch: Some(Some(" ".to_owned())), ..RepositoryChange::default() });
    assert_eq!(empty.unwrap_err().to_string(), "branch must not be empty");
    let long = change(RepositoryChange { commit: Some(Some("a".repeat(5000))), ..RepositoryChange::default() });
    assert_eq!(long.unwrap_err().to_string(), "sha has 5000 bytes; the limit is 4096");
    assert_eq!(git(), Some(changed));
    change(RepositoryChange { commit: None, branch: Some(None), url: Some(None) }).unwrap();
    assert_eq!(git(), None);
    index.metadata().turn_ended(thread, "1").unwrap();
    assert_eq!(files_in(home.path()), 2);
    index.delete(thread).unwrap();
    assert_eq!(files_in(home.path()), 0);
}

#[test]
fn the_first_turn_that_was_not_read_stays_the_first() {
    let home = tempfile::tempdir().unwrap();
    let (metadata, thread) = (StoredMetadata::of(home.path()), ThreadId::fresh());
    let untouched = metadata.read_state(thread);
    assert_eq!(untouched, ReadState::default());
    let one = metadata.turn_ended(thread, "1").unwrap();
    let two = StoredMetadata::of(home.path()).turn_ended(thread, "2").unwrap();
    assert_eq!((&one.first_unread, &two.first_unread), (&Some(Unread::Turn("1".to_owned())), &one.first_unread));
    assert!(one.revision != two.revision && one.revision != untouched.revision);
    assert_eq!(metadata.read_state(thread), two);
    assert_eq!(metadata.read_state(ThreadId::fresh()), untouched);
}

#[test]
fn nobody_marks_what_they_have_not_seen() {
    let home = tempfile::tempdir().unwrap();
    let (metadata, thread) = (StoredMetadata::of(home.path()), ThreadId::fresh());
    let seen = metadata.turn_ended(thread, "1").unwrap();
    let unseen = metadata.turn_ended(thread, "2").unwrap();
    let error = metadata.mark(thread, &seen.revision, ReadMark::Read).unwrap_err();
    assert!(matches!(&error, MetadataError::Revision { present, .. } if *present == unseen.revision), "{error}");
    assert_eq!(metadata.read_state(thread), unseen);
    let (read, is_new) = metadata.mark(thread, &unseen.revision, ReadMark::Read).unwrap();
    assert_eq!((&read.first_unread, is_new), (&None, true));
    assert_eq!(metadata.mark(thread, &read.revision, ReadMark::Read).unwrap(), (read.clone(), false));
    let (unread, _) = metadata.mark(thread, &read.revision, ReadMark::Unread).unwrap();
    assert_eq!(unread.first_unread, Some(Unread::Start));
    assert_eq!(metadata.turn_ended(thread, "3").unwrap().first_unread, Some(Unread::Start));
}

#[test]
fn rolled_back_turns_need_not_be_read() {
    let home = tempfile::tempdir().unwrap();
    let (metadata, thread) = (StoredMetadata::of(home.path()), ThreadId::fresh());
    assert_eq!(metadata.turns_left(thread, &[]).unwrap(), None);
    metadata.turn_ended(thread, "2").unwrap();
    assert_eq!(metadata.turns_left(thread, &["1", "2"]).unwrap(), None);
    let left = metadata.turns_left(thread, &["1"]).unwrap().unwrap();
    assert_eq!(left.first_unread, None);
    assert_eq!(metadata.read_state(thread), left);
}

#[test]
fn a_thread_has_one_attachment_of_a_type_and_a_key() {
    let home = tempfile::tempdir().unwrap();
    let (metadata, one, two) = (StoredMetadata::of(home.path()), ThreadId::fresh(), ThreadId::fresh());
    assert!(metadata.attachments(one).unwrap().is_empty());
    assert!(metadata.attached_to("ticket", "7").unwrap().is_empty());
    let (first, is_new) = metadata.attach(one, "ticket", "7", json!({"url": "u"})).unwrap();
    assert!(is_new);
    assert_eq!(metadata.attach(one, "ticket", "7", json!("other")).unwrap(), (first.clone(), false));
    assert!(metadata.attach(one, "link", "7", json!(null)).unwrap().1);
    assert!(metadata.attach(two, "ticket", "7", json!(1)).unwrap().1);
    assert_eq!(metadata.attached_to("ticket", "7").unwrap(), [one, two]);
    assert_eq!(metadata.detach(one, "ticket", "7").unwrap(), Some(first));
    assert_eq!(metadata.detach(one, "ticket", "7").unwrap(), None);
    assert_eq!(metadata.attached_to("ticket", "7").unwrap(), [two]);
    let kinds: Vec<String> = metadata.attachments(one).unwrap().into_iter().map(|left| left.kind).collect();
    assert_eq!(kinds, ["link"]);
}

#[test]
fn attachments_are_bounded() {
    let home = tempfile::tempdir().unwrap();
    let (metadata, thread) = (StoredMetadata::of(home.path()), ThreadId::fresh());
    let refused = |kind: &str, key: &str, payload| metadata.attach(thread, kind, key, payload).unwrap_err().to_string();
    assert_eq!(refused(" ", "k", json!(1)), "attachmentType must not be empty");
    assert_eq!(refused("t", "", json!(1)), "identityKey must not be empty");
    assert_eq!(refused(&"t".repeat(129), "k", json!(1)), "attachmentType has 129 bytes; the limit is 128");
    assert_eq!(refused("t", "k", json!("x".repeat(65536))), "payload has 65538 bytes; the limit is 65536");
    assert!(!home.path().join("thread-notes").exists());
    let write = |thread: ThreadId, count: usize, payload: &Value| {
        let one = |number: usize| json!({"id": number.to_string(), "kind": "t", "key": number.to_string(), "payload": payload, "created_at": 1});
        let all: Value = (0..count).map(one).collect();
        fs::create_dir_all(home.path().join("thread-notes")).unwrap();
        fs::write(home.path().join(format!("thread-notes/{thread}.attachments.json")), all.to_string()).unwrap();
    };
    let large = json!("x".repeat(65000));
    write(thread, 64, &large);
    assert!(refused("t", "64", large).starts_with("what is attached to the thread has 4"));
    assert!(metadata.attach(thread, "t", "64", json!(1)).unwrap().1);
    let other = ThreadId::fresh();
    write(other, 256, &json!(1));
    let error = metadata.attach(other, "t", "256", json!(256)).unwrap_err();
    assert_eq!(error.to_string(), "the limit of 256 attachments of a thread is reached");
    assert!(!metadata.attach(other, "t", "255", json!(0)).unwrap().1);
}

#[test]
fn two_writers_attach_concurrently() {
    let home = tempfile::tempdir().unwrap();
    let thread = ThreadId::fresh();
    std::thread::scope(|scope| {
        for writer in ["a", "b"] {
            let metadata = StoredMetadata::of(home.path());
            scope.spawn(move || {
                for number in 0..20 {
                    metadata.attach(thread, writer, &number.to_string(), json!(number)).unwrap();
                }
            });
        }
    });
    assert_eq!(StoredMetadata::of(home.path()).attachments(thread).unwrap().len(), 40);
}

#[test]
fn sections_are_made_changed_and_taken_away() {
    let home = tempfile::tempdir().unwrap();
    let metadata = StoredMetadata::of(home.path());
    assert!(metadata.sections().unwrap().is_empty());
    let red = Appearance { color: Some("red".to_owned()), icon: None };
    let one = metadata.create_section("One".to_owned(), Some(red.clone())).unwrap();
    let two = metadata.create_section("Two".to_owned(), None).unwrap();
    assert_eq!(metadata.sections().unwrap(), [one.clone(), two.clone()]);
    let renamed = metadata.update_section(&one.id, "Uno".to_owned(), None).unwrap();
    assert_eq!((renamed.name.as_str(), &renamed.appearance), ("Uno", &Some(red)));
    assert_eq!(metadata.update_section(&one.id, "Uno".to_owned(), Some(None)).unwrap().appearance, None);
    metadata.delete_section(&two.id).unwrap();
    assert_eq!(metadata.delete_section(&two.id).unwrap_err().to_string(), format!("section not found: {}", two.id));
    let empty = metadata.create_section("  ".to_owned(), None).unwrap_err();
    assert_eq!(empty.to_string(), "name must not be empty");
    let gaudy = Appearance { color: None, icon: Some("x".repeat(129)) };
    let gaudy = metadata.create_section("x".to_owned(), Some(gaudy)).unwrap_err();
    assert_eq!(gaudy.to_string(), "icon has 129 bytes; the limit is 128");
    assert_eq!(metadata.sections().unwrap().len(), 1);
}

#[test]
fn a_section_is_listed_in_the_users_order_page_by_page() {
    let home = tempfile::tempdir().unwrap();
    let threads: Vec<ThreadId> = (0..6).map(|_| begin(home.path())).collect();
    let index = ThreadIndex::open(home.path());
    let metadata = index.metadata();
    let section = metadata.create_section("s".to_owned(), None).unwrap().id;
    for thread in [3, 0, 4] {
        metadata.move_thread(threads[thread], Some(&section), None).unwrap();
    }
    metadata.move_thread(threads[2], Some(&section), Some(threads[0])).unwrap();
    let query = |sort, section| ListQuery { sort, section, ascending: true, limit: 2, ..ListQuery::default() };
    let inside = query(SortKey::Place, SectionFilter::In(section.clone()));
    let names = |page: &codex_log::store::Page| -> Vec<ThreadId> { page.threads.iter().map(|it| it.id).collect() };
    let first = index.list(&inside).unwrap();
    assert_eq!(names(&first), [threads[3], threads[2]]);
    let placed = first.threads[0].section.clone().unwrap();
    assert!(placed.section.id == section && placed.since > 1_700_000_000);
    // The thread that the page ended with moves away, and the next page continues where it was.
    let next = |cursor: &Option<String>| ListQuery { cursor: cursor.clone(), ..inside.clone() };
    assert_eq!(names(&index.list(&next(&first.next_cursor)).unwrap()), [threads[0], threads[4]]);
    metadata.move_thread(threads[2], None, None).unwrap();
    let second = index.list(&next(&first.next_cursor)).unwrap();
    assert_eq!((names(&second), second.next_cursor), (vec![threads[0], threads[4]], None));
    let backwards = index.list(&ListQuery { ascending: false, ..inside.clone() }).unwrap();
    assert_eq!(names(&backwards), [threads[4], threads[0]]);
    let last = ListQuery { ascending: false, ..next(&backwards.next_cursor) };
    assert_eq!(names(&index.list(&last).unwrap()), [threads[3]]);
    let outside = ListQuery { limit: 9, ..query(SortKey::Created, SectionFilter::Outside) };
    assert_eq!(names(&index.list(&outside).unwrap()), [threads[1], threads[2], threads[5]]);
    let by_time = ListQuery { limit: 9, ..query(SortKey::Created, SectionFilter::In(section.clone())) };
    assert_eq!(names(&index.list(&by_time).unwrap()), [threads[0], threads[3], threads[4]]);
    for cursor in ["odd", "1|odd", "|"] {
        let error = index.list(&next(&Some(cursor.to_owned()))).unwrap_err();
        assert!(matches!(error, IndexError::Cursor { .. }), "{error}");
    }
    let unknown = index.list(&query(SortKey::Place, SectionFilter::In("x".to_owned()))).unwrap_err();
    assert_eq!(unknown.to_string(), "section not found: x");
    index.delete(threads[3]).unwrap();
    assert_eq!(names(&index.list(&inside).unwrap()), [threads[0], threads[4]]);
    assert!(
        !fs::read_to_string(home.path().join("thread-notes/sections.json")).unwrap().contains(&threads[3].to_string())
    );
}

#[test]
fn a_thread_is_in_one_section_since_it_has_come() {
    let home = tempfile::tempdir().unwrap();
    let thread = begin(home.path());
    let index = ThreadIndex::open(home.path());
    let metadata = index.metadata();
    let section = |name: &str| metadata.create_section(name.to_owned(), None).unwrap().id;
    let (one, two) = (section("one"), section("two"));
    let other = ThreadId::fresh();
    metadata.move_thread(thread, Some(&one), None).unwrap();
    let path = home.path().join("thread-notes/sections.json");
    let long_ago = {
        let mut kept: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        kept["sections"][0]["threads"][0]["since"] = json!(5);
        kept.to_string()
    };
    fs::write(&path, long_ago).unwrap();
    let now = || index.find(thread).unwrap().unwrap().section.map(|now| (now.section.id, now.since == 5));
    metadata.move_thread(thread, Some(&one), None).unwrap();
    assert_eq!(now(), Some((one.clone(), true)));
    let error = metadata.move_thread(thread, Some(&two), Some(other)).unwrap_err();
    assert!(matches!(error, MetadataError::NotThere { .. }), "{error}");
    assert_eq!(now(), Some((one.clone(), true)));
    metadata.move_thread(thread, Some(&two), None).unwrap();
    assert_eq!(now(), Some((two.clone(), false)));
    metadata.delete_section(&two).unwrap();
    assert_eq!(now(), None);
    // Unreadable metadata hides no thread.
    fs::write(&path, "[").unwrap();
    assert_eq!(now(), None);
    assert_eq!(index.list(&ListQuery { limit: 9, ..ListQuery::default() }).unwrap().threads.len(), 1);
    assert!(matches!(metadata.move_thread(thread, Some(&one), None), Err(MetadataError::Broken { .. })));
    let outside = ListQuery { limit: 9, section: SectionFilter::Outside, ..ListQuery::default() };
    assert!(matches!(index.list(&outside), Err(IndexError::Metadata(MetadataError::Broken { .. }))));
}
