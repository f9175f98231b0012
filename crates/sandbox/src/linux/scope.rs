//! Ending every process of a command where no namespace holds them together.
//!
//! Processes that end and start others all the time are gone before they can be listed and killed one by one. But signals
//! are scoped by Landlock, since its version 6: the command starts in a domain in which nobody can signal anybody outside,
//! and one process of ours waits in the same domain. When it is told to, it signals everybody that it may, and the kernel
//! does that at once for all, those that are just being started included.
//!
//! The command itself is in a domain below, so nothing of it can signal the process that waits.
//!
//! Invariant: as everywhere in the processes of a command, plain system calls only. Nobody is signalled before it is
//! certain that the scope holds.

use std::ffi::c_int;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, getppid, setsid, test_kill_process, waitid};

use super::stack::Stack;
use super::sys;

/// How long the supervisor waits until everybody has been signalled.
const PATIENCE: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// The process that waits to end the others.
pub(super) struct Ender {
    process: OwnedFd,
    /// The end of the pipe that holds it up.
    hold: RawFd,
}

/// Enters the scope that `ruleset` makes and starts two processes in it, both children of this one's parent: the ender, which
/// waits at `pipe`, and what `start` starts.
///
/// # Safety
///
/// As for [`sys::clone_sharing`]: the stack must stay, and be left alone, until the ender has ended.
pub(super) unsafe fn enter<T>(
    ruleset: BorrowedFd<'_>,
    pipe: [RawFd; 2],
    stack: &mut Stack,
    start: impl FnOnce(c_int) -> Result<T, Errno>,
) -> Result<(T, Ender), Errno> {
    sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1)?;
    sys::landlock_restrict(ruleset)?;
    let [wait, hold] = pipe;
    // SAFETY: promised by the caller.
    let (_, process) =
        unsafe { sys::clone_sharing(stack, libc::CLONE_PARENT | libc::SIGCHLD, move || end_others_after(wait))? };
    let ender = Ender { process, hold };
    Ok((start(libc::CLONE_PARENT)?, ender))
}

/// Waits until nobody holds the other end of the pipe any more, and ends every process of the scope but this one.
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

impl Ender {
    /// Has everybody in the scope signalled, and waits for that.
    pub(super) fn end_all(self) {
        let _ = sys::close_range(self.hold.unsigned_abs(), self.hold.unsigned_abs(), false);
        let mut ended = [PollFd::from_borrowed_fd(self.process.as_fd(), PollFlags::IN)];
        while poll(&mut ended, Some(&PATIENCE)) == Err(Errno::INTR) {}
        let _ = waitid(WaitId::PidFd(self.process.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    }
}
