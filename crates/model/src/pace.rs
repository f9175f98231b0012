//! The pace of requests that share an account with others.

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;

/// Tells when a request may be sent again, for requests that do not decide that for themselves.
pub trait Pace: Send + Sync + fmt::Debug {
    /// Waits because the provider has refused the request and asked for this delay.
    fn wait(&self, delay: Duration) -> BoxFuture<'_, ()>;
}
