//! Backups with PostgreSQL's own programs: whoever knew the database before a restore stops at once.

use codex_log::store::ThreadStore;
use codex_log::store::laws::wait_for;
use codex_postgres::StoreOptions;
use codex_wire::ids::ThreadId;

use crate::cluster::{Cluster, cluster, open};
use crate::owners::{lines, say};

/// The settings of a store in a new database of its own.
fn new_database(cluster: &Cluster, name: &str) -> StoreOptions {
    // The first statement waits until the server has started.
    drop(cluster.store());
    let _ = cluster.sql(&format!("CREATE DATABASE {name}"));
    StoreOptions { url: cluster.url_of(name), ..cluster.options() }
}

/// Puts another database into the place of one that is in use.
fn replace(cluster: &Cluster, database: &str, by: &str) {
    for statement in [
        format!("ALTER DATABASE {database} WITH ALLOW_CONNECTIONS false"),
        format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'"),
        format!("ALTER DATABASE {database} RENAME TO {database}_old"),
        format!("ALTER DATABASE {by} RENAME TO {database}"),
    ] {
        let _ = cluster.sql(&statement);
    }
}

#[test]
fn a_restored_dump_has_a_new_incarnation_and_old_writers_stop_at_once() {
    let Some(cluster) = cluster() else { return };
    for (round, is_plain) in [false, true].into_iter().enumerate() {
        let (live, copy) = (format!("live_{round}"), format!("copy_{round}"));
        let mut options = new_database(&cluster, &live);
        (options.advisory_locks, options.notifications) = (!is_plain, !is_plain);
        let first = open(&options);
        let (changed, unchanged) = (ThreadId::fresh(), ThreadId::fresh());
        let mut writers = [changed, unchanged].map(|thread| first.create(thread).expect("a thread can begin").writer);
        for writer in &mut writers {
            say(&mut **writer, "in the backup").expect("it can be written");
        }
        let dump = cluster.run_program("pg_dump", &["-Fc", &live], b"");
        say(&mut *writers[0], "after the backup").expect("it can be written");
        let _ = cluster.sql(&format!("CREATE DATABASE {copy}"));
        let _ = cluster.run_program("pg_restore", &["-d", &copy], &dump);
        replace(&cluster, &live, &copy);

        // One of the threads ends where its writer believes, and its lease has not expired: still nothing is written.
        for writer in &mut writers {
            let refused = say(&mut **writer, "late").expect_err("the store is another one");
            assert!(refused.contains("the database was restored from a backup; open the thread again"), "{refused}");
            let revoked = wait_for(writer.revoked().expect("others can take it over"));
            assert!(revoked.contains("restored from a backup"), "{revoked}");
        }
        let second = open(&options);
        for thread in [changed, unchanged] {
            assert_eq!(lines(&second, thread), 1, "what the backup has");
            let mut writer = second.open(thread).expect("nobody owns it").writer;
            say(&mut *writer, "here").expect("it can be written");
            assert_eq!(lines(&second, thread), 2);
        }
        drop(writers);
        // The old server goes on too, without a restart, once the new owner has ended.
        drop(second);
        let mut writer = first.open(changed).expect("nobody owns it").writer;
        say(&mut *writer, "again").expect("it can be written");
        assert_eq!(lines(&first, changed), 3);
        assert_eq!(first.check().expect("it can be checked").problems, Vec::<String>::new());
    }
}

#[test]
fn a_dump_that_is_loaded_by_psql_is_found_by_whoever_comes_first() {
    let Some(cluster) = cluster() else { return };
    let mut options = new_database(&cluster, "origin");
    let store = open(&options);
    let thread = ThreadId::fresh();
    let mut writer = store.create(thread).expect("a thread can begin").writer;
    say(&mut *writer, "in the backup").expect("it can be written");
    let dump = cluster.run_program("pg_dump", &["origin"], b"");
    let _ = cluster.sql("CREATE DATABASE second_site");
    let _ = cluster.run_program("psql", &["-q", "-v", "ON_ERROR_STOP=1", "-d", "second_site"], &dump);
    // The copy believes that the first server is alive and owns the thread, and yet it is free there.
    options.url = cluster.url_of("second_site");
    let copy = open(&options);
    assert!(copy.status().expect("it can be shown").servers.is_empty());
    let mut there = copy.open(thread).expect("nobody owns it").writer;
    say(&mut *there, "there").expect("it can be written");
    // The original is not affected.
    say(&mut *writer, "here").expect("it can be written");
    drop(there);
    // Tables that stay where they are keep their incarnation.
    let again = open(&options);
    assert_eq!(lines(&again, thread), 2);
    let _held = again.open(thread).expect("nobody owns it").writer;
    assert!(open(&options).open(thread).is_err(), "its owner is alive");
}
