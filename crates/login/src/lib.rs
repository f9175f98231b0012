//! Logins: with a browser, with a code on another device, with tokens of a client, and keys that a program prints; the
//! renewal of a login, and the credentials of a provider's requests.
//!
//! The flows ([`BrowserFlow`], [`DevicePolls`]) and the schedule of renewals ([`Renewal`]) are machines without I/O.
//! [`Accounts`] runs them: there is one in a process, so that all threads share one renewal.
//!
//! Invariants: tokens of `ChatGPT` go only to `chatgpt_base_url`, and a token is renewed by its issuer. New tokens are
//! stored before they are used, because the old ones are invalid by then. No token, key, code or verifier is in an error
//! or in debug output. Nothing waits without a deadline.

mod accounts;
mod browser;
mod callback;
mod credentials;
mod device;
mod error;
mod external;
mod flow;
mod http;
mod issuer;
mod key_program;
mod keyring_access;
mod lock;
mod oauth;
mod pending_logins;
mod pkce;
mod renewal;
mod store;
#[cfg(feature = "keyring")]
mod system_keyring;
mod tokens;
mod usage;

pub use accounts::Accounts;
pub use browser::{BrowserFlow, CallbackOutcome, CallbackPage};
pub use device::{DevicePolls, Next, PollResponse};
pub use error::LoginError;
pub use external::{ExternalTokens, TokenRefresher};
pub use flow::{BrowserLogin, DeviceLogin, LoginOptions, PORTS, check_store};
pub use http::{Answer, Body, HttpError, Network, Request, Transport};
pub use issuer::Issuer;
pub use keyring_access::{Keyring, KeyringError};
pub use oauth::{
    Challenge, LoginRequest, OauthError, OauthServer, PendingServerLogin, ServerCredentials, ServerLogin, ServerLogins,
};
pub use renewal::Renewal;
pub use store::LoginStore;
