//! Requests about threads that another server has open, passed on to that server.
//!
//! A [`Relay`] is between a client and the server that it has connected to. Lines about threads of this server, and
//! about nothing in particular, pass through unchanged. Lines about a thread that another living server has open go to
//! that server over a link: a connection that presents itself as the same client. Its lines come back as they are, so
//! the text of a running turn never passes the database.
//!
//! ```text
//! client ─▶ router ─┬─▶ the server of this process
//!                   └─▶ link to the owner (one for each client and owner) ─▶ its server
//! ```
//!
//! Invariants: the router does no I/O. A line that came over a link is never passed on again, so there are no loops.
//! Every request is answered, also when its link breaks. Memory is bounded in all directions.

#![expect(clippy::similar_names, reason = "links carry lines")]

mod connection;
mod link;
mod message;
mod peers;
mod router;

pub use connection::Relay;
pub use peers::{Peer, PeerStream, Peers, Pending};
pub use router::ClientView;
