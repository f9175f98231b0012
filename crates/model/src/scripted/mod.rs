//! A model that plays a script: for tests, demonstrations and work without a network.
//!
//! A script is a JSON list of entries (or `{"entries": […]}`), one entry an answer:
//!
//! ```json
//! [{"items": [{"text": "Hello", "deltas": ["Hel", "lo"]}], "usage": {"input": 100, "output": 10}},
//!  {"when": "weather", "repeat": true, "items": [{"call": "shell", "args": {"command": ["date"]}}]},
//!  {"status": 429, "headers": {"retry-after": 1}, "body": {"error": {"message": "slow down"}}},
//!  {"items": [{"text": "Hal", "done": false}], "end": "cut"}]
//! ```
//!
//! Entries with `when` are tried first, for requests that contain all its texts; the others are played in order, and
//! each entry once unless it says `repeat`. `find` names regular expressions; `${name}` in the entry becomes what the
//! last hit in the request gives. `follows_schema` is what a provider says that holds answers to schemas. The same
//! scripts are served over HTTP by the fake model of the test kit.

mod entry;
mod events;
mod item;
mod player;

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use codex_wire::provider_traits::ProviderTraits;
use futures_util::stream::try_unfold;

pub use self::{
    entry::{End, Entry, Plain, Script, ScriptError, Usage},
    events::{Step, responses_events},
    item::{Delta, Item},
    player::{Player, Taken},
};
use crate::{
    Answer, Model, ModelError, ModelEvent, Prompt, WireKind, decode::decode, error_response::error_of_response,
    limits::rate_limits, request_body, retry::with_retries,
};

/// A model that plays a script. Clones play the same script together.
#[derive(Clone, Debug)]
pub struct ScriptedModel {
    player: Arc<Mutex<Player>>,
    request_max_retries: u32,
    idle_timeout: Duration,
}

impl ScriptedModel {
    /// Parses a script. As with a provider, four retries and five minutes of silence are allowed.
    pub fn from_json(text: &str) -> Result<Self, ScriptError> {
        let player = Player::new(Script::from_json(text)?);
        Ok(Self {
            player: Arc::new(Mutex::new(player)),
            request_max_retries: 4,
            idle_timeout: Duration::from_secs(300),
        })
    }

    /// Sets the number of entries with a retryable `status` after which the model continues by itself.
    #[must_use]
    pub fn with_request_max_retries(mut self, retries: u32) -> Self {
        self.request_max_retries = retries;
        self
    }

    /// Sets the maximum pause of the script before the answer fails.
    #[must_use]
    pub fn with_idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// Takes the next entry and waits for its first byte.
    async fn open(&self, prompt: &Prompt) -> Result<Playing, ModelError> {
        let Taken { number, entry } =
            self.player.lock().unwrap_or_else(PoisonError::into_inner).take(|| request_text(prompt));
        let number = number.ok_or(ModelError::ScriptExhausted)?;
        let mut silence = Silence { limit: self.idle_timeout, so_far: Duration::ZERO };
        silence.last(entry.delay).await?;
        if let Some(plain) = &entry.plain {
            return Err(error_of_response(plain.status, |name| entry.header(name), &plain.body, SystemTime::now()));
        }
        let rate_limits = rate_limits(|name| entry.header(name), SystemTime::now());
        let is_reset = matches!(entry.end, End::Reset);
        let steps = Box::new(responses_events(entry, number));
        Ok(Playing { rate_limits: Some(rate_limits), steps, silence, is_reset })
    }
}

/// The request as a provider with the Responses API would receive it, for scripts to match.
fn request_text(prompt: &Prompt) -> Vec<u8> {
    request_body(prompt, WireKind::Responses, "scripted", &ProviderTraits::responses())
}

impl Model for ScriptedModel {
    fn ask(&self, prompt: Prompt) -> Answer {
        let model = self.clone();
        Box::pin(try_unfold(Stage::Asked(Box::new(prompt)), move |stage| advance(model.clone(), stage)))
    }
}

enum Stage {
    Asked(Box<Prompt>),
    Playing(Box<Playing>),
    /// The request was rejected, and the limits in the response have been reported.
    Refused(Box<ModelError>),
    Ended,
}

async fn advance(model: ScriptedModel, stage: Stage) -> Result<Option<(ModelEvent, Stage)>, ModelError> {
    let mut playing = match stage {
        Stage::Asked(prompt) => match open(&model, &prompt).await {
            Ok(playing) => Box::new(playing),
            Err(error) => {
                let Some(rate_limits) = error.rate_limits() else { return Err(error) };
                return Ok(Some((
                    ModelEvent::Opened { rate_limits: Some(rate_limits) },
                    Stage::Refused(Box::new(error)),
                )));
            }
        },
        Stage::Refused(error) => return Err(*error),
        Stage::Playing(playing) => playing,
        Stage::Ended => return Ok(None),
    };
    let event = playing.next().await?;
    let is_last = matches!(event, ModelEvent::Completed { .. });
    Ok(Some((event, if is_last { Stage::Ended } else { Stage::Playing(playing) })))
}

async fn open(model: &ScriptedModel, prompt: &Prompt) -> Result<Playing, ModelError> {
    with_retries(model.request_max_retries, prompt.pace.as_deref(), || model.open(prompt)).await
}

/// An entry that is being played.
struct Playing {
    rate_limits: Option<codex_wire::tokens::RateLimitSnapshot>,
    steps: Box<dyn Iterator<Item = Step> + Send>,
    silence: Silence,
    is_reset: bool,
}

impl Playing {
    async fn next(&mut self) -> Result<ModelEvent, ModelError> {
        if let Some(rate_limits) = self.rate_limits.take() {
            return Ok(ModelEvent::Opened { rate_limits: Some(rate_limits) });
        }
        for step in self.steps.by_ref() {
            match step {
                Step::Event(event) => {
                    self.silence.so_far = Duration::ZERO;
                    if let Some(event) = decode(&event.to_string())? {
                        return Ok(event);
                    }
                }
                Step::Pause(span) => self.silence.last(span).await?,
                Step::Hang => self.silence.last(Duration::MAX).await?,
            }
        }
        let reset = || io::Error::from(io::ErrorKind::ConnectionReset).into();
        Err(ModelError::Disconnected { source: self.is_reset.then(reset) })
    }
}

/// The time without an event so far, and its limit.
struct Silence {
    limit: Duration,
    so_far: Duration,
}

impl Silence {
    /// Pauses for a duration, or until the limit is reached.
    async fn last(&mut self, span: Duration) -> Result<(), ModelError> {
        let left = self.limit.saturating_sub(self.so_far);
        if !span.is_zero() {
            tokio::time::sleep(span.min(left)).await;
        }
        if span >= left {
            return Err(ModelError::Idle { after: self.limit });
        }
        self.so_far += span;
        Ok(())
    }
}
