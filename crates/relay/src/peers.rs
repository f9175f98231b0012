//! The other servers, as the relay sees them.

use std::fmt::Debug;
use std::pin::Pin;

use codex_wire::ids::ThreadId;
use tokio::io::{AsyncRead, AsyncWrite};

/// A boxed future.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A connection to another server, as lines in both directions.
pub type PeerStream = (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);

/// Another server that is alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its id, which it changes whenever others may have taken over its threads.
    pub id: String,
    /// Its name, for people.
    pub name: String,
    /// The address at which other servers reach it.
    pub address: String,
}

/// Knows the servers that share the threads.
pub trait Peers: Debug + Send + Sync {
    /// The id of this server, while it has one.
    fn own_id(&self) -> Option<String>;

    /// Whether a thread is loaded in this process.
    fn is_here(&self, thread: ThreadId) -> bool;

    /// The other living server that has a thread open and can be reached. `None` if this server can serve the thread
    /// itself, or explain why nobody can.
    fn owner(&self, thread: ThreadId) -> Pending<'_, Option<Peer>>;

    /// Waits until the living servers are known anew, and returns their ids.
    fn living(&self) -> Pending<'_, Vec<String>>;

    /// Connects to another server. The error says why that failed, without any secret.
    fn dial<'a>(&'a self, peer: &'a Peer) -> Pending<'a, Result<PeerStream, String>>;
}
