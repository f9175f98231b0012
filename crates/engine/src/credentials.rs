//! The source of credentials. The engine does not know logins: the program passes a source in.

use std::fmt;
use std::sync::Arc;

use codex_config::{Config, ProviderConfig};
use codex_model::{SharedCredentials, StaticKey};

/// Returns the credentials of a provider in a configuration.
#[derive(Clone)]
pub struct CredentialsSource(Arc<Find>);

type Find = dyn Fn(&Config, &ProviderConfig) -> SharedCredentials + Send + Sync;

impl CredentialsSource {
    /// Creates a source from a function.
    pub fn new(find: impl Fn(&Config, &ProviderConfig) -> SharedCredentials + Send + Sync + 'static) -> Self {
        Self(Arc::new(find))
    }

    /// A source without any credentials.
    #[must_use]
    pub fn none() -> Self {
        Self::new(|_, _| SharedCredentials::new(StaticKey::default()))
    }

    /// The credentials of a provider.
    pub(crate) fn find(&self, config: &Config, provider: &ProviderConfig) -> SharedCredentials {
        (self.0)(config, provider)
    }
}

impl fmt::Debug for CredentialsSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CredentialsSource(…)")
    }
}
