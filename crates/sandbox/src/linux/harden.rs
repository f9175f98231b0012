//! Makes this process inaccessible to others.

use rustix::process::{Resource, Rlimit, setrlimit};

use super::sys;

/// Keeps other processes of the same user from tracing this process or reading its memory, which contains keys, and the
/// kernel from writing it to disk. Programs that it executes stay accessible, but leave no core dumps either.
///
/// Errors are ignored: a kernel that refuses this has none of these features.
pub fn harden() {
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let _ = sys::set_visible(false);
}
