//! What the model is asked, what that costs, and what it remembers.

use std::sync::Arc;

use codex_log::settings::Settings;
use codex_log::{Body, Compacted, Record};
use codex_model::{Backoff, Prompt, ReasoningRequest};
use codex_wire::reasoning::{ReasoningEffort, ReasoningSummary};
use codex_wire::response::{Message, ResponseItem};
use codex_wire::tokens::{RateLimitSnapshot, TokenUsage};

use super::Session;
use crate::compaction::{self, Summary};
use crate::turn::{Manners, Window};
use crate::work::Work;
use codex_thread::HistoryMode;
use codex_wire::tokens::BYTES_PER_TOKEN;

/// How much of its window a model can use.
const USABLE_PERCENT: i64 = 95;

/// How full the window may get before the conversation is summed up.
const COMPACT_AT_PERCENT: i64 = 90;

/// How many calls of an answer may run at once.
const CALLS_AT_ONCE: usize = 8;

impl Session {
    pub(super) fn window(&self) -> Window {
        Window { size: self.context_window(), used: self.context.window_used() }
    }

    /// How a turn under these settings behaves.
    pub(super) fn manners(&self, settings: &Settings) -> Manners {
        let config = &self.setup.config;
        let set = config.model.auto_compact_token_limit.and_then(|limit| i64::try_from(limit).ok());
        Manners {
            retry_limit: u32::try_from(config.provider.stream_max_retries).unwrap_or(u32::MAX),
            backoff: Backoff::new(),
            forgets_interrupted: self.setup.profile.history == HistoryMode::Brief,
            // What is left of the window has to hold the request for a summary and the summary itself.
            compact_at: set.or(self.context_window().map(|window| window * COMPACT_AT_PERCENT / 100)),
            calls_at_once: if self.calls_in_parallel(settings) { CALLS_AT_ONCE } else { 1 },
        }
    }

    /// Whether the model is told that it may make several calls at once, and such calls run side by side.
    fn calls_in_parallel(&self, settings: &Settings) -> bool {
        let is_wanted = self.setup.config.features.get("parallel").copied().unwrap_or(true);
        // With the least of thought the models that can make several calls at once cannot.
        let thinks = settings.effort != Some(ReasoningEffort::Minimal);
        is_wanted && thinks && self.models.info(&settings.model).calls_in_parallel
    }

    /// Asks the model, or asks again what it was asked last.
    pub(super) fn ask(&mut self, prompt: Option<Prompt>) {
        let Some(running) = &mut self.running else { return };
        if prompt.is_some() {
            running.prompt = prompt;
        }
        if let Some(prompt) = &running.prompt {
            running.work = Work::Answer(self.setup.model.ask(prompt.clone()));
        }
    }

    pub(super) fn count(&mut self, usage: Option<TokenUsage>, rate_limits: Option<RateLimitSnapshot>) {
        if let Some(usage) = usage {
            self.context.count(usage, self.context_window());
        }
        if let Some(limits) = rate_limits {
            self.context.limit(limits);
        }
        self.emit(Body::TokensCounted {
            info: self.context.usage(),
            rate_limits: Box::new(self.context.rate_limits()),
        });
        if let Some(usage) = usage {
            self.charge_goal(usage.total_tokens);
        }
    }

    /// The settings of the running turn, or of the next one when none is running.
    pub(super) fn turn_settings(&self) -> &Arc<Settings> {
        self.running.as_ref().map_or(&self.settings, |running| &running.settings)
    }

    pub(super) fn context_window(&self) -> Option<i64> {
        let configured = self.setup.config.model.context_window.and_then(|window| i64::try_from(window).ok());
        let window = configured.or(self.models.info(&self.turn_settings().model).context_window);
        // A model does not do well at the very end of its window; clients of the queue were told all of it.
        window.map(
            |window| {
                if self.setup.profile.history == HistoryMode::Full { window * USABLE_PERCENT / 100 } else { window }
            },
        )
    }

    pub(super) fn prompt(&self) -> Prompt {
        let Settings { model, effort, summary, verbosity, .. } = &**self.turn_settings();
        let reasons = self.models.info(model).reasons || effort.is_some();
        Prompt {
            thread: self.started.meta.id,
            model: model.clone(),
            instructions: Arc::clone(&self.instructions),
            input: self.context.input(),
            tools: Arc::clone(if self.offers_goal_tool() { &self.tools.with_goal } else { &self.tools.all }),
            parallel_tool_calls: self.calls_in_parallel(self.turn_settings()),
            reasoning: reasons.then(|| ReasoningRequest {
                effort: effort.clone(),
                summary: (*summary != ReasoningSummary::None).then(|| summary.clone()),
            }),
            verbosity: verbosity.clone(),
            output_schema: self.running.as_ref().and_then(|running| running.output_schema.clone()),
        }
    }

    /// The request for a summary: the conversation without tools, and what we want of it.
    pub(super) fn summary_prompt(&self, halvings: u32) -> Prompt {
        let mut input = self.context.input_without(halvings);
        input.extend(Record::new(ResponseItem::Message(Message::user(compaction::PROMPT))).map(|record| record.json));
        let tools = Arc::clone(&self.tools.none);
        Prompt { input, tools, parallel_tool_calls: false, output_schema: None, ..self.prompt() }
    }

    pub(super) fn put_summary(&mut self, summary: String) {
        let said = self.context.said();
        let plan = self.aims.plan.as_ref();
        let messages = Summary { text: &summary, said: &said, plan, history: self.setup.profile.history }.messages();
        let replacement: Vec<Record> = messages.into_iter().filter_map(|item| Record::new(item).ok()).collect();
        let (before, after) = self.context.replace(&replacement);
        let (before, after) = (before / BYTES_PER_TOKEN, after / BYTES_PER_TOKEN);
        let replacement = self.context.input();
        self.emit(Body::Compacted(Arc::new(Compacted { summary, replacement, before, after })));
        if let Some(mode) = self.environment.mode() {
            self.tell_model(mode);
        }
        self.aims.goal.start_over();
        self.log_goal();
        if self.setup.profile.history == HistoryMode::Full {
            // Clients show how full the window is, and it is not as full any more.
            self.context.estimate(after + self.instructions.len() / BYTES_PER_TOKEN);
            self.count(None, None);
        }
    }
}
