//! A call of a tool for agents, from its item to its output.

use std::sync::Arc;

use codex_log::item::{AgentActivity, AgentCall, CalledAgent};
use codex_log::{Answer, Body, Item, ItemId, Status};
use codex_tools::call::{ToolCall, ToolInput};
use codex_tools::context::ToolContext;
use codex_tools::lifecycle::{Call, Effect, ToolOutput};
use codex_wire::agent::AgentTool;
use codex_wire::ids::ThreadId;
use codex_wire::reasoning::ReasoningEffort;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;

use crate::handle::Inner;

/// The result of a call.
pub(crate) struct Outcome {
    /// The output for the model.
    pub(crate) text: String,
    pub(crate) is_success: bool,
    /// The agents that the call was about.
    pub(crate) agents: Vec<CalledAgent>,
    /// Something that has happened to one of them.
    pub(crate) activity: Option<Arc<AgentActivity>>,
}

impl Outcome {
    pub(crate) fn failed(why: impl ToString) -> Self {
        Self { text: why.to_string(), is_success: false, agents: Vec::new(), activity: None }
    }
}

impl Outcome {
    pub(crate) fn with_activity(self, activity: AgentActivity) -> Self {
        Self { activity: Some(Arc::new(activity)), ..self }
    }
}

/// The arguments of a call; none at all are as good as an empty object.
pub(crate) fn arguments_of<A: DeserializeOwned + Default>(call: &ToolCall) -> Result<A, String> {
    let text = match &call.input {
        ToolInput::Function(text) | ToolInput::Custom(text) => text.as_str(),
        ToolInput::UserShell { .. } => "",
    };
    if text.trim().is_empty() {
        return Ok(A::default());
    }
    serde_json::from_str(text).map_err(|error| format!("failed to parse function arguments: {error}"))
}

/// The parts of a call that its item shows, whichever set of tools it belongs to.
pub(crate) struct Told {
    pub(crate) tool: AgentTool,
    pub(crate) receivers: Vec<ThreadId>,
    pub(crate) prompt: Option<String>,
    /// The model and the effort that the call wishes for a new agent.
    pub(crate) new_agent: Option<(Option<String>, Option<ReasoningEffort>)>,
}

/// The agent that calls, and the circumstances of the call.
pub(crate) struct Caller {
    pub(crate) agent: Arc<Inner>,
    pub(crate) cx: Arc<ToolContext>,
    pub(crate) call_id: String,
}

/// Begins a call: clients see it with what its arguments tell, and `run` does the work.
pub(crate) fn begin<A, F>(
    agent: &Arc<Inner>,
    call: &ToolCall,
    cx: &Arc<ToolContext>,
    tell: impl FnOnce(&A) -> Told,
    run: impl FnOnce(Caller, A) -> F,
) -> Box<dyn Call>
where
    A: DeserializeOwned + Default,
    F: Future<Output = Result<Outcome, String>> + Send + 'static,
{
    let (arguments, why) = match arguments_of::<A>(call) {
        Ok(arguments) => (arguments, None),
        Err(why) => (A::default(), Some(why)),
    };
    let Told { tool, receivers, prompt, new_agent } = tell(&arguments);
    let (model, effort) = new_agent.map_or((None, None), |(model, effort)| {
        let (usual, usual_effort) = (&cx.settings.model, &cx.settings.effort);
        let effort = effort.or_else(|| usual_effort.clone()).unwrap_or(ReasoningEffort::Medium);
        (Some(model.unwrap_or_else(|| usual.clone())), Some(effort))
    });
    let shown = Shown { id: call.id.clone(), tool, sender: agent.thread(), receivers, prompt, model, effort };
    if let Some(why) = why {
        return RunningCall::begin(shown, Box::pin(async { Outcome::failed(why) }));
    }
    let call_id = call.id.as_str().to_owned();
    let work = run(Caller { agent: Arc::clone(agent), cx: Arc::clone(cx), call_id }, arguments);
    RunningCall::begin(shown, Box::pin(async move { work.await.unwrap_or_else(Outcome::failed) }))
}

/// Something that has happened to an agent, as events of the log.
pub(crate) fn activity_bodies(activity: &Arc<AgentActivity>) -> [Body; 2] {
    let item = Item::AgentActivity(Arc::clone(activity));
    [Body::ItemStarted(item.clone()), Body::ItemCompleted(item)]
}

/// A call as clients see it when it begins.
pub(crate) struct Shown {
    pub(crate) id: ItemId,
    pub(crate) tool: AgentTool,
    pub(crate) sender: ThreadId,
    pub(crate) receivers: Vec<ThreadId>,
    pub(crate) prompt: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) effort: Option<ReasoningEffort>,
}

