//! Decides whether to run a command, ask about it, or refuse it.
//!
//! Invariants: nobody is asked a question that the policy switches off, and with `never` none at all. A rule that forbids or asks never makes anything run that would not have
//! run without it. A command runs outside an available sandbox only if that was requested and then allowed by a rule or
//! by a person who knew it.

use std::path::Path;

use codex_wire::policy::{ApprovalKind, AskForApproval};

use crate::danger::danger;
use crate::rules::{Decision, Match, Rules, RunContext};
use crate::safe::{Checkout, is_known_safe};
use crate::understand::{Understood, understand};

/// The protection that a sandbox offers for a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxState {
    /// The command runs within the limits of the policy.
    Confined,
    /// The policy sets no limits.
    Unconfined,
    /// The policy sets limits that this machine cannot enforce.
    CannotConfine,
}

/// Everything that the decision depends on.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    pub argv: &'a [String],
    pub approval: AskForApproval,
    pub sandbox: SandboxState,
    /// Whether the settings around the working directory belong to the thread's own checkout.
    pub checkout: Checkout,
    /// A file that the command would overwrite by moving another one.
    pub moves_over: Option<&'a Path>,
    /// Whether the model asks to leave the sandbox.
    pub escalated: bool,
    /// The user's rules for all sessions.
    pub rules: &'a Rules,
    /// Whether the user has approved this exact request for the session.
    pub approved_before: bool,
}

/// The decision about a command, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Run {
        sandboxed: bool,
        /// Whether a rule or a person has allowed it, so that input typed into it needs no approval.
        vouched: bool,
        because: String,
    },
    Ask {
        because: String,
    },
    /// Do not run it, and tell the model.
    Refuse {
        because: String,
    },
}

/// Decides about a command: rules first, then earlier approvals, then harmlessness, then the policy.
#[must_use]
pub fn judge(question: &Question<'_>) -> Answer {
    let confined = stays_inside(question);
    let verdict = question.rules.check_in(question.argv, RunContext { confined, checkout: question.checkout });
    let rule = verdict.decisive().map_or_else(String::new, cite);
    match verdict.decision {
        Some(Decision::Forbidden) => return refuse(format!("it is forbidden by {rule}")),
        Some(Decision::Prompt) if question.approved_before => return approved(question),
        Some(Decision::Prompt) => {
            return ask(format!("{rule} wants it asked about")).under(question.approval, ApprovalKind::Rules);
        }
        Some(Decision::Allow) => {
            let outside = question.sandbox != SandboxState::Unconfined && !confined;
            let place = if outside { ", outside the sandbox too" } else { "" };
            return vouched(confined, format!("it is allowed by {rule}{place}"));
        }
        None => {}
    }
    if question.approved_before {
        return approved(question);
    }
    let sandboxed = question.sandbox == SandboxState::Confined;
    // If the model decides what it asks for, a person is asked if the model requests to leave the sandbox, however safe the command is.
    let asks_to_leave = question.escalated && question.approval.is_on_request();
    if is_known_safe(question.argv, question.checkout) && !(asks_to_leave && sandboxed) {
        // It needs nothing from outside the sandbox, whatever the model thinks.
        return run(sandboxed, "it is known to be harmless".to_owned());
    }
    let is_confinable = question.checkout == Checkout::Armed { is_confinable: true };
    if is_confinable
        && question.approval == AskForApproval::UnlessTrusted
        && is_known_safe(question.argv, Checkout::Own)
    {
        return run(
            true,
            "it is known to be harmless, and confined with the programs that the checkout names".to_owned(),
        );
    }
    by_policy(question, sandboxed).under(question.approval, ApprovalKind::Sandbox)
}

fn by_policy(question: &Question<'_>, sandboxed: bool) -> Answer {
    let policy = question.approval;
    let leaves = question.escalated && question.sandbox != SandboxState::Unconfined;
    if policy == AskForApproval::Never {
        return never(question, leaves);
    }
    if leaves {
        return ask("the model asks to run it outside the sandbox".to_owned());
    }
    if policy == AskForApproval::UnlessTrusted {
        return ask(unknown(question));
    }
    if question.sandbox == SandboxState::CannotConfine {
        return ask("this machine cannot confine it as the sandbox policy says".to_owned());
    }
    // A sandbox limits what a command can destroy, but the workspace inside it can still be lost.
    let matters = policy.is_on_request() || !sandboxed;
    let why = danger(question.argv).map(|danger| danger.to_string());
    let why = why.or_else(|| question.moves_over.map(|file| format!("`{}` is moved over", file.display())));
    match why.filter(|_| matters) {
        Some(why) => ask(format!("it looks dangerous: {why}")),
        None if sandboxed => run(true, "it runs in the sandbox".to_owned()),
        None => run(false, "the sandbox policy sets no limits".to_owned()),
    }
}

