//! Reaps the processes of a command that have ended, and kills those that have not.
//!
//! Invariant: plain system calls only, as everywhere in the processes of a command.

use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitIdStatus, WaitOptions, kill_process, wait};
use rustix::time::{ClockId, clock_gettime};

use crate::launch::Exit;

/// The maximum number of children reaped in one go: others may exit as fast as these are reaped.
const REAPED_AT_ONCE: usize = 4096;

/// Reaps the children that have exited, and returns the command's outcome if it is among them.
pub(super) fn reap(orphans: &OwnedFd, command: i32) -> Option<Exit> {
    let mut exit = None;
    // One signal may stand for many.
    while rustix::io::read(orphans, &mut [0_u8; 128]).is_ok() {}
    for _ in 0..REAPED_AT_ONCE {
        let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) else { break };
        if pid.as_raw_nonzero().get() == command {
            let signal = status.terminating_signal();
            exit = Some(signal.map_or_else(|| Exit::Code(status.exit_status().unwrap_or(0)), Exit::Signal));
        }
    }
    exit
}

pub(super) fn exit_of(status: &WaitIdStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or(libc::SIGKILL)),
    }
}

/// Kills children until there are none: the children of a killed one become ours, because this process is their
/// subreaper.
///
/// Processes that fork faster than they can be killed are given up after a while if no scope contains them.
pub(super) fn end_descendants() {
    const PATIENCE_SECONDS: i64 = 3;
    let until = clock_gettime(ClockId::Monotonic).tv_sec + PATIENCE_SECONDS;
    while clock_gettime(ClockId::Monotonic).tv_sec <= until {
        // Zombies would only make the list longer.
        for _ in 0..REAPED_AT_ONCE {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
        let mut killed = false;
        let mut list = [0_u8; 4096];
        let file = openat(CWD, c"/proc/thread-self/children", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let length = file.and_then(|file| rustix::io::read(&file, &mut list)).unwrap_or(0);
        let mut number = 0_i32;
        for byte in list.iter().take(length) {
            if byte.is_ascii_digit() {
                number = number.wrapping_mul(10).wrapping_add(i32::from(byte - b'0'));
            } else if let Some(pid) = Pid::from_raw(std::mem::take(&mut number)) {
                killed |= kill_process(pid, Signal::KILL).is_ok();
            }
        }
        // A process of another user cannot be killed, so waiting for it is pointless.
        let options = if killed { WaitOptions::empty() } else { WaitOptions::NOHANG };
        match wait(options) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) | Err(_) => return,
        }
    }
}
