//! A command of the model as a state machine without I/O: judged, possibly approved, run, possibly run again, and
//! ended.
//!
//! Invariants: nothing runs without a [`Permit`], and only this machine creates them; an approval is answered at most
//! once; a command ends exactly once, with exactly one output for the model.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use codex_shell::Answer as Judgement;
use codex_wire::decision::ReviewDecision;
use codex_wire::event::ExecOutputStream as OutputStream;
use codex_wire::policy::AskForApproval;
use codex_wire::response::FunctionCallOutputPayload;

use codex_log::{
    Answer, Body, CommandEnd, CommandItem, CommandStatus, Delta, Item, Question, QuestionId, QuestionKind,
};

use super::CallLimits;
use super::output::{self, CommandOutcome};
use super::request::{CommandRequest, Confinement, Typed};
use super::terminal::PollOutput;

const REJECTED: &str = "exec command rejected by user";
const RETRY_QUESTION: &str = "command failed; retry without sandbox?";

/// An input of the machine.
#[derive(Debug)]
pub(crate) enum Input {
    /// A person has answered.
    Answered(Answer),
    /// The command has printed something.
    Printed(OutputStream, Vec<u8>),
    /// The command has ended, or could not be started.
    Ended(CommandOutcome),
    /// The command's terminal was polled for the first time.
    PollOutput(PollOutput),
}

/// The effects to perform, in order.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Append to the log.
    Emit(Body),
    /// Run the command, and report its output and its end.
    Run(Permit),
    /// Ask a person.
    Ask(Question),
    /// Do not ask again about this command in this thread.
    Remember,
    /// Add a rule that allows commands with this prefix.
    Amend {
        prefix: Vec<String>,
        /// Whether the approval was for a run outside the sandbox.
        leaves_sandbox: bool,
    },
    /// Type the approved text.
    Type(Typed),
    /// The command continues in its terminal after its call is over. Its output so far is included.
    KeepTerminal(Arc<CommandItem>, PollOutput),
    /// The call is over; this goes to the model.
    End(FunctionCallOutputPayload),
    /// The call is over, and so is the turn.
    AbortTurn,
}

/// The right to run a command once. Only the machine creates one, so nothing runs that was not judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Permit {
    is_sandboxed: bool,
}

impl Permit {
    /// Whether the command runs inside the sandbox that the policy requires.
    pub(crate) fn is_sandboxed(self) -> bool {
        self.is_sandboxed
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Asked before the first run.
    Asked,
    Running {
        is_sandboxed: bool,
    },
    /// Asked whether to run again outside the sandbox.
    AskedAgain,
    Over,
}

#[derive(Debug)]
pub(crate) struct CommandCall {
    request: CommandRequest,
    policy: AskForApproval,
    phase: Phase,
    /// Whether its current or last run is inside the sandbox.
    is_sandboxed: bool,
    /// Whether a rule or a person has allowed it.
    is_vouched: bool,
    /// The outcome of the sandboxed run, while a person is asked about another one.
    first: Option<CommandOutcome>,
    /// The output that was shown while the command ran. Its launch limits how much is shown.
    printed: Vec<u8>,
    /// The id of the current question, or of the next one.
    question: QuestionId,
    limits: CallLimits,
}

impl CommandCall {
    /// Starts with the judgement of the command, and returns the first effects.
    pub(crate) fn start(
        request: CommandRequest,
        policy: AskForApproval,
        judged: Judgement,
        limits: CallLimits,
    ) -> (Self, Vec<Effect>) {
        let (phase, is_vouched) = (Phase::Over, matches!(judged, Judgement::Run { vouched: true, .. }));
        let question = QuestionId::first(request.call.clone());
        let (first, printed) = (None, Vec::new());
        let mut call =
            Self { request, policy, phase, is_sandboxed: true, is_vouched, first, printed, question, limits };
        let effects = match judged {
            Judgement::Run { sandboxed, .. } => {
                let started = call.item(CommandStatus::Running, None);
                let mut effects = vec![Effect::Emit(Body::ItemStarted(started))];
                call.run(sandboxed, &mut effects);
                effects
            }
            Judgement::Ask { because } => {
                let started = call.item(CommandStatus::AwaitingApproval, None);
                // Under `untrusted` everything unknown needs an approval, so no reason is given.
                let because = (policy != AskForApproval::UnlessTrusted).then_some(because);
                let reason = call.request.justification.clone().or(because);
                let mut effects = vec![Effect::Emit(Body::ItemStarted(started))];
                call.ask(Phase::Asked, reason, &mut effects);
                effects
            }
            Judgement::Refuse { because } => {
                let started = call.item(CommandStatus::AwaitingApproval, None);
                let mut effects = vec![Effect::Emit(Body::ItemStarted(started))];
                call.decline(&because, &mut effects);
                effects
            }
        };
        (call, effects)
    }

