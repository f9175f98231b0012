//! From the lines of a file back to the log.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use codex_wire::error_info::CodexErrorInfo;
use codex_wire::event::{EventMsg, TurnAbortReason};
use codex_wire::ids::ThreadId;
use codex_wire::input::UserInput;
use codex_wire::plan::UpdatePlanArgs;
use codex_wire::policy::{AskForApproval, SandboxPolicy};
use codex_wire::reasoning::ReasoningSummary;
use codex_wire::response::ResponseItem;
use codex_wire::rollout::{RolloutItem, SessionMeta, TurnContextItem};
use codex_wire::text::Text;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::line::Line;
use crate::settings::{Mode, Settings};
use crate::stored::StoredItem;
use crate::{
    Abort, Body, Compacted, Delta, Event, Failure, Item, ItemId, Outcome, ReviewEntered, Seq, ThreadStarted, TurnId,
};

/// Reads the log of a thread from its lines.
#[derive(Debug)]
pub struct LogReader {
    path: PathBuf,
    thread: Option<ThreadId>,
    /// The first line, until the thread is ready.
    meta: Option<Box<SessionMeta>>,
    /// What its first turn ran under.
    context: Option<TurnContextItem>,
    /// The number of the event before: that of a line's last event is where the line ends, and all others have this one.
    number: Seq,
    /// The turn that runs.
    turn: Option<TurnId>,
    turns: u64,
    items: u64,
    /// Why the running turn failed; told when it ends.
    failure: Option<Failure>,
    at_ms: i64,
}

/// Which turn and which item a line is about, where it says so.
#[derive(Deserialize, Default)]
struct Names<'a> {
    turn_id: Option<String>,
    item_id: Option<String>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    goal: Option<&'a RawValue>,
}

impl LogReader {
    /// Reads that file, whose first turn ran under this.
    #[must_use]
    pub fn new(path: &Path, context: Option<TurnContextItem>) -> Self {
        Self {
            path: path.to_owned(),
            thread: None,
            meta: None,
            context,
            number: Seq::default(),
            turn: None,
            turns: 0,
            items: 0,
            failure: None,
            at_ms: 0,
        }
    }

    /// Takes a line.
    pub fn take(&mut self, line: &Line<'_>, out: &mut Vec<Event>) {
        let before = out.len();
        self.take_line(line, out);
        self.number = Seq::at(line.range.end);
        if let Some(event) = out[before..].last_mut() {
            event.seq = self.number;
        }
    }

    fn take_line(&mut self, line: &Line<'_>, out: &mut Vec<Event>) {
        if let Ok(time) = chrono::DateTime::parse_from_rfc3339(&line.timestamp) {
            self.at_ms = time.timestamp_millis();
        }
        let Some(decoded) = line.decode() else { return };
        let names = || serde_json::from_str::<Names<'_>>(line.payload.get()).unwrap_or_default();
        match decoded.item {
            RolloutItem::SessionMeta(meta) if self.thread.is_none() => {
                self.thread = Some(meta.id);
                self.meta = Some(meta);
            }
            RolloutItem::EventMsg(EventMsg::TaskStarted(started)) => {
                self.begin(names().turn_id, started.model_context_window, out);
            }
            // Whatever a client was told came after the thread was ready.
            RolloutItem::EventMsg(message) => self.told(message, names(), out),
            RolloutItem::ResponseItem(ResponseItem::FunctionCall(call)) if call.name == "update_plan" => {
                if let Ok(plan) = serde_json::from_str::<UpdatePlanArgs>(&call.arguments) {
                    self.push(Body::PlanUpdated(plan), out);
                }
            }
            RolloutItem::Compacted(compacted) if !compacted.message.is_empty() => {
                let (summary, replacement) = (compacted.message, Vec::new());
                let compacted = Compacted { summary, replacement, before: 0, after: 0 };
                self.push(Body::Compacted(Arc::new(compacted)), out);
            }
            RolloutItem::SessionMeta(_)
            | RolloutItem::ResponseItem(_)
            | RolloutItem::Compacted(_)
            | RolloutItem::TurnContext(_)
            | RolloutItem::Other(_) => {}
        }
    }

    /// Ends what nobody has ended.
    pub fn finish(&mut self, out: &mut Vec<Event>) {
        self.start(out);
        if self.turn.is_some() {
            self.end(Outcome::Aborted(Abort::Interrupted), out);
        }
    }

    /// Tells that the thread is ready, once.
    fn start(&mut self, out: &mut Vec<Event>) {
        let Some(meta) = self.meta.take() else { return };
        let context = self.context.take();
        let settings = Settings {
            cwd: context.as_ref().map_or_else(|| meta.cwd.clone(), |context| context.cwd.clone()),
            approval_policy: context.as_ref().map_or(AskForApproval::OnRequest, |context| context.approval_policy),
            sandbox_policy: context.as_ref().map_or(SandboxPolicy::ReadOnly, |context| context.sandbox_policy.clone()),
            model: context.as_ref().map(|context| context.model.clone()).unwrap_or_default(),
            effort: context.as_ref().and_then(|context| context.effort.clone()),
            summary: context.map_or(ReasoningSummary::Auto, |context| context.summary),
            verbosity: None,
            reviewer: codex_wire::policy::ApprovalsReviewer::User,
            held_back: None,
            mode: Mode::default(),
        };
        let started = ThreadStarted {
            settings: Arc::new(settings),
            provider: meta.model_provider.clone().unwrap_or_default(),
            meta: *meta,
            is_resumed: false,
            rollout: self.path.clone(),
            history_log: 0,
            history_entries: 0,
            instruction_sources: Vec::new(),
        };
        // The thread was ready before its first turn began, which may be waiting already.
        let started = self.event(None, Body::ThreadStarted(Box::new(started)));
        out.extend(started);
    }

