//! Logins with an issuer for tests.

#![expect(clippy::unwrap_used, reason = "the lint takes only the tests themselves for tests, not what they call")]

mod browser;
mod canary;
mod device;
mod external;
mod network;
mod oauth;
mod real_issuer;
mod renewal;
mod store;
#[cfg(feature = "keyring")]
mod system_keyring;
mod world;
