//! Servers learn from each other, keep their names apart, and delete old threads.

use std::time::{Duration, Instant};

use codex_log::encode::LineSink as _;
use codex_log::store::{LogWriter, StoreErrorKind, ThreadStore};
use codex_postgres::{ChangeKind, NameUse, PostgresStore, StoreChange, StoreOptions};
use codex_wire::ids::ThreadId;
use tokio::sync::broadcast::error::TryRecvError;

use crate::cluster::{cluster, open, run};

/// A server with a name of its own.
fn server(options: &StoreOptions, name: &str) -> PostgresStore {
    open(&StoreOptions { server_name: name.to_owned(), ..options.clone() })
}

/// A stored thread that nobody has open.
fn thread(store: &PostgresStore) -> ThreadId {
    let thread = ThreadId::fresh();
    let mut opened = store.create(thread).expect("it can be made");
    let meta = serde_json::json!({"id": thread, "timestamp": "2026-01-02T03:04:05.000Z", "cwd": "/", "originator": "t",
        "cli_version": "1"});
    commit(&mut *opened.writer, &meta).expect("it can be written");
    thread
}

fn commit(writer: &mut dyn LogWriter, payload: &serde_json::Value) -> Result<(), codex_log::store::StoreError> {
    writer.line(1_767_323_045_678, "session_meta", payload)?;
    match writer.commit(true) {
        codex_log::store::Commit::Done(done) => done,
        codex_log::store::Commit::Later(later) => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(later)
        }
        codex_log::store::Commit::Sync(work) => work(),
    }
}

