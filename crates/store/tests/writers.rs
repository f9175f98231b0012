//! One writer per thread, and the errors of a writer that cannot write.
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use chrono::Local;
use codex_log::store::LogWriter;
use codex_store::{Holder, RolloutError, RolloutFile};
use codex_wire::ids::ThreadId;
use serde_json::{Value, json};

/// Names the file that the other process should hold, and its home.
const HELD: &str = "CODEX_STORE_TEST_HELD";
const HOME: &str = "CODEX_STORE_TEST_HOME";

/// Another process that holds a thread.
struct Other {
    process: Child,
}

impl Other {
    /// Starts the test with this name again, in a separate process, and waits until it holds the thread.
    fn start(test: &str, path: &Path, home: Option<&Path>) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(HELD, path)
            .envs(home.map(|home| (HOME, home)))
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(process.stderr.take().unwrap()).lines();
        assert!(said.any(|line| line.unwrap() == "held"));
        Self { process }
    }

    /// Whether this is the other process; it holds the thread until its standard input closes.
    fn is_here() -> bool {
        let Some(path) = std::env::var_os(HELD).map(PathBuf::from) else { return false };
        let _file = match std::env::var_os(HOME).map(PathBuf::from) {
            None => vec![RolloutFile::reopen(path).unwrap()],
            // The requested file is used first, so it is the first one to be closed.
            Some(home) => {
                let mut held = vec![RolloutFile::reopen_in(&home, path).unwrap()];
                held.extend((0..MANY).map(|_| RolloutFile::create_in(&home, place(&home, ThreadId::fresh())).unwrap()));
                held
            }
        };
        std::io::stderr().write_all(b"held\n").unwrap();
        std::io::stdin().lines().for_each(drop);
        true
    }

    #[track_caller]
    fn assert_refuses(&self, error: &RolloutError) {
        let RolloutError::Locked { holder, .. } = error else { panic!("{error}") };
        assert_eq!(*holder, Holder::Process(self.process.id()));
        let told =
            format!("This thread is open in another Codex (pid {}). Close it, or run `codex fork ", self.process.id());
        assert!(error.to_string().starts_with(&told), "{error}");
    }
}

/// More files than stay open.
const MANY: usize = 200;

fn place(home: &Path, thread: ThreadId) -> PathBuf {
    RolloutFile::place(&home.join("sessions"), thread, Local::now())
}

/// The number of these files that this process has open.
fn open_below(folder: &Path) -> usize {
    let links = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let sessions = folder.join("sessions");
    links.filter_map(|link| link.path().read_link().ok()).filter(|file| file.starts_with(&sessions)).count()
}

#[test]
fn two_processes_do_not_write_one_thread() {
    if Other::is_here() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    drop(RolloutFile::create(path.clone()).unwrap());
    let mut other = Other::start("two_processes_do_not_write_one_thread", &path, None);
    other.assert_refuses(&RolloutFile::reopen(path.clone()).unwrap_err());
    drop(other.process.stdin.take());
    other.process.wait().unwrap();
    RolloutFile::reopen(path).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no lock files are left");
}

#[test]
fn a_thread_whose_file_is_closed_is_held_until_its_process_dies() {
    if Other::is_here() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let path = place(home.path(), ThreadId::fresh());
    drop(RolloutFile::create_in(home.path(), path.clone()).unwrap());
    let test = "a_thread_whose_file_is_closed_is_held_until_its_process_dies";
    let mut other = Other::start(test, &path, Some(home.path()));
    assert!(File::open(&path).unwrap().try_lock().is_ok(), "the file is closed, so its lock is gone");
    other.assert_refuses(&RolloutFile::reopen_in(home.path(), path.clone()).unwrap_err());
    other.process.kill().unwrap();
    other.process.wait().unwrap();
    drop(RolloutFile::reopen_in(home.path(), path).unwrap());
    for folder in ["run/threads", "run/writers"] {
        assert_eq!(home.path().join(folder).read_dir().unwrap().count(), 0, "{folder} is tidy");
    }
}

