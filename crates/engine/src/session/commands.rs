//! The commands of a turn: judged by the policy in force, and started only with a permit.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use codex_config::Runner;
use codex_log::settings::Settings;
use codex_log::{Body, ItemId};
use codex_sandbox::{Findings, HeldRoots, Names, Rung};
use codex_shell::{Answer, Checkout, Move, Question, Rules, SandboxState, Scope};
use codex_wire::policy::{ApprovalsReviewer, AskForApproval, SandboxPolicy};
use tokio::time::sleep;

use super::Session;
use crate::turn::Input;
use crate::work::{Deadline, Doing, RunningCommand};
use codex_tools::command::{
    self, CallLimits, CommandCall, CommandRequest, Confinement, Process, Surrounding, aborted_text,
};
use codex_tools::full_message;
use codex_tools::rules;
use codex_wire::tokens::BYTES_PER_TOKEN;

/// How many bytes of a command's output the model gets, when the user has not said how many tokens.
const OUTPUT_BYTES: usize = 10_000;

/// What the model is told when it asks to leave the sandbox though nobody may be asked.
const NO_ESCALATION: &str = "approval policy is Never; reject command — you should not ask for escalated permissions if \
                             the approval policy is Never";

/// What may run without asking: by rules of the user, and by what was approved in this thread.
pub(super) struct Allowed {
    rules: Rules,
    approved: HashSet<Approved>,
    /// Folders below which patches may write, each with the policy under which a person has granted it.
    pub(super) roots: Vec<(SandboxPolicy, PathBuf)>,
    /// What the writable folders were when the thread named them.
    held: HeldRoots,
    /// The settings that named them last.
    held_for: Option<(PathBuf, SandboxPolicy)>,
    /// Whether the user was told that nobody can be asked.
    is_told_of_nobody: bool,
    /// What was found in the folders after commands that were allowed.
    findings: Findings,
}

/// Exactly what was approved. Another folder or another policy is another question.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Approved {
    argv: Vec<String>,
    cwd: PathBuf,
    policy: SandboxPolicy,
    is_escalated: bool,
}

impl Allowed {
    /// What may run by the rules alone.
    pub(super) fn by(rules: Rules) -> Self {
        Self {
            rules,
            approved: HashSet::new(),
            roots: Vec::new(),
            held: HeldRoots::default(),
            held_for: None,
            is_told_of_nobody: false,
            findings: Findings::default(),
        }
    }
}

impl Session {
    /// Begins a command. Returns what the turn is told when that is already its end.
    pub(super) fn start_command(&mut self, mut request: CommandRequest) -> Option<Input> {
        self.terminals.next += u64::from(request.terminal.is_some());
        let settings = Arc::clone(self.turn_settings());
        let sandbox = self.sandbox_state();
        request.confinement = match &settings.sandbox_policy {
            _ if sandbox == SandboxState::CannotConfine => Confinement::Impossible,
            SandboxPolicy::ReadOnly => Confinement::ReadOnly,
            _ => Confinement::Usual,
        };
        // Nobody may be asked, so a command that wants to be asked about cannot run, whatever the sandbox.
        let judged = if request.is_escalated && settings.approval_policy == AskForApproval::Never {
            Answer::Refuse { because: NO_ESCALATION.to_owned() }
        } else {
            self.judge(&request, &settings, sandbox)
        };
        self.begin_command(request, judged)
    }

    /// Begins a command about which everything is known.
    pub(super) fn begin_command(&mut self, request: CommandRequest, judged: Answer) -> Option<Input> {
        let (id, mut policy) = (request.call.clone(), self.turn_settings().approval_policy);
        let judged = match (judged, self.absent_reviewer()) {
            (Answer::Ask { because }, Some(absent)) => {
                self.tell_of_nobody();
                Answer::Refuse { because: format!("{because}, and {absent}") }
            }
            (judged, absent) => {
                // Then it is not asked either whether to run it again outside the sandbox.
                policy = if absent.is_some() { AskForApproval::Never } else { policy };
                judged
            }
        };
        let (call, effects) = CommandCall::start(request, policy, judged, self.call_limits());
        self.begin_call(&id, Doing::Command(Box::new(RunningCommand::new(call))));
        self.perform_command(&id, effects)
    }

    /// Why nobody can be asked, where the reviewer is somebody else than the user.
    pub(super) fn absent_reviewer(&self) -> Option<String> {
        let reviewer = &self.turn_settings().reviewer;
        (*reviewer != ApprovalsReviewer::User)
            .then(|| format!("the reviewer `{}` does not exist here", reviewer.as_str()))
    }

