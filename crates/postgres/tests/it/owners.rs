//! One writer at a time, over several servers.

use codex_log::store::laws::wait_for;
use codex_log::store::{Commit, LogWriter, Opened, PromptHistory as _, ReadFrom, StoreErrorKind, ThreadStore};
use codex_postgres::PostgresStore;
use codex_wire::ids::ThreadId;
use serde_json::json;

use crate::cluster::{cluster, open, run};

pub(crate) fn say(writer: &mut dyn LogWriter, text: &str) -> Result<(), String> {
    writer.append(0, "event_msg", &mut |out| serde_json::to_writer(out, &json!({"type": text}))).expect("it is JSON");
    match writer.commit(true) {
        Commit::Later(written) => wait_for(written).map_err(|error| error.to_string()),
        other => panic!("a database takes time: {other:?}"),
    }
}

pub(crate) fn lines(store: &PostgresStore, thread: ThreadId) -> usize {
    let mut lines = store.read(thread, ReadFrom::Start).expect("it can be read");
    let mut count = 0;
    while lines.next_entry().expect("it can be read").is_some() {
        count += 1;
    }
    count
}

#[test]
fn a_thread_of_a_living_server_is_not_taken() {
    let Some(cluster) = cluster() else { return };
    for mut options in cluster.both() {
        options.server_name = "first".to_owned();
        let (first, second) = (open(&options), open(&options));
        let thread = ThreadId::fresh();
        let mut writer = first.create(thread).expect("a thread can begin").writer;
        say(&mut *writer, "one").expect("it can be written");
        let refused = second.open(thread).expect_err("the first server writes it");
        assert_eq!(refused.kind(), StoreErrorKind::Locked);
        assert!(refused.to_string().contains("is open on server first;"), "{refused}");
        for refused in [second.archive(thread).map(drop), second.delete(thread)] {
            assert_eq!(refused.expect_err("the first server writes it").kind(), StoreErrorKind::Locked);
        }
        drop(writer);
        drop(first);
        let mut writer = second.open(thread).expect("the first server has ended").writer;
        say(&mut *writer, "two").expect("it can be written");
        assert_eq!(lines(&second, thread), 2);
    }
}

#[test]
fn the_thread_of_a_dead_server_is_taken_over_and_its_old_writer_is_fenced() {
    let Some(cluster) = cluster() else { return };
    for options in cluster.both() {
        let (first, second) = (open(&options), open(&options));
        let thread = ThreadId::fresh();
        let mut old = first.create(thread).expect("a thread can begin").writer;
        say(&mut *old, "one").expect("it can be written");
        let revoked = old.revoked().expect("others can take it over");
        run(&options, "UPDATE @.servers SET expires = now() - interval '1 second'");
        let Opened { mut writer, .. } = second.open(thread).expect("the lease has expired");
        say(&mut *writer, "two").expect("it can be written");
        let fenced = say(&mut *old, "late").expect_err("it has another owner");
        assert!(fenced.contains("another server has taken over thread"), "{fenced}");
        assert!(wait_for(revoked).contains("another server has taken over"));
        say(&mut *writer, "three").expect("it can be written");
        assert_eq!(lines(&second, thread), 3);
        assert_eq!(run(&options, "SELECT string_agg(epoch::text, ' ' ORDER BY number) FROM @.lines"), ["1 2 2"]);
        drop(old);
        say(&mut *writer, "four").expect("the end of the old writer changes nothing");
    }
}

#[test]
fn leases_count_by_the_clock_of_the_database() {
    let Some(cluster) = cluster() else { return };
    for hours in [1, -1] {
        let mut options = cluster.options();
        options.url = cluster.with_shifted_clock(hours);
        options.server_name = "first".to_owned();
        let (first, second) = (open(&options), open(&options));
        first.register(None).expect("it can register");
        let thread = ThreadId::fresh();
        let mut writer = first.create(thread).expect("a thread can begin").writer;
        say(&mut *writer, "one").expect("it can be written");
        let refused = second.open(thread).expect_err("the first server is alive, by the clock that counts");
        assert_eq!(refused.kind(), StoreErrorKind::Locked, "{hours} h: {refused}");
        let left = run(
            &options,
            "SELECT round(extract(epoch FROM expires - now()) / 3600)::int FROM @.servers WHERE name = 'first'",
        );
        assert!(left.contains(&hours.to_string()), "its lease is one of the other clock: {left:?}");
        // Nothing of it is old, and nobody is dead.
        assert_eq!(second.delete_older_than(1).expect("it works"), 0);
        assert_eq!(run(&options, "SELECT count(*) FROM @.threads WHERE epoch > 1"), ["0"]);
        first.add_prompt(thread, "before", None).expect("it can be added");
        second.add_prompt(thread, "after", None).expect("it can be added");
        let log = second.prompts().log_id;
        assert_eq!(second.prompt(log, 1).map(|entry| entry.text).as_deref(), Some("after"));
        say(&mut *writer, "two").expect("it can be written");
    }
}

#[test]
fn an_idle_server_sends_one_statement_for_each_renewal() {
    let Some(cluster) = cluster() else { return };
    let (store, sent) = crate::faults::counted(&cluster, &cluster.options());
    store.register(None).expect("it can register");
    let mut servers = store.servers();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let writers: Vec<_> = (0..100)
        .map(|_| {
            let mut writer = store.create(ThreadId::fresh()).expect("a thread can begin").writer;
            say(&mut *writer, "one").expect("it can be written");
            writer
        })
        .collect();
    let mut renewed = || runtime.block_on(servers.changed()).expect("it is registered");
    // The first renewal may bring news of before.
    renewed();
    renewed();
    let before = sent();
    renewed();
    renewed();
    assert_eq!(sent() - before, 2, "{} threads are open, and nothing happens", writers.len());
}

#[test]
fn a_new_incarnation_ends_all_leases() {
    let Some(cluster) = cluster() else { return };
    for options in cluster.both() {
        let first = open(&options);
        let thread = ThreadId::fresh();
        let mut old = first.create(thread).expect("a thread can begin").writer;
        say(&mut *old, "one").expect("it can be written");
        open(&options).declare_restored().expect("it can be declared");
        assert!(say(&mut *old, "late").is_err());
        let second = open(&options);
        let mut writer = second.open(thread).expect("nobody owns it").writer;
        say(&mut *writer, "two").expect("it can be written");
        assert_eq!(lines(&second, thread), 2);
    }
}

#[test]
fn many_writers_of_one_server_do_not_disturb_each_other() {
    let Some(cluster) = cluster() else { return };
    let store = cluster.store();
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let thread = ThreadId::fresh();
                let mut writer = store.create(thread).expect("a thread can begin").writer;
                for _ in 0..20 {
                    say(&mut *writer, "line").expect("it can be written");
                }
                assert_eq!(lines(&store, thread), 20);
            });
        }
    });
}
