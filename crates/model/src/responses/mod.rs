//! A model behind the Responses API: `POST {base_url}/responses`, answered by server-sent events.

mod body;
mod link;
mod stream;

use std::sync::Arc;

use futures_util::stream::try_unfold;
use tokio::sync::OnceCell;

pub use body::request_body;
pub use link::http_client;

use self::{link::Link, stream::Stage};
use crate::{Answer, Model, Prompt, Provider};

/// A model of a provider that speaks the Responses API.
///
/// Making one costs nothing: the HTTP client comes into being with the first request. It is kept, and shared by clones,
/// so that one connection serves turn after turn.
#[derive(Clone, Debug)]
pub struct ResponsesModel {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    provider: Provider,
    link: OnceCell<Link>,
}

impl ResponsesModel {
    /// A model of this provider.
    #[must_use]
    pub fn new(provider: Provider) -> Self {
        Self { shared: Arc::new(Shared { provider, link: OnceCell::new() }) }
    }
}

impl Model for ResponsesModel {
    fn ask(&self, prompt: Prompt) -> Answer {
        let shared = Arc::clone(&self.shared);
        Box::pin(try_unfold(Stage::Asked(Box::new(prompt)), move |stage| stream::advance(Arc::clone(&shared), stage)))
    }
}
