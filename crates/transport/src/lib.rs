//! Sockets that carry JSON messages: Unix sockets, WebSocket, TCP and gRPC, to listen on and to connect to; HTTP, to
//! listen on; and the standard streams of a server ([`stdio`]).
//!
//! Over any socket but HTTP, both sides see a stream of bytes with one message per line:
//!
//! ```text
//! socket ─▶ authenticate ─▶ slot ─▶ frames to lines ─▶ service(reader, writer) ─▶ lines to frames ─▶ socket
//! ```
//!
//! Invariant: nothing here knows the contents of messages. No unauthenticated peer reaches the service, every wait for
//! one has a deadline, and each can make this program keep only a few kilobytes. However many of them connect, they
//! take no room from clients, and clients over IP addresses take none from those over Unix sockets.
//!
//! The feature `listen` has the server's side, and `dial` the client's, which needs no HTTP server.

mod address;
#[cfg(feature = "listen")]
mod client_stream;
#[cfg(feature = "listen")]
mod descriptors;
#[cfg(feature = "dial")]
mod dial;
#[cfg(any(feature = "dial", feature = "listen"))]
mod grpc;
#[cfg(feature = "listen")]
mod http_service;
#[cfg(feature = "listen")]
mod limits;
#[cfg(feature = "listen")]
mod listener;
#[cfg(feature = "listen")]
mod peer;
#[cfg(any(feature = "dial", feature = "listen"))]
mod pipe;
#[cfg(any(feature = "dial", feature = "listen"))]
mod proof;
#[cfg(feature = "listen")]
pub mod stdio;
#[cfg(feature = "listen")]
mod tcp;
mod token;
mod unix;
#[cfg(feature = "listen")]
mod unix_socket;
#[cfg(feature = "listen")]
mod ws;

use tokio::io::{AsyncRead, AsyncWrite};

pub use address::{Address, AddressError};
#[cfg(feature = "listen")]
pub use descriptors::Shortage;
#[cfg(feature = "dial")]
pub use dial::{DialError, dial};
#[cfg(feature = "listen")]
pub use http_service::HttpService;
#[cfg(feature = "listen")]
pub use limits::{Limits, Slots};
#[cfg(feature = "listen")]
pub use listener::{BindError, Listener, Options, Service};
pub use token::{Token, TokenError};
#[cfg(feature = "dial")]
pub use unix::listening;
pub use unix::{is_welcome, owner};
#[cfg(feature = "listen")]
pub use unix_socket::SocketError;

/// The messages from a client, in lines.
pub type Reader = Box<dyn AsyncRead + Send + Unpin>;

/// The messages to a client, in lines.
pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;
