//! Copies between homes and the store, checks, and restores.

use std::time::Duration;

use codex_log::store::laws::wait_for;
use codex_log::store::{
    Commit, ListQuery, LogWriter, SearchQuery, SectionFilter, SortKey, ThreadMetadata, ThreadStore,
};
use codex_postgres::StoreOptions;
use codex_store::{FileStore, StoredMetadata};
use codex_wire::ids::ThreadId;
use serde_json::json;

use crate::cluster::{cluster, open, run};
use crate::faults::{self, Fault, When};

fn append(writer: &mut dyn LogWriter, thread: ThreadId, text: &str) {
    let meta = json!({"id": thread, "timestamp": "2026-01-02T03:04:05.678Z", "cwd": "/work", "originator": "o",
        "cli_version": "0"});
    let said = json!({"type": "user_message", "message": text});
    for (kind, payload) in [("session_meta", meta), ("event_msg", said)] {
        writer.append(0, kind, &mut |out| serde_json::to_writer(out, &payload)).expect("it is JSON");
    }
    match writer.commit(true) {
        Commit::Done(done) => done.expect("it is written"),
        Commit::Sync(sync) => sync().expect("it is written"),
        Commit::Later(written) => wait_for(written).expect("it is written"),
    }
}

/// All files of threads below a home, by their names, with their bytes.
fn files(home: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![home.join("sessions"), home.join("archived_sessions")];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let relative = path.strip_prefix(home).expect("it is below").display().to_string();
            if path.is_dir() {
                open.push(path);
            } else {
                found.push((relative, std::fs::read(&path).expect("it can be read")));
            }
        }
    }
    found.sort_unstable();
    found
}

#[test]
fn a_home_is_imported_once_and_comes_back_byte_by_byte() {
    let Some(cluster) = cluster() else { return };
    let (home, copy) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let local = FileStore::of(home.path());
    let threads: Vec<ThreadId> = (0..3).map(|_| ThreadId::fresh()).collect();
    for thread in &threads {
        append(&mut *local.create(*thread).expect("a thread can begin").writer, *thread, "mend the lamp");
    }
    local.rename(threads[0], "lamp").expect("it can be named");
    local.archive(threads[1]).expect("it can be archived");
    StoredMetadata::of(home.path()).turn_ended(threads[0], "turn").expect("it can be noted");
    // A line that nobody can read is copied too.
    let odd = local.place(threads[2]).expect("it is a file");
    std::fs::write(&odd, [std::fs::read(&odd).expect("it is there"), b"odd \xff\n\n".to_vec()].concat())
        .expect("written");

    let options = cluster.options();
    let store = open(&options);
    let first = store.import_home(home.path()).expect("it can be imported");
    assert_eq!((first.copied, first.unchanged, first.problems.len()), (3, 0, 0), "{first:?}");
    let again = store.import_home(home.path()).expect("it can be imported");
    assert_eq!((again.copied, again.unchanged, again.problems.len()), (0, 3, 0), "{again:?}");
    let named = store.find(threads[0]).expect("it can be found").expect("it is there");
    assert_eq!((named.name.as_deref(), &*named.preview), (Some("lamp"), "mend the lamp"));
    assert!(store.find(threads[1]).expect("it can be found").expect("it is there").archived);
    assert_eq!(store.read_state(threads[0]), local.read_state(threads[0]));

    // A thread that goes on in its file goes on in the store.
    append(&mut *local.open(threads[0]).expect("nobody writes it").writer, threads[0], "and the shade");
    let rest = store.import_home(home.path()).expect("it can be imported");
    assert_eq!((rest.copied, rest.unchanged), (1, 2), "{rest:?}");
    // One that has taken another way is left alone.
    let path = local.place(threads[0]).expect("it is a file");
    let text = std::fs::read_to_string(&path).expect("it can be read").replace("mend", "sell");
    std::fs::write(&path, text).expect("it can be written");
    let odd = store.import_home(home.path()).expect("it can be imported");
    assert!(odd.problems[0].contains("another thread with the id"), "{odd:?}");
    let text = std::fs::read_to_string(&path).expect("it can be read").replace("sell", "mend");
    std::fs::write(&path, text).expect("it can be written");

    let exported = store.export_home(copy.path()).expect("it can be exported");
    assert_eq!((exported.copied, exported.problems.len()), (3, 0), "{exported:?}");
    let lossy = |files: Vec<(String, Vec<u8>)>| {
        files.into_iter().map(|(name, bytes)| (name, String::from_utf8_lossy(&bytes).into_owned())).collect::<Vec<_>>()
    };
    assert_eq!(lossy(files(copy.path())), lossy(files(home.path())));
    let checked = store.check().expect("it can be checked");
    assert_eq!((checked.threads, checked.problems), (3, Vec::new()));
    let status = store.status().expect("it can be shown");
    assert_eq!((status.threads, status.archived, status.servers.len()), (3, 1, 1), "{status:?}");
}