    /// Tells the user once that what would be asked about is declined.
    pub(super) fn tell_of_nobody(&mut self) {
        if let Some(absent) = self.absent_reviewer().filter(|_| !self.allowed.is_told_of_nobody) {
            self.allowed.is_told_of_nobody = true;
            let message = format!("{absent}, so nobody is asked and everything that needs an approval is declined");
            self.emit(Body::Warning { message });
        }
    }

    /// What the sandbox can do for commands of this turn.
    pub(super) fn sandbox_state(&self) -> SandboxState {
        match (self.surrounding().profile(), codex_sandbox::rung()) {
            (None, _) => SandboxState::Unconfined,
            (Some(_), Rung::Nothing { .. }) => SandboxState::CannotConfine,
            (Some(_), Rung::Namespaces { .. } | Rung::Landlock { .. }) => SandboxState::Confined,
        }
    }

    fn judge(&self, request: &CommandRequest, settings: &Settings, sandbox: SandboxState) -> Answer {
        let is_own = codex_workspace::git::is_same_repository(&settings.cwd, &request.cwd);
        // Only under these does it matter what a command destroys.
        let looks = matches!(settings.approval_policy, AskForApproval::OnRequest | AskForApproval::OnFailure);
        let moved_over = looks.then(|| moved_over(&request.argv, &request.cwd)).flatten();
        let approved_before = self.allowed.approved.contains(&self.approved(request));
        // What a person has allowed where nothing can be written runs outside the next time too.
        let was_outside = approved_before
            && request.confinement == Confinement::ReadOnly
            && settings.approval_policy != AskForApproval::Never;
        codex_shell::judge(&Question {
            argv: &request.argv,
            approval: settings.approval_policy,
            sandbox,
            moves_over: moved_over.as_deref(),
            checkout: if is_own { Checkout::Own } else { Checkout::Foreign },
            escalated: request.is_escalated || was_outside,
            rules: &self.allowed.rules,
            approved_before,
        })
    }

    /// Feeds a running command. Returns what the turn is told when the command is over.
    pub(super) fn step_command(&mut self, id: &ItemId, input: command::Input) -> Option<Input> {
        let effects = self.running_command(id)?.call.step(input);
        self.perform_command(id, effects)
    }

    /// Ends a running command because its turn stops, and returns what the model is told of it.
    pub(super) fn cut_off_command(&mut self, id: &ItemId) -> Option<String> {
        let command = self.running_command(id)?;
        let elapsed = command.since.elapsed();
        let effects = command.call.stop(elapsed);
        self.perform_command(id, effects);
        Some(aborted_text(elapsed))
    }

    pub(super) fn running_command(&mut self, id: &ItemId) -> Option<&mut RunningCommand> {
        match self.running.as_mut()?.work.call(id)? {
            Doing::Command(command) => Some(command),
            Doing::Patch(_) | Doing::Poll(_) | Doing::Other(_) => None,
        }
    }

    /// Performs the effects of a command. Returns what the turn is told when the command is over.
    pub(super) fn perform_command(&mut self, id: &ItemId, effects: Vec<command::Effect>) -> Option<Input> {
        for effect in effects {
            match effect {
                command::Effect::Emit(body) => self.emit(body),
                command::Effect::Run(permit) => {
                    let is_own = self.running_command(id).is_some_and(|command| command.call.request().is_users_own);
                    let surrounding = self.surrounding_for(if is_own { Runner::User } else { Runner::Model });
                    if let Some(command) = self.running_command(id) {
                        command.deadline = None;
                        let process = Process::start(command.call.request(), permit, surrounding);
                        command.terminal = process.terminal();
                        command.process = Some(process);
                    }
                }
                command::Effect::AwaitAnswer => self.await_answer(id),
                command::Effect::Remember => self.remember(id),
                command::Effect::Amend { prefix, leaves_sandbox } => self.amend(&prefix, leaves_sandbox),
                command::Effect::Type(request) => {
                    if let Some(running) = &mut self.running {
                        running.work.drop_call(id);
                    }
                    return self.type_into(id, &request);
                }
                command::Effect::KeepTerminal(item, shown) => self.keep_terminal(id, item, &shown),
                command::Effect::End(output) => return Some(self.end_call(id, output)),
                command::Effect::AbortTurn => return Some(self.abort_turn(id)),
            }
        }
        None
    }

    /// Makes the answer to a command due, at once when nobody answers any more.
    pub(super) fn await_answer(&mut self, id: &ItemId) {
        let deadline = self.answer_deadline();
        if let Some(command) = self.running_command(id) {
            command.deadline = deadline;
        }
    }

