//! The agent: sessions, turns, tools, and the log that everything else is a projection of.
//!
//! Invariant: no JSON-RPC, no terminal. One task owns one thread's state; others send it messages.
#![cfg_attr(test, allow(clippy::needless_raw_string_hashes, reason = "expect-test writes its snapshots that way"))]

mod budget;
mod children;
mod compaction;
mod context;
mod credentials;
mod drafting;
mod environment;
mod foreign;
mod goal;
mod images;
mod journal;
mod lent_writer;
mod lineage;
mod local_host;
mod notify;
mod open_error;
mod prepared_thread;
pub mod preview;
mod provider;
mod request_queue;
mod resume;
mod review;
mod sampling;
mod session;
mod setup;
mod shared_workspace;
mod skills;
mod tree_requests;
mod turn;
mod work;

pub use credentials::CredentialsSource;
pub use local_host::{HostOptions, LocalHost};
pub use provider::{ConnectError, connect};
pub use setup::Setup;
pub use tree_requests::TreeRequests;