#[test]
fn a_check_finds_lines_that_are_missing_changed_or_late() {
    let Some(cluster) = cluster() else { return };
    for (change, problem) in [
        ("DELETE FROM @.lines WHERE number = (SELECT min(number) FROM @.lines)", "is missing or was changed"),
        (
            "UPDATE @.lines SET payload = payload || 'x' WHERE number = (SELECT min(number) FROM @.lines)",
            "is missing or",
        ),
        ("DELETE FROM @.lines WHERE number = (SELECT max(number) FROM @.lines)", "its lines end at"),
        ("UPDATE @.lines SET epoch = 7 WHERE number = (SELECT min(number) FROM @.lines)", "had lost the thread"),
        ("UPDATE @.lines SET epoch = 7", "are newer than the thread"),
        ("DELETE FROM @.threads", "lines of 1 threads that do not exist"),
        (
            "INSERT INTO @.lines SELECT gen_random_uuid(), 1, 1, 0, '' FROM generate_series(1, 250)",
            "lines of 250 threads that do not exist",
        ),
    ] {
        let options = cluster.options();
        let store = open(&options);
        let thread = ThreadId::fresh();
        append(&mut *store.create(thread).expect("a thread can begin").writer, thread, "one");
        assert_eq!(store.check().expect("it can be checked").problems, Vec::<String>::new());
        run(&options, change);
        let problems = store.check().expect("it can be checked").problems;
        assert!(problems.len() == 1 && problems[0].contains(problem), "{change}: {problems:?}");
    }
}

/// The name and the place of a thread are copied before its last line, so an import that breaks off has left a line.
#[test]
fn an_import_that_breaks_off_anywhere_is_finished_by_the_next_one() {
    let Some(cluster) = cluster() else { return };
    let home = tempfile::tempdir().expect("a folder");
    let (local, thread) = (FileStore::of(home.path()), ThreadId::fresh());
    append(&mut *local.create(thread).expect("a thread can begin").writer, thread, "mend the lamp");
    local.rename(thread, "lamp").expect("it can be named");
    local.archive(thread).expect("it can be archived");
    for writes in 0.. {
        let options = StoreOptions { patience: Duration::from_millis(100), ..cluster.options() };
        let clean = open(&StoreOptions { patience: Duration::from_secs(20), ..options.clone() });
        let fault = Fault::at(i64::MAX, When::Before, true);
        let store = faults::open(&cluster, &options, &fault);
        fault.strike_after(writes);
        // It fails, or has problems, unless it was complete before.
        let broken = store.import_home(home.path()).ok();
        let struck = fault.has_struck();
        fault.mend();
        drop(store);
        clean.import_home(home.path()).expect("it can be imported");
        let compared = clean.compare_home(home.path()).expect("it can be compared");
        assert_eq!((compared.threads, compared.problems), (1, Vec::new()), "write {writes}: {broken:?}");
        let found = clean.find(thread).expect("it can be found").expect("it is there");
        assert_eq!((found.name.as_deref(), found.archived), (Some("lamp"), true), "write {writes}: {broken:?}");
        if !struck {
            assert!(writes > 5, "there were only {writes} writes");
            break;
        }
    }
}

