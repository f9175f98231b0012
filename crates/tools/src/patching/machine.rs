//! A patch of the model as a state machine without I/O: checked, possibly approved, applied, and ended.
//!
//! Invariants: nothing is written before everything was checked and allowed; an approval is answered at most once; a
//! patch ends exactly once, with exactly one output for the model.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use codex_wire::change::FileChange;
use codex_wire::decision::ReviewDecision;
use codex_wire::policy::{ApprovalKind, AskForApproval};
use codex_wire::response::FunctionCallOutputPayload;

use codex_log::{Answer, Body, Item, PatchEnd, PatchItem, PatchStatus, Question, QuestionId, QuestionKind};

use super::{PatchRequest, Permission};

const REJECTED: &str = "patch rejected by user";
const OUTSIDE: &str = "the patch writes outside of what the sandbox lets it write";

/// An input of the machine.
#[derive(Debug)]
pub(crate) enum Input {
    /// The patch was checked against the files: its changes, and the permission for them.
    Planned(Result<Planned, String>),
    /// A person has answered.
    Answered(Answer),
    /// The changes were made, or none of them was: the report, and the duration.
    Applied(Result<String, String>, Duration),
}

/// A patch that matches the files.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Planned {
    pub(crate) changes: BTreeMap<PathBuf, FileChange>,
    pub(crate) permission: Permission,
}

/// The effects to perform, in order.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Append to the log.
    Emit(Body),
    /// Ask a person.
    Ask(Question),
    /// Make the changes, within the permission.
    Apply(Permission),
    /// Let later patches of this thread write below a folder.
    Grant(PathBuf),
    /// Report the turn's changes so far.
    TellDiff,
    /// Warn the user that nobody can be asked.
    TellOfNobody,
    /// The call is over; this goes to the model.
    End(FunctionCallOutputPayload),
    /// The call is over, and so is the turn.
    AbortTurn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Planning,
    Asked,
    Applying,
    Over,
}

#[derive(Debug)]
pub(crate) struct PatchCall {
    request: PatchRequest,
    policy: AskForApproval,
    /// The reason why nobody can be asked.
    absent: Option<String>,
    phase: Phase,
    changes: Arc<BTreeMap<PathBuf, FileChange>>,
    is_auto_approved: bool,
    /// The folder that an approval for the session grants, as shown in the request.
    grant_root: Option<PathBuf>,
    /// The time after which an unanswered question counts as declined.
    answer_within: Option<Duration>,
}

impl PatchCall {
    /// A patch that is being checked.
    pub(crate) fn new(
        request: PatchRequest,
        policy: AskForApproval,
        absent: Option<String>,
        answer_within: Option<Duration>,
    ) -> Self {
        let (phase, changes) = (Phase::Planning, Arc::default());
        Self { request, policy, absent, phase, changes, is_auto_approved: false, grant_root: None, answer_within }
    }

    /// Whether a question is open.
    pub(crate) fn is_asking(&self) -> bool {
        self.phase == Phase::Asked
    }

    /// Handles one input and returns the effects, in order.
    pub(crate) fn step(&mut self, input: Input) -> Vec<Effect> {
        let mut effects = Vec::new();
        match (self.phase, input) {
            (Phase::Planning, Input::Planned(Ok(planned))) => self.planned(planned, &mut effects),
            (Phase::Planning, Input::Planned(Err(problem))) => {
                self.phase = Phase::Over;
                let text = self.request.voice.say_misfit(&problem);
                effects.push(Effect::End(FunctionCallOutputPayload::Text(text)));
            }
            (Phase::Asked, Input::Answered(answer)) => self.answered(&answer, &mut effects),
            (Phase::Applying, Input::Applied(applied, duration)) => self.applied(applied, duration, &mut effects),
            // An unsolicited answer, or the result of something that was cancelled.
            (Phase::Over, _)
            | (Phase::Planning, Input::Answered(_) | Input::Applied(..))
            | (Phase::Asked, Input::Planned(_) | Input::Applied(..))
            | (Phase::Applying, Input::Planned(_) | Input::Answered(_)) => {}
        }
        effects
    }

    /// Ends the call because its turn stops. Its output is left to the turn.
    pub(crate) fn stop(&mut self) -> Vec<Effect> {
        let had_begun = matches!(self.phase, Phase::Asked | Phase::Applying);
        let status = if self.is_asking() { PatchStatus::Declined } else { PatchStatus::Failed };
        self.phase = Phase::Over;
        let end = PatchEnd { stdout: String::new(), stderr: "aborted by user".to_owned() };
        let item = self.item(status, Some(end));
        if had_begun { vec![Effect::Emit(Body::ItemCompleted(item))] } else { Vec::new() }
    }