#[test]
fn many_threads_are_written_with_few_descriptors() {
    let home = tempfile::tempdir().unwrap();
    let threads: Vec<ThreadId> = (0..MANY).map(|_| ThreadId::fresh()).collect();
    let create = |thread: &ThreadId| RolloutFile::create_in(home.path(), place(home.path(), *thread)).unwrap();
    let mut files: Vec<RolloutFile> = threads.iter().map(create).collect();
    for round in 0..3 {
        for file in &mut files {
            file.append("event_msg", &json!({"round": round})).unwrap();
            file.flush().unwrap();
            assert_eq!(file.take_warning(), None);
        }
        assert!(open_below(home.path()) <= 128, "{} are open", open_below(home.path()));
    }
    for file in &files {
        assert!(file.is_locked());
        assert_eq!(std::fs::read_to_string(file.path()).unwrap().lines().count(), 3);
    }
    drop(files);
    assert_eq!(open_below(home.path()), 0);
}

#[test]
fn a_thread_is_claimed_when_its_file_is_closed_and_not_before() {
    let home = tempfile::tempdir().unwrap();
    let claims = || home.path().join("run/threads").read_dir().map_or(0, Iterator::count);
    let thread = ThreadId::fresh();
    let claim = home.path().join("run/threads").join(thread.to_string());
    let file = RolloutFile::create_in(home.path(), place(home.path(), thread)).unwrap();
    assert!(!claim.exists(), "the lock of an open file is enough");
    let error = RolloutFile::reopen_in(home.path(), file.path().to_owned()).unwrap_err();
    assert!(error.to_string().starts_with("This thread is open in this process."), "{error}");
    let others: Vec<RolloutFile> = (0..MANY)
        .map(|_| RolloutFile::create_in(home.path(), place(home.path(), ThreadId::fresh())).unwrap())
        .collect();
    assert!(claim.exists());
    // Files are counted first: one that is closed meanwhile has been claimed before.
    let open = open_below(home.path());
    assert!(open + claims() > MANY, "each is open or claimed");
    let error = RolloutFile::reopen_in(home.path(), file.path().to_owned()).unwrap_err();
    assert!(error.to_string().starts_with("This thread is open in this process."), "{error}");
    drop((file, others));
    assert_eq!(claims(), 0);
}

#[test]
fn however_files_are_opened_and_closed_a_thread_has_one_writer() {
    const WORKERS: usize = 3;
    const ROUNDS: usize = 4;
    let home = tempfile::tempdir().unwrap();
    let path = place(home.path(), ThreadId::fresh());
    drop(RolloutFile::create_in(home.path(), path.clone()).unwrap());
    let (writers, written) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        for _ in 0..ROUNDS {
            let mut file = loop {
                match RolloutFile::reopen_in(home.path(), path.clone()) {
                    Ok(file) => break file,
                    Err(RolloutError::Locked { .. }) => std::thread::yield_now(),
                    Err(error) => panic!("{error}"),
                }
            };
            assert_eq!(writers.fetch_add(1, Ordering::SeqCst), 0, "somebody else writes");
            let others: Vec<RolloutFile> = (0..130)
                .map(|_| RolloutFile::create_in(home.path(), place(home.path(), ThreadId::fresh())).unwrap())
                .collect();
            file.append("event_msg", &json!({})).unwrap();
            file.flush().unwrap();
            assert_eq!(file.take_warning(), None);
            assert!(file.is_locked());
            written.fetch_add(1, Ordering::SeqCst);
            writers.fetch_sub(1, Ordering::SeqCst);
            drop((file, others));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(work);
        }
    });
    assert_eq!(written.into_inner(), WORKERS * ROUNDS);
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), WORKERS * ROUNDS);
}

