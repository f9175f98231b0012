//! The budget of a thread as a machine without I/O.
//!
//! It counts what the thread uses and what it is told about the agents below it, and says when a limit is reached.
//!
//! Invariant: what was used never shrinks, and every part of it that this thread has used itself is charged to the
//! agents above exactly once.

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use codex_config::BudgetConfig;
use codex_wire::budget::{BudgetLimit, BudgetReached, Used};

/// The interval at which a thread reports its time to the agents above.
const REPORT: Duration = Duration::from_secs(5);

/// Limits, and what was used before they began to count.
#[derive(Debug, Clone, Copy)]
struct Allowance {
    limits: BudgetConfig,
    before: Used,
}

/// Who pays for a thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Payer {
    /// The thread itself: by limits that hold as long as it exists, and by those of this run of the program.
    Own { thread: BudgetConfig, run: BudgetConfig },
    /// The agents above it, of which the root has these limits.
    Above { thread: BudgetConfig, run: BudgetConfig },
}

/// The budget of a thread.
#[derive(Debug)]
pub(crate) struct Budget {
    allowances: Vec<Allowance>,
    used: Used,
    /// The use that the log tells.
    told: Used,
    /// The use that the agents above are not charged for yet.
    uncharged: Option<Used>,
    /// The start of the time that is not counted yet, while the thread works.
    since: Option<Instant>,
    /// The limit that was reported last.
    reported: Option<BudgetLimit>,
    /// Whether the time is limited, here or above.
    is_timed: bool,
    /// Whether the cost is limited, here or above.
    is_priced: bool,
}

impl Budget {
    /// The budget of a thread that has used this much.
    pub(crate) fn new(payer: Payer, used: Used) -> Self {
        let before = Used::default();
        let (allowances, limits, uncharged) = match payer {
            Payer::Own { thread, run } => {
                let of_thread = Allowance { limits: thread, before };
                let of_run = Allowance { limits: run, before: used };
                (vec![of_thread, of_run], [thread, run], None)
            }
            Payer::Above { thread, run } => (Vec::new(), [thread, run], Some(Used::default())),
        };
        let allowances = allowances.into_iter().filter(|allowance| allowance.limits != BudgetConfig::default());
        Self {
            allowances: allowances.collect(),
            used,
            told: used,
            uncharged,
            since: None,
            reported: None,
            is_timed: limits.iter().any(|limits| limits.seconds.is_some()),
            is_priced: limits.iter().any(|limits| limits.cost.is_some()),
        }
    }

    /// Whether anybody wants to know what is used.
    pub(crate) fn is_counted(&self) -> bool {
        self.is_limited() || self.uncharged.is_some()
    }

    fn is_limited(&self) -> bool {
        !self.allowances.is_empty()
    }

    /// Whether a model without a price must not be asked.
    pub(crate) fn needs_price(&self) -> bool {
        self.is_priced
    }

    /// The time has come this far. From here on it counts only if the thread works.
    pub(crate) fn tick(&mut self, now: Instant, works: bool) {
        if let Some(since) = self.since {
            let passed = now.saturating_duration_since(since).as_millis();
            let time_ms = u64::try_from(passed).unwrap_or(u64::MAX);
            self.count(Used { time_ms, ..Used::default() });
        }
        self.since = works.then_some(now);
    }

    /// Counts a request to the model, unless nothing is left for it.
    pub(crate) fn ask(&mut self) -> Result<(), BudgetReached> {
        let reached = self.find(|used, limit| match limit {
            BudgetLimit::Tokens(most) => used.tokens >= most,
            BudgetLimit::Cost(most) => used.cost >= most,
            BudgetLimit::Seconds(most) => used.time_ms >= millis(most),
            BudgetLimit::Commands(most) => used.commands > most,
            BudgetLimit::Requests(most) => used.requests >= most,
        });
        if let Some(reached) = reached {
            return Err(reached);
        }
        self.count(Used { requests: 1, ..Used::default() });
        Ok(())
    }

