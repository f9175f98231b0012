//! The rules and approvals of a thread.

use codex_wire::permissions::{CommandForecast, CommandRule, Permissions};
use tokio::sync::oneshot;

use crate::handle::Thread;
use crate::request::{Closed, ThreadRequest};

/// A request about rules and approvals.
#[derive(Debug)]
pub enum PermissionsRequest {
    List { reply: oneshot::Sender<Permissions> },
    Forecast { command: String, reply: oneshot::Sender<Result<CommandForecast, String>> },
    Revoke { grant: String, reply: oneshot::Sender<bool> },
    RemoveRule { rule: Box<CommandRule>, reply: oneshot::Sender<Result<(), String>> },
}

impl Thread {
    /// The rules and approvals that commands are judged by.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn permissions(&self) -> Result<Permissions, Closed> {
        self.ask(|reply| ThreadRequest::Permissions(PermissionsRequest::List { reply })).await
    }

    /// The outcome of a command line of the model if it were to run now; an error if that depends on more than the line.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn forecast(&self, command: String) -> Result<Result<CommandForecast, String>, Closed> {
        self.ask(|reply| ThreadRequest::Permissions(PermissionsRequest::Forecast { command, reply })).await
    }

    /// Takes an approval back; false if there is none with this id.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn revoke(&self, grant: String) -> Result<bool, Closed> {
        self.ask(|reply| ThreadRequest::Permissions(PermissionsRequest::Revoke { grant, reply })).await
    }

    /// Removes a rule of the user from its file; the reason if that fails.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn remove_rule(&self, rule: CommandRule) -> Result<Result<(), String>, Closed> {
        let rule = Box::new(rule);
        self.ask(|reply| ThreadRequest::Permissions(PermissionsRequest::RemoveRule { rule, reply })).await
    }
}
