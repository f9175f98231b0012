//! What the model is sent: the conversation, encoded once, and what it has cost so far.

use std::sync::Arc;

use codex_wire::response::ResponseItem;
use codex_wire::tokens::{RateLimitSnapshot, TokenUsage, TokenUsageInfo};
use serde_json::value::RawValue;

use crate::log::Record;

/// The conversation with the model.
///
/// Items are only ever appended, so that each request starts with the bytes of the one before and the provider's
/// cache holds.
#[derive(Debug, Default)]
pub(crate) struct Context {
    items: Vec<Arc<RawValue>>,
    /// How many items the model had been sent when it was asked last.
    sent: usize,
    /// Where, after that, messages of the user stand.
    said: Vec<usize>,
    usage: Option<TokenUsageInfo>,
    rate_limits: RateLimitSnapshot,
}

impl Context {
    /// Appends an item.
    pub(crate) fn record(&mut self, record: &Record) {
        if let ResponseItem::Message(message) = &*record.item
            && message.role == "user"
        {
            self.said.push(self.items.len());
        }
        self.items.push(Arc::clone(&record.json));
    }

    /// Notes that the model is asked now.
    pub(crate) fn mark(&mut self) {
        self.sent = self.items.len();
        self.said.clear();
    }

    /// Forgets what came after the model was asked last, all but what the user said.
    pub(crate) fn forget_unfinished(&mut self) {
        let said: Vec<_> = self.said.drain(..).filter_map(|place| self.items.get(place).cloned()).collect();
        self.items.truncate(self.sent);
        self.items.extend(said);
    }

    /// All items, for a request.
    pub(crate) fn input(&self) -> Vec<Arc<RawValue>> {
        self.items.clone()
    }

    /// Adds the tokens of an answer.
    pub(crate) fn count(&mut self, usage: TokenUsage, window: Option<i64>) {
        let info = self.usage.get_or_insert_with(|| TokenUsageInfo {
            total_token_usage: TokenUsage::default(),
            last_token_usage: TokenUsage::default(),
            model_context_window: window,
        });
        info.total_token_usage += usage;
        info.last_token_usage = usage;
        info.model_context_window = window;
    }

    /// Notes what the account still allows; an answer that says nothing leaves the last word standing.
    pub(crate) fn limit(&mut self, limits: RateLimitSnapshot) {
        if limits != RateLimitSnapshot::default() {
            self.rate_limits = limits;
        }
    }

    /// The tokens used so far; none before the first answer.
    pub(crate) fn usage(&self) -> Option<TokenUsageInfo> {
        self.usage.clone()
    }

    /// What the account allowed when it was last told.
    pub(crate) fn rate_limits(&self) -> RateLimitSnapshot {
        self.rate_limits.clone()
    }
}
