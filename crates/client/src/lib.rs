//! A client of the app-server, for programs that embed the agent: it starts or reaches a server, speaks JSON-RPC with
//! it, turns what any release tells into one kind of event, and folds events into threads, turns and items.
//!
//! ```text
//! supervisor ─▶ connection ─▶ transcript (lines → messages) ─▶ router (messages → events) ─▶ state
//!                   └▶ approvals: each question is answered exactly once, and denied if nobody can
//! ```
//!
//! Invariant: no engine. Every wait has a deadline and every queue a bound; what the server sends, however odd, costs a
//! note and never the connection.

pub mod answers;
pub mod approvals;
pub mod backoff;
pub mod connection;
pub mod diff;
mod error;
pub mod event;
mod feed;
pub mod handlers;
pub mod link;
pub mod markdown;
pub mod numbers;
pub mod registry;
pub mod replay;
pub mod router;
mod server;
pub mod state;
pub mod supervisor;
pub mod timeline;
pub mod transcript;
pub mod usage;

pub use codex_protocol as protocol;
pub use codex_transport::{Address, Token};
pub use connection::{Client, Options, connect};
pub use error::{CallError, ConnectError};
pub use event::Event;
pub use feed::Events;
pub use link::Link;
pub use server::dial;
pub use state::State;
pub use supervisor::{ServerState, Supervisor};
