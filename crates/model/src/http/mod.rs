//! A model behind HTTP, with any of the three APIs.

mod body;
mod chains;
mod clients;
mod decoder;
mod model_list;
mod request_sender;
mod sockets;
mod stream;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use codex_wire::provider_traits::{ProviderTraits, SchemaForm};
use futures_util::future::BoxFuture;
use futures_util::stream::try_unfold;
use tokio::sync::OnceCell;

pub use self::clients::http_client;
use self::{chains::Chains, request_sender::RequestSender, sockets::Sockets, stream::Stage};
use crate::encoding::RequestFormat;
use crate::{Answer, Model, ModelError, Prompt, Provider, WireKind};

/// A model of a provider that is reached by HTTP.
///
/// Creating one costs nothing: the HTTP client is created with the first request. All models of this process with the
/// same address share it, so that one connection serves all turns.
#[derive(Clone, Debug)]
pub struct HttpModel {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    provider: Provider,
    sender: OnceCell<RequestSender>,
    /// Whether the provider has rejected a schema, so that it receives simpler ones from then on.
    refuses_schemas: AtomicBool,
    /// The answers that the provider stores.
    chains: Chains,
    /// Whether the provider has refused to continue an answer, so that it always receives the whole conversation from
    /// then on.
    refuses_chains: AtomicBool,
    sockets: Sockets,
}

impl HttpModel {
    /// A model of this provider.
    #[must_use]
    pub fn new(provider: Provider) -> Self {
        Self {
            shared: Arc::new(Shared {
                provider,
                sender: OnceCell::new(),
                refuses_schemas: AtomicBool::new(false),
                chains: Chains::default(),
                refuses_chains: AtomicBool::new(false),
                sockets: Sockets::default(),
            }),
        }
    }
}

impl Model for HttpModel {
    fn ask(&self, prompt: Prompt) -> Answer {
        let shared = Arc::clone(&self.shared);
        Box::pin(try_unfold(Stage::Asked(Box::new(prompt)), move |stage| stream::advance(Arc::clone(&shared), stage)))
    }

    fn list_models(&self, within: Duration) -> BoxFuture<'_, Result<Vec<String>, ModelError>> {
        let provider = &self.shared.provider;
        let listed = async move {
            let sender = self.shared.sender.get_or_try_init(|| async { RequestSender::new(provider) }).await?;
            sender.list_models(provider).await
        };
        Box::pin(async move {
            let listed = tokio::time::timeout(within, listed).await.unwrap_or(Err(ModelError::Idle { after: within }));
            listed.inspect_err(|error| tracing::debug!(provider = provider.id, %error, "no list of models"))
        })
    }
}

impl Shared {
    /// The format of requests for an account.
    fn format(&self, account: Option<&str>) -> RequestFormat<'_> {
        let Provider { id, wire, traits, .. } = &self.provider;
        let mut format = RequestFormat::new(wire.name(), id, account, traits);
        if self.refuses_schemas.load(Ordering::Relaxed) {
            format.schemas = SchemaForm::Simple;
        }
        format
    }
}

impl Shared {
    /// Whether requests continue answers that the provider stores.
    fn is_chained(&self) -> bool {
        let Provider { wire, traits, .. } = &self.provider;
        *wire == WireKind::Responses && traits.store && !self.refuses_chains.load(Ordering::Relaxed)
    }

    /// Whether there are simpler schemas than those that the provider receives.
    fn may_simplify(&self) -> bool {
        self.provider.wire != WireKind::Responses
            && self.provider.traits.schemas != SchemaForm::Simple
            && !self.refuses_schemas.load(Ordering::Relaxed)
    }
}

impl WireKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Responses => "responses",
            Self::Chat => "chat",
            Self::Anthropic => "anthropic",
        }
    }

    /// The path that is appended to the provider's URL.
    pub(crate) fn path(self) -> &'static [&'static str] {
        match self {
            Self::Responses => &["responses"],
            Self::Chat => &["chat", "completions"],
            Self::Anthropic => &["messages"],
        }
    }

    fn encode(self, prompt: &Prompt, format: &RequestFormat<'_>) -> Vec<u8> {
        match self {
            Self::Responses => crate::responses::request_body(prompt, format),
            Self::Chat => crate::chat::request_body(prompt, format),
            Self::Anthropic => crate::anthropic::request_body(prompt, format),
        }
    }
}

/// The body of a request as it would be sent to a provider without an account.
#[must_use]
pub fn request_body(prompt: &Prompt, wire: WireKind, provider: &str, traits: &ProviderTraits) -> Vec<u8> {
    wire.encode(prompt, &RequestFormat::new(wire.name(), provider, None, traits))
}
