//! Kills every process of a command where no namespace contains them.
//!
//! Processes that constantly fork and exit are gone before they can be listed and killed one by one. But Landlock
//! scopes signals, since its version 6: the command starts in a domain whose processes cannot signal anything outside,
//! and one process of ours waits in the same domain. When told to, it signals every process that it may, and the kernel
//! does that for all at once, including ones that are just starting.
//!
//! The command itself is in a nested domain, so none of its processes can signal the one that waits.
//!
//! Invariant: plain system calls only, as everywhere in the processes of a command. No process is signalled before it
//! is certain that the scope works.

use std::ffi::c_int;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, getppid, setsid, test_kill_process, waitid};

use super::stack::Stack;
use super::sys;

/// The maximum time that the supervisor waits until every process was signalled.
const PATIENCE: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// The process that waits to kill the others.
pub(super) struct ScopeKiller {
    process: OwnedFd,
    /// The end of the pipe that it waits on.
    hold: RawFd,
}

/// Enters the scope that `ruleset` defines and starts two processes in it, both children of this one's parent: the
/// ender, which waits on `pipe`, and the process that `start` starts.
///
/// # Safety
///
/// As for [`sys::clone_sharing`]: the stack must stay valid and unused until the ender has exited.
pub(super) unsafe fn enter<T>(
    ruleset: BorrowedFd<'_>,
    pipe: [RawFd; 2],
    stack: &mut Stack,
    start: impl FnOnce(c_int) -> Result<T, Errno>,
) -> Result<(T, ScopeKiller), Errno> {
    sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1)?;
    sys::landlock_restrict(ruleset)?;
    let [wait, hold] = pipe;
    // SAFETY: guaranteed by the caller.
    let (_, process) =
        unsafe { sys::clone_sharing(stack, libc::CLONE_PARENT | libc::SIGCHLD, move || end_others_after(wait))? };
    let ender = ScopeKiller { process, hold };
    Ok((start(libc::CLONE_PARENT)?, ender))
}

/// Waits until the other end of the pipe is closed, and kills every other process of the scope.
fn end_others_after(pipe: RawFd) -> c_int {
    let _ = setsid();
    sys::set_name(c"codex-ender");
    let number = pipe.unsigned_abs();
    let _ = sys::close_range(0, number - 1, false);
    let _ = sys::close_range(number + 1, u32::MAX, false);
    while sys::read(pipe, &mut [0_u8]) == Err(Errno::INTR) {}
    // The parent is outside. If it could be signalled, so could every other process of this user.
    let is_scoped = getppid().is_some_and(|parent| test_kill_process(parent) == Err(Errno::PERM));
    if is_scoped {
        sys::kill_all();
    }
    0
}

impl ScopeKiller {
    /// Kills every process in the scope, and waits for that.
    pub(super) fn end_all(self) {
        let _ = sys::close_range(self.hold.unsigned_abs(), self.hold.unsigned_abs(), false);
        let mut ended = [PollFd::from_borrowed_fd(self.process.as_fd(), PollFlags::IN)];
        while poll(&mut ended, Some(&PATIENCE)) == Err(Errno::INTR) {}
        let _ = waitid(WaitId::PidFd(self.process.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    }
}
