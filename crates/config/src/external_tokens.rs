//! Tokens of `ChatGPT` that a client brings and renews itself.

use std::{future::Future, pin::Pin};

use crate::Secret;

/// Something that comes later.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Tokens that a client brings. They are kept in memory alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalTokens {
    /// Goes with every request.
    pub access_token: Secret,
    /// The workspace.
    pub account_id: String,
    /// The subscription.
    pub plan: Option<String>,
}

/// The client that brings tokens.
pub trait TokenRefresher: Send + Sync {
    /// Asks for new tokens of an account, because the last ones were refused. An error says why there are none.
    fn refresh<'a>(&'a self, account_id: &'a str) -> Pending<'a, Result<ExternalTokens, String>>;
}
