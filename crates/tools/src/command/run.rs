//! Commands as calls: judged by the current policy, and started only with a permit.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use codex_log::settings::Settings;
use codex_log::{Answer, Body};
use codex_sandbox::SandboxLevel;
use codex_shell::{Answer as Judgement, Checkout, Move, SandboxState, Scope};
use codex_wire::permissions::{CommandForecast, CommandOutcome};
use codex_wire::policy::{ApprovalKind, AskForApproval, SandboxPolicy};
use codex_wire::provider_traits::ShellForm;
use codex_wire::tool_spec::ToolSpec;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::typing::Polling;
use super::{CommandCall, CommandRequest, Confinement, Input, OpenTerminal, ParseContext, Process, machine};
use crate::call::{Concurrency, ToolCall, ToolInput};
use crate::context::ToolContext;
use crate::grants::{Approved, Background, Grant, Grants};
use crate::lifecycle::{Call, Effect, ToolOutput};
use crate::patching::{PatchRequest, PatchRun};
use crate::plain::refused;
use crate::registry::{Offer, Tool};
use crate::specs;

/// The message for the model when it asks to leave the sandbox although nobody may be asked.
const NO_ESCALATION: &str = "approval policy is Never; reject command — you should not ask for escalated permissions if \
                             the approval policy is Never";

/// The tools that run commands, by all names that models know.
pub(crate) enum CommandTool {
    /// In a terminal, which may outlive the call.
    InTerminal,
    /// To its end.
    Shell,
}

impl Tool for CommandTool {
    fn spec(&self, offer: Offer) -> Option<ToolSpec> {
        match self {
            Self::InTerminal => (offer.shell == ShellForm::ExecCommand).then(|| specs::EXEC_COMMAND.clone()),
            Self::Shell => match offer.shell {
                ShellForm::Shell => Some(specs::SHELL.clone()),
                ShellForm::ShellCommand => Some(specs::SHELL_COMMAND.clone()),
                ShellForm::ExecCommand => None,
            },
        }
    }

    fn takes(&self, call: &ToolCall) -> bool {
        match self {
            Self::InTerminal => call.tool == "exec_command",
            Self::Shell => matches!(call.tool.as_str(), "shell" | "container.exec" | "local_shell" | "shell_command"),
        }
    }

    /// A patch in a command affects later calls.
    fn concurrency(&self, call: &ToolCall) -> Concurrency {
        if is_patch(call) == Some(true) { Concurrency::Alone } else { Concurrency::Beside }
    }

    fn is_command(&self, call: &ToolCall) -> bool {
        is_patch(call) == Some(false)
    }

    fn begin(&self, call: ToolCall, cx: &Arc<ToolContext>, grants: &Grants) -> Box<dyn Call> {
        let place = ParseContext {
            cwd: cx.cwd(),
            shell: &cx.shell,
            next_process: cx.thread.next_terminal(),
            is_verbatim: cx.is_verbatim,
        };
        match CommandRequest::read(&call, place) {
            Some(Ok(request)) => match PatchRequest::find(&request) {
                Some(patch) => Box::new(PatchRun::new(patch, cx, grants)),
                None => Box::new(CommandRun::judged(request, cx, grants)),
            },
            Some(Err(error)) => refused(error.to_string()),
            None => refused(format!("unsupported call: {}", call.tool)),
        }
    }
}

/// Whether a command is a patch; `None` if it cannot be read.
fn is_patch(call: &ToolCall) -> Option<bool> {
    // Neither the folder nor the shell matters for that.
    let anywhere = ParseContext { cwd: Path::new("/"), shell: "sh", next_process: 0, is_verbatim: false };
    let command = CommandRequest::read(call, anywhere)?.ok()?;
    Some(PatchRequest::find(&command).is_some())
}

/// The user's own commands. They run outside the sandbox without an approval: the person who could approve has just
/// asked for it.
pub(crate) struct UserShellTool;

impl Tool for UserShellTool {
    fn spec(&self, _: Offer) -> Option<ToolSpec> {
        None
    }

    fn takes(&self, call: &ToolCall) -> bool {
        matches!(call.input, ToolInput::UserShell { .. })
    }

    fn concurrency(&self, _: &ToolCall) -> Concurrency {
        Concurrency::Beside
    }

    fn begin(&self, call: ToolCall, cx: &Arc<ToolContext>, _: &Grants) -> Box<dyn Call> {
        let ToolInput::UserShell { command, timeout } = call.input else {
            return refused(format!("unsupported call: {}", call.tool));
        };
        let request = CommandRequest {
            call: call.id,
            argv: vec![cx.shell.clone(), "-lc".to_owned(), command],
            cwd: cx.cwd().clone(),
            timeout,
            is_users_own: true,
            is_escalated: false,
            confinement: Confinement::Usual,
            justification: None,
            terminal: None,
            typed: None,
        };
        let because = "it is the user's own command".to_owned();
        Box::new(CommandRun::new(request, Judgement::Run { sandboxed: false, vouched: true, because }, cx))
    }
}

