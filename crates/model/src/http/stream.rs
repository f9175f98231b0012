//! An answer as it comes in.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use codex_wire::{provider_traits::SchemaForm, tokens::RateLimitSnapshot};
use reqwest::{Response, Version};
use tokio::task::coop::consume_budget;

use super::{
    Decoder, Shared,
    chains::StreamingAnswer,
    link::{Link, header_text, without_url},
};
use crate::{
    ModelError, ModelEvent, Prompt, WireKind, encoding::Form, limits::rate_limits, redact::Secrets, sse::Parser,
};

/// How long the last event is held back for the end of the body to come in, which nearly always came with it.
const GRACE: Duration = Duration::from_millis(10);

/// How long the end of the body may take after that.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// The warning when schemas were refused.
const SIMPLIFIED: &str = "the provider refused a schema of the tools, so it is given simpler ones";

/// How far an answer is.
pub(super) enum Stage {
    Asked(Box<Prompt>),
    Streaming(Box<Incoming>),
    /// Refused, after what the refusal said of the account's limits was told.
    Refused(Box<ModelError>),
    Ended,
}

/// Goes on to the next event.
pub(super) async fn advance(shared: Arc<Shared>, stage: Stage) -> Result<Option<(ModelEvent, Stage)>, ModelError> {
    match stage {
        Stage::Asked(prompt) => {
            let Opened { response, decoder, notice, streaming, secrets } = match open(&shared, *prompt).await {
                Ok(opened) => opened,
                Err(error) => {
                    let Some(rate_limits) = error.rate_limits() else { return Err(error) };
                    let opened = ModelEvent::Opened { rate_limits: Some(rate_limits) };
                    return Ok(Some((opened, Stage::Refused(Box::new(error)))));
                }
            };
            let told = rate_limits(|name| header_text(response.headers(), name), SystemTime::now());
            let is_told = shared.provider.wire == WireKind::Responses || told != RateLimitSnapshot::default();
            let rate_limits = is_told.then_some(told);
            let mut incoming = Incoming::new(response, shared.provider.stream_idle_timeout, decoder);
            (incoming.streaming, incoming.secrets) = (streaming, secrets);
            incoming.events.extend(notice.map(|notice| ModelEvent::Notice(notice.to_owned())));
            Ok(Some((ModelEvent::Opened { rate_limits }, Stage::Streaming(Box::new(incoming)))))
        }
        Stage::Streaming(mut incoming) => {
            let event = incoming.next().await.map_err(|error| error.without(&incoming.secrets))?;
            if let Some(streaming) = &mut incoming.streaming {
                streaming.see(&event, &shared.chains);
            }
            let stage = if matches!(event, ModelEvent::Completed { .. }) {
                incoming.drain().await;
                Stage::Ended
            } else {
                Stage::Streaming(incoming)
            };
            Ok(Some((event, stage)))
        }
        Stage::Refused(error) => Err(*error),
        Stage::Ended => Ok(None),
    }
}

