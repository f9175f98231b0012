//! A single run: a turn from start to end, however it ends.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use codex_log::settings::SettingsChange;
use codex_log::{Body, Event, Outcome, Question, TurnId};
use codex_model::{AnswerSchema, SchemaSupport};
use codex_thread::{Children, Closed, Feed, Thread, TurnStart};
use codex_wire::budget::{BudgetEvent, BudgetLimit, BudgetReached};
use codex_wire::ids::ThreadId;
use codex_wire::input::UserInput;
use codex_wire::review::ReviewRequest;
use codex_wire::text::Text;
use tokio::time::{Instant, sleep_until};

use super::approvals::{Answerer, Asked};
use super::input;
use super::show::RunOutput;
use crate::signals::Stop;

/// The warning about a last message that does not match the schema.
const UNFIT: &str = "the last message does not follow the schema";

pub(crate) enum Task {
    /// User input.
    Say(Vec<UserInput>),
    Review(ReviewRequest),
    /// The turn of an earlier run, which waits for the account's allowance.
    Continue,
}

#[derive(Debug, Default)]
pub(crate) struct Limits {
    pub(crate) deadline: Option<Instant>,
    /// The time limit that the deadline was computed from.
    pub(crate) timeout: Option<Duration>,
    /// The maximum time without activity.
    pub(crate) idle: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Completed,
    Failed,
    /// An approval was needed.
    ApprovalNeeded,
    /// A budget was exceeded.
    BudgetSpent,
    TimedOut,
    Interrupted,
}

impl Ending {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Completed => 0,
            Self::Failed => 1,
            Self::ApprovalNeeded => 3,
            Self::BudgetSpent => 4,
            Self::TimedOut => 124,
            Self::Interrupted => 130,
        }
    }
}

pub(crate) struct Drive {
    pub(crate) thread: Thread,
    children: Children,
    pub(crate) show: RunOutput,
    pub(crate) answerer: Answerer,
    pub(crate) limits: Limits,
    pub(crate) schema: Option<AnswerSchema>,
    pub(crate) last_message: Option<Text>,
    /// Whether the provider claims to enforce schemas.
    pledge: SchemaSupport,
    /// The last message before the model was asked to correct it, once it was.
    unmended: Option<Text>,
    /// The reason why the run was stopped, once it was, and its message.
    stopped: Option<(Ending, String)>,
    /// Whether the turn waits for the account's allowance.
    waits_for_limit: bool,
}

fn seconds(limit: Option<Duration>) -> String {
    format!("{} s", limit.unwrap_or_default().as_secs_f64())
}

/// An event that wakes the run.
enum Wake {
    Event(Option<Arc<Event>>),
    /// An event of a child agent.
    Child(Thread, Arc<Event>),
    Answer(Asked),
    Stop(Ending, String),
    /// As above, but a turn that waits for the account's allowance is left to a later run.
    Leave(Ending, String),
}

impl Drive {
    pub(crate) fn new(
        thread: Thread,
        children: Children,
        show: RunOutput,
        answerer: Answerer,
        limits: Limits,
        checked: Option<(AnswerSchema, SchemaSupport)>,
    ) -> Self {
        let (last_message, unmended, stopped) = (None, None, None);
        let (schema, pledge) = checked.unzip();
        let pledge = pledge.unwrap_or_default();
        Self {
            thread,
            children,
            show,
            answerer,
            limits,
            schema,
            last_message,
            pledge,
            unmended,
            stopped,
            waits_for_limit: false,
        }
    }

