//! Sockets that carry JSON messages: Unix sockets, WebSocket, TCP and gRPC, to listen on and to connect to.
//!
//! Whatever the socket, both sides see a stream of bytes with one message a line:
//!
//! ```text
//! socket ─▶ who is it? ─▶ slot ─▶ frames to lines ─▶ service(reader, writer) ─▶ lines to frames ─▶ socket
//! ```
//!
//! Invariant: nothing here knows what the messages say. Nobody reaches the service who has not shown that they may, every
//! wait for a stranger has a deadline, and what a stranger can make this program keep is a few kilobytes. However many
//! strangers come, they take no room from clients, and clients over IP addresses take none from those over Unix sockets.

mod address;
mod descriptors;
mod dial;
mod grpc;
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
pub use limits::{Limits, Slots};
pub use listener::{BindError, Listener, Options, Service};
pub use token::{Token, TokenError};
pub use unix::{SocketError, is_welcome, owner};

/// What a client says, in lines.
pub type Reader = Box<dyn AsyncRead + Send + Unpin>;

/// What a client is told, in lines.
pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;
