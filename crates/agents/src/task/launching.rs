//! The start of an agent's thread.

use codex_tools::agents::ChildStarted;
use codex_wire::agent::AgentId;
use codex_wire::ids::ThreadId;
use tokio::sync::mpsc;

use super::Message;

/// A thread that is being started. The tree is told the result in any case, even if the start panics.
pub(super) struct Launching {
    pub(super) agent: AgentId,
    pub(super) thread: ThreadId,
    pub(super) sender: mpsc::UnboundedSender<Message>,
    pub(super) result: Option<Result<ChildStarted, String>>,
}

impl Launching {
    pub(super) fn tell(mut self, result: Result<ChildStarted, String>) {
        self.result = Some(result);
    }
}

impl Drop for Launching {
    fn drop(&mut self) {
        let result = self.result.take().unwrap_or_else(|| Err("its start was cut off by a fault".to_owned()));
        let _: Result<(), _> = self.sender.send(Message::Launched { agent: self.agent, thread: self.thread, result });
    }
}
