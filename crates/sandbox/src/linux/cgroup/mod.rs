//! A cgroup for each command, which limits its memory and its processes.
//!
//! Only cgroup v2 is used, and only a cgroup that was delegated to this process: its creator must have permitted
//! further subdivision ([`place`]). Version 1 has no such permission; there, everything that root may write belongs to
//! somebody else.
//!
//! The command enters its cgroup itself, through a descriptor, just before it is executed. The processes between the
//! server and the command never do: they share the server's memory, and when the kernel kills a process for lack of
//! memory, it kills all others that share its memory too. For the same reason there is a minimum limit ([`SMALLEST`]),
//! which nothing exceeds before the command has its own memory.
//!
//! Invariant: nothing happens unless a limit is requested.

mod place;
#[cfg(test)]
mod tests;

use std::ffi::CString;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, unlinkat};
use rustix::io::Errno;

use super::spawn::above_stdio;
use super::sys;

/// The smallest memory limit. Executing a program takes a few megabytes for its arguments and variables.
pub(super) const SMALLEST: u64 = 64 << 20;

/// The prefix of our cgroup names. The process id and a number for each command follow.
const PREFIX: &str = "codex-";

/// The parent cgroup of all commands, once it is known.
static BASE: Mutex<Option<Base>> = Mutex::new(None);

/// The reason why a memory limit cannot be enforced here, if one is requested. Without one, nothing is checked.
#[must_use]
pub fn unenforced_memory_limit(limit: Option<u64>) -> Option<String> {
    limit.and_then(|_| with_base(|_| ()).err())
}

/// Creates the cgroup of one command; `None` if that is not possible at all.
pub(super) fn make(memory: u64, processes: Option<u32>) -> io::Result<Option<Group>> {
    with_base(|base| base.make(memory, processes)).ok().transpose()
}

fn with_base<T>(work: impl FnOnce(&Base) -> T) -> Result<T, String> {
    let mut known = BASE.lock().unwrap_or_else(PoisonError::into_inner);
    let base = match known.take() {
        Some(base) => base,
        // Other processes may be in the way for a moment, so a failure is not cached.
        None => Base::find()?,
    };
    Ok(work(known.insert(base)))
}

/// Operations on cgroup files and folders; tests use ordinary folders.
#[derive(Clone, Copy)]
struct Files {
    write: fn(&Path, &str) -> io::Result<()>,
    remove: fn(&Path) -> io::Result<()>,
}

const KERNEL: Files = Files {
    write: |path, text| OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes()),
    remove: |path| std::fs::remove_dir(path),
};

/// A cgroup that may be subdivided and contains no process itself.
struct Base {
    path: PathBuf,
    files: Files,
    limits_processes: bool,
}

impl Base {
    fn find() -> Result<Self, String> {
        let read = |path: &str| place::read(Path::new(path)).map_err(|error| format!("cannot read {path}: {error}"));
        let own = place::own_folder(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?)?;
        Self::at(&own, place::is_delegated, std::process::id(), KERNEL)
    }

    /// Prepares the cgroup `own`, which contains this process, or its parent.
    fn at(own: &Path, is_delegated: fn(&Path) -> bool, pid: u32, files: Files) -> Result<Self, String> {
        let around = own.parent().filter(|around| is_delegated(around) && place::processes(around).is_empty());
        let path = match around {
            // A service manager that keeps processes in a child of the delegated cgroup has left the parent for us.
            Some(around) => around,
            None if is_delegated(own) => own,
            None => return Err(format!("the cgroup {} is not delegated to this process", own.display())),
        };
        let controllers = place::words(&path.join("cgroup.controllers"));
        if !controllers.iter().any(|name| name == "memory") {
            return Err(format!("the cgroup {} has no memory controller", path.display()));
        }
        sweep(path, files);
        if around.is_none() {
            // A cgroup with children must not contain processes itself, so this process moves out. It does not move
            // others.
            if place::processes(path).iter().any(|other| *other != pid) {
                return Err(format!("other processes run in the cgroup {}", path.display()));
            }
            let leaf = path.join(format!("{PREFIX}{pid}"));
            let failed = |error| format!("cannot move to the cgroup {}: {error}", leaf.display());
            std::fs::DirBuilder::new().recursive(true).create(&leaf).map_err(failed)?;
            (files.write)(&leaf.join("cgroup.procs"), "0").map_err(failed)?;
        }
        let divide = |controller: &str| (files.write)(&path.join("cgroup.subtree_control"), controller);
        divide("+memory").map_err(|error| format!("the cgroup {} cannot be divided: {error}", path.display()))?;
        let limits_processes = controllers.iter().any(|name| name == "pids") && divide("+pids").is_ok();
        Ok(Self { path: path.to_owned(), files, limits_processes })
    }

