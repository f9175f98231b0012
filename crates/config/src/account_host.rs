//! The interface between a server and the login. The server has no network code, so it gets the login as a trait.

use std::fmt;
use std::sync::Arc;

use codex_wire::tokens::RateLimitSnapshot;

use crate::{Auth, Config, ExternalTokens, LoginConfig, Pending, Secret, TokenRefresher};

/// A way to log in with `ChatGPT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginKind {
    /// In a browser of this machine.
    Browser,
    /// With a code that the user enters on another device.
    DeviceCode,
}

/// A login that waits for the user.
pub struct BegunLogin {
    /// Its id, to cancel it.
    pub id: String,
    /// The URL that the user opens.
    pub url: String,
    /// The code that the user enters there.
    pub user_code: Option<String>,
    /// Resolves when the login is stored or has failed.
    pub end: Pending<'static, Result<(), AccountError>>,
}

impl fmt::Debug for BegunLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BegunLogin").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The reason why an account could not be changed or queried. It contains no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AccountError {
    /// The error, with a hint on a separate line.
    pub message: String,
    /// Whether this machine is at fault, and not the request.
    pub is_internal: bool,
}

/// The owner of the login.
pub trait AccountHost: fmt::Debug + Send + Sync {
    /// Starts a login. Another one that still waits is cancelled first.
    fn begin<'a>(
        &'a self,
        kind: LoginKind,
        config: &'a Config,
        originator: &'a str,
    ) -> Pending<'a, Result<BegunLogin, AccountError>>;

    /// Cancels a login; false if none with that id waits.
    fn cancel(&self, id: &str) -> bool;

    /// Stores a key in place of any other login.
    fn store_key(&self, key: Secret) -> Pending<'_, Result<(), AccountError>>;

    /// Uses the tokens of a client from now on.
    fn adopt(&self, tokens: ExternalTokens, refresher: Arc<dyn TokenRefresher>);

    /// Removes the login and revokes it, if its issuer can be reached.
    fn log_out(&self) -> Pending<'_, Result<(), AccountError>>;

    /// The current login.
    fn auth(&self) -> Pending<'_, Result<Arc<Auth>, AccountError>>;

    /// Renews a login with `ChatGPT` now.
    fn renew(&self) -> Pending<'_, Result<(), AccountError>>;

    /// Queries the rate limits of the account.
    fn limits(&self, login: LoginConfig) -> Pending<'_, Result<RateLimitSnapshot, AccountError>>;
}