    /// When a question counts as denied: at once when nobody answers any more.
    pub(super) fn answer_deadline(&self) -> Option<Deadline> {
        let after = if self.is_finishing { Some(Duration::ZERO) } else { self.setup.config.approval_timeout };
        after.map(|after| (Box::pin(sleep(after)), after))
    }

    fn remember(&mut self, id: &ItemId) {
        if let Some(command) = self.running_command(id) {
            let request = command.call.request().clone();
            if let Some(typed) = &request.typed {
                return self.vouch_for_terminal(typed.look().process);
            }
            let approved = self.approved(&request);
            self.allowed.approved.insert(approved);
        }
    }

    /// Adds a rule. When that fails the command still runs once, as approved.
    fn amend(&mut self, prefix: &[String], leaves_sandbox: bool) {
        let is_confined = self.sandbox_state() == SandboxState::Confined && !leaves_sandbox;
        let scope = if is_confined { Scope::Confined } else { Scope::Anywhere };
        let home = &self.setup.home;
        let mut warnings = Vec::new();
        match codex_shell::append_allow(&home.rules(), prefix, scope) {
            Ok(()) => self.allowed.rules = rules::or_none(home, &mut warnings),
            Err(error) => warnings.push(format!("the rule was not added: {}", full_message(&error))),
        }
        for message in warnings {
            self.emit(Body::Warning { message });
        }
    }

    fn approved(&self, request: &CommandRequest) -> Approved {
        Approved {
            argv: request.argv.clone(),
            cwd: request.cwd.clone(),
            policy: self.turn_settings().sandbox_policy.clone(),
            is_escalated: request.is_escalated,
        }
    }

    /// Finds out which folders the settings name, before any command can change what their names lead to.
    pub(super) fn hold_roots(&mut self) {
        let Settings { cwd, sandbox_policy, .. } = &**self.turn_settings();
        let is_held = |(held, policy): &(PathBuf, SandboxPolicy)| held == cwd && policy == sandbox_policy;
        if !self.allowed.held_for.as_ref().is_some_and(is_held) {
            let held = (cwd.clone(), sandbox_policy.clone());
            let surrounding = self.surrounding();
            drop(surrounding.profile());
            codex_sandbox::remove_left_stand_ins(&surrounding.workspace, &surrounding.names);
            self.allowed.held_for = Some(held);
        }
    }

    pub(super) fn surrounding(&self) -> Surrounding {
        self.surrounding_for(Runner::Model)
    }

    fn surrounding_for(&self, runner: Runner) -> Surrounding {
        let settings = self.turn_settings();
        Surrounding {
            policy: settings.sandbox_policy.clone(),
            workspace: settings.cwd.clone(),
            codex_home: self.setup.home.path().to_owned(),
            most_processes: self.setup.config.sandbox.most_processes,
            most_memory: self.setup.config.sandbox.most_memory,
            env: command::variables(&self.setup.config, self.setup.programs.as_deref(), runner),
            held: self.allowed.held.clone(),
            terminals: Arc::clone(&self.terminals.all),
            names: self.protected_names(),
            findings: self.allowed.findings.clone(),
        }
    }

    fn protected_names(&self) -> Names {
        let sandbox = &self.setup.config.sandbox;
        Names::new(&sandbox.protected_names, &sandbox.unprotected_names)
    }

    /// Waits until the folders are as the commands have left them, and what could run code in them later is disarmed.
    /// Whoever hears that the turn is over hears of that before.
    pub(super) async fn inspect_folders(&mut self) {
        self.terminals.all.inspect();
        codex_sandbox::tidied().await;
        let report = self.allowed.findings.take();
        let notice = report.notice(&self.turn_settings().cwd);
        for message in report.warning().into_iter().chain(notice) {
            self.emit(Body::Warning { message });
        }
    }

    /// What calls are held to.
    fn call_limits(&self) -> CallLimits {
        CallLimits { output_bytes: self.output_limit(), answer_within: self.setup.config.approval_timeout }
    }

    pub(super) fn output_limit(&self) -> usize {
        let tokens = self.setup.config.tool_output_token_limit;
        tokens.map_or(OUTPUT_BYTES, |tokens| {
            usize::try_from(tokens).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_TOKEN)
        })
    }
}

/// The first file that a command would move another one over.
fn moved_over(argv: &[String], cwd: &Path) -> Option<PathBuf> {
    let is_file = |path: &PathBuf| path.symlink_metadata().is_ok_and(|about| !about.is_dir());
    codex_shell::moves(argv).into_iter().find_map(|Move { from, to }| {
        let to = cwd.join(to);
        let inside = from.iter().filter_map(|from| Some(to.join(Path::new(from).file_name()?)));
        if to.is_dir() { inside.into_iter().find(is_file) } else { Some(to).filter(is_file) }
    })
}
