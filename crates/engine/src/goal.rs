//! The goal of a thread as a machine without I/O: its objective, its cost, and whether the thread continues by itself.
//!
//! Invariant: a thread never continues by itself without a bound. It stops when the goal is no longer active, when a
//! turn did nothing new, and after a number of turns without input from a person.

#[cfg(test)]
mod tests;

use codex_thread::goal::{GoalChange, GoalError, LONGEST_OBJECTIVE};
use codex_wire::goal::{Goal, GoalStatus};
use tokio::time::Instant;

/// The maximum number of consecutive turns that the thread may start by itself without calling a tool.
const MOST_IDLE_TURNS: u32 = 3;

/// The maximum number of consecutive turns that the thread may start by itself without input from a person.
const MOST_OWN_TURNS: u32 = 200;

/// The message for the model when a turn has ended and the goal is still active.
const GO_ON: &str = "<goal>\nThe goal is still active, and nobody has said anything since. Take the next step towards \
                     it. If it is reached, check that, and call `update_goal` with `complete`. If you cannot go on \
                     without the person, call it with `blocked`.\n</goal>";

/// The message for the model when the token budget is exhausted.
const BUDGET_USED_UP: &str = "<goal>\nThe tokens set aside for the goal are used up. Begin nothing new: say in a few \
                              sentences what is done and what is left.\n</goal>";

/// The message for the model when the goal ended, unless the model ended it.
const PUT_ASIDE: &str = "<goal>\nThe goal was put aside. Do what the person says, and no more.\n</goal>";

/// The end of a turn, as far as it matters for a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnEnd<'a> {
    /// The model had nothing more to do; this was its last message.
    Completed(Option<&'a str>),
    /// Other work replaced it.
    Replaced,
    /// The thread is being closed.
    Left,
    /// The account's allowance is exhausted.
    UsageLimited,
    /// A person interrupted it, or it failed.
    Stopped,
}

/// A goal while a thread works towards it.
#[derive(Debug, Default)]
pub(crate) struct GoalState {
    goal: Option<Goal>,
    /// Whether the goal starts turns. Clients that do not know goals expect no turns that they did not start.
    is_followed: bool,
    /// The pending message about the goal; `None` once it is sent or the model has ended the goal.
    told: Option<String>,
    /// The start of the running turn, for its duration.
    since: Option<Instant>,
    turn: TurnSoFar,
    /// Whether the goal starts a turn as soon as none is running.
    is_due: bool,
    /// The number of consecutive turns that the goal started, and the number of those in which nothing was done.
    own_turns: u32,
    idle_turns: u32,
    /// The last message of the model in the previous turn.
    last_said: Option<String>,
    /// Whether the goal has changed since it was last written to the log.
    is_changed: bool,
}

/// The progress of the running turn.
#[derive(Debug, Default)]
struct TurnSoFar {
    /// Whether the goal started it, and a person has not joined in.
    is_own: bool,
    /// Whether the model was asked for an answer.
    has_asked: bool,
    /// Whether the model has called a tool.
    has_acted: bool,
}

impl GoalState {
    /// The goal of a resumed thread. It waits for input from a person. A file may contain anything; a goal that could
    /// not have been set is ignored.
    pub(crate) fn resumed(goal: Option<Goal>, is_followed: bool) -> Self {
        let goal = goal.filter(|goal| objective_fits(&goal.objective).is_ok());
        Self { goal, is_followed, ..Self::default() }
    }

    /// The goal.
    pub(crate) fn goal(&self) -> Option<&Goal> {
        self.goal.as_ref()
    }

    /// Whether the thread works towards it.
    pub(crate) fn is_active(&self) -> bool {
        self.is_followed && self.goal.as_ref().is_some_and(Goal::is_active)
    }

    /// Whether the goal starts a turn, now that none is running.
    pub(crate) fn is_due(&self) -> bool {
        self.is_due && self.is_active()
    }

    /// The goal, if its change has to be written to the log.
    pub(crate) fn take_changed(&mut self) -> Option<Goal> {
        if std::mem::take(&mut self.is_changed) { self.goal.clone() } else { None }
    }

