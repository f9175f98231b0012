//! How many descriptors this process and its commands may have.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The soft limit before it was raised; 0 if it was not.
static FIRST: AtomicU64 = AtomicU64::new(0);

/// Lets this process have as many descriptors as the system grants it. The usual soft limit is for programs that cannot
/// count beyond it, and commands get it back: they may be such programs.
pub fn raise_descriptor_limit() {
    let Rlimit { current: Some(first), maximum } = getrlimit(Resource::Nofile) else { return };
    if maximum.is_none_or(|maximum| maximum > first)
        && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok()
    {
        FIRST.store(first, Ordering::Relaxed);
    }
}

/// Starts a program that runs beside ours, outside of any sandbox, under the limit that this process was started with.
pub fn with_first_descriptor_limit(command: &mut Command) -> &mut Command {
    let restore = || {
        restore_descriptor_limit();
        Ok(())
    };
    // SAFETY: between fork and exec it loads a number and makes two system calls.
    unsafe { command.pre_exec(restore) }
}

/// Gives this process, which becomes a command, the limit back that the first one was started with.
pub(super) fn restore_descriptor_limit() {
    let first = FIRST.load(Ordering::Relaxed);
    if first > 0 {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(first), maximum });
    }
}