#[test]
fn changes_of_one_server_reach_the_others() {
    let Some(cluster) = cluster() else { return };
    for options in cluster.both() {
        let (a, b) = (server(&options, "a"), server(&options, "b"));
        let thread = thread(&a);
        for store in [&a, &b] {
            assert_eq!(store.register(None).expect("it can register"), NameUse::Unique);
        }
        let (mut at_a, mut at_b) = (a.changes_elsewhere(), b.changes_elsewhere());
        // The other server has to have looked once, so the change is repeated with each of its renewals until it is told.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (mut renewals, until) = (b.servers(), Instant::now() + Duration::from_secs(60));
        let told = loop {
            a.rename(thread, "news").expect("it can be renamed");
            runtime.block_on(renewals.changed()).expect("it is registered");
            match at_b.try_recv() {
                Ok(change) => break change,
                Err(TryRecvError::Empty) => assert!(Instant::now() < until, "nothing is told"),
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!(told, StoreChange { thread, kind: ChangeKind::Named(Some("news".to_owned())) });
        a.archive(thread).expect("it can be archived");
        a.delete(thread).expect("it can be deleted");
        let mut next = || at_b.blocking_recv().expect("more is told").kind;
        let mut kinds = vec![next()];
        while kinds.last() != Some(&ChangeKind::Deleted) {
            kinds.push(next());
        }
        assert!(kinds.contains(&ChangeKind::Archived), "{kinds:?}");
        assert!(matches!(at_a.try_recv(), Err(TryRecvError::Empty)), "a server is not told of its own changes");
    }
}

#[test]
fn two_servers_with_one_name_are_noticed() {
    let Some(cluster) = cluster() else { return };
    let options = cluster.options();
    let (a, other) = (server(&options, "a"), server(&options, "a"));
    assert_eq!(a.register(Some("ws://10.0.0.1:1".to_owned())).expect("it can register"), NameUse::Unique);
    assert_eq!(other.register(None).expect("it can register"), NameUse::Shared);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let left = runtime.block_on(other.leave());
    assert_eq!(left.iter().map(|server| server.address.as_deref()).collect::<Vec<_>>(), [Some("ws://10.0.0.1:1")]);
    let refused = other.create(ThreadId::fresh()).expect_err("it has left");
    assert!(refused.to_string().contains("the program ends"), "{refused}");
}

#[test]
fn old_threads_are_deleted_unless_somebody_has_them_open() {
    let Some(cluster) = cluster() else { return };
    for options in cluster.both() {
        let (a, b) = (server(&options, "a"), server(&options, "b"));
        let [young, old, here, there] = [(); 4].map(|()| thread(&a));
        // A thread is given back in the background.
        let until = std::time::Instant::now() + options.patience;
        while run(&options, "SELECT count(*) FROM @.threads WHERE owner IS NOT NULL") != ["0"] {
            assert!(std::time::Instant::now() < until, "all are given back");
        }
        let held = (a.open(here).expect("it opens"), b.open(there).expect("it opens"));
        let day = 86_400_000_000_000_i64;
        run(&options, &format!("UPDATE @.threads SET updated = updated - {day} * 8 WHERE id <> '{young}'"));
        assert_eq!(a.delete_older_than(9).expect("it works"), 0);
        assert_eq!(a.delete_older_than(7).expect("it works"), 1);
        assert!(a.find(old).expect("it answers").is_none());
        for thread in [young, here, there] {
            assert!(a.find(thread).expect("it answers").is_some(), "{thread}");
        }
        assert_eq!(run(&options, &format!("SELECT count(*) FROM @.lines WHERE thread = '{old}'")), ["0"]);
        drop(held);
    }
}

#[test]
fn old_threads_that_are_open_do_not_hide_others() {
    let Some(cluster) = cluster() else { return };
    let options = cluster.options();
    let a = server(&options, "a");
    let ids = [(); 120].map(|()| thread(&a));
    let held: Vec<_> = ids[..110].iter().map(|id| a.open(*id).expect("it opens")).collect();
    let day = 86_400_000_000_000_i64;
    run(&options, &format!("UPDATE @.threads SET updated = updated - {day} * 8"));
    run(&options, &format!("UPDATE @.threads SET updated = updated - {day} WHERE owner IS NOT NULL"));
    assert_eq!(a.delete_older_than(7).expect("it works"), 10);
    drop(held);
}

#[test]
fn serialization_failures_are_tried_again() {
    let Some(cluster) = cluster() else { return };
    for options in cluster.both() {
        let store = open(&options);
        // The first two appends fail as they do in a distributed database.
        run(
            &options,
            "CREATE SEQUENCE @.attempts; CREATE FUNCTION @.fail() RETURNS trigger AS $$ BEGIN \
             IF nextval('@.attempts') <= 2 THEN RAISE EXCEPTION 'retry' USING ERRCODE = '40001'; END IF; \
             RETURN NEW; END $$ LANGUAGE plpgsql; \
             CREATE TRIGGER fail BEFORE INSERT ON @.threads FOR EACH ROW EXECUTE FUNCTION @.fail()",
        );
        let thread = thread(&store);
        assert!(store.find(thread).expect("it answers").is_some());
        assert_eq!(run(&options, "SELECT count(*) FROM @.lines"), ["1"]);
        assert_eq!(run(&options, "SELECT last_value FROM @.attempts"), ["3"]);
    }
}

#[test]
fn a_full_disk_is_named_and_loses_nothing() {
    let Some(cluster) = cluster() else { return };
    let options = cluster.options();
    let store = open(&options);
    let thread = thread(&store);
    run(
        &options,
        "CREATE FUNCTION @.full() RETURNS trigger AS $$ BEGIN \
         RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$ LANGUAGE plpgsql; \
         CREATE TRIGGER full_disk BEFORE INSERT ON @.lines FOR EACH ROW EXECUTE FUNCTION @.full()",
    );
    let mut opened = store.open(thread).expect("it opens");
    let before = opened.writer.position();
    let error = commit(&mut *opened.writer, &serde_json::json!({})).expect_err("the disk is full");
    assert!(error.to_string().contains("free disk space on the database server"), "{error}");
    assert_eq!((opened.writer.position(), error.kind()), (before, StoreErrorKind::Failed));
}