    /// Sets a goal, or changes the current one.
    pub(crate) fn set(&mut self, change: GoalChange, is_running: bool, now: i64) -> Result<Goal, GoalError> {
        self.charge();
        let changed = changed(self.goal.as_ref(), &change, now);
        if let Ok(goal) = &changed {
            self.is_followed = true;
            self.is_changed |= self.goal.as_ref() != Some(goal);
            if goal.is_active() && (change.objective.is_some() || change.status.is_some()) {
                (self.is_due, self.own_turns, self.idle_turns, self.last_said) = (!is_running, 0, 0, None);
            }
            self.goal = Some(goal.clone());
        }
        if is_running {
            self.start_clock();
        }
        changed
    }

    /// Removes the goal; false if there is none.
    pub(crate) fn clear(&mut self) -> bool {
        (self.since, self.is_due, self.is_changed) = (None, false, false);
        self.goal.take().is_some()
    }

    /// Sets the status that the model reports; false if there is no active goal.
    pub(crate) fn report(&mut self, status: GoalStatus, now: i64) -> bool {
        let is_active = self.is_active();
        if is_active {
            self.become_status(status, now);
            // The model need not be informed of its own report.
            self.told = None;
        }
        is_active
    }

    /// Records that a turn begins.
    pub(crate) fn begin_turn(&mut self) {
        self.turn = TurnSoFar::default();
        self.start_clock();
    }

    /// The input of a turn that the goal starts.
    pub(crate) fn next_step(&mut self) -> String {
        self.note().unwrap_or_else(|| GO_ON.to_owned())
    }

    /// Records that the goal started the turn that has just begun.
    pub(crate) fn begin_own(&mut self) {
        (self.turn.is_own, self.is_due) = (true, false);
        self.own_turns += 1;
    }

    /// Records that a person has sent input to the running turn.
    pub(crate) fn person_spoke(&mut self) {
        (self.turn.is_own, self.is_due, self.own_turns, self.idle_turns) = (false, false, 0, 0);
    }

    /// Records that the model has called a tool.
    pub(crate) fn act(&mut self) {
        self.turn.has_acted = true;
    }

    /// The message about the goal that the model needs before the next request, if any.
    pub(crate) fn note(&mut self) -> Option<String> {
        self.turn.has_asked = true;
        let status = self.goal.as_ref().filter(|_| self.is_followed).map(|goal| goal.status);
        let text = match (status, &self.goal) {
            (Some(GoalStatus::Active), Some(goal)) => describe(goal),
            _ if self.told.is_none() => return None,
            (Some(GoalStatus::BudgetLimited), _) => BUDGET_USED_UP.to_owned(),
            _ => PUT_ASIDE.to_owned(),
        };
        if self.told.as_ref() == Some(&text) {
            return None;
        }
        self.told = Some(text.clone());
        Some(text)
    }

    /// Records that the message about the goal may be gone from the conversation.
    pub(crate) fn forget_told(&mut self) {
        self.told = None;
    }

    /// Records that the conversation was replaced. Readers of the file start there too, so the goal has to be written
    /// again.
    pub(crate) fn start_over(&mut self) {
        self.forget_told();
        self.is_changed = self.goal.is_some();
    }

    /// Counts tokens; true if they exhausted the budget.
    pub(crate) fn count(&mut self, tokens: i64, now: i64) -> bool {
        self.since.is_some() && self.count_below(tokens, now)
    }

    /// Counts tokens of agents below, which may work between turns; true if they exhausted the budget.
    pub(crate) fn count_below(&mut self, tokens: i64, now: i64) -> bool {
        if !self.is_active() {
            return false;
        }
        let Some(goal) = &mut self.goal else { return false };
        goal.tokens_used = goal.tokens_used.saturating_add(tokens.max(0));
        let is_over = goal.is_budget_used_up();
        if is_over {
            self.become_status(GoalStatus::BudgetLimited, now);
        }
        is_over
    }

    /// Records that the turn has ended. Returns a warning for the user.
    pub(crate) fn end_turn(&mut self, end: TurnEnd<'_>, now: i64) -> Option<String> {
        self.charge();
        if let Some(goal) = self.goal.as_mut().filter(|_| self.is_changed) {
            goal.updated_at = now;
        }
        if !self.is_active() {
            self.is_due = false;
            return None;
        }
        match end {
            TurnEnd::Completed(said) => return self.end_completed(said, now),
            TurnEnd::Replaced => self.is_due = true,
            TurnEnd::Left => {}
            TurnEnd::UsageLimited => self.become_status(GoalStatus::UsageLimited, now),
            TurnEnd::Stopped => self.become_status(GoalStatus::Paused, now),
        }
        None
    }

