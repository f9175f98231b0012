//! A user namespace and an empty network namespace that all sandboxes of this process share.
//!
//! Creating a network namespace takes as long as everything else that a sandbox needs, and removing it takes even
//! longer. It is empty and stays empty, because nothing in a sandbox can create a socket and nobody in this user
//! namespace has rights to it. So one is enough.
//!
//! Invariant: only sandbox processes run in these namespaces.

use std::ffi::CString;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use super::spawn::above_stdio;
use super::supervisor::await_end;
use super::sys::{self, Side};
use super::world::Maps;

/// The namespaces, which exist as long as these descriptors are open.
#[derive(Debug)]
pub(super) struct SharedNamespaces {
    user: OwnedFd,
    network: OwnedFd,
}

static SHARED: OnceLock<Option<SharedNamespaces>> = OnceLock::new();
static IS_SECOND: AtomicBool = AtomicBool::new(false);
static IS_USABLE: AtomicBool = AtomicBool::new(true);

/// The namespaces for another sandbox. `None` for the first of a process, which may well be the only one, and if they
/// cannot be created: such a sandbox creates its own.
pub(super) fn get() -> Option<&'static SharedNamespaces> {
    if !IS_SECOND.swap(true, Ordering::Relaxed) || !IS_USABLE.load(Ordering::Relaxed) {
        return None;
    }
    SHARED.get_or_init(|| SharedNamespaces::make().ok()).as_ref()
}

/// Stops using them, because they could not be joined. Returns whether they were in use until now.
pub(super) fn give_up() -> bool {
    IS_USABLE.swap(false, Ordering::Relaxed) && matches!(SHARED.get(), Some(Some(_)))
}

impl SharedNamespaces {
    fn make() -> Result<Self, Errno> {
        let (go, wait) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stand, ready) = pipe_with(PipeFlags::CLOEXEC)?;
        let maps = Maps::of_this_process();
        let former = sys::block_signals();
        // SAFETY: the child makes plain system calls in `hold`, which does not return.
        let started = unsafe { sys::clone_process(libc::CLONE_NEWUSER | libc::CLONE_NEWNET) };
        if matches!(started, Ok(Side::Child)) {
            hold([go.as_raw_fd(), wait.as_raw_fd(), ready.as_raw_fd()], &maps);
        }
        sys::restore_signals(&former);
        let Side::Parent { pid, pidfd } = started? else { sys::exit(1) };
        drop(ready);
        let found = match rustix::io::read(&stand, &mut [0_u8]) {
            Ok(1) => Self::of(pid),
            Ok(_) => Err(Errno::PERM),
            Err(errno) => Err(errno),
        };
        drop(wait);
        await_end(pidfd.as_fd())?;
        // Sandboxes in these namespaces share the memory of this process, so this process must be inaccessible too.
        sys::set_visible(false)?;
        found
    }

    fn of(pid: i32) -> Result<Self, Errno> {
        let open = |kind: &str| {
            let path = CString::new(format!("/proc/{pid}/ns/{kind}")).map_err(|_| Errno::INVAL)?;
            above_stdio(rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
        };
        Ok(Self { user: open("user")?, network: open("net")? })
    }

    /// The namespaces to join: the user namespace first, which gives the right to join the other.
    pub(super) fn descriptors(&self, with_network: bool) -> [Option<BorrowedFd<'_>>; 2] {
        [Some(self.user.as_fd()), (!with_network).then(|| self.network.as_fd())]
    }
}

/// Keeps the namespaces alive until they have been opened. The order of the descriptors is that of
/// [`SharedNamespaces::make`].
fn hold([go, wait, ready]: [RawFd; 3], maps: &Maps) -> ! {
    let _ = sys::close_range(wait.unsigned_abs(), wait.unsigned_abs(), false);
    if maps.apply().is_ok() {
        let _ = sys::write(ready, b"1");
    }
    let _ = sys::close_range(ready.unsigned_abs(), ready.unsigned_abs(), false);
    let _ = sys::read(go, &mut [0_u8]);
    sys::exit(0)
}
