//! Lists and searches over the threads of a home, whatever happens to the index.
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use codex_files::testing::{Endless, soon};
use codex_log::store::{ListQuery, SearchQuery, SortKey, SourceKind, ThreadSummary};
use codex_store::{IndexError, RolloutFile, StoredThreadError, ThreadIndex};
use codex_wire::ids::ThreadId;
use serde_json::{Value, json};

const INDEX: &str = "thread-index.sqlite";

struct Home {
    folder: tempfile::TempDir,
    index: ThreadIndex,
}

fn line(kind: &str, payload: Value) -> String {
    json!({"timestamp": "2026-01-02T03:04:05.006Z", "type": kind, "payload": payload}).to_string() + "\n"
}

fn message(role: &str, text: &str) -> String {
    line("response_item", json!({"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}))
}

fn said(text: &str) -> String {
    message("user", "<environment_context>secret</environment_context>")
        + &message("user", text)
        + &line("event_msg", json!({"type": "user_message", "message": text}))
        + &message("assistant", &format!("answer to {text}"))
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let index = ThreadIndex::open(folder.path());
        Self { folder, index }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes the file of a thread that started on a day in January, as another process would.
    fn begin(&self, day: u32, meta: Value, rest: &str) -> ThreadId {
        let id = ThreadId::fresh();
        let folder = self.path().join(format!("sessions/2026/01/{day:02}"));
        fs::create_dir_all(&folder).unwrap();
        let mut members = json!({
            "id": id, "timestamp": format!("2026-01-{day:02}T10:00:00.000Z"), "cwd": "/w", "originator": "o",
            "cli_version": "0.77.0", "source": "cli", "model_provider": "openai",
        });
        for (name, value) in meta.as_object().unwrap() {
            members[name] = value.clone();
        }
        let path = folder.join(format!("rollout-2026-01-{day:02}T10-00-00-{id}.jsonl"));
        fs::write(path, line("session_meta", members) + rest).unwrap();
        id
    }

    fn begin_saying(&self, day: u32, text: &str) -> ThreadId {
        self.begin(day, json!({}), &said(text))
    }

    fn find(&self, thread: ThreadId) -> ThreadSummary {
        self.index.find(thread).unwrap().unwrap()
    }

    fn append(&self, thread: ThreadId, text: &str) {
        let path = self.find(thread).path;
        File::options().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn previews(&self, query: &ListQuery) -> Vec<String> {
        let page = self.index.list(query).unwrap();
        page.threads.into_iter().map(|thread| thread.preview).collect()
    }

    fn found(&self, words: &str) -> Vec<String> {
        let results = self.index.search(&search(words, 10)).unwrap();
        assert!(results.complete);
        results.hits.into_iter().map(|hit| hit.thread.preview).collect()
    }
}

fn search(words: &str, limit: usize) -> SearchQuery {
    SearchQuery { words: words.to_owned(), limit, ..SearchQuery::default() }
}

fn all() -> ListQuery {
    ListQuery { limit: 100, ..ListQuery::default() }
}

#[test]
fn the_newest_come_first_with_what_they_are_about() {
    let home = Home::new();
    assert_eq!(home.previews(&all()), [""; 0]);
    let git = json!({"git": {"branch": "main"}, "source": {"subagent": "review"}, "cwd": "/a"});
    home.begin(2, git, &said("# Context\n## My request for Codex:\n  fix it "));
    home.begin_saying(1, "older");
    let threads = home.index.list(&all()).unwrap().threads;
    assert_eq!(threads.iter().map(|thread| &*thread.preview).collect::<Vec<_>>(), ["fix it", "older"]);
    let first = &threads[0];
    assert_eq!(first.cwd, Path::new("/a"));
    assert_eq!(first.git.as_ref().unwrap().branch.as_deref(), Some("main"));
    assert_eq!(SourceKind::of(first.source.as_ref()), SourceKind::SubAgentReview);
    assert_eq!(first.created_at.to_rfc3339(), "2026-01-02T10:00:00+00:00");
    assert_eq!((first.provider.as_deref(), &*first.cli_version, first.archived), (Some("openai"), "0.77.0", false));
}

#[test]
fn pages_stay_in_step_while_threads_appear() {
    let home = Home::new();
    for day in 1..=9 {
        home.begin_saying(day, &format!("day {day}"));
    }
    let mut query = ListQuery { limit: 4, ..ListQuery::default() };
    let mut seen = Vec::new();
    loop {
        let page = home.index.list(&query).unwrap();
        seen.extend(page.threads.into_iter().map(|thread| thread.preview));
        home.begin_saying(20, "meanwhile");
        query.cursor = page.next_cursor;
        let Some(cursor) = &query.cursor else { break };
        assert!(cursor.starts_with("2026-01-0") && cursor.contains("T10-00-00|"), "{cursor}");
    }
    assert_eq!(seen, (1..=9).rev().map(|day| format!("day {day}")).collect::<Vec<_>>());
    query.cursor = Some("nonsense".to_owned());
    assert!(matches!(home.index.list(&query), Err(IndexError::Cursor { .. })));
}

#[test]
fn filters_choose() {
    let home = Home::new();
    home.begin(1, json!({"model_provider": "mock"}), &said("mock"));
    home.begin(2, json!({"model_provider": null}), &said("unnamed"));
    home.begin(3, json!({"cwd": "/elsewhere"}), &said("elsewhere 100%_"));
    home.begin(4, json!({"source": "exec"}), &said("exec"));
    home.begin(5, json!({"source": {"subagent": "review"}}), &said("review"));
    let check = |query: ListQuery, expected: &[&str]| assert_eq!(home.previews(&query), expected, "{query:?}");
    check(ListQuery { providers: vec!["mock".to_owned()], ..all() }, &["mock"]);
    let mocks = ListQuery { providers: vec!["mock".to_owned()], default_provider: Some("mock".to_owned()), ..all() };
    check(mocks, &["unnamed", "mock"]);
    check(ListQuery { cwds: vec![PathBuf::from("/elsewhere")], ..all() }, &["elsewhere 100%_"]);
    check(ListQuery { sources: vec![SourceKind::Exec], ..all() }, &["exec"]);
    check(ListQuery { sources: vec![SourceKind::SubAgent], ..all() }, &["review"]);
    check(ListQuery { text: Some("ELSE".to_owned()), ..all() }, &["elsewhere 100%_"]);
    check(ListQuery { text: Some("0%_".to_owned()), ..all() }, &["elsewhere 100%_"]);
    check(ListQuery { text: Some("m%k".to_owned()), ..all() }, &[]);
    check(ListQuery { archived: true, ..all() }, &[]);
    check(ListQuery { ascending: true, limit: 1, ..all() }, &["mock"]);
}

#[test]
fn threads_of_other_processes_are_seen_at_once() {
    let home = Home::new();
    for number in 0..20 {
        let thread = home.begin_saying(number + 1, &format!("{number}"));
        assert_eq!(home.previews(&all()).len(), 1, "begun");
        fs::remove_file(home.find(thread).path).unwrap();
        assert_eq!(home.previews(&all()).len(), 0, "deleted");
        assert_eq!(home.index.find(thread).unwrap(), None);
    }
}

#[test]
fn a_thread_is_listed_after_its_first_input() {
    let home = Home::new();
    let thread = home.begin(1, json!({}), "");
    let empty =
        home.path().join("sessions/2026/01/01/rollout-2026-01-01T00-00-00-01a1de3b-14fd-7922-828f-0d0916245388.jsonl");
    fs::write(&empty, "").unwrap();
    assert_eq!(home.previews(&all()), [""; 0]);
    assert_eq!(home.previews(&ListQuery { silent: true, ..all() }), [""], "what cannot be read is not shown at all");
    home.append(thread, &said("now"));
    assert_eq!(home.previews(&all()), ["now"]);
    fs::copy(home.find(thread).path, empty).unwrap();
    assert_eq!(home.previews(&all()), ["now", "now"]);
}

#[test]
fn the_latest_thread_comes_first_on_request() {
    let home = Home::new();
    let (one, two) = (home.begin_saying(1, "one"), home.begin_saying(2, "two"));
    for (thread, age) in [(one, 100), (two, 50)] {
        let file = File::options().append(true).open(home.find(thread).path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
    }
    let query = ListQuery { sort: SortKey::Updated, limit: 1, ..ListQuery::default() };
    let page = home.index.list(&query).unwrap();
    assert_eq!(page.threads[0].preview, "two");
    let rest = home.index.list(&ListQuery { cursor: page.next_cursor, ..query.clone() }).unwrap();
    assert_eq!((&*rest.threads[0].preview, rest.next_cursor), ("one", None));
    home.append(one, "\n");
    assert_eq!(home.previews(&query), ["one"]);
}

#[test]
fn a_missing_broken_or_foreign_index_is_rebuilt() {
    let home = Home::new();
    home.begin_saying(1, "here");
    assert_eq!(home.previews(&all()), ["here"]);
    let path = home.path().join(INDEX);
    let remove = || {
        for ending in ["", "-wal", "-shm"] {
            drop(fs::remove_file(home.path().join(format!("{INDEX}{ending}"))));
        }
    };
    let breakages: [(&str, &dyn Fn()); 5] = [
        ("gone", &remove),
        ("no database", &|| {
            remove();
            fs::write(&path, "not a database at all, but longer than its header would be".repeat(100)).unwrap();
        }),
        ("of another version", &|| {
            remove();
            let other = rusqlite::Connection::open(&path).unwrap();
            other.execute_batch("CREATE TABLE threads (x); PRAGMA user_version = 99;").unwrap();
        }),
        ("without a table", &|| {
            let other = rusqlite::Connection::open(&path).unwrap();
            other.execute_batch("DROP TABLE names;").unwrap();
        }),
        ("half overwritten", &|| {
            let other = rusqlite::Connection::open(&path).unwrap();
            other.execute_batch("PRAGMA wal_checkpoint(TRUNCATE);").unwrap();
            drop(other);
            let mut bytes = fs::read(&path).unwrap();
            bytes[4096..].fill(0xa5);
            fs::write(&path, bytes).unwrap();
        }),
    ];
    for (what, breakage) in breakages {
        breakage();
        assert_eq!(home.previews(&all()), ["here"], "{what}, while it is open");
        assert_eq!(home.found("here"), ["here"], "{what}, while it is open");
        breakage();
        let fresh = ThreadIndex::open(home.path());
        assert_eq!(fresh.list(&all()).unwrap().threads.len(), 1, "{what}, before it is opened");
    }
}

#[test]
fn a_home_that_cannot_be_written_is_listed_all_the_same() {
    let home = Home::new();
    home.begin_saying(1, "here");
    // Permissions do not stop a test that runs as root; a folder in the way does.
    fs::create_dir_all(home.path().join(INDEX).join("in the way")).unwrap();
    assert_eq!(home.previews(&all()), ["here"]);
    home.begin_saying(2, "there");
    assert_eq!(home.previews(&all()), ["there", "here"]);
    assert_eq!(home.found("there"), ["there"]);
}

#[test]
fn only_the_owner_can_read_the_index() {
    let home = Home::new();
    home.begin_saying(1, "here");
    home.index.refresh().unwrap();
    for ending in ["", "-wal", "-shm"] {
        let path = home.path().join(format!("{INDEX}{ending}"));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{}", path.display());
    }
}

#[test]
fn the_first_search_of_a_home_finds_all_threads() {
    let home = Home::new();
    let long = "many more words ".repeat(2000);
    for number in 0..200 {
        home.begin(1 + number % 28, json!({}), &(said(&format!("thread {number}")) + &said(&long)));
    }
    let query = SearchQuery { words: "thread".to_owned(), limit: 1000, ..SearchQuery::default() };
    let found = ThreadIndex::open(home.path()).search(&query).unwrap();
    assert_eq!((found.hits.len(), found.complete), (200, true));
}

#[test]
fn messages_and_commands_are_found_and_nothing_else() {
    let home = Home::new();
    let call = json!({"type": "function_call", "name": "shell", "call_id": "c",
        "arguments": "{\"command\":[\"bash\",\"-lc\",\"cargo nextest run\"]}"});
    let patch = json!({"type": "custom_tool_call", "name": "apply_patch", "call_id": "d",
        "input": "*** Begin Patch\n+let my_value = 1;\n"});
    let output = json!({"type": "function_call_output", "call_id": "c", "output": "thousands of lines"});
    let rest = said("Führe die Tests aus") + &line("response_item", call) + &line("response_item", patch);
    let thread = home.begin(1, json!({}), &(rest + &line("response_item", output)));
    home.begin_saying(2, "something else");
    for words in ["fuhre", "tests die", "nextest", "my_value", "my_val", "answer führe", "\"tests\"", "cargo AND"] {
        let expected: &[&str] = if words == "cargo AND" { &[] } else { &["Führe die Tests aus"] };
        assert_eq!(home.found(words), expected, "{words}");
    }
    for words in ["secret", "thousands", "", " \" * ", "()", "absent"] {
        assert_eq!(home.found(words), [""; 0], "{words}");
    }
    assert_eq!(home.found("answer").len(), 2);
    home.append(thread, &said("later words"));
    home.index.record(&home.find(thread).path).unwrap();
    assert_eq!(home.found("later"), ["Führe die Tests aus"]);
    home.append(thread, "{\"timestamp\":\"2026");
    home.index.refresh().unwrap();
    assert_eq!(home.found("later"), ["Führe die Tests aus"]);
    let hit = home.index.search(&search("nextest", 1)).unwrap().hits.remove(0);
    assert!(hit.snippet.contains("cargo nextest run"), "{}", hit.snippet);
    fs::remove_file(home.find(thread).path).unwrap();
    assert_eq!(home.found("later"), [""; 0]);
}

#[test]
fn threads_are_archived_restored_named_and_deleted() {
    let home = Home::new();
    let thread = home.begin_saying(1, "one");
    let other = home.begin_saying(2, "two");
    let path = home.find(thread).path;
    assert_eq!(home.found("one"), ["one"]);
    home.index.rename(thread, "a name").unwrap();
    let away = home.index.archive(thread).unwrap();
    let file = path.file_name().unwrap();
    assert_eq!((away.path, away.archived), (home.path().join("archived_sessions").join(file), true));
    assert_eq!(home.path().join("archived_sessions").metadata().unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(home.previews(&all()), ["two"]);
    assert_eq!(home.previews(&ListQuery { archived: true, text: Some("A NAME".to_owned()), ..all() }), ["one"]);
    assert_eq!(home.found("one"), ["one"]);
    assert!(home.index.archive(thread).unwrap().archived, "once is enough");
    let back = home.index.unarchive(thread).unwrap();
    assert_eq!((&back.path, back.archived, back.name.as_deref()), (&path, false, Some("a name")));
    assert!(!home.index.unarchive(thread).unwrap().archived, "once is enough");
    home.index.rename(thread, "").unwrap();
    assert_eq!(home.index.list(&all()).unwrap().threads[1].name, None);
    let copy = home.path().join("archived_sessions").join(file);
    fs::copy(&path, &copy).unwrap();
    assert!(matches!(home.index.archive(thread), Err(StoredThreadError::Exists { .. })));
    home.index.delete(thread).unwrap();
    assert!(!path.exists() && !copy.exists());
    assert!(matches!(home.index.delete(thread), Err(StoredThreadError::Missing { .. })));
    assert!(matches!(home.index.rename(thread, "x"), Err(StoredThreadError::Missing { .. })));
    assert_eq!(home.previews(&all()), ["two"]);
    assert_eq!(home.find(other).preview, "two");
}

#[test]
fn a_root_takes_its_children_along() {
    let home = Home::new();
    let root = home.begin_saying(1, "root");
    let child = home.begin(2, json!({"parent_thread_id": root}), &said("child"));
    let below = home.begin(3, json!({"parent_thread_id": child}), &said("below"));
    let other = home.begin_saying(4, "other");
    assert_eq!(home.index.descendants(root).unwrap(), [child, below]);
    home.index.archive(root).unwrap();
    assert_eq!([child, below, other].map(|id| home.find(id).archived), [true, true, false]);
    home.index.unarchive(root).unwrap();
    assert_eq!([root, child, below].map(|id| home.find(id).archived), [false; 3]);
    home.index.delete(root).unwrap();
    assert!([root, child, below].iter().all(|id| home.index.find(*id).unwrap().is_none()));
    assert_eq!(home.find(other).preview, "other");
}

#[test]
fn a_root_whose_child_cannot_be_moved_stays_and_another_attempt_goes_on() {
    let home = Home::new();
    let root = home.begin_saying(1, "root");
    let child = home.begin(2, json!({"parent_thread_id": root}), &said("child"));
    let below = home.begin(3, json!({"parent_thread_id": child}), &said("below"));
    let path = home.find(below).path;
    let in_the_way = home.index.home().join("archived_sessions").join(path.file_name().unwrap());
    fs::create_dir_all(in_the_way.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("nowhere", &in_the_way).unwrap();
    let error = home.index.archive(root).unwrap_err();
    assert!(error.to_string().contains("there is a file"), "{error}");
    assert_eq!([root, below].map(|id| home.find(id).archived), [false, false]);
    fs::remove_file(&in_the_way).unwrap();
    home.index.archive(root).unwrap();
    assert_eq!([root, child, below].map(|id| home.find(id).archived), [true; 3]);
    std::os::unix::fs::symlink("nowhere", &path).unwrap();
    assert!(home.index.unarchive(root).is_err());
    assert_eq!([root, below].map(|id| home.find(id).archived), [false, true]);
    fs::remove_file(&path).unwrap();
    home.index.unarchive(root).unwrap();
    assert_eq!([root, child, below].map(|id| home.find(id).archived), [false; 3]);
}

fn file_name(thread: ThreadId) -> String {
    format!("rollout-2026-01-02T03-04-05-{thread}.jsonl")
}

#[test]
fn a_thread_that_is_being_written_stays_where_it_is() {
    let home = Home::new();
    let thread = home.begin_saying(1, "one");
    let path = home.find(thread).path;
    // The file of a loaded thread may be closed; a release without claims has it open.
    for has_claim in [true, false] {
        let writer = if has_claim {
            let writer = RolloutFile::reopen_in(home.index.home(), path.clone()).unwrap();
            let others =
                std::iter::repeat_with(|| home.index.home().join("sessions").join(file_name(ThreadId::fresh())));
            let others = others.take(200).map(|path| RolloutFile::create_in(home.index.home(), path).unwrap());
            assert_eq!(others.collect::<Vec<_>>().len(), 200);
            assert!(fs::File::open(&path).unwrap().try_lock().is_ok(), "its file is closed");
            writer
        } else {
            RolloutFile::reopen(path.clone()).unwrap()
        };
        for error in [home.index.archive(thread).unwrap_err(), home.index.delete(thread).unwrap_err()] {
            assert!(error.to_string().ends_with("the thread is open in this process; close it first"), "{error}");
        }
        drop(writer);
    }
    assert!(home.index.archive(thread).unwrap().archived);
}

#[test]
fn a_link_that_leads_out_of_the_home_is_not_touched() {
    let home = Home::new();
    let thread = home.begin_saying(1, "one");
    let path = home.find(thread).path;
    let outside = tempfile::tempdir().unwrap();
    let target = outside.path().join(path.file_name().unwrap());
    fs::rename(&path, &target).unwrap();
    std::os::unix::fs::symlink(&target, &path).unwrap();
    assert!(matches!(home.index.delete(thread), Err(StoredThreadError::Place(_))));
    assert!(matches!(home.index.archive(thread), Err(StoredThreadError::Place(_))));
    assert!(target.exists());
}

#[test]
fn a_thread_that_never_ends_hides_no_other() {
    for kind in Endless::ALL {
        let home = Home::new();
        home.begin_saying(2, "first");
        let endless = ThreadId::fresh();
        let name = format!("sessions/2026/01/02/rollout-2026-01-02T11-00-00-{endless}.jsonl");
        kind.make(&home.path().join(name)).unwrap();
        let folder = home.path().to_owned();
        let page = soon(move || ThreadIndex::open(&folder).list(&all())).unwrap().unwrap();
        let previews: Vec<_> = page.threads.iter().map(|thread| thread.preview.as_str()).collect();
        assert_eq!(previews, ["first"], "{kind:?}");
    }
}

#[test]
fn an_endless_index_is_rebuilt() {
    for kind in Endless::ALL {
        let home = Home::new();
        home.begin_saying(2, "first");
        kind.make(&home.path().join(INDEX)).unwrap();
        let folder = home.path().to_owned();
        let page = soon(move || ThreadIndex::open(&folder).list(&all())).unwrap().unwrap();
        assert_eq!(page.threads.len(), 1, "{kind:?}");
    }
}