    /// The request, for the holder of a permit.
    pub(crate) fn request(&self) -> &CommandRequest {
        &self.request
    }

    /// Whether its current or last run is inside the sandbox.
    pub(crate) fn is_sandboxed(&self) -> bool {
        self.is_sandboxed
    }

    /// Whether a rule or a person has allowed it, so that anything may be typed into it.
    pub(crate) fn is_vouched(&self) -> bool {
        self.is_vouched
    }

    /// Whether a question is open.
    pub(crate) fn is_asking(&self) -> bool {
        matches!(self.phase, Phase::Asked | Phase::AskedAgain)
    }

    /// Whether a question is open and nothing has run yet.
    pub(crate) fn asks_first(&self) -> bool {
        self.phase == Phase::Asked
    }

    /// Handles one input and returns the effects, in order.
    pub(crate) fn step(&mut self, input: Input) -> Vec<Effect> {
        let mut effects = Vec::new();
        match (self.phase, input) {
            (Phase::Over, _) => {}
            (Phase::Asked | Phase::AskedAgain, Input::Answered(answer)) => self.answered(&answer, &mut effects),
            (Phase::Running { .. }, Input::Printed(stream, bytes)) => {
                self.printed.extend_from_slice(&bytes);
                let (item, delta) = (self.request.call.clone(), Delta::Output { stream, bytes });
                effects.push(Effect::Emit(Body::ItemDelta { item, delta }));
            }
            (Phase::Running { is_sandboxed }, Input::Ended(ran)) => self.ended(ran, is_sandboxed, &mut effects),
            (Phase::Running { is_sandboxed }, Input::PollOutput(shown)) => {
                self.shown(shown, is_sandboxed, &mut effects);
            }
            // An unsolicited answer, or the end of a run that was cancelled.
            (Phase::Running { .. }, Input::Answered(_))
            | (Phase::Asked | Phase::AskedAgain, Input::Printed(..) | Input::Ended(_) | Input::PollOutput(_)) => {}
        }
        effects
    }

    /// Ends the call because its turn stops. Its output is left to the turn.
    pub(crate) fn stop(&mut self, duration: Duration) -> Vec<Effect> {
        if self.phase == Phase::Over {
            return Vec::new();
        }
        let was_asking = self.is_asking();
        self.phase = Phase::Over;
        let status = if was_asking { CommandStatus::Declined } else { CommandStatus::Failed };
        let ran = self.first.take().unwrap_or_else(|| CommandOutcome::aborted(&self.printed, duration));
        vec![Effect::Emit(Body::ItemCompleted(self.item(status, Some(ran.end(self.limits.output_bytes)))))]
    }

    /// The report for the model about a command that was aborted with its turn: its output so far, and when it ended.
    pub(crate) fn aborted_text(&self, duration: Duration) -> String {
        let limit = self.limits.output_bytes;
        CommandOutcome::aborted(&output::shortened(&self.printed, limit), duration).aggregated
    }

    fn run(&mut self, is_sandboxed: bool, effects: &mut Vec<Effect>) {
        self.printed.clear();
        if let Some(typed) = self.request.typed.clone() {
            self.phase = Phase::Over;
            let end = CommandOutcome::silent().end(self.limits.output_bytes);
            effects.push(Effect::Emit(Body::ItemCompleted(self.item(CommandStatus::Completed, Some(end)))));
            return effects.push(Effect::Type(typed));
        }
        self.phase = Phase::Running { is_sandboxed };
        self.is_sandboxed = is_sandboxed;
        effects.push(Effect::Run(Permit { is_sandboxed }));
    }

    fn ask(&mut self, phase: Phase, reason: Option<String>, effects: &mut Vec<Effect>) {
        self.phase = phase;
        effects.push(Effect::Ask(Question {
            id: self.question.clone(),
            reason,
            kind: QuestionKind::Command {
                argv: self.request.argv.clone(),
                cwd: self.request.cwd.clone(),
                parsed: codex_shell::parsed_commands(&self.request.argv),
                amendment: self.amendment(),
            },
            deadline: self.limits.answer_within,
        }));
    }

    /// The rule to offer. None can cover typed text.
    fn amendment(&self) -> Option<Vec<String>> {
        self.request.typed.is_none().then(|| codex_shell::propose_amendment(&self.request.argv)).flatten()
    }

