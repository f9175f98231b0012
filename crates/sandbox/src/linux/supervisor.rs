//! The supervisor of one command as the server sees it: a process, and the memory that it uses.
//!
//! It shares the server's memory, which takes a tenth of the time of a copy, where that is safe: if nothing is
//! confined, and once this process is inaccessible and its sandboxes [share namespaces](super::shared_namespaces).
//! Before that, a sandbox has to be accessible for a moment to map its user or to hand over a descriptor, and memory is
//! either accessible or not as a whole.
//!
//! Invariant: the memory of a supervisor is not freed before the supervisor, and everything that shared its memory, is
//! known to have exited.

use std::os::fd::{AsFd as _, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr::NonNull;

use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;

use super::child::{Plan, supervise};
use super::plan::SupervisorMemory;
use super::stack::Stack;
use super::sys::{self, Side};

/// `__WALL`: supervisors exit without a signal, and only this finds such children.
const ALL: WaitIdOptions = WaitIdOptions::from_bits_retain(0x4000_0000);

/// Waits until a child has exited by itself. A killed child is an error.
pub(super) fn await_end(process: BorrowedFd<'_>) -> Result<(), Errno> {
    loop {
        match waitid(WaitId::PidFd(process), WaitIdOptions::EXITED | ALL) {
            Ok(Some(status)) => return if status.exited() { Ok(()) } else { Err(Errno::CANCELED) },
            Ok(None) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// The memory that all processes of a command use.
pub(super) struct Memory {
    pub(super) plan: Plan,
    workings: SupervisorMemory,
    stack: Stack,
}

/// A running supervisor, which must be waited for.
#[derive(Debug)]
pub(super) struct Supervisor {
    pid: i32,
    process: OwnedFd,
    /// Its memory, unless it has a copy.
    shared: Option<NonNull<Memory>>,
}

// SAFETY: the memory belongs to the supervisor; here it is only freed, by the caller that has waited for the
// supervisor.
unsafe impl Send for Supervisor {}
// SAFETY: as above.
unsafe impl Sync for Supervisor {}

impl AsRawFd for Supervisor {
    fn as_raw_fd(&self) -> RawFd {
        self.process.as_raw_fd()
    }
}

impl Supervisor {
    /// Starts it, and returns the plan if the supervisor has a copy of it.
    ///
    /// Its exit sends no signal: code that waits for children in this process must not find it.
    pub(super) fn start(plan: Plan, workings: SupervisorMemory) -> Result<(Self, Option<Box<Memory>>), Errno> {
        let is_copied = plan.confined.as_ref().is_some_and(|confined| !confined.shares_namespaces());
        let stack = if is_copied { Stack::none() } else { Stack::new()? };
        let memory = Box::new(Memory { plan, workings, stack });
        let former = sys::block_signals();
        let started = if is_copied { Self::copied(memory) } else { Self::sharing(memory).map(|it| (it, None)) };
        sys::restore_signals(&former);
        started
    }

    fn sharing(memory: Box<Memory>) -> Result<Self, Errno> {
        let memory = NonNull::from(Box::leak(memory));
        // SAFETY: nobody else has it, and it stays until the process has exited; `supervise` makes plain system calls.
        let started = unsafe {
            let Memory { plan, workings, stack } = &mut *memory.as_ptr();
            let plan = &*plan;
            sys::clone_sharing(stack, 0, move || supervise(plan, workings))
        };
        match started {
            Ok((pid, process)) => Ok(Self { pid, process, shared: Some(memory) }),
            Err(errno) => {
                // SAFETY: there is no process that could use it.
                drop(unsafe { Box::from_raw(memory.as_ptr()) });
                Err(errno)
            }
        }
    }

    fn copied(mut memory: Box<Memory>) -> Result<(Self, Option<Box<Memory>>), Errno> {
        // SAFETY: the child makes plain system calls and exits.
        match unsafe { sys::clone_process(0) }? {
            Side::Parent { pid, pidfd } => Ok((Self { pid, process: pidfd, shared: None }, Some(memory))),
            Side::Child => sys::exit(supervise(&memory.plan, &mut memory.workings)),
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// The plan, if it is shared.
    pub(super) fn plan(&self) -> Option<&Plan> {
        // SAFETY: it lives until this value is consumed, and nobody changes it.
        self.shared.map(|memory| unsafe { &(*memory.as_ptr()).plan })
    }

    /// Waits until it has exited, which is soon after its lifeline is dropped.
    pub(super) fn wait(self) {
        // If another process has killed or reaped it, nothing is certain, so the memory is leaked.
        if await_end(self.process.as_fd()).is_ok() {
            // SAFETY: the process has exited, and with it everything that shared its memory.
            drop(self.shared.map(|memory| unsafe { Box::from_raw(memory.as_ptr()) }));
        }
    }

    /// Waits in the background and then calls `then`: in a task if there is a runtime, else in a thread.
    pub(super) fn wait_aside(supervisor: AsyncFd<Self>, then: impl FnOnce() + Send + 'static) {
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                // Readable means exited.
                let _ = supervisor.readable().await.map(drop);
                supervisor.into_inner().wait();
                then();
            });
            return;
        }
        let supervisor = supervisor.into_inner();
        let builder = std::thread::Builder::new().name("codex-reap".to_owned()).stack_size(64 * 1024);
        // Without a thread, the process table keeps an entry until this process exits.
        let _ = builder.spawn(move || {
            supervisor.wait();
            then();
        });
    }
}