    fn begin(&mut self, turn: Option<String>, context_window: Option<i64>, out: &mut Vec<Event>) {
        self.start(out);
        if self.turn.is_some() {
            self.end(Outcome::Aborted(Abort::Interrupted), out);
        }
        self.turns += 1;
        self.turn = Some(TurnId::new(turn.unwrap_or_else(|| self.turns.to_string())));
        self.push(Body::TurnStarted { context_window }, out);
    }

    fn end(&mut self, outcome: Outcome, out: &mut Vec<Event>) {
        let outcome = self.failure.take().map_or(outcome, Outcome::Failed);
        self.push(Body::TurnEnded(outcome), out);
        self.turn = None;
    }

    fn told(&mut self, message: EventMsg, names: Names<'_>, out: &mut Vec<Event>) {
        let item = names.item_id;
        match message {
            EventMsg::UserMessage(said) => {
                // Files of releases that kept no beginnings of turns have one for each thing said.
                if self.turn.is_none() {
                    self.begin(names.turn_id, None, out);
                }
                let images = said.images.into_iter().flatten().map(|image_url| UserInput::Image { image_url });
                let text = UserInput::Text { text: said.message, text_elements: said.text_elements };
                let content = std::iter::once(text).chain(images).collect();
                let id = self.name(item);
                self.whole(Item::UserMessage { id, key: None, content }, out);
            }
            EventMsg::AgentMessage(said) => self.said(item, said.message, out),
            EventMsg::AgentReasoning(thought) => self.thought(item, thought.text, out),
            EventMsg::TokenCount(count) => {
                let rate_limits = Box::new(count.rate_limits.unwrap_or_default());
                self.push(Body::TokensCounted { info: count.info, rate_limits }, out);
            }
            EventMsg::EnteredReviewMode(review) => {
                let (hint, prompt) = (review.user_facing_hint.unwrap_or_default(), review.prompt.unwrap_or_default());
                self.push(Body::ReviewEntered(Arc::new(ReviewEntered { target: review.target, hint, prompt })), out);
            }
            EventMsg::ExitedReviewMode(review) => {
                self.push(Body::ReviewExited(review.review_output.map(Arc::new)), out);
            }
            EventMsg::Warning(warning) => self.push(Body::Warning { message: warning.message }, out),
            EventMsg::Error(error) => {
                let info = error.codex_error_info.unwrap_or(CodexErrorInfo::Other);
                self.failure = Some(Failure { message: error.message, hint: None, info });
            }
            EventMsg::TaskComplete(done) => {
                let (last_message, bookmark) = (done.last_agent_message, done.response_id);
                self.end(Outcome::Completed { last_message, bookmark }, out);
            }
            EventMsg::TurnAborted(aborted) => self.end(Outcome::Aborted(abort(&aborted.reason)), out),
            _ if message.kind() == "goal_cleared" => self.push(Body::GoalCleared, out),
            _ if message.kind() == "goal_changed" => {
                if let Some(goal) = names.goal.and_then(|goal| serde_json::from_str(goal.get()).ok()) {
                    self.push(Body::GoalChanged(Arc::new(goal)), out);
                }
            }
            _ => {
                let stored = names.item.and_then(|item| serde_json::from_str::<StoredItem>(item.get()).ok());
                if let Some((begun, ended)) = stored.and_then(StoredItem::both) {
                    self.push(Body::ItemStarted(begun), out);
                    self.push(Body::ItemCompleted(ended), out);
                }
            }
        }
    }

    fn said(&mut self, item: Option<String>, text: Text, out: &mut Vec<Event>) {
        let id = self.name(item);
        self.push(Body::ItemStarted(Item::AgentMessage { id: id.clone(), text: Text::default() }), out);
        self.push(Body::ItemDelta { item: id.clone(), delta: Delta::Text(text.clone()) }, out);
        self.push(Body::ItemCompleted(Item::AgentMessage { id, text }), out);
    }

    fn thought(&mut self, item: Option<String>, text: String, out: &mut Vec<Event>) {
        let id = self.name(item);
        let empty = Item::Reasoning { id: id.clone(), summary: Vec::new(), raw: Vec::new() };
        self.push(Body::ItemStarted(empty), out);
        let delta = Delta::Summary { index: 0, text: text.as_str().into() };
        self.push(Body::ItemDelta { item: id.clone(), delta }, out);
        self.whole_only(Item::Reasoning { id, summary: vec![text], raw: Vec::new() }, out);
    }

    fn whole(&mut self, item: Item, out: &mut Vec<Event>) {
        self.push(Body::ItemStarted(item.clone()), out);
        self.whole_only(item, out);
    }

    fn whole_only(&mut self, item: Item, out: &mut Vec<Event>) {
        self.push(Body::ItemCompleted(item), out);
    }

    fn name(&mut self, given: Option<String>) -> ItemId {
        self.items += 1;
        ItemId::new(given.unwrap_or_else(|| format!("item-{}", self.items)))
    }

    fn push(&mut self, body: Body, out: &mut Vec<Event>) {
        self.start(out);
        let turn = self.turn.clone();
        out.extend(self.event(turn, body));
    }

    fn event(&self, turn: Option<TurnId>, body: Body) -> Option<Event> {
        Some(Event { thread: self.thread?, seq: self.number, at_ms: self.at_ms, turn, body })
    }
}

fn abort(reason: &TurnAbortReason) -> Abort {
    match reason {
        TurnAbortReason::Replaced => Abort::Replaced,
        TurnAbortReason::ReviewEnded => Abort::ReviewEnded,
        _ => Abort::Interrupted,
    }
}