/// A call that runs.
pub(crate) struct RunningCall {
    item: AgentCall,
    /// The model of a new agent, which is told when the call is over.
    model: Option<String>,
    work: Option<BoxFuture<'static, Outcome>>,
    /// Whether it has asked the tree to wait for other agents.
    waits: bool,
}

impl RunningCall {
    pub(crate) fn begin(shown: Shown, work: BoxFuture<'static, Outcome>) -> Box<dyn Call> {
        let Shown { id, tool, sender, receivers, prompt, model, effort } = shown;
        // Clients know that a call which starts an agent names no model before that is there.
        let begun = model.as_ref().map(|_| String::new());
        let item = AgentCall {
            id,
            tool,
            status: Status::Running,
            sender,
            receivers,
            prompt,
            model: begun,
            effort,
            agents: Vec::new(),
        };
        Box::new(Self { item, model, work: Some(work), waits: false })
    }

    fn ended(&mut self, outcome: Outcome) -> Vec<Effect> {
        let Outcome { text, is_success, agents, activity } = outcome;
        let status = if is_success { Status::Completed } else { Status::Failed };
        let told = activity.iter().flat_map(activity_bodies).map(Effect::Emit);
        let ended = [self.completed(status, agents), Effect::End(ToolOutput::Text(text))];
        told.chain(ended).collect()
    }

    fn completed(&mut self, status: Status, agents: Vec<CalledAgent>) -> Effect {
        if !agents.is_empty() {
            self.item.receivers = agents.iter().map(|agent| agent.thread).collect();
        }
        let model = self.model.take();
        let item = AgentCall { status, agents, model, ..self.item.clone() };
        Effect::Emit(Body::ItemCompleted(Item::AgentCall(Arc::new(item))))
    }
}

impl Call for RunningCall {
    fn begun(&mut self) -> Vec<Effect> {
        vec![Effect::Emit(Body::ItemStarted(Item::AgentCall(Arc::new(self.item.clone()))))]
    }

    fn answered(&mut self, _: Answer) -> Vec<Effect> {
        Vec::new()
    }

    fn next(&mut self) -> BoxFuture<'_, Vec<Effect>> {
        Box::pin(async {
            let Some(work) = &mut self.work else { return std::future::pending().await };
            self.waits = self.item.tool == AgentTool::Wait;
            let outcome = work.await;
            self.work = None;
            self.ended(outcome)
        })
    }

    fn stop(&mut self) -> Vec<Effect> {
        // Mail in a reply that has arrived counts as read, so the model has to see it.
        let waiting = self.work.take().filter(|_| self.waits);
        if let Some(outcome) = waiting.and_then(FutureExt::now_or_never) {
            return self.ended(outcome);
        }
        // Dropping the work tells the tree that nobody waits any more.
        vec![self.completed(Status::Failed, Vec::new())]
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    fn wait(work: BoxFuture<'static, Outcome>) -> Box<dyn Call> {
        let (id, thread) = (ItemId::new("c".to_owned()), ThreadId::fresh());
        let shown = Shown {
            id,
            tool: AgentTool::Wait,
            sender: thread,
            receivers: Vec::new(),
            prompt: None,
            model: None,
            effort: None,
        };
        RunningCall::begin(shown, work)
    }

    fn output(effects: &[Effect]) -> Option<String> {
        effects.iter().find_map(|effect| match effect {
            Effect::End(ToolOutput::Text(text)) => Some(text.clone()),
            _ => None,
        })
    }

    #[test]
    fn a_reply_that_arrives_together_with_the_end_of_the_turn_is_told() {
        let (reply, answer) = oneshot::channel();
        let mut call = wait(Box::pin(async { answer.await.unwrap_or_else(Outcome::failed) }));
        assert!(call.next().now_or_never().is_none());
        let done = Outcome { text: "mail".to_owned(), is_success: true, agents: Vec::new(), activity: None };
        assert!(reply.send(done).is_ok());
        assert_eq!(output(&call.stop()).as_deref(), Some("mail"));
    }

    #[test]
    fn a_wait_that_was_not_begun_or_has_no_reply_is_dropped() {
        let (reply, answer) = oneshot::channel::<Outcome>();
        let mut call = wait(Box::pin(async { answer.await.unwrap_or_else(Outcome::failed) }));
        assert!(call.next().now_or_never().is_none());
        assert_eq!(output(&call.stop()), None);
        assert!(reply.is_closed());
        let mut unasked = wait(Box::pin(async { panic!("it asks the tree") }));
        assert_eq!(output(&unasked.stop()), None);
    }
}
