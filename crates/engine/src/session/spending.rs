//! The budget of the session: what its work counts, and the end of work for which nothing is left.

use codex_log::state::ThreadState;
use codex_log::{Body, Failure, Outcome};
use codex_tools::call::ToolCall;
use codex_wire::budget::{BudgetEvent, BudgetReached, Used};
use codex_wire::error_info::CodexErrorInfo;
use tokio::time::Instant;

use super::Session;
use crate::budget::{Budget, Payer};
use crate::setup::Setup;
use crate::turn::Turn;

impl Session {
    /// Counts the time up to now. Waits for a person and for the account's allowance do not count.
    pub(super) fn count_time(&mut self) {
        if self.budget.is_counted() {
            let waits = |turn: &Turn| turn.waits_for_allowance();
            let works = self.turn.as_ref().is_some_and(|turn| !waits(&turn.machine)) && !self.only_asks();
            self.budget.tick(Instant::now().into_std(), works);
        }
    }

    /// Counts a request to the model, or returns the end of a turn that must not make one.
    pub(super) fn spend_request(&mut self) -> Option<Outcome> {
        if !self.budget.is_counted() {
            return None;
        }
        self.count_time();
        let model = &self.turn_settings().model;
        if self.budget.needs_price() && self.setup.config.price_of(model).is_none() {
            return Some(without_price(model));
        }
        match self.budget.ask() {
            Ok(()) => self.charge_above(),
            Err(reached) => return Some(self.run_out(reached)),
        }
        None
    }

    /// The end of a turn that must not make a call. The user's own commands are not the model's.
    pub(super) fn refuse_call(&mut self, call: &ToolCall) -> Option<Outcome> {
        if !self.budget.is_counted() || !self.has_models_turn() {
            return None;
        }
        let is_command = || self.calls.lifecycle.registry().snapshot().find(call).is_command(call);
        let of_command = || self.budget.may_begin_command().err().filter(|_| is_command());
        let reached = self.budget.exceeded().or_else(of_command)?;
        Some(self.run_out(reached))
    }

    /// Counts a command that has begun.
    pub(super) fn spend_command(&mut self) {
        if self.budget.is_counted() {
            self.budget.command_began();
            self.charge_above();
        }
    }

    /// Counts an answer.
    pub(super) fn spend_answer(&mut self, tokens: i64, cost: f64) {
        if self.budget.is_counted() {
            self.count_time();
            self.budget.answered(tokens, cost);
            self.charge_above();
            self.tell_used();
        }
    }

    /// Counts what agents below have used, and ends the work that nothing is left for.
    pub(super) async fn spend_below(&mut self, used: Used) {
        if self.budget.is_counted() {
            self.budget.used_below(used);
            // An agent below tells its answers, commands and time one by one. Those after its last answer can be lost.
            if used.tokens > 0 {
                self.tell_used();
            }
            self.enforce_budget().await;
        }
    }

    /// The end of a turn, in which everything that it has used is counted.
    pub(super) fn settle_turn(&mut self, outcome: Outcome) -> Outcome {
        if !self.budget.is_counted() {
            return outcome;
        }
        self.count_time();
        self.charge_above();
        let is_done = matches!(outcome, Outcome::Completed { .. }) && self.has_models_turn();
        let outcome = match self.budget.exceeded().filter(|_| is_done) {
            Some(reached) => self.run_out(reached),
            None => outcome,
        };
        self.tell_used();
        outcome
    }

    /// Counts the time of a turn when a limit may be reached, or the agents above wait for it.
    pub(super) async fn budget_due(&mut self) {
        self.count_time();
        self.charge_above();
        self.enforce_budget().await;
    }

    /// Ends the turn and the agents below if a limit is exceeded. A thread without a turn warns once.
    async fn enforce_budget(&mut self) {
        let Some(reached) = self.budget.exceeded() else { return };
        if self.has_models_turn() {
            let outcome = self.run_out(reached);
            return Box::pin(self.stop_with(outcome)).await;
        }
        if self.budget.report(reached.limit) {
            let message = reached.to_string();
            self.run_out(reached);
            self.emit(Body::Warning { message });
        } else if let Some(agents) = &self.calls.agents {
            agents.cancel_below(&reached.to_string());
        }
        self.publish().await;
    }

    /// Logs that a limit is reached, cancels the agents below, and returns the end of the turn.
    fn run_out(&mut self, reached: BudgetReached) -> Outcome {
        let (message, used) = (reached.to_string(), self.budget.tell());
        self.budget.report(reached.limit);
        self.emit(Body::Budget(BudgetEvent::Reached { reached, used }));
        if let Some(agents) = &self.calls.agents {
            agents.cancel_below(&message);
        }
        let hint = Some("raise the limit, or start a new thread");
        Outcome::Failed(Failure { message, hint, info: CodexErrorInfo::SessionBudgetExceeded })
    }

    fn charge_above(&mut self) {
        if let Some(agents) = &self.calls.agents
            && let Some(used) = self.budget.take_uncharged()
        {
            agents.charge(used);
        }
    }

    fn tell_used(&mut self) {
        if let Some(used) = self.budget.take_untold() {
            self.emit(Body::Budget(BudgetEvent::Used { used }));
        }
    }

    /// Tells the log again what was used, after a compaction: readers of the file begin there.
    pub(super) fn log_used(&mut self) {
        if let Some(used) = self.budget.whole() {
            self.emit(Body::Budget(BudgetEvent::Used { used }));
        }
    }

    /// The use of the original is not that of its copy.
    pub(super) fn forget_used(&mut self) {
        if self.state.used.is_some() {
            self.emit(Body::Budget(BudgetEvent::Used { used: Used::default() }));
        }
    }

    /// Whether a turn of the model runs. One that only compacts makes no calls, and ends with its answer.
    fn has_models_turn(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.machine.is_for_user())
    }
}

/// The budget of a thread with this state. A copy of another thread has used nothing yet.
pub(super) fn budget_of(setup: &Setup, state: &ThreadState, is_copy: bool) -> Budget {
    let (thread, run) = (setup.config.budget(), setup.run_budget);
    let payer = match setup.child {
        Some(_) => Payer::Above { thread, run },
        None => Payer::Own { thread, run },
    };
    let counted = || {
        let info = state.tokens.info.as_ref()?;
        let (tokens, cost) = (info.total_token_usage.total_tokens, info.thread_cost.unwrap_or_default());
        Some(Used { tokens, cost, ..Used::default() })
    };
    let used = state.used.or_else(counted).filter(|_| !is_copy);
    Budget::new(payer, used.unwrap_or_default())
}

/// The end of a turn whose cost is limited and could not be counted.
fn without_price(model: &str) -> Outcome {
    let message = format!("no price is set for the model {model}, so its cost cannot be limited");
    let hint = Some("add a table [prices.\"MODEL\"] to config.toml, or remove the limit of the cost");
    Outcome::Failed(Failure { message, hint, info: CodexErrorInfo::Other })
}