    pub(crate) async fn run(&mut self, task: Task, mut feed: Feed, stop: &mut Stop) -> anyhow::Result<Ending> {
        match task {
            Task::Say(content) => self.say(content).await?,
            Task::Review(request) => self.thread.review(fresh_turn(), request).await?,
            Task::Continue if self.thread.running().await?.is_none() => anyhow::bail!(input::NO_PROMPT),
            Task::Continue => {}
        }
        let mut gone = pin!(self.show.is_gone());
        let mut last_event = Instant::now();
        loop {
            let wake = {
                let idle = self.limits.idle.map(|idle| last_event + idle);
                tokio::select! {
                    biased;
                    is_wanted = stop.is_interrupt(), if self.stopped.is_none() => {
                        let wake = if is_wanted { Wake::Stop } else { Wake::Leave };
                        wake(Ending::Interrupted, "interrupted".to_owned())
                    }
                    () = &mut gone, if self.stopped.is_none() => {
                        Wake::Stop(Ending::Failed, "the reader of the output is gone".to_owned())
                    }
                    () = until(self.limits.deadline), if self.stopped.is_none() => {
                        Wake::Leave(Ending::TimedOut, format!("timed out after {}", seconds(self.limits.timeout)))
                    }
                    () = until(idle), if self.stopped.is_none() => {
                        Wake::Leave(Ending::TimedOut, format!("no activity for {}", seconds(self.limits.idle)))
                    }
                    asked = self.answerer.next() => Wake::Answer(asked),
                    event = feed.next() => Wake::Event(event),
                    (thread, event) = self.children.next() => Wake::Child(thread, event),
                }
            };
            last_event = Instant::now();
            match wake {
                Wake::Leave(ending, why) if self.waits_for_limit => {
                    self.show.fail(&why)?;
                    return Ok(ending);
                }
                Wake::Stop(ending, why) | Wake::Leave(ending, why) => self.stop(ending, why).await,
                Wake::Answer(asked) => self.asked(asked).await?,
                Wake::Child(thread, event) => self.take_child(&thread, &event).await?,
                Wake::Event(Some(event)) => {
                    if let Some(ending) = self.take(&event).await? {
                        return Ok(ending);
                    }
                }
                Wake::Event(None) => anyhow::bail!("the thread ended before its turn did"),
            }
        }
    }

    async fn say(&self, content: Vec<UserInput>) -> anyhow::Result<()> {
        let output_schema = self.schema.as_ref().map(|schema| schema.value().clone());
        let change = SettingsChange { output_schema, ..SettingsChange::default() };
        let start = self.thread.say(fresh_turn(), content, change).await?;
        if let TurnStart::Refused(why) = start { Err(anyhow::anyhow!(why)) } else { Ok(()) }
    }

    /// Stops the turn. Its work is kept, and its end is still to come.
    async fn stop(&mut self, ending: Ending, why: String) {
        if self.stopped.is_none() {
            self.stopped = Some((ending, why));
            // If the thread has ended, there is nothing to stop.
            let _: Result<bool, Closed> = self.thread.interrupt().await;
        }
    }

    async fn asked(&mut self, asked: Asked) -> Result<(), Closed> {
        match asked {
            // The request may have ended with its turn.
            Asked::Answered { thread, question, decision } => {
                let origin = self.children.get(thread).unwrap_or(&self.thread);
                match origin.answer(question, decision.into()).await {
                    // A child that has ended needs no answer any more.
                    Err(Closed) if thread != self.thread.id() => Ok(()),
                    answered => answered.map(drop),
                }
            }
            Asked::Waits => Ok(()),
            Asked::Unanswerable => {
                self.stop(Ending::ApprovalNeeded, "an approval is needed and nobody can give it".to_owned()).await;
                Ok(())
            }
        }
    }

    /// Handles an event; returns the outcome if it was the last.
    async fn take(&mut self, event: &Event) -> anyhow::Result<Option<Ending>> {
        match &event.body {
            Body::LimitReached { goes_on, .. } => self.waits_for_limit = *goes_on,
            Body::ModelAsked(_) => self.waits_for_limit = false,
            _ => {}
        }
        match &event.body {
            Body::TurnEnded(outcome) => return self.turn_ended(event, outcome).await,
            // The turn that corrects the last message belongs to the one before.
            Body::TurnStarted { .. } if self.unmended.is_some() => self.show.pass(event),
            _ => self.show.event(event)?,
        }
        match &event.body {
            Body::ItemCompleted(item) => {
                if let Some(text) = item.answer() {
                    self.last_message = Some(text.clone());
                }
            }
            Body::Asked(question) => self.question(self.thread.id(), question).await?,
            Body::Agent(_) => self.children.follow(event).await,
            Body::Budget(BudgetEvent::Reached { reached, .. }) => {
                self.stopped.get_or_insert_with(|| (Ending::BudgetSpent, exhausted(reached)));
            }
            _ => {}
        }
        Ok(None)
    }

