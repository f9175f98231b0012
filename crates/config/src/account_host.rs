//! The interface between a server and the login. The server has no network code, so it gets the login as a trait.

use std::fmt;
use std::sync::Arc;

use codex_wire::tokens::RateLimitSnapshot;

use crate::{Auth, Config, ExternalTokens, LoginConfig, Pending, Secret, TokenRefresher};

/// How a user logs in with `ChatGPT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginKind {
    /// In a browser of this machine.
    Browser,
    /// With a code that is typed in elsewhere.
    DeviceCode,
}

/// A login that waits for the user.
pub struct BegunLogin {
    /// Its name, to cancel it.
    pub id: String,
    /// Where the user goes.
    pub url: String,
    /// The code that the user enters there.
    pub user_code: Option<String>,
    /// Comes when it is stored, or has failed.
    pub end: Pending<'static, Result<(), AccountError>>,
}

impl fmt::Debug for BegunLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BegunLogin").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Why an account could not be changed or asked. It holds no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AccountError {
    /// The error, with a hint on a separate line.
    pub message: String,
    /// Whether the fault is of this machine, and not of what was asked.
    pub is_internal: bool,
}

/// The owner of the login.
pub trait AccountHost: fmt::Debug + Send + Sync {
    /// Begins a login. Any other that still waits is given up first.
    fn begin<'a>(
        &'a self,
        kind: LoginKind,
        config: &'a Config,
        originator: &'a str,
    ) -> Pending<'a, Result<BegunLogin, AccountError>>;

    /// Gives a login up; false if none of that name waits.
    fn cancel(&self, id: &str) -> bool;

    /// Stores a key in place of any other login.
    fn store_key(&self, key: Secret) -> Pending<'_, Result<(), AccountError>>;

    /// Uses the tokens of a client from now on.
    fn adopt(&self, tokens: ExternalTokens, refresher: Arc<dyn TokenRefresher>);

    /// Forgets the login and revokes it, as far as its issuer can be reached.
    fn log_out(&self) -> Pending<'_, Result<(), AccountError>>;

    /// Who is logged in.
    fn auth(&self) -> Pending<'_, Result<Arc<Auth>, AccountError>>;

    /// Renews a login with `ChatGPT` now.
    fn renew(&self) -> Pending<'_, Result<(), AccountError>>;

    /// Asks what the account still allows.
    fn limits(&self, login: LoginConfig) -> Pending<'_, Result<RateLimitSnapshot, AccountError>>;
}
