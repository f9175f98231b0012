//! No bytes after the first line of a rollout make its readers panic or fail, and reopening leaves whole lines.
#![no_main]

use std::io::Write;

use codex_store::{Entry, History, RolloutFile, RolloutLines, count_turns, markdown};

const META: &[u8] = br#"{"timestamp":"t","type":"session_meta","payload":{"id":"01a1de3b-14fd-7922-828f-0d0916245388","timestamp":"t","cwd":"/w","originator":"o","cli_version":"1"}}
"#;

libfuzzer_sys::fuzz_target!(|rest: &[u8]| {
    let mut file = tempfile::NamedTempFile::new().expect("a file can be made");
    file.write_all(META).expect("it can be written");
    file.write_all(rest).expect("it can be written");
    let before = History::read(file.path()).expect("a rollout can be read");
    count_turns(file.path()).expect("its turns can be counted");
    let mut lines = RolloutLines::open(file.path()).expect("it can be opened");
    while let Some(entry) = lines.next_entry().expect("it can be read") {
        if let Entry::Line(line) = entry {
            drop(line.decode());
            drop(markdown(&line));
        }
    }
    drop(RolloutFile::reopen(file.path().to_owned()).expect("it can go on"));
    let after = History::read(file.path()).expect("it can be read again");
    assert_eq!(before.items.len(), after.items.len());
    assert!(std::fs::read(file.path()).expect("it can be read").ends_with(b"\n"));
});
