//! The same rows behind `pgbouncer`, which gives every session, or every transaction, to somebody else.

use codex_log::store::laws::LAWS;
use codex_log::store::{LogWriter, Opened, ThreadStore};
use codex_postgres::{PostgresError, PostgresStore, StoreOptions};
use codex_testkit::Pooler;
use codex_wire::ids::ThreadId;

use crate::cluster::{Cluster, cluster, open, run};
use crate::faults::commit;
use crate::texts::{append, texts};

const TRANSACTIONS: &str = "pool_mode = transaction";

/// Each of its sessions is one of a connection until that ends, so it needs as many as there are.
const SESSIONS: &str = "pool_mode = session\ndefault_pool_size = 50";

fn behind(pooler: &Pooler, cluster: &Cluster) -> StoreOptions {
    StoreOptions { url: pooler.url(), ..cluster.options() }
}

#[test]
fn rows_keep_the_laws_behind_a_pooler() {
    let Some(cluster) = cluster() else { return };
    // With the last setting, a pooler accepts the mark of a connection and forgets it.
    let forgetful = format!("{TRANSACTIONS}\nignore_startup_parameters = options");
    for settings in [SESSIONS, TRANSACTIONS, &forgetful] {
        let Some(pooler) = Pooler::start(&cluster, settings) else { return };
        for (name, holds) in LAWS {
            eprintln!("{name}, {settings}");
            holds(&open(&behind(&pooler, &cluster)));
        }
    }
}

fn commit_text(writer: &mut dyn LogWriter, text: &str) {
    append(writer, text);
    assert!(commit(writer), "it is written");
}

/// Eight processes share two sessions, so nearly every statement runs in a session that another one has just used.
#[test]
fn servers_that_share_sessions_do_not_disturb_each_other() {
    let Some(cluster) = cluster() else { return };
    let Some(pooler) = Pooler::start(&cluster, TRANSACTIONS) else { return };
    let options = behind(&pooler, &cluster);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let options = StoreOptions { server_name: format!("server {number}"), ..options.clone() };
            scope.spawn(move || {
                let (store, thread) = (open(&options), ThreadId::fresh());
                let Opened { mut writer, .. } = store.create(thread).expect("a thread can begin");
                let written: Vec<String> = (0..40).map(|line| format!("{line} of {number}")).collect();
                for text in &written {
                    commit_text(&mut *writer, text);
                    let server = store.last_server(thread).expect("it is there");
                    assert_eq!(server.as_ref(), Some(&options.server_name));
                }
                drop(writer);
                assert_eq!(texts(&store, thread), written);
            });
        }
    });
    assert_eq!(run(&options, "SELECT count(*) FROM @.threads WHERE owner IS NOT NULL"), ["0"], "all were given back");
    let left = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";
    assert_eq!(run(&options, left), ["0"], "no session keeps a lock");
}

#[test]
fn changes_and_take_overs_are_found_behind_a_pooler() {
    let Some(cluster) = cluster() else { return };
    let Some(pooler) = Pooler::start(&cluster, TRANSACTIONS) else { return };
    let options = behind(&pooler, &cluster);
    let (a, b) = (open(&options), open(&options));
    for store in [&a, &b] {
        store.register(None).expect("it can be entered");
    }
    let thread = ThreadId::fresh();
    let Opened { mut writer, .. } = a.create(thread).expect("a thread can begin");
    commit_text(&mut *writer, "first");
    let refused = b.open(thread).expect_err("it is open").to_string();
    assert!(refused.contains("is open on server"), "{refused}");
    run(&options, "UPDATE @.servers SET expires = now()");
    let Opened { writer: mut next, .. } = b.open(thread).expect("its server is gone");
    commit_text(&mut *next, "second");
    assert_eq!(texts(&a, thread), ["first", "second"]);
    let mut changes = a.changes_elsewhere();
    b.rename(thread, "a name").expect("it can be renamed");
    assert_eq!(changes.blocking_recv().expect("it is found").thread, thread);
}

#[test]
fn a_pooler_that_refuses_settings_of_the_url_is_told_apart_from_one_that_is_away() {
    let Some(cluster) = cluster() else { return };
    let Some(pooler) = Pooler::start(&cluster, TRANSACTIONS) else { return };
    let url = format!("{}?options=-c%20search_path%3Dpublic", pooler.url());
    // The pooler has started when this succeeds.
    drop(open(&behind(&pooler, &cluster)));
    let refused = PostgresStore::open(&StoreOptions { url, ..cluster.options() }).expect_err("it is refused");
    assert!(matches!(refused, PostgresError::Refused { .. }), "{refused}");
    let text = refused.to_string();
    assert!(text.contains("unsupported startup parameter: options (08P01); remove it from store.url"), "{text}");
}
