//! The laws of stores, and what files and rows have to answer alike.

use codex_log::store::laws::LAWS;

use crate::cluster::{cluster, open, run};

#[test]
fn rows_keep_the_laws_of_stores() {
    let Some(cluster) = cluster() else { return };
    for (name, holds) in LAWS {
        eprintln!("{name}");
        let options = cluster.options();
        holds(&open(&options));
        assert_eq!(run(&options, PARTITIONED), ["1"]);
    }
}

#[test]
fn rows_keep_the_laws_without_advisory_locks_and_notifications() {
    let Some(cluster) = cluster() else { return };
    for (name, holds) in LAWS {
        eprintln!("{name}");
        let mut options = cluster.options();
        (options.advisory_locks, options.notifications) = (false, false);
        holds(&open(&options));
        assert_eq!(run(&options, PARTITIONED), ["0"], "not every database has partitions by hash");
    }
}

/// The number of tables with partitions.
const PARTITIONED: &str = "SELECT count(*) FROM pg_partitioned_table WHERE partrelid = '@.lines'::regclass";

#[test]
fn rows_keep_the_laws_when_clocks_are_an_hour_apart() {
    let Some(cluster) = cluster() else { return };
    for hours in [1, -1] {
        for (name, holds) in LAWS {
            eprintln!("{name}, {hours} h");
            let mut options = cluster.options();
            options.url = cluster.with_shifted_clock(hours);
            holds(&open(&options));
        }
    }
}

#[test]
fn many_servers_that_start_at_once_make_the_tables_once() {
    let Some(cluster) = cluster() else { return };
    for locks in [true, false] {
        let mut options = cluster.options();
        options.advisory_locks = locks;
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| drop(open(&options)));
            }
        });
        assert_eq!(run(&options, "SELECT count(*) FROM @.store"), ["1"]);
    }
}
