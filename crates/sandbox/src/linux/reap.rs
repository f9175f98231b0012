//! Takes supervisors that have ended off the process table.

use std::os::fd::{AsFd as _, OwnedFd};

use rustix::process::{WaitId, WaitIdOptions, waitid};
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;

/// `__WALL`: supervisors end without a signal, and only this finds such children.
const ALL: WaitIdOptions = WaitIdOptions::from_bits_retain(0x4000_0000);

/// Waits for a supervisor, which ends soon after it was let go of.
pub(super) fn wait(supervisor: &OwnedFd) {
    let interrupted = |result| matches!(result, Err(rustix::io::Errno::INTR));
    while interrupted(waitid(WaitId::PidFd(supervisor.as_fd()), WaitIdOptions::EXITED | ALL).map(drop)) {}
}

/// Waits for a supervisor without holding up the caller: by a task where there is a runtime, else by a thread.
pub(super) fn wait_aside(supervisor: AsyncFd<OwnedFd>) {
    if let Ok(runtime) = Handle::try_current() {
        runtime.spawn(async move {
            // Readable means ended.
            let _ = supervisor.readable().await.map(drop);
            wait(supervisor.get_ref());
        });
        return;
    }
    let supervisor = supervisor.into_inner();
    let builder = std::thread::Builder::new().name("codex-reap".to_owned()).stack_size(64 * 1024);
    // Without a thread the process table keeps an entry until this process ends.
    let _ = builder.spawn(move || wait(&supervisor));
}