    fn make(&self, memory: u64, processes: Option<u32>) -> io::Result<Group> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let memory = memory.max(SMALLEST);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = self.path.join(format!("{PREFIX}{}-{number}", std::process::id()));
        std::fs::create_dir(&path)?;
        let group = self.limit(&path, memory, processes);
        if group.is_err() {
            let _ = (self.files.remove)(&path);
        }
        group
    }

    fn limit(&self, path: &Path, memory: u64, processes: Option<u32>) -> io::Result<Group> {
        let set = |name: &str, value: &str| (self.files.write)(&path.join(name), value);
        set("memory.max", &memory.to_string())?;
        // A kernel without swap has no such limit.
        let _ = set("memory.swap.max", "0");
        // The whole command is killed, not just its largest process.
        set("memory.oom.group", "1")?;
        if let Some(processes) = processes.filter(|_| self.limits_processes) {
            set("pids.max", &processes.to_string())?;
        }
        let open = |name: &str, flags: OFlags| -> Result<OwnedFd, Errno> {
            above_stdio(rustix::fs::open(path.join(name), flags | OFlags::CLOEXEC, Mode::empty())?)
        };
        Ok(Group {
            path: CString::new(path.as_os_str().as_bytes())?,
            remove: self.files.remove,
            entrance: open("cgroup.procs", OFlags::WRONLY)?,
            events: open("memory.events", OFlags::RDONLY)?,
            // Since Linux 5.14.
            kill: open("cgroup.kill", OFlags::WRONLY).ok(),
            memory,
            is_handed_over: false,
        })
    }
}

/// Removes the cgroups of processes that are gone.
fn sweep(base: &Path, files: Files) {
    for entry in base.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        let maker = rest.split('-').next().and_then(|pid| pid.parse().ok());
        let is_left = maker
            .and_then(rustix::process::Pid::from_raw)
            .is_some_and(|maker| rustix::process::test_kill_process(maker) == Err(Errno::SRCH));
        if is_left {
            let _ = (files.write)(&entry.path().join("cgroup.kill"), "1");
            let _ = (files.remove)(&entry.path());
        }
    }
}

/// The cgroup of one command, which no process has entered yet. Once it is handed over, the supervisor removes it.
#[derive(Debug)]
pub(super) struct Group {
    path: CString,
    remove: fn(&Path) -> io::Result<()>,
    entrance: OwnedFd,
    events: OwnedFd,
    kill: Option<OwnedFd>,
    memory: u64,
    is_handed_over: bool,
}

impl Group {
    /// The memory limit in bytes.
    pub(super) fn memory(&self) -> u64 {
        self.memory
    }

    /// The part that the processes of the command need.
    pub(super) fn handle(&self) -> Handle {
        Handle {
            path: self.path.clone(),
            entrance: self.entrance.as_raw_fd(),
            events: self.events.as_raw_fd(),
            kill: self.kill.as_ref().map(AsRawFd::as_raw_fd),
        }
    }

    /// Transfers ownership to the processes.
    pub(super) fn hand_over(mut self) {
        self.is_handed_over = true;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.is_handed_over {
            let path = Path::new(std::ffi::OsStr::from_bytes(self.path.to_bytes()));
            let _ = (self.remove)(path);
        }
    }
}

/// The cgroup of a command as its processes see it: plain system calls only.
pub(super) struct Handle {
    path: CString,
    entrance: RawFd,
    events: RawFd,
    kill: Option<RawFd>,
}

impl Handle {
    /// The descriptors that the processes need, and the one that only the command needs.
    pub(super) fn descriptors(&self) -> (impl Iterator<Item = RawFd>, RawFd) {
        ([Some(self.events), self.kill].into_iter().flatten(), self.entrance)
    }

    /// Moves this process into the cgroup.
    pub(super) fn enter(&self) -> Result<(), Errno> {
        sys::write(self.entrance, b"0").map(drop)
    }

    /// Kills every process in it, including ones that are just starting.
    pub(super) fn end_all(&self) {
        if let Some(kill) = self.kill {
            let _ = sys::write(kill, b"1");
        }
    }

    /// Whether a process in it was killed for lack of memory.
    pub(super) fn is_out_of_memory(&self) -> bool {
        let mut text = [0_u8; 512];
        // SAFETY: a descriptor of the plan, which the supervisor keeps until it exits.
        let events = unsafe { BorrowedFd::borrow_raw(self.events) };
        let length = rustix::io::pread(events, &mut text, 0).unwrap_or(0);
        has_killed(text.get(..length).unwrap_or_default())
    }

    /// Removes it. If that is not possible yet, a later process sweeps it up.
    pub(super) fn remove(&self) {
        let _ = unlinkat(CWD, self.path.as_c_str(), AtFlags::REMOVEDIR);
    }
}

/// Whether `memory.events` counts a killed process.
fn has_killed(events: &[u8]) -> bool {
    let is_count = |line: &[u8]| line.strip_prefix(b"oom_kill ").is_some_and(|count| count != b"0");
    events.split(|byte| *byte == b'\n').any(is_count)
}
