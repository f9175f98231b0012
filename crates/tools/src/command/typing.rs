//! `write_stdin`: text that the model types into a running command, with an approval if nobody has approved the
//! command.

use std::sync::Arc;

use codex_log::{Answer, Body};
use codex_shell::{Answer as Judgement, SandboxState};
use codex_wire::provider_traits::ShellForm;
use codex_wire::tool_spec::ToolSpec;
use futures_util::future::BoxFuture;

use super::request::Typed;
use super::run::CommandRun;
use super::terminal::{PollFuture, TerminalPoll, WriteRequest, look};
use super::{CommandRequest, OpenTerminal};
use crate::call::{Concurrency, ToolCall, ToolInput};
use crate::context::ToolContext;
use crate::full_message;
use crate::grants::{Background, Grants};
use crate::lifecycle::{Call, Effect, ToolOutput};
use crate::plain::refused;
use crate::registry::{Offer, Tool};
use crate::specs;

/// The tool that types into terminals and polls them.
pub(crate) struct WriteStdinTool;

impl Tool for WriteStdinTool {
    fn spec(&self, offer: Offer) -> Option<ToolSpec> {
        (offer.shell == ShellForm::ExecCommand).then(|| specs::WRITE_STDIN.clone())
    }

    fn takes(&self, call: &ToolCall) -> bool {
        call.tool == "write_stdin" && matches!(call.input, ToolInput::Function(_))
    }

    /// Output that one call receives would be missing from another.
    fn concurrency(&self, call: &ToolCall) -> Concurrency {
        let ToolInput::Function(arguments) = &call.input else { return Concurrency::Beside };
        let request = WriteRequest::read(arguments);
        request.map_or(Concurrency::Beside, |request| Concurrency::BesideAllButTerminal(request.look().process))
    }

    fn begin(&self, call: ToolCall, cx: &Arc<ToolContext>, grants: &Grants) -> Box<dyn Call> {
        let ToolInput::Function(arguments) = &call.input else {
            return refused(format!("unsupported call: {}", call.tool));
        };
        let request = match WriteRequest::read(arguments) {
            Ok(request) => request,
            Err(error) => return refused(format!("failed to parse function arguments: {error}")),
        };
        let process = request.look().process;
        let Some(open) = grants.terminals.get(&process) else {
            return refused(format!("there is no running process with session ID {process}"));
        };
        if let Some(judged) = judge(open, request.chars(), cx) {
            let request = CommandRequest::to_type(&call.id, Typed::new(request, open), &open.item);
            return Box::new(CommandRun::new(request, judged, cx));
        }
        let (polling, first) = Polling::type_into(&Typed::new(request, open), cx);
        Box::new(PollCall { polling, first })
    }
}

/// The question before something is typed. Polling without typing is always allowed.
fn judge(open: &OpenTerminal, text: &str, cx: &ToolContext) -> Option<Judgement> {
    if text.is_empty() || open.is_vouched {
        return None;
    }
    let sandbox = match (open.is_sandboxed, cx.sandbox_state()) {
        (true, _) => SandboxState::Confined,
        (false, SandboxState::Unconfined) => SandboxState::Unconfined,
        (false, SandboxState::Confined | SandboxState::CannotConfine) => SandboxState::CannotConfine,
    };
    let judged = codex_shell::judge_typed(text, cx.settings.approval_policy, sandbox);
    (!matches!(judged, Judgement::Run { .. })).then_some(judged)
}

/// A poll of a terminal that the model waits for.
pub(super) struct Polling {
    at: TerminalPoll,
    looking: PollFuture,
}

impl Polling {
    /// Types the text, and starts to poll. Without a poll, the effects end the call.
    pub(super) fn type_into(typed: &Typed, cx: &ToolContext) -> (Option<Self>, Vec<Effect>) {
        let Typed { write: request, terminal, item } = typed;
        let (at, mut effects) = (request.look(), Vec::new());
        if !request.chars().is_empty() {
            if let Err(error) = cx.thread.terminals.write(*terminal, request.chars().as_bytes()) {
                return (None, vec![Effect::End(ToolOutput::Text(full_message(&error)))]);
            }
            let stdin = request.chars().to_owned();
            effects.push(Effect::Emit(Body::TerminalWritten { item: item.clone(), terminal: at.process, stdin }));
        }
        let looking = look(Arc::clone(&cx.thread.terminals), *terminal, at);
        (Some(Self { at, looking }), effects)
    }

    /// Waits for the output of the terminal.
    pub(super) async fn next(&mut self) -> Vec<Effect> {
        match (&mut self.looking).await {
            Ok(shown) => {
                let text = shown.for_model(self.at);
                let shown = Background::PollOutput { process: self.at.process, shown };
                vec![Effect::Keep(shown), Effect::End(ToolOutput::Text(text))]
            }
            Err(error) => vec![Effect::End(ToolOutput::Text(full_message(&error)))],
        }
    }
}

/// A call that types, or only polls, without a question.
struct PollCall {
    polling: Option<Polling>,
    first: Vec<Effect>,
}

impl Call for PollCall {
    fn begun(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.first)
    }

    fn answered(&mut self, _: Answer) -> Vec<Effect> {
        Vec::new()
    }

    fn next(&mut self) -> BoxFuture<'_, Vec<Effect>> {
        Box::pin(async {
            match &mut self.polling {
                Some(polling) => polling.next().await,
                None => std::future::pending().await,
            }
        })
    }

    fn stop(&mut self) -> Vec<Effect> {
        Vec::new()
    }
}
