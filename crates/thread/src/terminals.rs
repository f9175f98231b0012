//! The terminals of a thread that outlive the calls that started them.

use codex_log::Item;
use tokio::sync::oneshot;

use crate::handle::Thread;
use crate::request::{Closed, ThreadRequest};

/// A request about terminals.
#[derive(Debug)]
pub enum TerminalsRequest {
    List { reply: oneshot::Sender<Vec<Item>> },
    End { process: u64, reply: oneshot::Sender<bool> },
    EndAll { reply: oneshot::Sender<()> },
}

impl Thread {
    /// The commands whose terminals are open, oldest first.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn terminals(&self) -> Result<Vec<Item>, Closed> {
        self.ask(|reply| ThreadRequest::Terminals(TerminalsRequest::List { reply })).await
    }

    /// Ends the command of a terminal; false if there is no such terminal.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn end_terminal(&self, process: u64) -> Result<bool, Closed> {
        self.ask(|reply| ThreadRequest::Terminals(TerminalsRequest::End { process, reply })).await
    }

    /// Ends the commands of all terminals.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn end_terminals(&self) -> Result<(), Closed> {
        self.ask(|reply| ThreadRequest::Terminals(TerminalsRequest::EndAll { reply })).await
    }
}
