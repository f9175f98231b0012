//! A client of MCP servers: starts them, shares them between threads, and offers their tools.
//!
//! The protocol is implemented here, on plain JSON: a server may send anything, and an invalid tool, an unknown part of a
//! result or a line that is not a message must not affect anything else.
//!
//! Invariants: no thread waits for a server longer than its time; memory is bounded whatever a server sends; servers
//! end with this process. The engine does not know this crate: it sees a [`ThreadServers`] of `tools`.
//!
//! [`ThreadServers`]: codex_tools::servers::ThreadServers

mod approval;
mod approvals;
mod authorization;
mod call;
mod connection;
mod event_stream;
mod form_defaults;
mod http;
mod in_flight;
mod logins;
mod names;
mod namespace;
mod pool;
mod private_file;
mod prompts;
mod remembered;
mod resource_tools;
mod result;
mod rpc;
mod server;
mod session;
mod stdio;
mod thread_servers;
mod tool;
mod whole_results;

pub use pool::McpServers;
