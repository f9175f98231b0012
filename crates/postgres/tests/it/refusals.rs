//! Settings and databases that cannot be used: one line says what is wrong and what to do.

use std::time::Duration;

use codex_postgres::{PostgresStore, StoreOptions};

use crate::cluster::{cluster, open, run};

fn refused(options: &StoreOptions) -> String {
    let error = PostgresStore::open(options).expect_err("it cannot be used");
    let shown = format!("{error}");
    assert!(!shown.contains('\n'), "{shown}");
    assert!(!format!("{shown} {error:?}").contains("canary"), "{error:?}");
    shown
}

#[test]
fn a_newer_schema_is_refused() {
    let Some(cluster) = cluster() else { return };
    let options = cluster.options();
    drop(open(&options));
    run(&options, "UPDATE @.store SET version = 99");
    let shown = refused(&options);
    assert!(shown.contains("have version 99, this release knows versions up to 1; use a newer release"), "{shown}");
}

#[test]
fn a_wrong_password_is_refused_at_once() {
    let Some(cluster) = cluster() else { return };
    let mut options = cluster.options();
    run(&options, "CREATE ROLE guest LOGIN PASSWORD 'right'");
    let hba = cluster.folder.join("data/pg_hba.conf");
    let before = std::fs::read_to_string(&hba).expect("it can be read");
    std::fs::write(&hba, format!("local all guest scram-sha-256\n{before}")).expect("it can be written");
    run(&options, "SELECT pg_reload_conf()");
    options.url = options.url.replace("postgres@", "guest:canary@");
    // The server notices the new rules a moment after it was told.
    let shown = (0..1000).map(|_| refused(&options)).find(|shown| shown.contains("28P01")).expect("it is refused");
    assert!(shown.contains("password authentication failed") && shown.contains("check the password"), "{shown}");
}

#[test]
fn a_database_without_rights_or_without_a_server_is_refused() {
    let Some(cluster) = cluster() else { return };
    let mut options = cluster.options();
    options.url = format!("{}/nosuch", options.url.trim_end_matches("/postgres"));
    let shown = refused(&options);
    assert!(shown.contains("create the database first"), "{shown}");
    options.url = "postgres://u:canary@127.0.0.1:1/x".to_owned();
    options.patience = Duration::from_millis(100);
    let shown = refused(&options);
    assert!(shown.starts_with("the database 127.0.0.1:1/x cannot be reached: "), "{shown}");
}

#[test]
fn a_replica_that_is_read_only_is_refused() {
    let Some(cluster) = cluster() else { return };
    let mut options = cluster.options();
    options.url = format!("{}?options=-c%20default_transaction_read_only%3Don", options.url);
    let shown = refused(&options);
    assert!(shown.contains("use the address of the primary, not of a replica"), "{shown}");
}

#[test]
fn a_table_that_somebody_has_changed_is_named() {
    use codex_log::store::{ListQuery, ThreadStore};
    let Some(cluster) = cluster() else { return };
    let options = cluster.options();
    let store = open(&options);
    run(&options, "ALTER TABLE @.threads DROP COLUMN preview");
    let error = store.list(&ListQuery { limit: 1, ..ListQuery::default() }).expect_err("a column is missing");
    assert!(error.to_string().contains("a table was changed by hand; restore it from a backup"), "{error}");
}
