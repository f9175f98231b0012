//! The memory limit, enforced for real where this machine allows it.

use std::io::Write as _;

use codex_sandbox::{Exit, Launch, unenforced_memory_limit};

use crate::support::{World, run, workspace_write};

const LIMIT: u64 = 64 << 20;

/// `tail` keeps in memory what it may have to print.
const HOG: &str = "head -c 400000000 /dev/zero | tail -c 300000000 | wc -c; echo survived";

#[test]
fn a_command_that_uses_too_much_memory_is_ended_where_that_can_be_enforced() {
    let world = World::new();
    let launch = world.launch(&workspace_write(), &["/bin/sh", "-c", HOG]);
    let unenforced = unenforced_memory_limit(Some(LIMIT));
    let finished = run(Launch { most_memory: Some(LIMIT), ..launch }).expect("it starts");
    let said = finished.aggregated.text();
    if let Some(why) = unenforced {
        // Reported even where output is captured, because the test has shown nothing.
        let _ = writeln!(std::io::stderr(), "NOT TRIED: a limit on memory cannot be enforced here: {why}");
        assert!(!why.is_empty());
        assert_eq!((finished.exit, said.as_str()), (Exit::Code(0), "300000000\nsurvived\n"), "it runs all the same");
    } else {
        assert_eq!(finished.exit, Exit::Signal(9), "{said}");
        assert!(said.contains("used more than the 64 MiB of memory that `limits.memory` allows"), "{said}");
        let finished = run(Launch {
            most_memory: Some(LIMIT),
            ..world.launch(&workspace_write(), &["/bin/sh", "-c", "echo fine"])
        });
        assert_eq!(finished.expect("it starts").aggregated.text(), "fine\n", "the next one has a cgroup of its own");
    }
}

#[test]
fn memory_is_not_checked_without_a_limit() {
    assert_eq!(unenforced_memory_limit(None), None);
}
