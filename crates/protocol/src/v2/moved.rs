//! A server that ends while others serve its threads.

use serde::{Deserialize, Serialize};

/// `server/moved`: this server ends, and its threads can be opened on these servers. A client that has subscribed with
/// `thread/subscribe` continues there behind the last number that it has seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerMovedNotification {
    /// The servers that share the threads. Empty if there is no other at the moment.
    pub servers: Vec<OtherServer>,
}

/// A server that shares the threads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OtherServer {
    /// Its name, for people.
    pub name: String,
    /// Its address as other servers use it. Clients on other networks may need another one.
    pub url: Option<String>,
}
