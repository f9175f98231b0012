//! One writer for each thread, and what a writer is told when it cannot write.
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use codex_store::{Holder, RolloutError, RolloutFile};
use serde_json::json;

/// Names the file that the other process is to hold.
const HELD: &str = "CODEX_STORE_TEST_HELD";

#[test]
fn two_processes_do_not_write_one_thread() {
    if let Some(path) = std::env::var_os(HELD) {
        hold(PathBuf::from(path));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    drop(RolloutFile::create(path.clone()).unwrap());
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "two_processes_do_not_write_one_thread", "--nocapture"])
        .env(HELD, &path)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(other.stderr.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap() == "held"));
    let error = RolloutFile::reopen(path.clone()).unwrap_err();
    let RolloutError::Locked { holder, .. } = &error else { panic!("{error}") };
    assert_eq!(*holder, Holder::Process(other.id()));
    assert!(error.to_string().ends_with(&format!("is written by process {}", other.id())), "{error}");
    drop(other.stdin.take());
    other.wait().unwrap();
    RolloutFile::reopen(path).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no lock files are left");
}

/// What the other process does: holds the thread until its standard input ends.
fn hold(path: PathBuf) {
    let _file = RolloutFile::reopen(path).unwrap();
    std::io::stderr().write_all(b"held\n").unwrap();
    std::io::stdin().lines().for_each(drop);
}

#[test]
fn a_second_writer_in_this_process_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let first = RolloutFile::create(path.clone()).unwrap();
    let error = RolloutFile::reopen(path.clone()).unwrap_err();
    assert!(error.to_string().ends_with("is written by this process already"), "{error}");
    drop(first);
    RolloutFile::reopen(path).unwrap();
}

#[test]
fn a_full_disk_is_told_and_the_lines_wait() {
    let mut file = RolloutFile::reopen(PathBuf::from("/dev/full")).unwrap();
    file.append("event_msg", &json!({"type": "x"})).unwrap();
    for _ in 0..2 {
        let error = file.flush().unwrap_err();
        assert_eq!(error.to_string(), "could not write to the thread's file /dev/full");
        let RolloutError::Write { source, .. } = error else { panic!("another error") };
        assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
    }
}

#[test]
fn a_place_that_cannot_be_written_is_told() {
    let error = RolloutFile::create(PathBuf::from("/proc/none/sessions/r.jsonl")).unwrap_err();
    assert_eq!(error.to_string(), "could not make the folder /proc/none/sessions");
    let error = RolloutFile::reopen(PathBuf::from("/proc/none/r.jsonl")).unwrap_err();
    assert_eq!(error.to_string(), "could not open the thread's file /proc/none/r.jsonl");
}
