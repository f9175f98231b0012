//! The authorization of requests.

use std::fmt;
use std::sync::Arc;

use futures_util::future::{BoxFuture, ready};

use crate::{ModelError, Secret};

/// A source of authorizations.
///
/// It is asked for every request, so a key or token that changes while a turn runs is used from the next request on.
pub trait Credentials: Send + Sync {
    /// The authorization of the next request.
    fn authorize(&self) -> BoxFuture<'_, Result<Authorization, ModelError>>;

    /// Called when the provider has rejected an authorization. Returns whether there is another one now, so that the request
    /// is worth sending again.
    fn refused<'a>(&'a self, used: &'a Authorization) -> BoxFuture<'a, bool>;
}

/// The authorization of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Authorization {
    /// Sent as a bearer token, or in the provider's header for keys.
    pub bearer: Option<Secret>,
    /// Sent as the header `chatgpt-account-id`: the workspace of a token of `ChatGPT`.
    pub account: Option<String>,
    /// The only address that this may be sent to, if it is not the provider's own.
    pub base_url: Option<String>,
}

impl Authorization {
    /// A bearer token for the provider's own address.
    #[must_use]
    pub fn bearer(token: impl Into<Secret>) -> Self {
        Self { bearer: Some(token.into()), ..Self::default() }
    }
}

/// A constant key, or none.
#[derive(Debug, Clone, Default)]
pub struct StaticKey(Option<Secret>);

impl StaticKey {
    /// Creates credentials with this key.
    #[must_use]
    pub fn new(key: impl Into<Secret>) -> Self {
        Self(Some(key.into()))
    }
}

impl Credentials for StaticKey {
    fn authorize(&self) -> BoxFuture<'_, Result<Authorization, ModelError>> {
        Box::pin(ready(Ok(Authorization { bearer: self.0.clone(), ..Authorization::default() })))
    }

    fn refused<'a>(&'a self, _: &'a Authorization) -> BoxFuture<'a, bool> {
        Box::pin(ready(false))
    }
}

/// Credentials that the requests of a provider share. Their `Debug` text contains nothing.
#[derive(Clone)]
pub struct SharedCredentials(Arc<dyn Credentials>);

impl SharedCredentials {
    /// Shares credentials.
    pub fn new(credentials: impl Credentials + 'static) -> Self {
        Self(Arc::new(credentials))
    }
}

impl std::ops::Deref for SharedCredentials {
    type Target = dyn Credentials;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Debug for SharedCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(…)")
    }
}