    fn planned(&mut self, planned: Planned, effects: &mut Vec<Effect>) {
        self.changes = Arc::new(planned.changes);
        let (is_missing, root) = match &planned.permission {
            Permission::Policy | Permission::Grant | Permission::Person => (false, None),
            Permission::Missing { root } => (true, root.clone()),
        };
        let silence = self.policy.silence(ApprovalKind::Sandbox);
        let asks = match self.policy {
            AskForApproval::UnlessTrusted => planned.permission != Permission::Grant,
            AskForApproval::OnFailure | AskForApproval::OnRequest => is_missing,
            AskForApproval::Granular(_) => is_missing && silence.is_none(),
            AskForApproval::Never => false,
        };
        self.is_auto_approved = !asks;
        if let Some(absent) = self.absent.clone().filter(|_| asks) {
            let item = self.item(PatchStatus::AwaitingApproval, None);
            effects.extend([Effect::TellOfNobody, Effect::Emit(Body::ItemStarted(item))]);
            self.decline(&format!("patch rejected: it needs an approval, and {absent}"), effects);
        } else if asks {
            self.grant_root.clone_from(&root);
            self.ask(is_missing.then(|| OUTSIDE.to_owned()), effects);
        } else if is_missing {
            let item = self.item(PatchStatus::AwaitingApproval, None);
            effects.push(Effect::Emit(Body::ItemStarted(item)));
            self.decline(&format!("patch rejected: {OUTSIDE}, and {}", silence.unwrap_or_default()), effects);
        } else {
            let item = self.item(PatchStatus::Running, None);
            effects.push(Effect::Emit(Body::ItemStarted(item)));
            self.apply(planned.permission, effects);
        }
    }

    fn ask(&mut self, reason: Option<String>, effects: &mut Vec<Effect>) {
        self.phase = Phase::Asked;
        let (changes, grant_root) = (Arc::clone(&self.changes), self.grant_root.clone());
        let item = self.item(PatchStatus::AwaitingApproval, None);
        effects.push(Effect::Emit(Body::ItemStarted(item)));
        effects.push(Effect::Ask(Question {
            id: QuestionId::first(self.request.call.clone()),
            reason,
            kind: QuestionKind::Patch { changes, grant_root },
            deadline: self.answer_within,
        }));
    }

    fn apply(&mut self, permission: Permission, effects: &mut Vec<Effect>) {
        self.phase = Phase::Applying;
        effects.push(Effect::Apply(permission));
    }

    fn answered(&mut self, answer: &Answer, effects: &mut Vec<Effect>) {
        let item = Some(self.item(PatchStatus::Running, None));
        let question = QuestionId::first(self.request.call.clone());
        effects.push(Effect::Emit(Body::Answered { question, answer: answer.clone(), item }));
        let decision = answer.decision();
        match decision {
            ReviewDecision::Approved
            | ReviewDecision::ApprovedForSession
            | ReviewDecision::ApprovedExecpolicyAmendment { .. } => {
                if decision == ReviewDecision::ApprovedForSession {
                    effects.extend(self.grant_root.take().map(Effect::Grant));
                }
                self.apply(Permission::Person, effects);
            }
            ReviewDecision::Denied | ReviewDecision::TimedOut => self.decline(REJECTED, effects),
            ReviewDecision::Abort => {
                effects.extend(self.stop());
                effects.push(Effect::AbortTurn);
            }
        }
    }

    fn decline(&mut self, why: &str, effects: &mut Vec<Effect>) {
        self.phase = Phase::Over;
        let end = PatchEnd { stdout: String::new(), stderr: why.to_owned() };
        effects.push(Effect::Emit(Body::ItemCompleted(self.item(PatchStatus::Declined, Some(end)))));
        effects.push(Effect::End(FunctionCallOutputPayload::Text(why.to_owned())));
    }

    fn applied(&mut self, applied: Result<String, String>, duration: Duration, effects: &mut Vec<Effect>) {
        self.phase = Phase::Over;
        let (status, exit_code) = if applied.is_ok() { (PatchStatus::Completed, 0) } else { (PatchStatus::Failed, 1) };
        let (stdout, stderr) = match applied {
            Ok(summary) => (summary, String::new()),
            Err(problem) => (String::new(), problem),
        };
        let output = self.request.voice.say(exit_code, duration, if exit_code == 0 { &stdout } else { &stderr });
        let item = self.item(status, Some(PatchEnd { stdout, stderr }));
        effects.push(Effect::Emit(Body::ItemCompleted(item)));
        if exit_code == 0 {
            effects.push(Effect::TellDiff);
        }
        effects.push(Effect::End(FunctionCallOutputPayload::Text(output)));
    }

    fn item(&self, status: PatchStatus, end: Option<PatchEnd>) -> Item {
        Item::Patch(Arc::new(PatchItem {
            id: self.request.call.clone(),
            changes: Arc::clone(&self.changes),
            is_auto_approved: self.is_auto_approved,
            status,
            end,
        }))
    }
}