/// A file of another release, recorded by it.
fn sample(release: &str) -> String {
    let path = format!("{}/../wire/tests/samples/rollout-{release}.jsonl", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("it is in the repository")
}

#[test]
fn files_of_other_releases_are_imported_and_exported_as_they_are() {
    let Some(cluster) = cluster() else { return };
    let (home, copy) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let folder = home.path().join("sessions/2026/01/02");
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let releases = ["0.42", "0.77", "0.166", "0.166-child-agent"];
    for release in releases {
        let text = sample(release);
        let meta: serde_json::Value = serde_json::from_str(text.lines().next().expect("a line")).expect("it is JSON");
        let id = meta["payload"]["id"].as_str().expect("it has an id");
        std::fs::write(folder.join(format!("rollout-2026-01-02T03-04-05-{id}.jsonl")), text).expect("written");
    }
    let store = cluster.store();
    let imported = store.import_home(home.path()).expect("it can be imported");
    assert_eq!((imported.copied, imported.problems), (releases.len() as u64, Vec::new()));
    assert_eq!(store.check().expect("it can be checked").problems, Vec::<String>::new());
    assert_eq!(store.compare_home(home.path()).expect("it can be compared").problems, Vec::<String>::new());
    store.export_home(copy.path()).expect("it can be exported");
    assert_eq!(files(copy.path()), files(home.path()), "what those releases wrote is what they get");
}

#[test]
fn a_comparison_with_the_files_finds_what_a_check_of_the_rows_cannot() {
    let Some(cluster) = cluster() else { return };
    let home = tempfile::tempdir().expect("a folder");
    let (local, thread) = (FileStore::of(home.path()), ThreadId::fresh());
    append(&mut *local.create(thread).expect("a thread can begin").writer, thread, "mend the lamp");
    for (change, problem) in [
        ("UPDATE @.lines SET payload = overlay(payload PLACING 'x'::bytea FROM 5)", "line 1 differs from "),
        ("DELETE FROM @.lines; UPDATE @.threads SET end_at = 0", "has more than 0 lines; run `codex store import`"),
        ("DELETE FROM @.lines; DELETE FROM @.threads", "it is not in the store; run `codex store import` again"),
    ] {
        let options = cluster.options();
        let store = open(&options);
        store.import_home(home.path()).expect("it can be imported");
        assert_eq!(store.compare_home(home.path()).expect("it can be compared").problems, Vec::<String>::new());
        run(&options, change);
        assert_eq!(store.check().expect("it can be checked").problems, Vec::<String>::new(), "{change}");
        let problems = store.compare_home(home.path()).expect("it can be compared").problems;
        assert!(problems.len() == 1 && problems[0].contains(problem), "{change}: {problems:?}");
    }
}

#[test]
fn pages_and_filters_are_those_of_the_files() {
    let Some(cluster) = cluster() else { return };
    let home = tempfile::tempdir().expect("a folder");
    let local = FileStore::of(home.path());
    for number in 0..7 {
        let thread = ThreadId::fresh();
        append(
            &mut *local.create(thread).expect("a thread can begin").writer,
            thread,
            &format!("number {number} über"),
        );
    }
    let store = cluster.store();
    store.import_home(home.path()).expect("it can be imported");
    let section = local.create_section("Lamps".to_owned(), None).expect("a section can be made");
    let all = local.list(&ListQuery { limit: 10, ..ListQuery::default() }).expect("a list").threads;
    let (both, members): ([&dyn ThreadStore; 2], _) = ([&local, &store], [all[3].id, all[1].id]);
    let other = store.create_section("Lamps".to_owned(), None).expect("a section can be made");
    for (store, section) in both.iter().zip([&section, &other]) {
        for member in members {
            store.move_thread(member, Some(&section.id), None).expect("it can be sorted");
        }
    }
    let pages = |store: &dyn ThreadStore, mut query: ListQuery| {
        let mut pages = Vec::new();
        loop {
            let page = store.list(&query).expect("threads can be listed");
            pages.push(page.threads.iter().map(|thread| (thread.id, thread.preview.clone())).collect::<Vec<_>>());
            let Some(cursor) = page.next_cursor else { return pages };
            query.cursor = Some(cursor);
        }
    };
    let plain = ListQuery { limit: 3, ..ListQuery::default() };
    let queries = [
        plain.clone(),
        ListQuery { ascending: true, ..plain.clone() },
        ListQuery { text: Some("NUMBER 4".to_owned()), ..plain.clone() },
        ListQuery { text: Some("100%".to_owned()), ..plain.clone() },
        ListQuery { cwds: vec!["/work".into()], ..plain.clone() },
        ListQuery { cwds: vec!["/elsewhere".into()], ..plain.clone() },
        ListQuery {
            providers: vec!["openai".to_owned()],
            default_provider: Some("openai".to_owned()),
            ..plain.clone()
        },
        ListQuery { section: SectionFilter::Outside, ..plain.clone() },
    ];
    for query in queries {
        assert_eq!(pages(&store, query.clone()), pages(&local, query.clone()), "{query:?}");
    }
    let sorted = |section: String| ListQuery {
        section: SectionFilter::In(section),
        sort: SortKey::Place,
        ascending: true,
        limit: 1,
        ..ListQuery::default()
    };
    let placed = pages(&store, sorted(other.id));
    assert_eq!(placed, pages(&local, sorted(section.id)));
    assert_eq!(placed.len(), 2);
    let words = |store: &dyn ThreadStore, words: &str| {
        let query = SearchQuery { words: words.to_owned(), limit: 10, ..SearchQuery::default() };
        let found = store.search(&query).expect("threads can be searched");
        let mut ids: Vec<ThreadId> = found.hits.iter().map(|hit| hit.thread.id).collect();
        ids.sort_unstable();
        (ids, found.complete)
    };
    // A search spends a limited time on new texts, and a busy machine needs several.
    while !words(&store, "number").1 {}
    for text in ["number", "UBER", "numb", "number 4", "umber", "4-über", "\" OR 1 : *"] {
        assert_eq!(words(&store, text), words(&local, text), "{text}");
    }
}
