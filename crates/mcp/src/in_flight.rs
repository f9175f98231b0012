//! An open request.

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::connection::{Connection, RequestError, ServerQuestion, Told};

/// An open request. Dropping it before its result cancels it.
pub(crate) struct InFlight {
    connection: Connection,
    id: u64,
    answered: oneshot::Receiver<Result<Value, RequestError>>,
    messages: mpsc::Receiver<Told>,
    is_over: bool,
}

/// The next step of a request.
#[derive(Debug)]
pub(crate) enum Step {
    Told(Told),
    Ended(Result<Value, RequestError>),
}

impl InFlight {
    pub(crate) fn new(
        connection: Connection,
        id: u64,
        answered: oneshot::Receiver<Result<Value, RequestError>>,
        messages: mpsc::Receiver<Told>,
    ) -> Self {
        Self { connection, id, answered, messages, is_over: false }
    }

    /// Waits for the result. Cancel safe; called only until it has returned.
    pub(crate) async fn answer(&mut self) -> Result<Value, RequestError> {
        let result = (&mut self.answered).await.unwrap_or_else(|_| Err(RequestError::Ended(String::new())));
        self.is_over = true;
        result
    }

    /// Waits for the next message about it, or for the result. Cancel safe; called only until it has returned the
    /// result.
    pub(crate) async fn next(&mut self) -> Step {
        let Self { answered, messages, is_over, .. } = self;
        tokio::select! {
            biased;
            Some(told) = messages.recv() => Step::Told(told),
            result = answered => {
                *is_over = true;
                Step::Ended(result.unwrap_or_else(|_| Err(RequestError::Ended(String::new()))))
            }
        }
    }

    /// Answers a question of the server that came with it.
    pub(crate) fn reply(&self, question: &ServerQuestion, result: Value) {
        self.connection.answer(question, result);
    }

    /// Declines a question of the server that came with it.
    pub(crate) fn decline(&self, question: &ServerQuestion) {
        self.connection.decline(question);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if !self.is_over {
            self.connection.cancel(self.id);
        }
    }
}
