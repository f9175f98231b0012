//! The outbox of a connection: the messages of the app-server, as lines of the bounded queue of `codex_lines`.

use codex_lines::{Room, Writer, encoded};
use codex_protocol::methods::Method;
use codex_protocol::rpc::{ErrorObject, Request, Response};
use codex_wire::ids::RequestId;
use serde::Serialize;
use tokio::io::AsyncWrite;

pub(crate) use codex_lines::add_line;

/// The sending side of a connection.
#[derive(Debug)]
pub(crate) struct Outbox(codex_lines::Outbox);

impl Outbox {
    pub(crate) fn new<W: AsyncWrite + Unpin>(output: W) -> (Self, Writer<W>) {
        let (outbox, writer) = codex_lines::Outbox::new(output);
        (Self(outbox), writer)
    }

    /// Answers a request.
    pub(crate) async fn answer<M: Method>(&self, id: &RequestId, result: Result<M::Response, ErrorObject>) {
        let line = match result {
            Ok(result) => encoded(&Response::Result { id, result }),
            Err(error) => refusal(id, error),
        };
        self.0.send_answer(line).await;
    }

    /// Answers a request with a result in a form of its own.
    pub(crate) async fn answer_value(&self, id: &RequestId, result: serde_json::Value) {
        self.0.send_answer(encoded(&Response::Result { id, result })).await;
    }

    /// Answers a request with an error.
    pub(crate) async fn refuse(&self, id: &RequestId, error: ErrorObject) {
        self.0.send_answer(refusal(id, error)).await;
    }

    /// Answers a request with an error, whether there is room or not.
    pub(crate) fn refuse_at_once(&self, id: &RequestId, error: ErrorObject) {
        self.0.send_answer_at_once(refusal(id, error));
    }

    /// A server request as a line, and its id.
    pub(crate) fn request(&self, method: &str, params: impl Serialize) -> (i64, Vec<u8>) {
        let id = self.0.next_request_id();
        (id, encoded(&Request { method, id, params }))
    }

    /// Numbers the next server requests from another number on.
    pub(crate) fn number_requests_from(&self, first: i64) {
        self.0.number_requests_from(first);
    }

    /// Waits for room for a number of bytes of notifications.
    pub(crate) async fn room(&self, bytes: usize) -> Room {
        self.0.room(bytes).await
    }

    /// Sends notifications for which there is room.
    pub(crate) fn send_notification(&self, bytes: Vec<u8>, room: Room) {
        self.0.send_notification(bytes, room);
    }
}

fn refusal(id: &RequestId, error: ErrorObject) -> Vec<u8> {
    let response: Response<'_, ()> = Response::Error { error, id };
    encoded(&response)
}
