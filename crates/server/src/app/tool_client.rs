//! Tools that a client supplies: a client as the one that runs them, and their calls as requests to it.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use codex_log::client_tools::{Calling, ClientToolCall, ClientToolResult, ToolClient};
use codex_log::{Body, ItemId};
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::notification::{ServerNotification, ServerRequestResolved};
use codex_protocol::v2::request::ServerRequest;
use codex_thread::Thread;
use codex_wire::dynamic_tool::{DynamicToolCallParams, DynamicToolCallResponse, DynamicToolSpec};
use codex_wire::ids::RequestId;
use tokio::sync::oneshot;

use codex_dialects::event_filter::Notifications;

use super::connection::{ClientAnswer, Connection};
use super::lane::LaneRequest;
use super::subscriber::ThreadSubscriber;

/// JSON-RPC: parameters that are well-formed but cannot be used.
const INVALID_PARAMS: i64 = -32602;
const GONE: &str = "the client that supplies it has left";

/// The open calls of a subscriber: the numbers of the requests, by item.
pub(crate) type ToolCalls = HashMap<ItemId, i64>;

/// A call for the lane of its thread.
pub(crate) struct ToolRequest {
    call: ClientToolCall,
    reply: oneshot::Sender<ClientAnswer>,
}

/// A client that runs tools, as long as it is connected.
#[derive(Debug)]
pub(crate) struct ConnectedTools(Weak<Connection>);

impl ConnectedTools {
    pub(crate) fn of(connection: &Arc<Connection>) -> Arc<dyn ToolClient> {
        Arc::new(Self(Arc::downgrade(connection)))
    }
}

impl ToolClient for ConnectedTools {
    fn is_present(&self) -> bool {
        self.0.upgrade().is_some_and(|connection| !connection.has_left())
    }

    fn call(&self, call: ClientToolCall) -> Calling {
        let lane = self.0.upgrade().and_then(|connection| connection.lane(call.thread));
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let lane = lane.ok_or(GONE)?;
            lane.send(LaneRequest::CallTool(Box::new(ToolRequest { call, reply }))).await.map_err(|_| GONE)?;
            // The lane ends with its connection.
            drop(lane);
            read(answer.await.map_err(|_| GONE)?)
        })
    }
}

/// Reads the answer of a client.
fn read(answer: ClientAnswer) -> Result<ClientToolResult, String> {
    let answer = answer.map_err(|error| format!("the client refused the call: {}", error.message))?;
    let read = serde_json::from_str::<DynamicToolCallResponse>(&answer);
    let DynamicToolCallResponse { content_items, success } =
        read.map_err(|error| format!("the answer of the client is invalid: {error}"))?;
    Ok(ClientToolResult { content: content_items, success })
}

/// Checks the tools of a new thread.
pub(crate) fn check(specs: &[DynamicToolSpec]) -> Result<(), ErrorObject> {
    codex_tools::dynamic::check(specs).map_err(|error| {
        let data = serde_json::json!({"path": error.path});
        ErrorObject { code: INVALID_PARAMS, message: format!("Invalid params: {error}"), data: Some(data) }
    })
}

/// Lets a client that subscribes to a loaded thread run its tools, if it is the program that has registered them and no
/// other connection of it does.
pub(crate) async fn offer(connection: &Arc<Connection>, thread: &Thread) {
    let meta = &thread.started().meta;
    let is_owner =
        connection.client().is_some_and(|client| connection.host.originator(&client.name) == meta.originator);
    if is_owner && !meta.lineage.dynamic_tools.is_empty() {
        // A thread that has ended calls no tools.
        let _: Result<(), _> = thread.offer_tool_client(ConnectedTools::of(connection)).await;
    }
}

impl ThreadSubscriber {
    /// Sends a call to the client, after the events that led to it.
    pub(crate) fn call_tool(&mut self, request: ToolRequest) {
        self.take_waiting();
        if self.filter.notifications != Notifications::All {
            return;
        }
        let ToolRequest { call: ClientToolCall { thread, turn, id, namespace, tool, arguments }, reply } = request;
        let params = DynamicToolCallParams {
            thread_id: thread.to_string(),
            turn_id: turn.as_str().to_owned(),
            call_id: id.as_str().to_owned(),
            namespace,
            tool,
            arguments,
        };
        let request = ServerRequest::DynamicToolCall(params);
        let (number, line) = self.connection.outbox.request(request.method(), &request);
        self.connection.expect_answer(number, reply);
        self.tool_calls.insert(id, number);
        self.outgoing.add_lines(&line);
        self.outgoing.number_here();
    }

    /// Withdraws the requests about calls that have ended.
    pub(crate) fn end_tool_calls(&mut self, body: &Body, at_ms: i64) {
        let ended: Vec<i64> = match body {
            Body::ItemCompleted(item) => self.tool_calls.remove(item.id()).into_iter().collect(),
            Body::TurnEnded(_) => self.tool_calls.drain().map(|(_, number)| number).collect(),
            _ => return,
        };
        for number in ended {
            self.connection.expect_no_answer(number);
            let (thread_id, request_id) = (self.thread.id().to_string(), RequestId::Integer(number));
            let resolved = ServerRequestResolved { thread_id, request_id };
            self.notify(&ServerNotification::ServerRequestResolved(resolved), at_ms);
        }
    }
}