    fn end_completed(&mut self, said: Option<&str>, now: i64) -> Option<String> {
        if !self.turn.has_asked {
            return None;
        }
        let said = said.map(str::trim).filter(|said| !said.is_empty()).map(str::to_owned);
        let says_nothing_new = said.is_none() || said == self.last_said;
        self.last_said = said;
        if !self.turn.is_own || self.turn.has_acted {
            self.idle_turns = 0;
        } else {
            self.idle_turns += 1;
            if says_nothing_new || self.idle_turns >= MOST_IDLE_TURNS {
                self.become_status(GoalStatus::Blocked, now);
                return None;
            }
        }
        if self.own_turns >= MOST_OWN_TURNS {
            self.become_status(GoalStatus::Paused, now);
            return Some(format!("the goal was paused: {MOST_OWN_TURNS} turns in a row without a word from anybody"));
        }
        self.is_due = true;
        None
    }

    fn become_status(&mut self, status: GoalStatus, now: i64) {
        self.charge();
        if let Some(goal) = &mut self.goal {
            (goal.status, goal.updated_at) = (status, now);
            self.is_changed = true;
        }
        self.is_due = false;
    }

    fn start_clock(&mut self) {
        self.since = self.is_active().then(Instant::now);
    }

    /// Adds the duration of the running turn, and stops the clock.
    fn charge(&mut self) {
        if let (Some(since), Some(goal)) = (self.since.take(), &mut self.goal) {
            let passed = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
            goal.time_used_ms = goal.time_used_ms.saturating_add(passed);
            self.is_changed = true;
        }
    }
}

fn objective_fits(objective: &str) -> Result<(), GoalError> {
    match objective.chars().count() {
        0 => Err(GoalError::EmptyObjective),
        1..=LONGEST_OBJECTIVE => Ok(()),
        characters => Err(GoalError::LongObjective { characters }),
    }
}

/// The goal that results from a change.
fn changed(present: Option<&Goal>, change: &GoalChange, now: i64) -> Result<Goal, GoalError> {
    let objective = change.objective.as_deref().map(str::trim);
    objective.map_or(Ok(()), objective_fits)?;
    if let Some(Some(budget)) = change.token_budget
        && budget <= 0
    {
        return Err(GoalError::NoBudget { budget });
    }
    // Naming the current objective again does not create a new goal, unless the current one is complete.
    let is_same = |goal: &&Goal| {
        objective.is_none_or(|objective| objective == goal.objective && goal.status != GoalStatus::Complete)
    };
    let goal = match (present.filter(is_same), objective) {
        (Some(present), _) => Goal {
            status: change.status.unwrap_or(present.status),
            token_budget: change.token_budget.unwrap_or(present.token_budget),
            ..present.clone()
        },
        (None, Some(objective)) => Goal {
            objective: objective.to_owned(),
            status: change.status.unwrap_or(GoalStatus::Active),
            token_budget: change.token_budget.flatten(),
            tokens_used: 0,
            time_used_ms: 0,
            created_at: now,
            updated_at: now,
        },
        (None, None) => return Err(GoalError::NoGoal),
    };
    within_budget(Goal { updated_at: if Some(&goal) == present { goal.updated_at } else { now }, ..goal }, change)
}

/// A goal with an exhausted budget cannot be active: a request to activate it is refused, and a smaller budget ends it.
fn within_budget(goal: Goal, change: &GoalChange) -> Result<Goal, GoalError> {
    match goal.token_budget.filter(|_| goal.is_active() && goal.is_budget_used_up()) {
        None => Ok(goal),
        Some(budget) if change.status.is_some() => Err(GoalError::BudgetUsedUp { budget }),
        Some(_) => Ok(Goal { status: GoalStatus::BudgetLimited, ..goal }),
    }
}

/// The description of an active goal for the model.
fn describe(goal: &Goal) -> String {
    let budget = goal.token_budget.map(|budget| format!("\n\nAbout {budget} tokens may be used for it in all."));
    let budget = budget.unwrap_or_default();
    format!(
        "<goal>\nThe person has set a goal for this thread. Work towards it, step by step; you are asked to go on after \
         each turn:\n\n{}{budget}\n\nWhen it is reached, and you have checked that it is, call `update_goal` with \
         `complete`. When you cannot go on without the person, say why and call it with `blocked`.\n</goal>",
        goal.objective
    )
}