/// Asks. A request whose schemas are refused is sent once more with simpler ones, and so are all after it.
async fn open(shared: &Shared, prompt: Prompt) -> Result<Opened, ModelError> {
    let provider = &shared.provider;
    let link = shared.link.get_or_try_init(|| async { Link::new(provider) }).await?;
    let encoded = |schemas: Option<SchemaForm>| {
        let prompt = &prompt;
        move |account: Option<&str>| {
            let form = shared.form(account);
            let schemas = schemas.unwrap_or(form.schemas);
            let follows = || shared.chains.followed(prompt.thread, &prompt.input, &form);
            let follows = if shared.is_chained() { follows() } else { None };
            provider.wire.encode(prompt, &Form { schemas, follows, ..form })
        }
    };
    let mut opened = link.open(provider, prompt.thread, encoded(None)).await;
    if opened.as_ref().is_err_and(is_about_request) && shared.chains.forget(prompt.thread) {
        // Providers store answers for a while only. If the whole conversation is accepted, this was the reason.
        opened = link.open(provider, prompt.thread, encoded(None)).await;
        shared.refuses_chains.fetch_or(opened.is_ok(), Ordering::Relaxed);
    }
    let ((response, used), notice) = match opened {
        Err(ModelError::BadRequest { message }) if shared.may_simplify() && is_about_schemas(&message) => {
            let opened = link.open(provider, prompt.thread, encoded(Some(SchemaForm::Simple))).await?;
            shared.refuses_schemas.store(true, Ordering::Relaxed);
            (opened, Some(SIMPLIFIED))
        }
        opened => (opened?, None),
    };
    let form = shared.form(used.account.as_deref());
    let decoder = Decoder::new(provider.wire, &prompt, &form);
    let streaming = shared.is_chained().then(|| StreamingAnswer::new(prompt.thread, &prompt.input, &form.maker));
    Ok(Opened { response, decoder, notice, streaming, secrets: Secrets::of(provider, &used) })
}

/// An answer that begins.
struct Opened {
    response: Response,
    decoder: Decoder,
    notice: Option<&'static str>,
    streaming: Option<StreamingAnswer>,
    secrets: Secrets,
}

/// Whether a refusal may be due to the contents of the request.
fn is_about_request(error: &ModelError) -> bool {
    matches!(error, ModelError::BadRequest { .. } | ModelError::Status { status: 404, .. })
}

/// Whether a refusal is about a schema.
fn is_about_schemas(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["schema", "additionalproperties", "function_declarations"].iter().any(|word| message.contains(word))
}

/// A stream of events whose headers have come.
pub(super) struct Incoming {
    response: Response,
    idle_timeout: Duration,
    parser: Parser,
    chunk: Bytes,
    decoder: Decoder,
    /// Decoded events that are not returned yet.
    events: VecDeque<ModelEvent>,
    /// Why nothing follows what was decoded.
    failed: Option<ModelError>,
    /// Recognises the answer for later requests.
    streaming: Option<StreamingAnswer>,
    /// The keys of the request, which no error may show.
    secrets: Secrets,
}

impl Incoming {
    fn new(response: Response, idle_timeout: Duration, decoder: Decoder) -> Self {
        let (parser, chunk, events, secrets) = (Parser::new(), Bytes::new(), VecDeque::new(), Secrets::default());
        Self { response, idle_timeout, parser, chunk, decoder, events, failed: None, streaming: None, secrets }
    }

    async fn next(&mut self) -> Result<ModelEvent, ModelError> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            if let Some(data) = self.parser.next(&mut self.chunk)? {
                // Events before an error are returned before it.
                self.failed = self.decoder.decode(data, &mut self.events).err();
                self.parser.shed();
                continue;
            }
            // Unknown events are skipped here, and a stream may be full of them.
            consume_budget().await;
            self.chunk = match tokio::time::timeout(self.idle_timeout, self.response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => {
                    self.failed = self.decoder.end(&mut self.events).err();
                    continue;
                }
                Ok(Err(error)) => return Err(ModelError::Cut { source: Some(without_url(error)) }),
                Err(_) => return Err(ModelError::Idle { after: self.idle_timeout }),
            };
        }
    }

    /// Reads the end of the body, because a connection is used again only after all of it was read. A provider that
    /// takes its time to end it is waited for aside.
    async fn drain(mut self: Box<Self>) {
        if self.response.version() >= Version::HTTP_2 {
            return;
        }
        if tokio::time::timeout(GRACE, self.read_to_end()).await.is_err() {
            tokio::spawn(tokio::time::timeout(DRAIN_TIMEOUT, async move { self.read_to_end().await }));
        }
    }

    async fn read_to_end(&mut self) {
        while let Ok(Some(_)) = self.response.chunk().await {
            // Without it there is no end to wait for where the provider does not stop.
            consume_budget().await;
        }
    }
}
