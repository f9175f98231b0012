//! The request that a thread would send, without sending it.

use std::sync::{Arc, Mutex, PoisonError};

use codex_log::settings::SettingsChange;
use codex_log::{Body, TurnId};
use codex_model::{Answer, Model, ModelError, Prompt, request_body};
use codex_thread::{Closed, InitialHistory, StartError};
use codex_wire::input::UserInput;
use serde_json::Value;

use crate::Setup;
use crate::provider::wire_kind;

/// The reason why there is no request.
#[derive(Debug, thiserror::Error)]
pub enum PreviewError {
    /// The thread could not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The thread ended early.
    #[error(transparent)]
    Closed(#[from] Closed),
    /// The model was never asked.
    #[error("no request would be sent to the model")]
    Unasked,
    /// The request is not JSON, which cannot happen.
    #[error("could not read the request")]
    Read(#[from] serde_json::Error),
}

/// The body of the first request of a turn. Nothing is sent and nothing is saved.
///
/// # Errors
/// When the thread cannot start.
pub async fn first_request(setup: Setup, content: Vec<UserInput>) -> Result<Value, PreviewError> {
    let seen = Arc::new(RequestRecorder::default());
    let model: Arc<dyn Model> = Arc::clone(&seen) as Arc<dyn Model>;
    let config = Arc::clone(&setup.config);
    let initial_history = InitialHistory::Unsaved(Box::new(setup.initial_history));
    let (thread, mut feed) = Setup { model, initial_history, ..setup }.start().await?;
    thread.say(TurnId::new("preview"), content, SettingsChange::default()).await?;
    while let Some(event) = feed.next().await {
        if matches!(event.body, Body::TurnEnded(_)) {
            break;
        }
    }
    thread.close().await;
    let prompt = seen.prompt.lock().unwrap_or_else(PoisonError::into_inner).take();
    let mut prompt = prompt.ok_or(PreviewError::Unasked)?;
    let asked = prompt.model.clone();
    let (provider, name) = config.model_of(&asked);
    name.clone_into(&mut prompt.model);
    Ok(serde_json::from_slice(&request_body(&prompt, wire_kind(provider), &provider.id, &provider.traits))?)
}

/// A model that keeps the first request, and answers nothing.
#[derive(Default)]
struct RequestRecorder {
    prompt: Mutex<Option<Prompt>>,
}

impl Model for RequestRecorder {
    fn ask(&self, prompt: Prompt) -> Answer {
        self.prompt.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(prompt);
        let error = ModelError::Unavailable { message: "nothing is sent".to_owned() };
        Box::pin(futures_util::stream::iter([Err(error)]))
    }
}
