//! Limits on the number of descriptors of this process and its commands.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The original soft limit; 0 if it was not raised.
static FIRST: AtomicU64 = AtomicU64::new(0);

/// Raises the soft limit on descriptors to the hard limit. Commands get the original limit back, because programs that
/// use `select` rely on it.
pub fn raise_descriptor_limit() {
    let Rlimit { current: Some(first), maximum } = getrlimit(Resource::Nofile) else { return };
    if maximum.is_none_or(|maximum| maximum > first)
        && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok()
    {
        FIRST.store(first, Ordering::Relaxed);
    }
}

/// Makes a program that runs alongside ours, outside of any sandbox, start with the original limit.
pub fn with_first_descriptor_limit(command: &mut Command) -> &mut Command {
    let restore = || {
        restore_descriptor_limit();
        Ok(())
    };
    // SAFETY: between fork and exec it loads a number and makes two system calls.
    unsafe { command.pre_exec(restore) }
}

/// Restores the original limit in this process, which is about to become a command.
pub(super) fn restore_descriptor_limit() {
    let first = FIRST.load(Ordering::Relaxed);
    if first > 0 {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(first), maximum });
    }
}
