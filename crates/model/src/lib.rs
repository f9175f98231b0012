//! A model as a stream of typed events: three APIs over HTTP, or a script.
//!
//! A [`Prompt`] goes in, an [`Answer`] comes out. Failures before the answer begins are retried here, in silence and a
//! bounded number of times; a failure afterwards ends the stream with an error that says whether asking again may help.
//!
//! Invariant: no knowledge of turns, tools or configuration, and no wait without a deadline. A bearer token is in no
//! error and in no `Debug` text.

#![cfg_attr(test, allow(clippy::needless_raw_string_hashes, reason = "expect-test writes its snapshots with them"))]

mod answer_schema;
mod answer_tools;
mod anthropic;
mod backoff;
mod chat;
mod credentials;
pub mod decode;
mod encoding;
mod error;
mod error_response;
mod event;
mod flat_tools;
mod http;
mod limits;
pub mod ollama;
mod pace;
mod prompt;
mod provider;
mod reasoning_item;
mod recorded;
mod redact;
mod responses;
mod retry;
mod retry_delay;
mod schema;
pub mod scripted;
pub mod sse;
#[cfg(test)]
mod testing;
mod tool_names;
mod zstd;

use std::{pin::Pin, time::Duration};

use futures_util::future::BoxFuture;

pub use answer_schema::{AnswerSchema, SchemaSupport};
pub use answer_tools::AnswerTools;
pub use anthropic::AnthropicDecoder;
pub use backoff::Backoff;
pub use chat::ChatDecoder;
pub use credentials::{Authorization, Credentials, SharedCredentials, StaticKey};
pub use error::{ModelError, Retry};
pub use event::ModelEvent;
pub use futures_util::{Stream, StreamExt};
pub use http::{HttpModel, http_client, request_body};
pub use pace::Pace;
pub use prompt::{Prompt, ReasoningRequest};
pub use provider::{Provider, Secret, WireKind};
pub use recorded::RecordedModel;
pub use responses::ResponsesDecoder;
pub use scripted::{ScriptError, ScriptedModel};

/// The answer of a model to one prompt, event by event.
///
/// Nothing is sent before the first poll. The stream ends after [`ModelEvent::Completed`] or after its first error.
/// Dropping it cancels the request and closes its connection.
pub type Answer = Pin<Box<dyn Stream<Item = Result<ModelEvent, ModelError>> + Send>>;

/// A model that answers prompts.
pub trait Model: Send + Sync {
    /// Asks once. The answer owns all its data, so it may outlive the model.
    fn ask(&self, prompt: Prompt) -> Answer;

    /// The names of the models that the provider lists within this time.
    fn list_models(&self, within: Duration) -> BoxFuture<'_, Result<Vec<String>, ModelError>> {
        let _ = within;
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}