/// A command and what it waits for.
pub(crate) struct CommandRun {
    call: CommandCall,
    cx: Arc<ToolContext>,
    since: Instant,
    /// The first effects.
    first: Vec<machine::Effect>,
    /// A warning for the user before anything else.
    warning: Option<Body>,
    /// The process, while it runs.
    process: Option<Process>,
    /// The terminal it was started in, if any.
    terminal: Option<u64>,
    /// The poll after typing into another command, once that was approved.
    polling: Option<Polling>,
}

impl CommandRun {
    /// A command of the model.
    fn judged(mut request: CommandRequest, cx: &Arc<ToolContext>, grants: &Grants) -> Self {
        if request.terminal.is_some() {
            cx.thread.take_terminal();
        }
        let judged = judged(&mut request, cx, grants);
        Self::new(request, judged, cx)
    }

    /// A command with its judgement.
    pub(super) fn new(request: CommandRequest, judged: Judgement, cx: &Arc<ToolContext>) -> Self {
        let mut policy = cx.settings.approval_policy;
        let mut warning = None;
        let judged = match (judged, cx.absent_reviewer()) {
            (Judgement::Ask { because }, Some(absent)) => {
                warning = cx.tell_of_nobody();
                Judgement::Refuse { because: format!("{because}, and {absent}") }
            }
            (judged, absent) => {
                // Then it is not asked either whether to run it again outside the sandbox.
                policy = if absent.is_some() { AskForApproval::Never } else { policy };
                judged
            }
        };
        let (call, first) = CommandCall::start(request, policy, judged, cx.limits);
        Self {
            call,
            cx: Arc::clone(cx),
            since: Instant::now(),
            first,
            warning,
            process: None,
            terminal: None,
            polling: None,
        }
    }

    fn perform(&mut self, effects: Vec<machine::Effect>) -> Vec<Effect> {
        let mut out = Vec::with_capacity(effects.len());
        for effect in effects {
            match effect {
                machine::Effect::Emit(body) => out.push(Effect::Emit(body)),
                machine::Effect::Ask(question) => out.push(Effect::Ask(question)),
                machine::Effect::Run(permit) => {
                    let process = Process::start(self.call.request(), permit, &self.cx);
                    self.terminal = process.terminal();
                    self.process = Some(process);
                }
                machine::Effect::Remember => out.push(Effect::Grant(self.approval())),
                machine::Effect::Amend { prefix, leaves_sandbox } => {
                    let is_confined = self.cx.sandbox_state() == SandboxState::Confined && !leaves_sandbox;
                    let scope = if is_confined { Scope::Confined } else { Scope::Anywhere };
                    out.push(Effect::Grant(Grant::Rule { prefix, scope }));
                }
                machine::Effect::Type(typed) => {
                    let (polling, effects) = Polling::type_into(&typed, &self.cx);
                    self.polling = polling;
                    out.extend(effects);
                }
                machine::Effect::KeepTerminal(item, shown) => {
                    if let Some(id) = self.terminal {
                        let (is_sandboxed, is_vouched) = (self.call.is_sandboxed(), self.call.is_vouched());
                        let (since, kept) = (self.since, String::new());
                        let mut open =
                            OpenTerminal { id, item, is_sandboxed, is_vouched, since, shown: kept, left_out: 0 };
                        open.keep(&shown);
                        out.push(Effect::Keep(Background::Terminal(Box::new(open))));
                    }
                }
                machine::Effect::End(output) => out.push(Effect::End(output)),
                machine::Effect::AbortTurn => out.push(Effect::EndTurn),
            }
        }
        out
    }

    /// The grant of an approval for the session.
    fn approval(&self) -> Grant {
        let request = self.call.request();
        match &request.typed {
            Some(typed) => Grant::Typing(typed.write.look().process),
            None => Grant::Command(Approved::of(request, &self.cx)),
        }
    }

    async fn input(&mut self) -> Input {
        let Some(process) = &mut self.process else { return std::future::pending().await };
        let input = process.next().await;
        if matches!(input, Input::Ended(_) | Input::PollOutput(_)) {
            self.process = None;
        }
        input
    }
}

impl Call for CommandRun {
    fn begun(&mut self) -> Vec<Effect> {
        let first = std::mem::take(&mut self.first);
        let mut effects: Vec<Effect> = self.warning.take().map(Effect::Emit).into_iter().collect();
        effects.extend(self.perform(first));
        effects
    }

    fn answered(&mut self, answer: Answer) -> Vec<Effect> {
        let effects = self.call.step(Input::Answered(answer));
        self.perform(effects)
    }

    fn next(&mut self) -> BoxFuture<'_, Vec<Effect>> {
        Box::pin(async {
            if let Some(polling) = &mut self.polling {
                return polling.next().await;
            }
            let input = self.input().await;
            let effects = self.call.step(input);
            self.perform(effects)
        })
    }

    fn stop(&mut self) -> Vec<Effect> {
        if self.polling.is_some() {
            return Vec::new();
        }
        let elapsed: Duration = self.since.elapsed();
        let text = self.call.aborted_text(elapsed);
        let effects = self.call.stop(elapsed);
        let mut effects = self.perform(effects);
        effects.push(Effect::End(ToolOutput::Text(text)));
        effects
    }

    fn may_begin_again(&self) -> bool {
        self.call.asks_first()
    }
}

