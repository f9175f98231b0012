//! Stores in the cluster of this program.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use codex_postgres::{PostgresStore, StoreOptions};
use codex_testkit::PostgresCluster;

pub(crate) struct Cluster(&'static PostgresCluster);

/// The cluster of this program. `None`, with a message, where PostgreSQL is not installed.
pub(crate) fn cluster() -> Option<Cluster> {
    codex_testkit::postgres_cluster().map(Cluster)
}

impl std::ops::Deref for Cluster {
    type Target = PostgresCluster;

    fn deref(&self) -> &PostgresCluster {
        self.0
    }
}

impl Cluster {
    /// The settings of an empty store.
    pub(crate) fn options(&self) -> StoreOptions {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mut options = StoreOptions::at(self.url());
        options.schema = format!("store_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        options.patience = Duration::from_secs(20);
        options
    }

    /// The settings of two empty stores: one with everything that PostgreSQL has, and one with standard SQL only.
    pub(crate) fn both(&self) -> [StoreOptions; 2] {
        let plain = StoreOptions { advisory_locks: false, notifications: false, ..self.options() };
        [self.options(), plain]
    }

    /// The address of the same database with a clock that differs from that of this machine. As far as a store can tell,
    /// its own clock is wrong.
    pub(crate) fn with_shifted_clock(&self, hours: i32) -> String {
        let schema = format!("clock_{}", hours + 24);
        for name in ["now", "clock_timestamp"] {
            // Tests run at the same time, and each may be the first.
            let _ = self.sql(&format!(
                "DO $do$ BEGIN CREATE SCHEMA IF NOT EXISTS {schema}; \
                 CREATE OR REPLACE FUNCTION {schema}.{name}() RETURNS timestamptz STABLE \
                 LANGUAGE sql AS $$SELECT pg_catalog.{name}() + interval '{hours} hours'$$; \
                 EXCEPTION WHEN unique_violation OR internal_error THEN NULL; END $do$"
            ));
        }
        format!("{}?options=-c%20search_path%3D{schema}%2Cpg_catalog", self.url())
    }

    /// An empty store.
    pub(crate) fn store(&self) -> PostgresStore {
        open(&self.options())
    }
}

/// Opens a store. The server may still be starting, which every store waits for.
pub(crate) fn open(options: &StoreOptions) -> PostgresStore {
    PostgresStore::open(options).unwrap_or_else(|error| panic!("the store can be opened: {error:?}"))
}

/// Runs statements, in which `@.` stands for the schema, as somebody else who uses the database.
pub(crate) fn run(options: &StoreOptions, sql: &str) -> Vec<String> {
    let cluster = codex_testkit::postgres_cluster().expect("the store is in it");
    cluster.sql(&sql.replace("@.", &format!("{}.", options.schema)))
}
