//! Notices when a protected file is replaced from outside while a command runs that must not write it.
//!
//! A mount protects the file. When a program outside renames another file over it, as editors and `git config` do, the
//! kernel removes that mount in every sandbox, and the new file is as writable as its folder. Neither a mount nor
//! Landlock can protect a name, only the file that has it; so the command is killed, and its output says why.
//!
//! Invariant: one watch per folder and one thread for the whole process, whatever the number of commands.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use codex_guard::findings::{Finding, Findings, Report};

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
    /// The replaced file, if the command was killed because of it.
    replaced: OnceLock<PathBuf>,
}

impl Lifeline {
    pub(super) fn new(hold: OwnedFd) -> Arc<Self> {
        Arc::new(Self { hold: Mutex::new(Some(hold)), replaced: OnceLock::new() })
    }

    /// Lets the supervisor kill the command.
    pub(super) fn let_go(&self) {
        drop(lock(&self.hold).take());
    }

    /// The replaced file, if the command was killed because of it.
    pub(super) fn replaced(&self) -> Option<&Path> {
        self.replaced.get().map(PathBuf::as_path)
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

/// Kills the command that `life` belongs to when another file takes the name of one of these files.
///
/// If the system has no room for another watch, nothing is noticed.
pub(super) fn guard(files: &[PathBuf], life: &Arc<Lifeline>, findings: &Findings) -> Option<Guarded> {
    static WATCHER: OnceLock<Option<Watcher>> = OnceLock::new();
    if files.is_empty() {
        return None;
    }
    let watcher = WATCHER.get_or_init(Watcher::start).as_ref()?;
    let mut table = lock(&watcher.table);
    table.next += 1;
    let number = table.next;
    watcher.make_room(&mut table);
    for path in files {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { continue };
        let flags = CHANGES | WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW;
        if let Ok(watch) = inotify::add_watch(&*watcher.inotify, folder, flags) {
            let (name, path) = (name.to_owned(), path.clone());
            let entry = Entry { number, name, path, life: Arc::clone(life), findings: findings.clone() };
            table.folders.entry(watch).or_default().push(entry);
        }
    }
    Some(Guarded { number, watcher })
}

#[derive(Debug)]
struct Watcher {
    inotify: Arc<OwnedFd>,
    table: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    /// By watch descriptor.
    folders: HashMap<i32, Vec<Entry>>,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    name: OsString,
    path: PathBuf,
    life: Arc<Lifeline>,
    findings: Findings,
}

impl Watcher {
    fn start() -> Option<Self> {
        let inotify = Arc::new(inotify::init(CreateFlags::CLOEXEC).ok()?);
        let table = Arc::new(Mutex::new(Table::default()));
        let (events, entries) = (Arc::clone(&inotify), Arc::clone(&table));
        let builder = std::thread::Builder::new().name("codex-watch".to_owned()).stack_size(64 * 1024);
        builder.spawn(move || read(&events, &entries)).ok()?;
        Some(Self { inotify, table })
    }

    fn make_room(&self, table: &mut Table) {
        if table.folders.len() > MAX_FOLDERS {
            table
                .folders
                .retain(|watch, entries| !entries.is_empty() || inotify::remove_watch(&*self.inotify, *watch).is_err());
        }
    }
}

fn read(inotify: &OwnedFd, table: &Mutex<Table>) {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = Reader::new(inotify, &mut buffer);
    loop {
        match reader.next() {
            Ok(event) => {
                let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
                let mut table = lock(table);
                if event.events().contains(ReadFlags::IGNORED) {
                    table.folders.remove(&event.wd());
                } else if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                    table.folders.values().flatten().for_each(Entry::end);
                } else if let Some(entries) = table.folders.get(&event.wd()) {
                    entries.iter().filter(|entry| Some(entry.name.as_os_str()) == name).for_each(Entry::end);
                }
            }
            Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

impl Entry {
    fn end(&self) {
        // Before another task can notice that the command has ended.
        if self.life.replaced.set(self.path.clone()).is_ok() {
            let what = "replaced by another program while a command ran that must not write it; the command was ended, \
                        but may have been quicker: look at the file before you trust it";
            let finding = Finding { path: self.path.clone(), what: what.to_owned() };
            self.findings.add(&Report { findings: vec![finding], changed: Vec::new() });
        }
        self.life.let_go();
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every critical section leaves the state consistent.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