/// Judges a command of the model, and notes the sandbox that there is for it.
fn judged(request: &mut CommandRequest, cx: &ToolContext, grants: &Grants) -> Judgement {
    let sandbox = cx.sandbox_state();
    request.confinement = match &cx.settings.sandbox_policy {
        _ if sandbox == SandboxState::CannotConfine => Confinement::Impossible,
        SandboxPolicy::ReadOnly => Confinement::ReadOnly,
        _ => Confinement::Usual,
    };
    // Nobody may be asked, so a command that asks to leave the sandbox cannot run, whatever the sandbox.
    if request.is_escalated {
        match cx.settings.approval_policy {
            AskForApproval::Never => return Judgement::Refuse { because: NO_ESCALATION.to_owned() },
            policy => {
                if let Some(silence) = policy.silence(ApprovalKind::Sandbox) {
                    let because =
                        format!("{silence}, so nothing runs outside the sandbox; run it without asking for that");
                    return Judgement::Refuse { because };
                }
            }
        }
    }
    let judged = judge(request, cx, grants, sandbox);
    if sandbox == SandboxState::Unconfined && matches!(judged, Judgement::Run { sandboxed: true, .. }) {
        request.confinement = Confinement::Voluntary;
    }
    judged
}

/// The outcome of a command line of the model if it were to run now.
pub(crate) fn forecast(line: &str, cx: &ToolContext, grants: &Grants) -> Result<CommandForecast, String> {
    let mut request = CommandRequest::of_line(line, &cx.shell, cx.cwd()).map_err(|error| error.to_string())?;
    if PatchRequest::find(&request).is_some() {
        return Err("it is a patch, which is judged by the files that it changes".to_owned());
    }
    let judged = judged(&mut request, cx, grants);
    let rules = grants.rules.behind(&grants.rules.check(&request.argv));
    let (outcome, sandboxed, reason) = match (judged, cx.absent_reviewer()) {
        (Judgement::Run { sandboxed, because, .. }, _) => (CommandOutcome::Run, sandboxed, because),
        (Judgement::Ask { because }, Some(absent)) => {
            (CommandOutcome::Refuse, true, format!("{because}, and {absent}"))
        }
        (Judgement::Ask { because }, None) => (CommandOutcome::Ask, request.confinement == Confinement::Usual, because),
        (Judgement::Refuse { because }, _) => (CommandOutcome::Refuse, true, because),
    };
    Ok(CommandForecast { outcome, sandboxed, reason, rules })
}

fn judge(request: &CommandRequest, cx: &ToolContext, grants: &Grants, sandbox: SandboxState) -> Judgement {
    let settings: &Settings = &cx.settings;
    // Only under these policies does it matter what a command destroys.
    let policy = settings.approval_policy;
    let looks = policy.is_on_request() || policy == AskForApproval::OnFailure;
    let moved_over = looks.then(|| moved_over(&request.argv, &request.cwd)).flatten();
    let approved_before = grants.allows(&Approved::of(request, cx));
    // A command that was approved in a read-only sandbox runs outside the next time too.
    let was_outside =
        approved_before && request.confinement == Confinement::ReadOnly && policy != AskForApproval::Never;
    codex_shell::judge(&codex_shell::Question {
        argv: &request.argv,
        approval: policy,
        sandbox,
        moves_over: moved_over.as_deref(),
        checkout: checkout(request, cx, sandbox),
        escalated: request.is_escalated || was_outside,
        rules: &grants.rules,
        approved_before,
    })
}

/// The owner of the settings that git would obey. In a sandbox it does not matter what they name.
fn checkout(request: &CommandRequest, cx: &ToolContext, sandbox: SandboxState) -> Checkout {
    if !codex_workspace::git::is_same_repository(&cx.settings.cwd, &request.cwd) {
        return Checkout::Foreign;
    }
    let may_read_settings = sandbox != SandboxState::Confined && request.argv.iter().any(|word| word.contains("git"));
    if may_read_settings && codex_sandbox::names_programs(&request.cwd) {
        let is_confinable = !matches!(codex_sandbox::level(), SandboxLevel::Nothing { .. });
        Checkout::Armed { is_confinable }
    } else {
        Checkout::Own
    }
}

/// The first file that a command would overwrite by moving another one.
fn moved_over(argv: &[String], cwd: &Path) -> Option<PathBuf> {
    let is_file = |path: &PathBuf| path.symlink_metadata().is_ok_and(|about| !about.is_dir());
    codex_shell::moves(argv).into_iter().find_map(|Move { from, to }| {
        let to = cwd.join(to);
        let inside = from.iter().filter_map(|from| Some(to.join(Path::new(from).file_name()?)));
        if to.is_dir() { inside.into_iter().find(is_file) } else { Some(to).filter(is_file) }
    })
}
