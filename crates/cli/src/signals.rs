//! Requests to end, by Ctrl-C or from whoever runs the program.

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that ask the program to end.
pub(crate) struct Stop {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

/// Takes over the signals that ask the program to end, so that it can leave everything in order.
pub(crate) fn stop() -> anyhow::Result<Stop> {
    let listen = |kind| signal(kind).context("could not listen for signals");
    // A file that may grow no more is an error of the write, as a full disk is, and not the end of the program. What is
    // taken over stays so, and programs that are started do not inherit it.
    drop(listen(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?);
    Ok(Stop {
        interrupt: listen(SignalKind::interrupt())?,
        terminate: listen(SignalKind::terminate())?,
        hang_up: listen(SignalKind::hangup())?,
    })
}

impl Stop {
    /// Waits for the first of them.
    pub(crate) async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }
}
