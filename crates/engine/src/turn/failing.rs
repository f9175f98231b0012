//! The reaction of a turn to a failed answer: it retries, waits for the account's allowance, or ends.

use std::time::Duration;

use codex_log::{Body, Failure, Outcome};
use codex_model::Retry;
use codex_wire::error_info::CodexErrorInfo;

use super::{Effect, Limit, MOST_HALVINGS, Phase, Purpose, Turn, TurnId, TurnPolicy, Window};

/// The longest wait for an allowance: a little longer than the longest window of any account.
const LONGEST_LIMIT: Duration = Duration::from_secs(8 * 24 * 60 * 60);

/// The shortest wait, so that a provider that names a time in the past is not asked again immediately.
const SHORTEST_LIMIT: Duration = Duration::from_secs(5);

/// The maximum number of consecutive waits without an answer.
const MOST_LIMIT_WAITS: u32 = 10;

impl Turn {
    /// Resumes a turn that waits for the account's allowance, and returns its first effects.
    pub(crate) fn wait_again(
        id: &TurnId,
        failure: Failure,
        after: Duration,
        window: Window,
        policy: TurnPolicy,
    ) -> (Self, Vec<Effect>) {
        let mut turn = Self::new(id, window, policy);
        let mut effects = Vec::new();
        turn.wait_for_limit(failure, after, &mut effects);
        (turn, effects)
    }

    /// Whether [`Self::wait_again`] restores the same turn.
    pub(crate) fn waits_for_limit(&self) -> bool {
        self.phase == Phase::Limited && self.goes_on_later()
    }

    /// Whether it waits for the account's allowance.
    pub(crate) fn waits_for_allowance(&self) -> bool {
        self.phase == Phase::Limited
    }

    /// Retries after a wait, or ends the turn. Calls that were received before the break run first, and the answer to
    /// their outputs replaces the broken one, so that no work of the model is lost.
    pub(super) fn fail(&mut self, mut failure: Failure, retry: Retry, effects: &mut Vec<Effect>) {
        self.items.close();
        effects.push(Effect::Cancel);
        if let Retry::AtReset { after } = retry
            && self.may_wait_for_limit(after)
        {
            return self.wait_for_limit(failure, after, effects);
        }
        if let Purpose::Summary { goes_on } = self.purpose {
            if failure.info == CodexErrorInfo::ContextWindowExceeded && self.halvings < MOST_HALVINGS {
                self.halvings += 1;
                return self.ask_for_summary(goes_on, effects);
            }
            failure.message = format!("the conversation could not be compacted: {}", failure.message);
        }
        let after = match retry {
            Retry::Stream { after } if self.attempt < self.policy.retry_limit => after,
            Retry::Stream { .. } | Retry::AtReset { .. } | Retry::Never => {
                effects.push(Effect::BreakOff);
                self.drop_calls(effects);
                self.take_in_what_was_said(effects);
                return self.end(Outcome::Failed(failure), effects);
            }
        };
        self.attempt += 1;
        if failure.info == CodexErrorInfo::Other {
            failure.info = CodexErrorInfo::ResponseStreamDisconnected { http_status_code: None };
        }
        // Calls take time themselves, and the model is asked again when they have ended.
        let delay = match after {
            _ if !self.calls.is_empty() => Duration::ZERO,
            Some(after) => after,
            None => self.policy.backoff.delay(self.attempt),
        };
        let (attempt, limit) = (self.attempt, self.policy.retry_limit);
        effects.push(Effect::Emit(Body::AnswerRetried { failure, attempt, limit, delay }));
        if self.calls.is_empty() {
            self.phase = Phase::Waiting;
            effects.push(Effect::Wait(delay));
        } else {
            self.run_calls_or_ask(effects);
        }
    }

    fn may_wait_for_limit(&self, after: Duration) -> bool {
        // A refusal precedes any call of its answer. A call would have no output to ask with.
        self.policy.waits_for_limits
            && self.calls.is_empty()
            && after <= LONGEST_LIMIT
            && self.limit_waits < MOST_LIMIT_WAITS
    }

    fn wait_for_limit(&mut self, failure: Failure, after: Duration, effects: &mut Vec<Effect>) {
        self.limit_waits += 1;
        self.phase = Phase::Limited;
        let (after, goes_on) = (after.clamp(SHORTEST_LIMIT, LONGEST_LIMIT), self.goes_on_later());
        effects.push(Effect::WaitForLimit(Limit { failure, after, goes_on }));
    }

    /// Whether the log contains enough to resume the turn: it records neither a request for a summary nor input that
    /// waits for a summary.
    fn goes_on_later(&self) -> bool {
        self.joined.is_empty() && !matches!(self.purpose, Purpose::Summary { goes_on: false } | Purpose::Nothing)
    }

    /// Repeats the request that the account did not allow.
    pub(super) fn ask_after_limit(&mut self, effects: &mut Vec<Effect>) {
        match self.purpose {
            Purpose::Summary { goes_on } => self.ask_for_summary(goes_on, effects),
            Purpose::Answer | Purpose::Nothing => self.ask(effects),
        }
    }
}

pub(super) fn no_summary() -> Failure {
    Failure { message: "the model gave no summary".to_owned(), hint: None, info: CodexErrorInfo::Other }
}
