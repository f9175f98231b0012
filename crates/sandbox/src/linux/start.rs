//! Starts the processes of a sandbox through an intermediate one that joins the namespaces or enters the scope on their
//! behalf, because the supervisor itself stays outside.

use std::ffi::c_int;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};

use super::child::{Plan, close_each};
use super::messages::Failure;
use super::plan::NamespaceSource;
use super::scope::{self, ScopeKiller};
use super::stack::Stack;
use super::sys;
use crate::error::Step;

/// A new process, and a handle to it.
pub(super) type Started<E = Failure> = Result<(i32, OwnedFd), E>;

/// The namespaces that every sandbox has for itself.
const NAMESPACES: c_int = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;

/// Starts the first process of the sandbox.
pub(super) fn first_process(
    footing: &NamespaceSource,
    run: impl FnOnce() -> c_int,
    stack: &mut Stack,
    joining_stack: &mut Stack,
) -> Started<Errno> {
    let NamespaceSource::Shared(shared) = footing else {
        // SAFETY: this process, and with it everything that is borrowed, outlives the other; nobody else uses that
        // memory.
        return unsafe { sys::clone_sharing(stack, NAMESPACES | libc::CLONE_NEWUSER | libc::SIGCHLD, run) };
    };
    // The supervisor stays outside, so another process joins, starts the first one as its sibling, and exits. Until
    // then the supervisor is suspended; they share descriptors, including the handle.
    let mut started = Err(Errno::CANCELED);
    let join = || {
        started = shared.iter().flatten().try_for_each(|namespace| sys::join(*namespace)).and_then(|()| {
            // SAFETY: as above.
            unsafe { sys::clone_sharing(stack, NAMESPACES | libc::CLONE_PARENT | libc::SIGCHLD, run) }
        });
        0
    };
    let flags = libc::CLONE_VFORK | libc::CLONE_FILES | libc::SIGCHLD;
    // SAFETY: with CLONE_VFORK it has exited when this returns.
    let (_, joining) = unsafe { sys::clone_sharing(joining_stack, flags, join) }?;
    let _ = waitid(WaitId::PidFd(joining.as_fd()), WaitIdOptions::EXITED);
    for namespace in shared.iter().flatten() {
        close_each(&[namespace.as_raw_fd()]);
    }
    started
}

/// Starts the command in its own scope, together with the process that can kill all of it.
pub(super) fn in_scope(
    plan: &Plan,
    ruleset: &OwnedFd,
    start: impl FnOnce(c_int) -> Started,
    ender_stack: &mut Stack,
    joining_stack: &mut Stack,
) -> Result<((i32, OwnedFd), ScopeKiller), Failure> {
    // The supervisor stays outside, so another process enters the scope, starts both as its siblings, and exits.
    let (mut failure, mut started) = (None, Err(Errno::CANCELED));
    let enter = || {
        let start = |flags| {
            start(flags).map_err(|its_failure| {
                failure = Some(its_failure);
                its_failure.errno
            })
        };
        // SAFETY: the supervisor outlives everything that it has started, and nobody else uses the stack.
        started = unsafe { scope::enter(ruleset.as_fd(), plan.pipes.built, ender_stack, start) };
        0
    };
    let flags = libc::CLONE_VFORK | libc::CLONE_FILES | libc::SIGCHLD;
    // SAFETY: with CLONE_VFORK it has exited when this returns.
    let (_, entering) = unsafe { sys::clone_sharing(joining_stack, flags, enter) }.map_err(Failure::of(Step::Clone))?;
    let _ = waitid(WaitId::PidFd(entering.as_fd()), WaitIdOptions::EXITED);
    started.map_err(|errno| failure.unwrap_or_else(|| Failure::of(Step::Landlock)(errno)))
}