    /// Whether a command may begin.
    pub(crate) fn may_begin_command(&self) -> Result<(), BudgetReached> {
        self.find(|used, limit| matches!(limit, BudgetLimit::Commands(most) if used.commands >= most))
            .map_or(Ok(()), Err)
    }

    /// Counts a command.
    pub(crate) fn command_began(&mut self) {
        self.count(Used { commands: 1, ..Used::default() });
    }

    /// Counts an answer.
    pub(crate) fn answered(&mut self, tokens: i64, cost: f64) {
        self.count(Used { tokens, cost, ..Used::default() });
    }

    /// Counts what agents below have used. The agents above know it.
    pub(crate) fn used_below(&mut self, used: Used) {
        self.used += used;
    }

    /// The limit that was exceeded.
    pub(crate) fn exceeded(&self) -> Option<BudgetReached> {
        self.find(|used, limit| match limit {
            BudgetLimit::Tokens(most) => used.tokens > most,
            BudgetLimit::Cost(most) => used.cost > most,
            // A turn that ends at the last moment is an accident, not a plan.
            BudgetLimit::Seconds(most) => used.time_ms >= millis(most),
            BudgetLimit::Commands(most) => used.commands > most,
            BudgetLimit::Requests(most) => used.requests > most,
        })
    }

    /// The time after which [`Self::tick`] is due.
    pub(crate) fn due_in(&self) -> Option<Duration> {
        self.since.filter(|_| self.is_timed)?;
        if self.uncharged.is_some() {
            return Some(REPORT);
        }
        let left = |allowance: &Allowance| {
            let most = millis(allowance.limits.seconds?);
            Some(most.saturating_sub((self.used - allowance.before).time_ms))
        };
        self.allowances.iter().filter_map(left).min().map(Duration::from_millis)
    }

    /// Notes that a limit is reported; false if it was the last one that was.
    pub(crate) fn report(&mut self, limit: BudgetLimit) -> bool {
        self.reported.replace(limit) != Some(limit)
    }

    /// The use so far, for an event of the log.
    pub(crate) fn tell(&mut self) -> Used {
        self.told = self.used;
        self.used
    }

    /// The use so far, for the log, if the thread has a budget and the log does not tell it.
    pub(crate) fn take_untold(&mut self) -> Option<Used> {
        let is_new = self.is_limited() && self.used != self.told;
        is_new.then(|| self.tell())
    }

    /// The use so far, for a log whose readers begin here.
    pub(crate) fn whole(&mut self) -> Option<Used> {
        let is_known = self.is_limited() && self.used != Used::default();
        is_known.then(|| self.tell())
    }

    /// The use that the agents above have to be charged for.
    pub(crate) fn take_uncharged(&mut self) -> Option<Used> {
        let uncharged = self.uncharged.as_mut().map(std::mem::take)?;
        (uncharged != Used::default()).then_some(uncharged)
    }

    fn count(&mut self, used: Used) {
        self.used += used;
        if let Some(uncharged) = &mut self.uncharged {
            *uncharged += used;
        }
    }

    /// The first limit for which this holds, those of the thread first.
    fn find(&self, is_reached: impl Fn(Used, BudgetLimit) -> bool) -> Option<BudgetReached> {
        self.allowances.iter().find_map(|Allowance { limits, before }| {
            let spent = self.used - *before;
            let limit = limits_of(limits).into_iter().flatten().find(|limit| is_reached(spent, *limit))?;
            Some(BudgetReached { limit, spent })
        })
    }
}

fn limits_of(limits: &BudgetConfig) -> [Option<BudgetLimit>; 5] {
    [
        limits.requests.map(BudgetLimit::Requests),
        limits.commands.map(BudgetLimit::Commands),
        limits.tokens.map(BudgetLimit::Tokens),
        limits.cost.map(BudgetLimit::Cost),
        limits.seconds.map(BudgetLimit::Seconds),
    ]
}

fn millis(seconds: u64) -> u64 {
    seconds.saturating_mul(1000)
}
