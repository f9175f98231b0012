//! The deadline of all commands of this process, which their supervisors keep even if this process is halted.
//!
//! Invariant: it is in memory that this process shares with every supervisor, also with those that have a copy of
//! everything else. The first deadline of a process is set before it starts a command that has to keep one.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use rustix::time::{ClockId, clock_gettime};

/// The moment in milliseconds since the machine was started, including the time in which it slept.
static MOMENT: OnceLock<&'static AtomicI64> = OnceLock::new();

/// The value without a deadline.
const NEVER: i64 = i64::MAX;

/// Sets the time after which all commands are killed, unless it is set again before; `None` for no such time.
///
/// A process that is halted (SIGSTOP, a debugger) cannot end its commands. Their supervisors do so then.
pub fn set_command_deadline(after: Option<Duration>) {
    if MOMENT.get().is_none() && after.is_none() {
        return;
    }
    let moment = after.map_or(NEVER, |after| now().saturating_add(i64::try_from(after.as_millis()).unwrap_or(NEVER)));
    if let Some(shared) = MOMENT.get().copied().or_else(shared_memory) {
        shared.store(moment, Ordering::Relaxed);
    }
}

fn shared_memory() -> Option<&'static AtomicI64> {
    let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: a new mapping at an address of the kernel's choice.
    let page = unsafe { mmap_anonymous(std::ptr::null_mut(), 4096, protection, flags) }.ok()?;
    // SAFETY: it is aligned, zeroed, never unmapped, and used as this type only.
    let shared = unsafe { &*page.cast::<AtomicI64>() };
    shared.store(NEVER, Ordering::Relaxed);
    Some(MOMENT.get_or_init(|| shared))
}

fn now() -> i64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec.saturating_mul(1000).saturating_add(now.tv_nsec / 1_000_000)
}

/// The time until the deadline; `None` if there is none. Makes plain system calls only.
pub(super) fn left() -> Option<Timespec> {
    let moment = MOMENT.get().map_or(NEVER, |shared| shared.load(Ordering::Relaxed));
    let left = (moment != NEVER).then(|| moment.saturating_sub(now()).max(0))?;
    Some(Timespec { tv_sec: left / 1000, tv_nsec: (left % 1000) * 1_000_000 })
}

/// Whether the deadline has passed.
pub(super) fn has_passed() -> bool {
    left().is_some_and(|left| left.tv_sec == 0 && left.tv_nsec == 0)
}
