//! The supervisor of one command as the server sees it: a process, and the memory that it works with.
//!
//! It shares the server's memory, which takes a tenth of the time that a copy does, where that is safe: if nothing is confined,
//! and once this process is closed to onlookers and its sandboxes have a [namespaces that they share](super::shared_namespaces). Before, a sandbox has to
//! open itself to map its user or to hand over a descriptor, and memory is open or closed as a whole.
//!
//! Invariant: the memory of a supervisor is freed when that is known to have ended, and all that shared it before, and not
//! earlier.

use std::os::fd::{AsFd as _, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr::NonNull;

use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;

use super::child::{Plan, supervise};
use super::plan::Workings;
use super::stack::Stack;
use super::sys::{self, Side};

/// `__WALL`: supervisors end without a signal, and only this finds such children.
const ALL: WaitIdOptions = WaitIdOptions::from_bits_retain(0x4000_0000);

/// Waits until a child has ended by itself. One that was killed is an error.
pub(super) fn await_end(process: BorrowedFd<'_>) -> Result<(), Errno> {
    loop {
        match waitid(WaitId::PidFd(process), WaitIdOptions::EXITED | ALL) {
            Ok(Some(status)) => return if status.exited() { Ok(()) } else { Err(Errno::CANCELED) },
            Ok(None) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// What all processes of a command work with.
pub(super) struct Memory {
    pub(super) plan: Plan,
    workings: Workings,
    stack: Stack,
}

/// A supervisor that was started. It is to be waited for.
#[derive(Debug)]
pub(super) struct Supervisor {
    pid: i32,
    process: OwnedFd,
    /// What it works with, unless it has a copy.
    shared: Option<NonNull<Memory>>,
}

// SAFETY: the memory is the supervisor's; here it is only freed, by whoever has waited for that.
unsafe impl Send for Supervisor {}
// SAFETY: as above.
unsafe impl Sync for Supervisor {}

impl AsRawFd for Supervisor {
    fn as_raw_fd(&self) -> RawFd {
        self.process.as_raw_fd()
    }
}

impl Supervisor {
    /// Starts it, and gives back the plan if it has a copy of that.
    ///
    /// No signal tells of its end: whoever waits for children in this process must not find it.
    pub(super) fn start(plan: Plan, workings: Workings) -> Result<(Self, Option<Box<Memory>>), Errno> {
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
        // SAFETY: nobody else has it, and it stays until the process has ended; `supervise` makes plain system calls.
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

    /// Its number.
    pub(super) fn pid(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// What was planned, if that is shared.
    pub(super) fn plan(&self) -> Option<&Plan> {
        // SAFETY: it is there until this value is used up, and nobody changes it.
        self.shared.map(|memory| unsafe { &(*memory.as_ptr()).plan })
    }

    /// Waits until it has ended, which is soon after it was let go of.
    pub(super) fn wait(self) {
        // If somebody has killed it or waited for it, nothing is certain, so the memory stays.
        if await_end(self.process.as_fd()).is_ok() {
            // SAFETY: the process has ended, and with it all that shared its memory.
            drop(self.shared.map(|memory| unsafe { Box::from_raw(memory.as_ptr()) }));
        }
    }

    /// Waits without holding up the caller, and then goes on: by a task where there is a runtime, else by a thread.
    pub(super) fn wait_aside(supervisor: AsyncFd<Self>, then: impl FnOnce() + Send + 'static) {
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                // Readable means ended.
                let _ = supervisor.readable().await.map(drop);
                supervisor.into_inner().wait();
                then();
            });
            return;
        }
        let supervisor = supervisor.into_inner();
        let builder = std::thread::Builder::new().name("codex-reap".to_owned()).stack_size(64 * 1024);
        // Without a thread the process table keeps an entry until this process ends.
        let _ = builder.spawn(move || {
            supervisor.wait();
            then();
        });
    }
}