    /// Handles an event of a child agent: its questions are the client's, and its tokens are used by the run.
    async fn take_child(&mut self, thread: &Thread, event: &Event) -> anyhow::Result<()> {
        self.show.count_child(event);
        match &event.body {
            Body::Asked(question) => self.question(thread.id(), question).await?,
            Body::Agent(_) => self.children.follow(event).await,
            _ => {}
        }
        Ok(())
    }

    async fn question(&mut self, thread: ThreadId, question: &Arc<Question>) -> anyhow::Result<()> {
        let is_child = thread != self.thread.id();
        if self.answerer.asks_in_events() {
            self.show.ask(question, is_child.then_some(thread))?;
        }
        let asked = self.answerer.ask(thread, is_child, question);
        Ok(self.asked(asked).await?)
    }

    async fn turn_ended(&mut self, event: &Event, outcome: &Outcome) -> anyhow::Result<Option<Ending>> {
        let is_completed = matches!(outcome, Outcome::Completed { .. });
        if let Outcome::Completed { last_message: Some(text), .. } = outcome {
            self.last_message = Some(text.clone());
        }
        let complaint = if is_completed { self.complaint() } else { None };
        // A turn that completed before it could be stopped is complete, unless it would have to be corrected.
        if let Some((ending, why)) = self.stopped.take()
            && (!is_completed || complaint.is_some() || ending == Ending::BudgetSpent)
        {
            self.show.fail(&why)?;
            return Ok(Some(ending));
        }
        match (outcome, complaint, self.unmended.take()) {
            (_, Some(complaint), None) if self.pledge.is_given() => {
                self.unmended = Some(self.last_message.clone().unwrap_or_default());
                self.say(vec![mend(&complaint)]).await?;
                return Ok(None);
            }
            (_, Some(complaint), None) => self.warn(event, &format!("{UNFIT}: {complaint}"))?,
            (_, Some(complaint), Some(_)) => {
                self.show.fail(&format!("{UNFIT}: {complaint}"))?;
                return Ok(Some(Ending::Failed));
            }
            (Outcome::Failed(failure), None, Some(unmended)) => {
                self.warn(event, &format!("{UNFIT}, and could not be mended: {}", failure.message))?;
                self.last_message = Some(unmended.clone());
                let whole = Outcome::Completed { last_message: Some(unmended), bookmark: None };
                self.show.event(&Event { body: Body::TurnEnded(whole), ..event.clone() })?;
                return Ok(Some(Ending::Completed));
            }
            (_, None, _) => {}
        }
        self.show.event(event)?;
        Ok(Some(match outcome {
            Outcome::Completed { .. } => Ending::Completed,
            Outcome::Aborted(_) => Ending::Interrupted,
            Outcome::Failed(_) => Ending::Failed,
        }))
    }

    fn warn(&mut self, event: &Event, message: &str) -> std::io::Result<()> {
        self.show.event(&Event { body: Body::Warning { message: message.to_owned() }, ..event.clone() })
    }

    /// The problem with the last message.
    fn complaint(&self) -> Option<String> {
        self.schema.as_ref()?.complaint(self.last_message.as_deref().unwrap_or_default())
    }
}

fn mend(complaint: &str) -> UserInput {
    let text = format!(
        "Your last message does not follow the required JSON schema: {complaint}. \
         Give the same answer again as one JSON value that follows the schema, and nothing else."
    );
    UserInput::text(text)
}

/// The message about an exhausted budget.
fn exhausted(reached: &BudgetReached) -> String {
    match reached.limit {
        BudgetLimit::Cost(_) => reached.to_string(),
        limit => format!("{limit} exhausted"),
    }
}

fn fresh_turn() -> TurnId {
    TurnId::new(ThreadId::fresh().to_string())
}

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}
