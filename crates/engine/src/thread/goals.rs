//! What others ask of a thread's goal.

use super::{Closed, Command, Thread};
use crate::goal::{Goal, GoalChange, GoalError};

impl Thread {
    /// Sets a goal, or changes how the present one stands, and returns it. A thread that does nothing begins to work
    /// towards a goal that is active.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn set_goal(&self, change: GoalChange) -> Result<Result<Goal, GoalError>, Closed> {
        let change = Box::new(change);
        self.ask(|reply| Command::SetGoal { change, reply }).await
    }

    /// The goal, if there is one.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn goal(&self) -> Result<Option<Goal>, Closed> {
        self.ask(|reply| Command::Goal { reply }).await
    }

    /// Takes the goal away; false if there is none. A turn that runs goes on.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn clear_goal(&self) -> Result<bool, Closed> {
        self.ask(|reply| Command::ClearGoal { reply }).await
    }
}