/// A thread with one written line, whose file is then closed because others were used since.
fn closed(home: &Path) -> (RolloutFile, Vec<RolloutFile>) {
    let mut file = RolloutFile::create_in(home, place(home, ThreadId::fresh())).unwrap();
    file.append("event_msg", &json!({"line": 1})).unwrap();
    file.flush().unwrap();
    let others = (0..MANY).map(|_| RolloutFile::create_in(home, place(home, ThreadId::fresh())).unwrap()).collect();
    (file, others)
}

#[test]
fn a_closed_file_that_grew_is_reported_and_continued_at_its_end() {
    let home = tempfile::tempdir().unwrap();
    let (mut file, _others) = closed(home.path());
    let mut stranger = File::options().append(true).open(file.path()).unwrap();
    stranger.write_all(b"{\"timestamp\":\"t\",\"type\":\"x\",\"payload\":2}\n{\"torn").unwrap();
    file.append("event_msg", &json!({"line": 3})).unwrap();
    file.flush().unwrap();
    let warning = file.take_warning().unwrap();
    assert!(warning.contains(" was changed by another program: it has "), "{warning}");
    let text = std::fs::read_to_string(file.path()).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        lines.iter().map(|line| line["payload"].clone()).collect::<Vec<_>>(),
        [json!({"line": 1}), json!(2), json!({"line": 3})]
    );
    file.append("event_msg", &json!({"line": 4})).unwrap();
    file.flush().unwrap();
    assert_eq!(file.take_warning(), None, "it is told once");
}

#[test]
fn a_closed_file_that_a_stranger_locks_continues_and_that_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let (mut file, _others) = closed(home.path());
    let stranger = File::open(file.path()).unwrap();
    stranger.try_lock().unwrap();
    file.append("event_msg", &json!({"line": 2})).unwrap();
    file.flush().unwrap();
    let warning = file.take_warning().unwrap();
    assert!(warning.ends_with("is also open in this process"), "{warning}");
    assert_eq!(std::fs::read_to_string(file.path()).unwrap().lines().count(), 2);
}

#[test]
fn a_closed_file_that_was_replaced_is_not_written() {
    let home = tempfile::tempdir().unwrap();
    let (mut file, _others) = closed(home.path());
    let path = file.path().to_owned();
    std::fs::write(path.with_extension("new"), "another\n").unwrap();
    std::fs::rename(path.with_extension("new"), &path).unwrap();
    file.append("event_msg", &json!({"line": 2})).unwrap();
    let error = file.flush().unwrap_err();
    assert!(std::error::Error::source(&error).unwrap().to_string().ends_with("another file has taken its place"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "another\n");
    std::fs::remove_file(&path).unwrap();
    file.append("event_msg", &json!({"line": 2})).unwrap();
    let RolloutError::Write { source, .. } = file.flush().unwrap_err() else { panic!("another error") };
    assert_eq!(source.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn a_second_writer_in_this_process_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let first = RolloutFile::create(path.clone()).unwrap();
    let error = RolloutFile::reopen(path.clone()).unwrap_err();
    assert!(error.to_string().starts_with("This thread is open in this process. "), "{error}");
    drop(first);
    RolloutFile::reopen(path).unwrap();
}

#[test]
fn special_files_are_not_written() {
    let error = RolloutFile::reopen(PathBuf::from("/dev/full")).unwrap_err();
    let RolloutError::Open { source, .. } = error else { panic!("another error: {error}") };
    assert_eq!(source.to_string(), "it is not a regular file");
}

#[test]
fn a_place_that_cannot_be_written_is_reported() {
    let error = RolloutFile::create(PathBuf::from("/proc/none/sessions/r.jsonl")).unwrap_err();
    assert_eq!(error.to_string(), "could not create the folder /proc/none/sessions");
    let error = RolloutFile::reopen(PathBuf::from("/proc/none/r.jsonl")).unwrap_err();
    assert_eq!(error.to_string(), "could not open the thread's file /proc/none/r.jsonl");
}
