//! An answer as it comes in.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use reqwest::{Response, Version};
use tokio::task::coop::consume_budget;

use super::{
    Shared,
    body::request_body,
    link::{Link, header_text, without_url},
};
use crate::{ModelError, ModelEvent, Prompt, decode::decode, limits::rate_limits, sse::Parser};

/// How long the last event is held back for the end of the body to come in, which nearly always came with it.
const GRACE: Duration = Duration::from_millis(10);

/// How long the end of the body may take after that.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

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
            let provider = &shared.provider;
            let (thread, body) = (prompt.thread, request_body(&prompt));
            drop(prompt);
            let link = shared.link.get_or_try_init(|| async { Link::new(provider) }).await?;
            let response = match link.open(provider, thread, body).await {
                Ok(response) => response,
                Err(error) => {
                    let Some(rate_limits) = error.rate_limits() else { return Err(error) };
                    return Ok(Some((ModelEvent::Opened { rate_limits }, Stage::Refused(Box::new(error)))));
                }
            };
            let rate_limits = rate_limits(|name| header_text(response.headers(), name));
            let incoming = Incoming::new(response, provider.stream_idle_timeout);
            Ok(Some((ModelEvent::Opened { rate_limits }, Stage::Streaming(Box::new(incoming)))))
        }
        Stage::Streaming(mut incoming) => {
            let event = incoming.next().await?;
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

/// A stream of events whose headers have come.
pub(super) struct Incoming {
    response: Response,
    idle_timeout: Duration,
    parser: Parser,
    chunk: Bytes,
}

impl Incoming {
    fn new(response: Response, idle_timeout: Duration) -> Self {
        Self { response, idle_timeout, parser: Parser::new(), chunk: Bytes::new() }
    }

    async fn next(&mut self) -> Result<ModelEvent, ModelError> {
        loop {
            while let Some(data) = self.parser.next(&mut self.chunk)? {
                let event = decode(data)?;
                self.parser.shed();
                if let Some(event) = event {
                    return Ok(event);
                }
            }
            // What says nothing to us is passed over here, and a stream may be full of it.
            consume_budget().await;
            self.chunk = match tokio::time::timeout(self.idle_timeout, self.response.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => return Err(ModelError::Cut { source: None }),
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
