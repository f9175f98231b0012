//! Threads in PostgreSQL, for servers that share them: the store [`PostgresStore`].
//!
//! A thread is its lines: rows that are only ever appended, by the one server that owns the thread. Every append checks
//! in its own statement that this is still so.
//!
//! Invariants: transactions and conditions on rows carry correctness; locks only save work. A server stops writing
//! before another one may take over its threads. No password is in an error or in debug output.

mod address;
mod append;
mod changes;
mod command;
mod connection;
mod database;
mod documents;
mod errors;
mod folding;
mod home;
mod inspect;
mod lease;
mod listing;
mod private_cluster;
mod prompts;
mod reader;
mod retention;
mod schema;
mod search;
mod servers;
mod store;
mod summary_row;
mod threads;
mod tls;
mod transfer;
mod words;
mod writer;

pub use address::StoreOptions;
pub use changes::{ChangeKind, StoreChange};
pub use command::{Report, StoreCommand};
pub use database::{Connect, Connected};
pub use errors::PostgresError;
pub use home::Copied;
pub use inspect::{Checked, ServerStatus, StoreStatus};
pub use lease::LivingServer;
pub use private_cluster::{ClusterError, PrivateCluster};
pub use servers::NameUse;
pub use store::PostgresStore;
