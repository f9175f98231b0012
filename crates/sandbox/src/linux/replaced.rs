//! Notices when a protected name gets another file while a command runs, and when a command creates one.
//!
//! A mount protects a file. When a program outside renames another file over it, as editors and `git config` do, the
//! kernel removes that mount in every sandbox, and the new file is as writable as its folder. That is the user's own
//! business and must not disturb the command. So the content of the new file is remembered at once, and the inspection
//! accepts the name only with this content. A name that appears where none was is inspected at once.
//!
//! Invariant: one watch per folder and one thread for the whole process, whatever the number of commands.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use super::cleanup::PendingCleanup;
use crate::inspect::{Due, inspect_aside};

static WATCHER: OnceLock<Option<Watcher>> = OnceLock::new();

/// A folder that no command watches, and the maximum time to wait for the watch.
const UNUSED_FOLDER: &str = "/proc/self/ns";
const SETTLE_TIME: Duration = Duration::from_secs(2);
/// Beyond this many folders, those that no command needs any longer are unwatched.
const MAX_FOLDERS: usize = 128;
/// The events on a name when another file takes it, or when it disappears.
const CHANGES: WatchFlags =
    WatchFlags::CREATE.union(WatchFlags::DELETE).union(WatchFlags::MOVED_FROM).union(WatchFlags::MOVED_TO);

/// The lifeline of a command.
#[derive(Debug)]
pub(super) struct Lifeline {
    /// The end of a pipe; the supervisor kills the command when it closes.
    hold: Mutex<Option<OwnedFd>>,
}

impl Lifeline {
    pub(super) fn new(hold: OwnedFd) -> Arc<Self> {
        Arc::new(Self { hold: Mutex::new(Some(hold)) })
    }

    /// Lets the supervisor kill the command.
    pub(super) fn let_go(&self) {
        drop(lock(&self.hold).take());
    }
}

/// The watched files of one command. Dropping it ends the watch.
#[derive(Debug)]
pub(super) struct Guarded {
    number: u64,
    watcher: &'static Watcher,
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let mut table = lock(&self.watcher.table);
        for entries in table.folders.values_mut() {
            entries.retain(|entry| entry.number != self.number);
        }
    }
}

/// Watches the protected files of a command, and the names that it must not create.
///
/// If the system has no room for another watch, the inspection at the end of the command finds a name that has another
/// file, and does not accept it.
pub(super) fn guard(files: &[PathBuf], due: &Due) -> Option<Guarded> {
    let watcher = WATCHER.get_or_init(Watcher::start).as_ref()?;
    let mut table = lock(&watcher.table);
    table.next += 1;
    let number = table.next;
    watcher.make_room(&mut table);
    let names = due.missing_names();
    let due = Arc::new(due.clone());
    let all = files.iter().map(|path| (path, false)).chain(names.iter().map(|path| (path, true)));
    for (path, is_missing) in all {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { continue };
        let flags = CHANGES | WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW;
        if let Ok(watch) = inotify::add_watch(&*watcher.inotify, folder, flags) {
            let entry = Entry { number, name: name.to_owned(), path: path.clone(), is_missing, due: Arc::clone(&due) };
            table.folders.entry(watch).or_default().push(entry);
        }
    }
    Some(Guarded { number, watcher })
}

/// Waits until everything that has happened by now is noted.
pub(crate) fn settle() {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let Some(watcher) = WATCHER.get().and_then(Option::as_ref) else { return };
    let _one = lock(&ONE_AT_A_TIME);
    lock(&watcher.table).ended = None;
    // The end of a watch is an event like all others, and the last one in the queue.
    let Ok(watch) = inotify::add_watch(&*watcher.inotify, UNUSED_FOLDER, WatchFlags::DELETE_SELF) else { return };
    if inotify::remove_watch(&*watcher.inotify, watch).is_ok() {
        let is_waiting = |table: &mut Table| table.ended != Some(watch);
        drop(watcher.noted.wait_timeout_while(lock(&watcher.table), SETTLE_TIME, is_waiting));
    }
}

#[derive(Debug)]
struct Watcher {
    inotify: Arc<OwnedFd>,
    table: Arc<Mutex<Table>>,
    /// Signalled when a watch has ended.
    noted: Arc<Condvar>,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    /// By watch descriptor.
    folders: HashMap<i32, Vec<Entry>>,
    /// The last watch that has ended.
    ended: Option<i32>,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    name: OsString,
    path: PathBuf,
    /// Whether the name did not exist when the command started.
    is_missing: bool,
    due: Arc<Due>,
}

impl Watcher {
    fn start() -> Option<Self> {
        let inotify = Arc::new(inotify::init(CreateFlags::CLOEXEC).ok()?);
        let table = Arc::new(Mutex::new(Table::default()));
        let noted = Arc::new(Condvar::new());
        let (events, entries, ended) = (Arc::clone(&inotify), Arc::clone(&table), Arc::clone(&noted));
        let builder = std::thread::Builder::new().name("codex-watch".to_owned()).stack_size(64 * 1024);
        builder.spawn(move || read(&events, &entries, &ended)).ok()?;
        Some(Self { inotify, table, noted })
    }

    fn make_room(&self, table: &mut Table) {
        if table.folders.len() > MAX_FOLDERS {
            table
                .folders
                .retain(|watch, entries| !entries.is_empty() || inotify::remove_watch(&*self.inotify, *watch).is_err());
        }
    }
}

fn read(inotify: &OwnedFd, table: &Mutex<Table>, noted: &Condvar) {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = Reader::new(inotify, &mut buffer);
    loop {
        match reader.next() {
            Ok(event) => {
                let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
                let mut table = lock(table);
                if event.events().contains(ReadFlags::IGNORED) {
                    table.folders.remove(&event.wd());
                    table.ended = Some(event.wd());
                    noted.notify_all();
                } else if let Some(entries) = table.folders.get(&event.wd()) {
                    let appeared = event.events().intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO);
                    let of_name = entries.iter().filter(|entry| Some(entry.name.as_os_str()) == name);
                    of_name.for_each(|entry| entry.changed(appeared));
                }
            }
            Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

impl Entry {
    fn changed(&self, appeared: bool) {
        if self.is_missing && appeared {
            inspect_aside(Due::clone(&self.due), PendingCleanup::new());
        } else if !self.is_missing {
            self.due.replaced(&self.path);
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every critical section leaves the state consistent.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