fn never(question: &Question<'_>, leaves: bool) -> Answer {
    match question.sandbox {
        SandboxState::Unconfined => run(false, "the policies set no limits".to_owned()),
        SandboxState::CannotConfine => refuse(
            "this machine cannot confine it as the sandbox policy says, and the approval policy is `never`".to_owned(),
        ),
        SandboxState::Confined if leaves => refuse(
            "the approval policy is `never`, so nothing runs outside the sandbox; run it without asking for that"
                .to_owned(),
        ),
        SandboxState::Confined => run(true, "it runs in the sandbox".to_owned()),
    }
}

/// Decides about text that is typed into a command which neither a rule nor a person has allowed.
///
/// Its effect is unknown, so it is never harmless.
#[must_use]
pub fn judge_typed(text: &str, approval: AskForApproval, sandbox: SandboxState) -> Answer {
    let sandboxed = sandbox == SandboxState::Confined;
    let script = ["bash", "-c", text].map(str::to_owned);
    let answer = match approval {
        AskForApproval::Never => return run(sandboxed, "the approval policy is `never`".to_owned()),
        AskForApproval::UnlessTrusted => ask("it is typed into a command that was not asked about".to_owned()),
        _ if sandbox == SandboxState::CannotConfine => {
            ask("it is typed into a command that this machine cannot confine".to_owned())
        }
        AskForApproval::OnFailure if sandboxed => run(true, "it is typed in the sandbox".to_owned()),
        AskForApproval::OnRequest | AskForApproval::OnFailure | AskForApproval::Granular(_) => match danger(&script) {
            Some(danger) => ask(format!("it looks dangerous: {danger}")),
            None => run(sandboxed, "it does not look dangerous".to_owned()),
        },
    };
    answer.under(approval, ApprovalKind::Sandbox)
}

impl Answer {
    /// The answer where the policy may switch off questions of this kind.
    fn under(self, policy: AskForApproval, kind: ApprovalKind) -> Self {
        match (self, policy.silence(kind)) {
            (Self::Ask { because }, Some(silence)) => refuse(format!("{because}, and {silence}")),
            (answer, _) => answer,
        }
    }
}

/// The reason why a command is not known to be harmless.
fn unknown(question: &Question<'_>) -> String {
    match understand(question.argv) {
        Understood::Commands(_)
            if matches!(question.checkout, Checkout::Armed { .. }) && is_known_safe(question.argv, Checkout::Own) =>
        {
            "the settings of this checkout may name programs, which nothing would confine".to_owned()
        }
        Understood::Commands(_) if is_known_safe(question.argv, Checkout::Own) => {
            "it would obey the settings of another checkout than the one worked in".to_owned()
        }
        Understood::Commands(_) => "it is not known to be harmless".to_owned(),
        Understood::No(reason) => format!("it is not understood: {reason}"),
    }
}

fn approved(question: &Question<'_>) -> Answer {
    vouched(stays_inside(question), "it was approved for this session".to_owned())
}

/// Whether a command that may run outside the sandbox still runs inside.
fn stays_inside(question: &Question<'_>) -> bool {
    question.sandbox == SandboxState::Confined && !question.escalated
}

fn cite(found: &Match) -> String {
    let place = format!("the rule at {}:{}", found.file.display(), found.line);
    match &found.justification {
        Some(justification) => format!("{place} ({justification})"),
        None => place,
    }
}

fn run(sandboxed: bool, because: String) -> Answer {
    Answer::Run { sandboxed, vouched: false, because }
}

fn vouched(sandboxed: bool, because: String) -> Answer {
    Answer::Run { sandboxed, vouched: true, because }
}

fn ask(because: String) -> Answer {
    Answer::Ask { because }
}

fn refuse(because: String) -> Answer {
    Answer::Refuse { because }
}
