//! A provider of models: its address, its API and its limits.

use std::{fmt, path::PathBuf, time::Duration};

use codex_wire::provider_traits::ProviderTraits;

use crate::{SharedCredentials, StaticKey};

/// The API of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireKind {
    /// The Responses API.
    Responses,
    /// The Chat Completions API.
    Chat,
    /// The Messages API.
    Anthropic,
}

/// A service that answers prompts over HTTP.
///
/// Its `Debug` text names headers and query parameters without their values, because they may contain keys.
#[derive(Clone)]
pub struct Provider {
    /// Its id in the configuration, and in items that only it can read.
    pub id: String,
    /// A name for people.
    pub name: String,
    pub wire: WireKind,
    pub traits: ProviderTraits,
    /// The URL to which the path of the API, such as `/responses`, is appended.
    pub base_url: String,
    /// Whether the provider takes requests of the Responses API over WebSockets.
    pub supports_websockets: bool,
    /// The authorization of requests.
    pub credentials: SharedCredentials,
    /// Further headers; they override ours.
    pub headers: Vec<(String, String)>,
    /// Parameters appended to the URL.
    pub query: Vec<(String, String)>,
    /// The number of times that a request without a response is sent again.
    pub request_max_retries: u32,
    /// The time limit for opening a connection.
    pub connect_timeout: Duration,
    /// The time limit for silence of the provider, before its answer and within it.
    pub stream_idle_timeout: Duration,
    /// A file of certificates to trust in addition to those of the system.
    pub ca_certificates: Option<PathBuf>,
    /// The `user-agent` header.
    pub user_agent: String,
    /// The `originator` header: the name of the client.
    pub originator: String,
}

impl Provider {
    /// A provider of the Responses API without a key, with four retries and five minutes of silence allowed.
    #[must_use]
    pub fn new(name: impl Into<String>, base_url: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            id: name.clone(),
            name,
            wire: WireKind::Responses,
            traits: ProviderTraits::responses(),
            base_url: base_url.into(),
            supports_websockets: false,
            credentials: SharedCredentials::new(StaticKey::default()),
            headers: Vec::new(),
            query: Vec::new(),
            request_max_retries: 4,
            connect_timeout: Duration::from_secs(20),
            stream_idle_timeout: Duration::from_secs(300),
            ca_certificates: None,
            user_agent: concat!("codex/", env!("CARGO_PKG_VERSION")).to_owned(),
            originator: "codex".to_owned(),
        }
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |pairs: &[(String, String)]| pairs.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        f.debug_struct("Provider")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("wire", &self.wire)
            .field("traits", &self.traits)
            .field("base_url", &self.base_url)
            .field("supports_websockets", &self.supports_websockets)
            .field("credentials", &self.credentials)
            .field("headers", &names(&self.headers))
            .field("query", &names(&self.query))
            .field("request_max_retries", &self.request_max_retries)
            .field("connect_timeout", &self.connect_timeout)
            .field("stream_idle_timeout", &self.stream_idle_timeout)
            .field("ca_certificates", &self.ca_certificates)
            .field("user_agent", &self.user_agent)
            .field("originator", &self.originator)
            .finish()
    }
}

/// A text that no log may show.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_text_shows_no_key() {
        let mut provider = Provider::new("mock", "http://127.0.0.1/v1");
        provider.credentials = SharedCredentials::new(StaticKey::new("sk-secret"));
        provider.headers = vec![("api-key".to_owned(), "sk-secret".to_owned())];
        provider.query = vec![("key".to_owned(), "sk-secret".to_owned())];
        let text = format!("{provider:?}");
        assert!(!text.contains("sk-secret"), "{text}");
        assert!(text.contains("api-key"), "{text}");
    }
}