    fn answered(&mut self, answer: &Answer, effects: &mut Vec<Effect>) {
        let is_again = self.phase == Phase::AskedAgain;
        // The start of the command is reported only once.
        let item = (!is_again).then(|| self.item(CommandStatus::Running, None));
        let next = self.question.next();
        let question = std::mem::replace(&mut self.question, next);
        effects.push(Effect::Emit(Body::Answered { question, answer: answer.clone(), item }));
        let leaves_sandbox =
            is_again || self.request.is_escalated || self.request.confinement == Confinement::Impossible;
        match answer.decision() {
            ReviewDecision::Approved => {}
            ReviewDecision::ApprovedForSession => effects.push(Effect::Remember),
            ReviewDecision::ApprovedExecpolicyAmendment { proposed_execpolicy_amendment } => {
                effects.push(Effect::Amend { prefix: proposed_execpolicy_amendment, leaves_sandbox });
            }
            ReviewDecision::Denied | ReviewDecision::TimedOut => return self.decline(REJECTED, effects),
            ReviewDecision::Abort => {
                effects.extend(self.stop(Duration::ZERO));
                return effects.push(Effect::AbortTurn);
            }
        }
        // The person has approved exactly this: a run outside the sandbox if that was the question, or if nothing could
        // be written inside, so that they would have to be asked again; otherwise a run inside it.
        self.is_vouched = true;
        self.run(!leaves_sandbox && self.request.confinement != Confinement::ReadOnly, effects);
    }

    /// Ends the call without a run, or with the failed one that was not repeated.
    fn decline(&mut self, why: &str, effects: &mut Vec<Effect>) {
        if let Some(ran) = self.first.take() {
            return self.finish(ran, effects);
        }
        self.phase = Phase::Over;
        let end = CommandEnd::declined(why);
        effects.push(Effect::Emit(Body::ItemCompleted(self.item(CommandStatus::Declined, Some(end)))));
        effects.push(Effect::End(FunctionCallOutputPayload::Text(why.to_owned())));
    }

    fn ended(&mut self, ran: CommandOutcome, is_sandboxed: bool, effects: &mut Vec<Effect>) {
        let asks_again = match self.policy {
            AskForApproval::OnFailure | AskForApproval::UnlessTrusted => is_sandboxed && ran.looks_denied(),
            AskForApproval::OnRequest | AskForApproval::Granular(_) | AskForApproval::Never => false,
        };
        if asks_again {
            self.first = Some(ran);
            return self.ask(Phase::AskedAgain, Some(RETRY_QUESTION.to_owned()), effects);
        }
        self.finish(ran, effects);
    }

    /// Handles the first poll of a terminal: the end of a short command, or the start of a long one.
    fn shown(&mut self, shown: PollOutput, is_sandboxed: bool, effects: &mut Vec<Effect>) {
        if !shown.bytes.is_empty() {
            let delta = Delta::Output { stream: OutputStream::Stdout, bytes: shown.bytes.clone() };
            effects.push(Effect::Emit(Body::ItemDelta { item: self.request.call.clone(), delta }));
        }
        if shown.exit_code.is_some() {
            return self.ended(CommandOutcome::shown(&shown), is_sandboxed, effects);
        }
        self.phase = Phase::Over;
        let text = self.request.terminal.map(|look| shown.for_model(look)).unwrap_or_default();
        effects.push(Effect::KeepTerminal(Arc::new(self.command(CommandStatus::Running, None)), shown));
        effects.push(Effect::End(FunctionCallOutputPayload::Text(text)));
    }

    fn finish(&mut self, ran: CommandOutcome, effects: &mut Vec<Effect>) {
        self.phase = Phase::Over;
        let status = if ran.exit_code == 0 { CommandStatus::Completed } else { CommandStatus::Failed };
        let terminal_output = self.request.terminal.map(|look| ran.for_model(look));
        let end = ran.end(self.limits.output_bytes);
        let output = terminal_output.unwrap_or_else(|| output::for_model(&end));
        effects.push(Effect::Emit(Body::ItemCompleted(self.item(status, Some(end)))));
        effects.push(Effect::End(FunctionCallOutputPayload::Text(output)));
    }

    fn item(&self, status: CommandStatus, end: Option<CommandEnd>) -> Item {
        Item::Command(Arc::new(self.command(status, end)))
    }

    fn command(&self, status: CommandStatus, end: Option<CommandEnd>) -> CommandItem {
        CommandItem {
            id: self.request.call.clone(),
            argv: self.request.argv.clone(),
            cwd: self.request.cwd.clone(),
            parsed: codex_shell::parsed_commands(&self.request.argv),
            terminal: self.request.terminal.map(|look| look.process),
            is_users_own: self.request.is_users_own,
            status,
            end,
        }
    }
}
