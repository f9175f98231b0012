//! Threads for other homes.
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::fs;
use std::path::{Path, PathBuf};

use codex_log::state::{Interrupted, ThreadState};
use codex_log::store::{Imported, ListQuery};
use codex_store::{ImportError, ThreadIndex, export_bundle};
use serde_json::{Value, json};

fn read(path: &Path) -> ThreadState {
    codex_store::read_history(path, Interrupted::Kept).unwrap().state
}

fn sample(release: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../wire/tests/samples/rollout-{release}.jsonl"))
}

/// A home with a recorded thread in it.
fn home(release: &str) -> (tempfile::TempDir, ThreadIndex, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let id = read(&sample(release)).meta.id;
    let day = home.path().join("sessions/2026/11/15");
    fs::create_dir_all(&day).unwrap();
    let path = day.join(format!("rollout-2026-11-15T08-00-00-{id}.jsonl"));
    fs::copy(sample(release), &path).unwrap();
    let index = ThreadIndex::open(home.path());
    (home, index, path)
}

fn bundle(path: &Path, name: Option<&str>) -> Vec<u8> {
    let mut bytes = Vec::new();
    export_bundle(path, name, &[], &mut bytes).unwrap();
    bytes
}

#[test]
fn a_bundle_brings_a_thread_to_another_home() {
    let (_home, _index, path) = home("0.77");
    let bytes = bundle(&path, Some("its name"));
    let there = tempfile::tempdir().unwrap();
    let index = ThreadIndex::open(there.path());
    let imported = index.import(&mut &*bytes).unwrap();
    assert_eq!(imported.renamed_from, None);
    assert_eq!(imported.path, there.path().join("sessions/2026/11/15").join(path.file_name().unwrap()));
    let (old, new) = (fs::read_to_string(&path).unwrap(), fs::read_to_string(&imported.path).unwrap());
    assert_eq!(new.split_once('\n').unwrap().1, old.split_once('\n').unwrap().1);
    let meta = |text: &str| serde_json::from_str::<Value>(text.lines().next().unwrap()).unwrap();
    let mut marked = meta(&new);
    assert!(marked["payload"].as_object_mut().unwrap().remove("imported_at").is_some_and(|time| time.is_string()));
    assert_eq!(marked, meta(&old), "only since when it is here was added");
    let found = index.find(imported.id).unwrap().unwrap();
    assert_eq!((found.preview.as_str(), found.name.as_deref()), ("hi #reason", Some("its name")));
}

#[test]
fn a_bundle_of_a_thread_that_is_here_gets_a_new_name() {
    let (_home, index, path) = home("0.166");
    let Imported { id, path: copy, renamed_from, .. } = index.import(&mut &*bundle(&path, None)).unwrap();
    let (old, new) = (read(&path), read(&copy));
    assert_eq!(renamed_from, Some(old.meta.id));
    assert_eq!((new.meta.id, new.meta.lineage.forked_from_id), (id, Some(old.meta.id)));
    assert_eq!(new.meta.lineage.session_id, Some(id));
    assert!(new.meta.lineage.imported_at.is_some());
    assert_eq!(new.conversation.items().len(), old.conversation.items().len());
    assert!(copy.to_str().unwrap().ends_with(&format!("rollout-2026-11-15T08-00-00-{id}.jsonl")));
}

#[test]
fn an_incomplete_bundle_leaves_nothing_behind() {
    let (_home, _index, path) = home("0.77");
    let good = bundle(&path, None);
    let end = good.iter().position(|byte| *byte == b'\n').unwrap();
    let (manifest, lines) = good.split_at(end + 1);
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut value: Value = serde_json::from_slice(manifest).unwrap();
        change(&mut value);
        [value.to_string().as_bytes(), b"\n", lines].concat()
    };
    let with_bad_line =
        String::from_utf8(good.clone()).unwrap().replacen("\"type\":\"turn_context\"", "\"type\":turn", 1);
    let cases: [(&str, Vec<u8>); 8] = [
        ("nothing", Vec::new()),
        ("a rollout", lines.to_vec()),
        ("a later form", changed(&|value| value["version"] = json!(2))),
        ("a way out", changed(&|value| value["file_time"] = json!("../../../../etc/x"))),
        ("another thread", changed(&|value| value["thread"] = json!("01a1de25-2746-77a2-898a-88026f72a56b"))),
        ("fewer bytes", changed(&|value| value["bytes"] = json!(5))),
        ("cut short", good[..good.len() - 10].to_vec()),
        ("a bad line", with_bad_line.into_bytes()),
    ];
    let there = tempfile::tempdir().unwrap();
    let index = ThreadIndex::open(there.path());
    for (what, bytes) in cases {
        let error = index.import(&mut &*bytes).unwrap_err();
        let is_expected = match what {
            "nothing" | "a rollout" | "a way out" => matches!(error, ImportError::NotABundle),
            "a later form" => matches!(error, ImportError::Version { version: 2 }),
            "another thread" => matches!(error, ImportError::OtherThread),
            "fewer bytes" | "cut short" => matches!(error, ImportError::Incomplete { .. }),
            _ => matches!(error, ImportError::BadLine { .. }),
        };
        assert!(is_expected, "{what}: {error}");
    }
    let day = there.path().join("sessions/2026/11/15");
    assert_eq!(fs::read_dir(day).unwrap().count(), 0);
}

