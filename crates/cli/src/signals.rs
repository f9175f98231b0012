//! Signals that ask the program to stop, from Ctrl-C or from a supervisor.

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that ask the program to stop.
pub(crate) struct Stop {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

/// Handles the signals that ask the program to stop, so that it can shut down cleanly.
pub(crate) fn stop() -> anyhow::Result<Stop> {
    let listen = |kind| signal(kind).context("could not listen for signals");
    // Exceeding the file size limit becomes a write error, like a full disk, and does not end the program. The handler
    // stays, and child processes do not inherit it.
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
        self.is_interrupt().await;
    }

    /// Waits for the first of them. True if the user pressed Ctrl-C, and false if the program has to end for another
    /// reason, such as a shutdown of the system.
    pub(crate) async fn is_interrupt(&mut self) -> bool {
        tokio::select! {
            _ = self.interrupt.recv() => true,
            _ = self.terminate.recv() => false,
            _ = self.hang_up.recv() => false,
        }
    }
}
