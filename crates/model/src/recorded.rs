//! A model that answers every request with the same recorded stream, for tests of programs around the engine.

use std::sync::Arc;

use codex_wire::tokens::RateLimitSnapshot;

use crate::{Answer, Model, ModelError, ModelEvent, Prompt, decode::decode};

/// A model that plays server-sent events from a text. Each `data` line is a separate event, with or without a blank
/// line.
#[derive(Clone, Debug)]
pub struct RecordedModel {
    stream: Arc<str>,
}

impl RecordedModel {
    /// Creates a model that always answers with this text.
    #[must_use]
    pub fn new(stream: &str) -> Self {
        Self { stream: stream.into() }
    }
}

impl Model for RecordedModel {
    fn ask(&self, _: Prompt) -> Answer {
        let mut events = vec![Ok(ModelEvent::Opened { rate_limits: Some(RateLimitSnapshot::default()) })];
        let data = self.stream.lines().filter_map(|line| line.strip_prefix("data:"));
        for event in data.map(decode).filter_map(Result::transpose) {
            let is_last = !matches!(&event, Ok(event) if !matches!(event, ModelEvent::Completed { .. }));
            events.push(event);
            if is_last {
                return Box::pin(futures_util::stream::iter(events));
            }
        }
        events.push(Err(ModelError::Disconnected { source: None }));
        Box::pin(futures_util::stream::iter(events))
    }
}
