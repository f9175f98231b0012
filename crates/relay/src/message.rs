//! The parts of a client's line that the relay has to know: whether it is about a thread, and about which.

use std::path::Path;

use codex_protocol::methods::{ClientRequest, METHODS, Scope, ThreadName};
use codex_protocol::rpc::Incoming;
use codex_wire::ids::{RequestId, ThreadId};
use serde_json::{Map, Value};

/// The methods that make a new thread from a stored one. Every server can do that by itself.
const COPIES: &[&str] = &["thread/fork", "forkConversation"];

/// The method whose response names a listener of a thread.
const ADDS_LISTENER: &str = "addConversationListener";

/// A line of a client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Message {
    /// The handshake, with its parameters.
    Initialize { id: RequestId, params: Map<String, Value> },
    /// A request about a thread.
    AboutThread { id: RequestId, thread: ThreadReference, adds_listener: bool },
    /// A response to a request of a server.
    Response { id: i64 },
    /// Anything else, which is for the server of this process.
    Other,
}

/// The thread of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ThreadReference {
    Id(ThreadId),
    /// By a listener that the client has added before.
    Listener(String),
}

impl Message {
    /// Reads a line. One that is not a valid message is for the server of this process, which reports it.
    pub(crate) fn read(line: &[u8]) -> Self {
        match Incoming::read(line) {
            Ok(Incoming::Request { id, method, params }) if method == "initialize" => {
                let params = params.and_then(|params| serde_json::from_str(params.get()).ok());
                params.map_or(Self::Other, |params| Self::Initialize { id, params })
            }
            Ok(Incoming::Request { id, method, params }) => {
                let is_named =
                    |row: &&codex_protocol::methods::Row| row.name == method || row.aliases.contains(&&*method);
                let row = METHODS.iter().find(is_named).filter(|row| row.scope == Scope::Thread);
                let Some(row) = row.filter(|row| !COPIES.contains(&row.name)) else { return Self::Other };
                let Ok(request) = ClientRequest::read(&method, params) else { return Self::Other };
                let adds_listener = row.name == ADDS_LISTENER;
                let thread = request.thread().and_then(reference);
                thread.map_or(Self::Other, |thread| Self::AboutThread { id, thread, adds_listener })
            }
            Ok(Incoming::Response { id, .. }) => id.number().map_or(Self::Other, |id| Self::Response { id }),
            Ok(Incoming::Notification { .. }) | Err(_) => Self::Other,
        }
    }
}

fn reference(name: ThreadName<'_>) -> Option<ThreadReference> {
    match name {
        ThreadName::Text(text) => text.parse().ok().map(ThreadReference::Id),
        ThreadName::Id(id) => Some(ThreadReference::Id(id)),
        ThreadName::Path(path) | ThreadName::PathInHome(path) => stored_at(path).map(ThreadReference::Id),
        ThreadName::Listener(name) => Some(ThreadReference::Listener(name.to_owned())),
        ThreadName::New => None,
    }
}

/// The thread at a place of a store that has no files.
fn stored_at(path: &Path) -> Option<ThreadId> {
    path.to_str()?.strip_prefix("store:")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_about_existing_threads_are_candidates() {
        let thread = ThreadId::fresh();
        let read = |text: String| Message::read(text.as_bytes());
        let about = |adds_listener| Message::AboutThread {
            id: RequestId::Integer(1),
            thread: ThreadReference::Id(thread),
            adds_listener,
        };
        for (method, params) in [
            ("turn/interrupt", format!(r#"{{"threadId":"{thread}","turnId":"x"}}"#)),
            ("thread/resume", format!(r#"{{"threadId":"","path":"store:{thread}"}}"#)),
            ("interruptConversation", format!(r#"{{"conversationId":"{thread}"}}"#)),
            ("thread/compact", format!(r#"{{"threadId":"{thread}"}}"#)),
        ] {
            assert_eq!(read(format!(r#"{{"id":1,"method":"{method}","params":{params}}}"#)), about(false), "{method}");
        }
        let listen =
            format!(r#"{{"id":1,"method":"addConversationListener","params":{{"conversationId":"{thread}"}}}}"#);
        assert_eq!(read(listen), about(true));
        for other in [
            format!(r#"{{"id":1,"method":"thread/fork","params":{{"threadId":"{thread}"}}}}"#),
            format!(r#"{{"id":1,"method":"thread/resume","params":{{"threadId":"{thread}","path":"/a/file.jsonl"}}}}"#),
            r#"{"id":1,"method":"thread/list","params":{}}"#.to_owned(),
            r#"{"id":1,"method":"turn/interrupt","params":{"threadId":"what"}}"#.to_owned(),
            r#"{"id":1,"method":"turn/interrupt"}"#.to_owned(),
            r#"{"method":"initialized"}"#.to_owned(),
            r#"{"id":"text","result":{}}"#.to_owned(),
            "[".repeat(500),
            "\u{0}".to_owned(),
        ] {
            assert_eq!(read(other.clone()), Message::Other, "{other}");
        }
        assert_eq!(read(r#"{"id":7,"result":{"decision":"approved"}}"#.to_owned()), Message::Response { id: 7 });
        assert_eq!(read(r#"{"id":"7","result":{}}"#.to_owned()), Message::Response { id: 7 });
        assert_eq!(read(r#"{"id":7,"error":{"code":1,"message":"no"}}"#.to_owned()), Message::Response { id: 7 });
    }
}