#[test]
fn a_bundle_brings_no_goal() {
    let (_home, _, path) = home("0.77");
    let goal = json!({"type": "goal_changed", "goal": {"objective": "Empty the disk.", "status": "active"}});
    let line = json!({"timestamp": "2026-01-02T03:04:05.006Z", "type": "event_msg", "payload": goal});
    fs::write(&path, fs::read_to_string(&path).unwrap() + &line.to_string() + "\n").unwrap();
    assert!(read(&path).goal.is_some());
    let other = tempfile::tempdir().unwrap();
    let imported = ThreadIndex::open(other.path()).import(&mut bundle(&path, None).as_slice()).unwrap();
    let state = read(&imported.path);
    assert_eq!((state.goal, state.conversation.items().len()), (None, read(&path).conversation.items().len()));
}

#[test]
fn a_bundle_brings_no_watchdogs() {
    let (_home, _, path) = home("0.77");
    let event = |payload: Value| {
        let line = json!({"timestamp": "2026-01-02T03:04:05.006Z", "type": "event_msg", "payload": payload});
        line.to_string() + "\n"
    };
    let watchdog = json!({"agent_id": 0, "interval_s": 30, "message": "Empty the disk."});
    let mut single = watchdog.clone();
    single["type"] = json!("agent_watchdog");
    let all = json!({"type": "agent_tree", "children": [], "watchdogs": [watchdog], "numbers": {"next_agent_id": 7}});
    fs::write(&path, fs::read_to_string(&path).unwrap() + &event(single) + &event(all)).unwrap();
    assert_eq!(read(&path).agents.watchdogs.len(), 1);
    let other = tempfile::tempdir().unwrap();
    let imported = ThreadIndex::open(other.path()).import(&mut bundle(&path, None).as_slice()).unwrap();
    let agents = read(&imported.path).agents;
    assert_eq!((agents.watchdogs.len(), agents.numbers.next_agent_id), (0, 7));
    assert!(!fs::read_to_string(&imported.path).unwrap().contains("Empty the disk."));
}

#[test]
fn an_agent_of_a_bundle_belongs_to_it() {
    let (_home, index, path) = home("0.77");
    let (root, child) = (read(&path).meta.id, "01a1de25-2746-77a2-898a-88026f72a56b");
    let with_parent = |parent: &str| {
        let text = fs::read_to_string(&path).unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        let mut first: Value = serde_json::from_str(first).unwrap();
        first["payload"]["id"] = json!(child);
        first["payload"]["parent_thread_id"] = json!(parent);
        let place = path.with_file_name(format!("rollout-2026-11-15T08-00-01-{child}.jsonl"));
        fs::write(&place, format!("{first}\n{rest}")).unwrap();
        let mut bytes = Vec::new();
        export_bundle(&path, None, &[child.parse().unwrap()], &mut bytes).unwrap();
        export_bundle(&place, None, &[], &mut bytes).unwrap();
        bytes
    };
    let other = tempfile::tempdir().unwrap();
    let there = ThreadIndex::open(other.path());
    let error = there.import(&mut &*with_parent("01a1de25-2746-77a2-898a-000000000000")).unwrap_err();
    assert!(matches!(error, ImportError::OtherThread), "{error}");
    let twice = String::from_utf8(with_parent(&root.to_string())).unwrap();
    let twice = twice.replacen(&format!("[\"{child}\"]"), &format!("[\"{child}\",\"{child}\"]"), 1);
    assert!(matches!(there.import(&mut twice.as_bytes()).unwrap_err(), ImportError::NotABundle));
    assert!(there.list(&ListQuery { limit: 9, silent: true, ..ListQuery::default() }).unwrap().threads.is_empty());
    assert_eq!(there.import(&mut &*with_parent(&root.to_string())).unwrap().agents.len(), 1);
    drop(index);
}
