//! Logins to MCP servers over HTTP, with OAuth 2.1.
//!
//! [`discovery`] finds the authorization server of a server, [`client`] chooses who this program is there, and
//! [`token_endpoint`] asks for tokens. [`PendingServerLogin`] waits for the user, and [`ServerLogin`] is the one owner
//! of the tokens of a server in this process.
//!
//! Invariants: a token goes to the server it was issued for and to its authorization server, over TLS or inside of this
//! machine. A server elsewhere cannot name an address of this machine. New tokens are stored before they are used.
//! Nothing waits without a deadline, and no secret is in an error or in debug output.

mod addresses;
mod challenge;
mod client;
mod credentials;
mod credentials_store;
mod discovery;
mod error;
mod metadata;
mod pending_login;
mod server_login;
mod token_endpoint;

pub use challenge::Challenge;
pub use credentials_store::ServerCredentials;
pub use error::OauthError;
pub use pending_login::{LoginRequest, PendingServerLogin};
pub use server_login::{OauthServer, ServerLogin, ServerLogins};
