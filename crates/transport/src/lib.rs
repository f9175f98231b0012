//! Sockets that carry JSON messages: Unix sockets, WebSocket, TCP and gRPC, to listen on and to connect to; and HTTP, to
//! listen on.
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

mod address;
mod descriptors;
mod dial;
mod grpc;
mod http_service;
mod limits;
mod listener;
mod peer;
mod pipe;
mod tcp;
mod token;
mod unix;
mod ws;

use tokio::io::{AsyncRead, AsyncWrite};

pub use address::{Address, AddressError};
pub use descriptors::Shortage;
pub use dial::{DialError, dial};
pub use http_service::HttpService;
pub use limits::{Limits, Slots};
pub use listener::{BindError, Listener, Options, Service};
pub use token::{Token, TokenError};
pub use unix::{SocketError, is_welcome, owner};

/// The messages from a client, in lines.
pub type Reader = Box<dyn AsyncRead + Send + Unpin>;

/// The messages to a client, in lines.
pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;
