//! An answer that is streaming in.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use codex_wire::ids::ThreadId;
use codex_wire::{provider_traits::SchemaForm, tokens::RateLimitSnapshot};
use reqwest::Response;
use tokio::task::coop::consume_budget;

use super::{
    Shared,
    body::ResponseBody,
    chains::StreamingAnswer,
    decoder::Decoder,
    request_sender::{RequestSender, header_text},
    sockets::{self, Socket, SocketAnswer},
};
use crate::{
    ModelError, ModelEvent, Prompt, WireKind, encoding::RequestFormat, limits::rate_limits, redact::Secrets,
    sse::Parser,
};

/// The time that the last event is held back for the end of the body, which nearly always arrives with it.
const GRACE: Duration = Duration::from_millis(10);

/// The time limit for the end of the body after that.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// The warning when schemas were rejected.
const SIMPLIFIED: &str = "the provider refused a schema of the tools, so it is given simpler ones";

/// The progress of an answer.
pub(super) enum Stage {
    Asked(Box<Prompt>),
    Streaming(Box<Incoming>),
    /// The request was rejected, and the limits in the response have been reported.
    Refused(Box<ModelError>),
    Ended,
}

/// Continues to the next event.
pub(super) async fn advance(shared: Arc<Shared>, stage: Stage) -> Result<Option<(ModelEvent, Stage)>, ModelError> {
    match stage {
        Stage::Asked(prompt) => match open(&shared, *prompt).await {
            Ok((opened, incoming)) => Ok(Some((opened, Stage::Streaming(Box::new(incoming))))),
            Err(error) => {
                let Some(rate_limits) = error.rate_limits() else { return Err(error) };
                let opened = ModelEvent::Opened { rate_limits: Some(rate_limits) };
                Ok(Some((opened, Stage::Refused(Box::new(error)))))
            }
        },
        Stage::Streaming(mut incoming) => {
            let event = match incoming.next().await {
                Ok(event) => event,
                Err(error) => {
                    let error = error.without(&incoming.secrets);
                    incoming.source.give_up(&shared, &error);
                    return Err(error);
                }
            };
            incoming.see(&event, &shared);
            let stage = if matches!(event, ModelEvent::Completed { .. }) {
                incoming.source.finish(&shared).await;
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

/// Asks, over a WebSocket if the provider has one that works.
async fn open(shared: &Shared, prompt: Prompt) -> Result<(ModelEvent, Incoming), ModelError> {
    let provider = &shared.provider;
    let sender = shared.sender.get_or_try_init(|| async { RequestSender::new(provider) }).await?;
    if shared.sockets.are_used(provider)
        && let Some(answer) = sockets::open(shared, sender, &prompt).await
    {
        return Ok(over_socket(shared, &prompt, answer));
    }
    let Opened { response, decoder, notice, streaming, secrets } = open_http(shared, sender, &prompt).await?;
    let told = rate_limits(|name| header_text(response.headers(), name), SystemTime::now());
    let is_told = provider.wire == WireKind::Responses || told != RateLimitSnapshot::default();
    let source = Source::Http { body: ResponseBody::new(response), parser: Parser::new(), chunk: Bytes::new() };
    let mut incoming = Incoming::new(source, provider.stream_idle_timeout, decoder, secrets);
    incoming.streaming = streaming;
    incoming.events.extend(notice.map(|notice| ModelEvent::Notice(notice.to_owned())));
    Ok((ModelEvent::Opened { rate_limits: is_told.then_some(told) }, incoming))
}

/// The answer of a WebSocket, with its first event.
fn over_socket(shared: &Shared, prompt: &Prompt, answer: SocketAnswer) -> (ModelEvent, Incoming) {
    let SocketAnswer { socket, used, first, rate_limits } = answer;
    let provider = &shared.provider;
    let format = RequestFormat { is_message: true, ..shared.format(used.account.as_deref()) };
    let decoder = Decoder::new(provider.wire, prompt, &format);
    let source = Source::Socket { thread: prompt.thread, socket: Box::new(socket) };
    let mut incoming = Incoming::new(source, provider.stream_idle_timeout, decoder, Secrets::of(provider, &used));
    incoming.streaming = Some(StreamingAnswer::new(prompt.thread, &prompt.input, &format.origin));
    incoming.failed = incoming.decoder.decode(&first, &mut incoming.events).err();
    (ModelEvent::Opened { rate_limits: Some(rate_limits) }, incoming)
}

/// Sends the request. If its schemas are rejected, it is sent once more with simpler ones, and so are all later ones.
async fn open_http(shared: &Shared, sender: &RequestSender, prompt: &Prompt) -> Result<Opened, ModelError> {
    let provider = &shared.provider;
    let encoded = |schemas: Option<SchemaForm>| {
        move |account: Option<&str>| {
            let format = shared.format(account);
            let schemas = schemas.unwrap_or(format.schemas);
            let follows = || shared.chains.followed(prompt.thread, &prompt.input, &format);
            let follows = if shared.is_chained() { follows() } else { None };
            provider.wire.encode(prompt, &RequestFormat { schemas, follows, ..format })
        }
    };
    let mut opened = sender.open(provider, prompt, encoded(None)).await;
    if opened.as_ref().is_err_and(is_about_request) && shared.chains.forget(prompt.thread) {
        // Providers store answers only for a while. If the whole conversation is accepted, this was the reason.
        opened = sender.open(provider, prompt, encoded(None)).await;
        shared.refuses_chains.fetch_or(opened.is_ok(), Ordering::Relaxed);
    }
    let ((response, used), notice) = match opened {
        Err(ModelError::BadRequest { message }) if shared.may_simplify() && is_about_schemas(&message) => {
            let opened = sender.open(provider, prompt, encoded(Some(SchemaForm::Simple))).await?;
            shared.refuses_schemas.store(true, Ordering::Relaxed);
            (opened, Some(SIMPLIFIED))
        }
        opened => (opened?, None),
    };
    let format = shared.format(used.account.as_deref());
    let decoder = Decoder::new(provider.wire, prompt, &format);
    let streaming = shared.is_chained().then(|| StreamingAnswer::new(prompt.thread, &prompt.input, &format.origin));
    Ok(Opened { response, decoder, notice, streaming, secrets: Secrets::of(provider, &used) })
}

/// An answer that has just begun.
struct Opened {
    response: Response,
    decoder: Decoder,
    notice: Option<&'static str>,
    streaming: Option<StreamingAnswer>,
    secrets: Secrets,
}

/// Whether an error may be due to the contents of the request.
fn is_about_request(error: &ModelError) -> bool {
    matches!(error, ModelError::BadRequest { .. } | ModelError::Status { status: 404, .. })
}

/// Whether an error message is about a schema.
fn is_about_schemas(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["schema", "additionalproperties", "function_declarations"].iter().any(|word| message.contains(word))
}

/// A stream of events that has begun.
pub(super) struct Incoming {
    source: Source,
    idle_timeout: Duration,
    decoder: Decoder,
    /// Decoded events that are not returned yet.
    events: VecDeque<ModelEvent>,
    /// The error that follows the decoded events.
    failed: Option<ModelError>,
    /// Recognises the answer for later requests.
    streaming: Option<StreamingAnswer>,
    /// The keys of the request, which no error may show.
    secrets: Secrets,
}

/// The connection that an answer comes over.
#[expect(clippy::large_enum_variant, reason = "it is boxed with the rest of the answer")]
enum Source {
    Http { body: ResponseBody, parser: Parser, chunk: Bytes },
    Socket { thread: ThreadId, socket: Box<Socket> },
}

impl Incoming {
    fn new(source: Source, idle_timeout: Duration, decoder: Decoder, secrets: Secrets) -> Self {
        Self { source, idle_timeout, decoder, events: VecDeque::new(), failed: None, streaming: None, secrets }
    }

    async fn next(&mut self) -> Result<ModelEvent, ModelError> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            // Events before an error are returned before it.
            self.failed = self.source.read(&mut self.decoder, &mut self.events, self.idle_timeout).await.err();
        }
    }

    /// Remembers the answer for later requests once it is complete.
    fn see(&mut self, event: &ModelEvent, shared: &Shared) {
        let Some(streaming) = &mut self.streaming else { return };
        match &self.source {
            Source::Http { .. } => streaming.see(event, &shared.chains),
            Source::Socket { socket, .. } => streaming.see(event, &socket.chains),
        }
    }
}

impl Source {
    /// Reads the next event, or the next piece of it.
    async fn read(
        &mut self,
        decoder: &mut Decoder,
        events: &mut VecDeque<ModelEvent>,
        idle: Duration,
    ) -> Result<(), ModelError> {
        match self {
            Self::Http { body, parser, chunk } => {
                if let Some(data) = parser.next(chunk)? {
                    let result = decoder.decode(data, events);
                    parser.release_capacity();
                    return result;
                }
                // Unknown events are skipped here, and a stream may be full of them.
                consume_budget().await;
                match tokio::time::timeout(idle, body.chunk()).await {
                    Ok(Ok(Some(more))) => *chunk = more,
                    Ok(Ok(None)) => return decoder.end(events),
                    Ok(Err(error)) => return Err(ModelError::Disconnected { source: Some(error) }),
                    Err(_) => return Err(ModelError::Idle { after: idle }),
                }
                Ok(())
            }
            Self::Socket { socket, .. } => {
                consume_budget().await;
                decoder.decode(&socket.next(idle).await?, events)
            }
        }
    }

    /// Remembers that a WebSocket has failed. The next attempt uses HTTP.
    fn give_up(&self, shared: &Shared, error: &ModelError) {
        if matches!(self, Self::Socket { .. })
            && matches!(error, ModelError::Disconnected { .. } | ModelError::Idle { .. })
        {
            shared.sockets.give_up(error);
        }
    }

    /// Leaves the connection to the next request.
    async fn finish(self, shared: &Shared) {
        match self {
            Self::Http { body, .. } => drain(body).await,
            Self::Socket { thread, socket } => shared.sockets.keep(thread, *socket),
        }
    }
}

/// Reads the end of the body, because a connection is reused only after all of it was read. A slow provider is waited
/// for in the background.
async fn drain(mut body: ResponseBody) {
    if body.is_independent() {
        return;
    }
    if tokio::time::timeout(GRACE, read_to_end(&mut body)).await.is_err() {
        tokio::spawn(tokio::time::timeout(DRAIN_TIMEOUT, async move { read_to_end(&mut body).await }));
    }
}

async fn read_to_end(body: &mut ResponseBody) {
    while let Ok(Some(_)) = body.chunk().await {
        // Without a limit, the wait would not end if the provider does not stop.
        consume_budget().await;
    }
}
