//! The calls of one answer: which of them may run now, and their outputs.
//!
//! Invariants: calls start in the order in which the model made them; an exclusive call runs alone; the number of
//! running calls is limited; outputs are returned in the order of the calls, each exactly once.

use std::collections::VecDeque;
use std::sync::Arc;

use codex_wire::response::{
    CustomToolCall, CustomToolCallOutput, FunctionCall, FunctionCallOutput, FunctionCallOutputPayload, Message,
    ResponseItem,
};
use serde_json::Value;

use codex_log::ItemId;
use codex_tools::call::{Concurrency, ToolCall, ToolInput};
use codex_tools::registry::Registry;

/// The output of a call that never ran, or whose result is unknown.
const DROPPED: &str = "aborted";

/// The state of a call.
#[derive(Debug, PartialEq)]
enum Progress {
    Waiting,
    Running,
    Ended(FunctionCallOutputPayload),
}

#[derive(Debug)]
struct Pending {
    call: ToolCall,
    concurrency: Concurrency,
    progress: Progress,
}

/// The calls of an answer that have no output in the conversation yet.
#[derive(Debug)]
pub(super) struct Calls {
    queue: VecDeque<Pending>,
    /// The maximum number of running calls.
    most: usize,
    /// The registry, which knows which calls may run concurrently.
    tools: Arc<Registry>,
}

impl Calls {
    /// Creates an empty list with this limit of running calls.
    pub(super) fn new(most: usize, tools: Arc<Registry>) -> Self {
        Self { queue: VecDeque::new(), most, tools }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Adds a call that waits to be run.
    pub(super) fn push(&mut self, call: ToolCall) {
        let concurrency = self.tools.snapshot().find(&call).concurrency(&call);
        self.queue.push_back(Pending { call, concurrency, progress: Progress::Waiting });
    }

    /// Records the output of a running call, and returns the call; `None` if no call with this id is running.
    pub(super) fn end(&mut self, id: &ItemId, output: FunctionCallOutputPayload) -> Option<&ToolCall> {
        let running =
            self.queue.iter_mut().find(|pending| pending.call.id == *id && pending.progress == Progress::Running);
        let pending = running?;
        pending.progress = Progress::Ended(output);
        Some(&pending.call)
    }

    /// Takes the outputs that no earlier call holds back.
    pub(super) fn take_ended(&mut self) -> Vec<ResponseItem> {
        let ended = self.queue.iter().take_while(|pending| matches!(pending.progress, Progress::Ended(_))).count();
        self.queue.drain(..ended).map(Pending::output).collect()
    }

    /// Takes the outputs of all calls that have ended, including those that an earlier call holds back.
    pub(super) fn take_all_ended(&mut self) -> Vec<ResponseItem> {
        let queue = std::mem::take(&mut self.queue);
        let (ended, open): (VecDeque<_>, VecDeque<_>) =
            queue.into_iter().partition(|pending| matches!(pending.progress, Progress::Ended(_)));
        self.queue = open;
        ended.into_iter().map(Pending::output).collect()
    }

    /// Starts the calls that may run now, and returns them.
    pub(super) fn start(&mut self) -> Vec<ToolCall> {
        let mut started = Vec::new();
        for place in 0..self.queue.len() {
            if self.queue[place].progress == Progress::Waiting {
                if !self.may_start(place) {
                    break;
                }
                self.queue[place].progress = Progress::Running;
                started.push(self.queue[place].call.clone());
            }
        }
        started
    }

    /// Whether a call may run concurrently with all earlier ones. Later calls have not started.
    fn may_start(&self, place: usize) -> bool {
        let next = &self.queue[place];
        let mut running = self.queue.iter().filter(|pending| pending.progress == Progress::Running);
        running.clone().count() < self.most && running.all(|other| next.may_run_with(other))
    }

    /// Takes an output for every call: its own if it has ended, otherwise a message that it was dropped.
    pub(super) fn drop_all(&mut self) -> Vec<ResponseItem> {
        self.queue.drain(..).map(Pending::output).collect()
    }
}

/// The message for the model about a command that the user ran.
fn told_of_user_shell(command: &str, output: &FunctionCallOutputPayload) -> Message {
    let result = match output {
        FunctionCallOutputPayload::Text(text) => text,
        // Commands print only text.
        FunctionCallOutputPayload::Parts(_) => "",
    };
    Message::user(format!(
        "<user_shell_command>\n<command>\n{command}\n</command>\n<result>\n{result}\n</result>\n</user_shell_command>"
    ))
}

impl Pending {
    fn may_run_with(&self, other: &Self) -> bool {
        let is_same = |one: Concurrency| matches!(one, Concurrency::BesideAllButTerminal(_)) && self.concurrency == one;
        let is_alone = |one: Concurrency| one == Concurrency::Alone;
        // Two calls with the same id cannot be distinguished while both are running.
        !is_alone(self.concurrency)
            && !is_alone(other.concurrency)
            && !is_same(other.concurrency)
            && self.call.id != other.call.id
    }

    fn output(self) -> ResponseItem {
        let output = match self.progress {
            Progress::Ended(output) => output,
            Progress::Waiting | Progress::Running => FunctionCallOutputPayload::Text(DROPPED.to_owned()),
        };
        let call_id = self.call.id.as_str().to_owned();
        match self.call.input {
            ToolInput::Function(_) => ResponseItem::FunctionCallOutput(FunctionCallOutput { call_id, output }),
            ToolInput::Custom(_) => ResponseItem::CustomToolCallOutput(CustomToolCallOutput { call_id, output }),
            ToolInput::UserShell { command, .. } => ResponseItem::Message(told_of_user_shell(&command, &output)),
        }
    }
}

/// Replaces a malformed call by a well-formed one, because providers and readers of the rollout would reject it.
/// Missing arguments stay missing, so the tool reports the error to the model. Other items are unchanged.
pub(super) fn mended(item: ResponseItem) -> ResponseItem {
    let ResponseItem::Other(made) = &item else { return item };
    let given = |member: &str| match made.get(member) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let name = || Some(given("name")).filter(|name| !name.is_empty()).unwrap_or_else(|| "unnamed".to_owned());
    let (id, call_id) = (None, given("call_id"));
    let function = |name, arguments, call_id| {
        ResponseItem::FunctionCall(FunctionCall { id: None, name, namespace: None, arguments, call_id })
    };
    match item.kind() {
        "function_call" => function(name(), given("arguments"), call_id),
        // An unknown action must not run, so this is no longer a shell call.
        "local_shell_call" => function("local_shell_call".to_owned(), given("action"), call_id),
        "custom_tool_call" => {
            let (name, input, status) = (name(), given("input"), None);
            ResponseItem::CustomToolCall(CustomToolCall { id, status, call_id, name, input })
        }
        _ => item,
    }
}
