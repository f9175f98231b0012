//! The commands of a turn: judged by the policy in force, and started only with a permit.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use codex_sandbox::Rung;
use codex_shell::{Answer, Question, Rules, SandboxState};
use codex_wire::policy::{AskForApproval, SandboxPolicy};
use tokio::time::sleep;

use super::Session;
use crate::command::{self, CommandCall, CommandRequest, Process, Surrounding, aborted_text};
use crate::context::BYTES_PER_TOKEN;
use crate::log::{Body, ItemId};
use crate::rules;
use crate::settings::Settings;
use crate::turn::Input;
use crate::work::{Deadline, Doing, RunningCommand, full_message};

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
        Self { rules, approved: HashSet::new(), roots: Vec::new() }
    }
}

impl Session {
    /// Begins a command. Returns what the turn is told when that is already its end.
    pub(super) fn start_command(&mut self, mut request: CommandRequest) -> Option<Input> {
        self.terminals.next += u64::from(request.terminal.is_some());
        let settings = Arc::clone(self.turn_settings());
        let sandbox = match (self.surrounding().profile(), codex_sandbox::rung()) {
            (None, _) => SandboxState::Unconfined,
            (Some(_), Rung::Nothing { .. }) => SandboxState::CannotConfine,
            (Some(_), Rung::Namespaces { .. } | Rung::Landlock { .. }) => SandboxState::Confined,
        };
        request.cannot_be_confined = sandbox == SandboxState::CannotConfine;
        // Nobody may be asked, so a command that wants to be asked about cannot run, whatever the sandbox.
        let judged = if request.is_escalated && settings.approval_policy == AskForApproval::Never {
            Answer::Refuse { because: NO_ESCALATION.to_owned() }
        } else {
            self.judge(&request, &settings, sandbox)
        };
        let id = request.call.clone();
        let (call, effects) = CommandCall::start(request, settings.approval_policy, judged, self.output_limit());
        self.begin_call(&id, Doing::Command(Box::new(RunningCommand::new(call))));
        self.perform_command(&id, effects)
    }

    fn judge(&self, request: &CommandRequest, settings: &Settings, sandbox: SandboxState) -> Answer {
        codex_shell::judge(&Question {
            argv: &request.argv,
            approval: settings.approval_policy,
            sandbox,
            escalated: request.is_escalated,
            rules: &self.allowed.rules,
            approved_before: self.allowed.approved.contains(&self.approved(request)),
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
            Doing::Patch(_) | Doing::Look(_) | Doing::Other(_) => None,
        }
    }

    /// Performs the effects of a command. Returns what the turn is told when the command is over.
    pub(super) fn perform_command(&mut self, id: &ItemId, effects: Vec<command::Effect>) -> Option<Input> {
        for effect in effects {
            match effect {
                command::Effect::Emit(body) => self.emit(body),
                command::Effect::Run(permit) => {
                    let surrounding = self.surrounding();
                    if let Some(command) = self.running_command(id) {
                        command.deadline = None;
                        let process = Process::start(command.call.request(), permit, surrounding);
                        command.terminal = process.terminal();
                        command.process = Some(process);
                    }
                }
                command::Effect::AwaitAnswer => self.await_answer(id),
                command::Effect::Remember => self.remember(id),
                command::Effect::Amend(prefix) => self.amend(&prefix),
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
            let approved = self.approved(&request);
            self.allowed.approved.insert(approved);
        }
    }

    /// Adds a rule. When that fails the command still runs once, as approved.
    fn amend(&mut self, prefix: &[String]) {
        let home = &self.setup.home;
        let mut warnings = Vec::new();
        match codex_shell::append_allow(&home.rules(), prefix) {
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

    pub(super) fn surrounding(&self) -> Surrounding {
        let settings = self.turn_settings();
        Surrounding {
            policy: settings.sandbox_policy.clone(),
            workspace: settings.cwd.clone(),
            codex_home: self.setup.home.path().to_owned(),
            env: command::variables(&self.setup.config, self.setup.programs.as_deref()),
            terminals: Arc::clone(&self.terminals.all),
        }
    }

    pub(super) fn output_limit(&self) -> usize {
        let tokens = self.setup.config.tool_output_token_limit;
        tokens.map_or(OUTPUT_BYTES, |tokens| {
            usize::try_from(tokens).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_TOKEN)
        })
    }
}
