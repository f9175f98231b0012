//! Closes this process to onlookers.

use rustix::process::{Resource, Rlimit, setrlimit};

use super::sys;

/// Keeps others of the same user from tracing this process or reading its memory, in which there are keys, and the kernel
/// from writing that to disk. Programs that it executes are as open as ever, but leave no core dumps either.
///
/// What cannot be closed stays open: a kernel that refuses this has none of these doors.
pub fn harden() {
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let _ = sys::set_visible(false);
}
