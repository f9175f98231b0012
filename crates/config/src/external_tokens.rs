//! Tokens of `ChatGPT` that a client supplies and renews.

use std::{future::Future, pin::Pin};

use crate::Secret;

/// A boxed future.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Tokens that a client supplies. They are kept only in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalTokens {
    /// The access token, which every request carries.
    pub access_token: Secret,
    /// The workspace.
    pub account_id: String,
    /// The subscription.
    pub plan: Option<String>,
}

/// The client that supplies tokens.
pub trait TokenRefresher: Send + Sync {
    /// Requests new tokens of an account, because the last ones were rejected. An error contains the reason.
    fn refresh<'a>(&'a self, account_id: &'a str) -> Pending<'a, Result<ExternalTokens, String>>;
}
