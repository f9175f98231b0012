//! The patches of a turn: checked and applied where blocking is allowed, judged by the policy in force.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use codex_log::{Body, ItemId};
use codex_patch::{Applied, Plan, TurnDiff};
use codex_wire::response::FunctionCallOutputPayload;

use super::Session;
use crate::turn::Input;
use crate::work::{Deadline, Doing};
use codex_tools::full_message;
use codex_tools::patching::{self, PatchCall, PatchRequest, Permission, Planned, Reach};

/// A patch with what it waits for.
pub(crate) struct RunningPatch {
    pub(crate) call: PatchCall,
    stage: Stage,
    /// The checked patch, while it is neither applied nor refused.
    plan: Option<Plan>,
    /// What the patch has changed, for the turn's diff.
    applied: Option<Applied>,
}

/// What a patch waits for.
enum Stage {
    Planning(Blocking<Result<(Plan, Planned), String>>),
    Asking(Option<Deadline>),
    Applying(Blocking<(Result<Applied, String>, Duration)>),
    Nothing,
}

/// Work on a thread that may block.
type Blocking<T> = tokio::task::JoinHandle<T>;

impl RunningPatch {
    /// Waits for whatever comes next. Cancelling it loses nothing.
    pub(crate) async fn next(&mut self) -> patching::Input {
        match &mut self.stage {
            Stage::Planning(planning) => {
                let planned = planning.await.unwrap_or_else(|error| Err(error.to_string()));
                self.stage = Stage::Nothing;
                patching::Input::Planned(planned.map(|(plan, planned)| {
                    self.plan = Some(plan);
                    planned
                }))
            }
            Stage::Asking(Some((sleep, after))) => {
                sleep.await;
                let after = *after;
                self.stage = Stage::Nothing;
                patching::Input::Unanswered(after)
            }
            Stage::Applying(applying) => {
                let (applied, duration) =
                    applying.await.unwrap_or_else(|error| (Err(error.to_string()), Duration::ZERO));
                self.stage = Stage::Nothing;
                let summary = applied.map(|applied| {
                    let summary = applied.summary.clone();
                    self.applied = Some(applied);
                    summary
                });
                patching::Input::Applied(summary, duration)
            }
            Stage::Asking(None) | Stage::Nothing => std::future::pending().await,
        }
    }
}

impl Session {
    /// Begins a patch.
    pub(super) fn start_patch(&mut self, request: PatchRequest) {
        let approval = self.turn_settings().approval_policy;
        let (surrounding, granted) = (self.surrounding(), self.granted_roots());
        let (text, cwd) = (request.text.clone(), request.cwd.clone());
        let runtime = tokio::runtime::Handle::current();
        let planning = tokio::task::spawn_blocking(move || {
            // What held the names of files while a command ran is no file of the user's.
            runtime.block_on(codex_sandbox::tidied());
            let patch = codex_patch::parse(&text).map_err(|error| full_message(&error))?;
            let plan = patch.plan(&cwd).map_err(|error| full_message(&error))?;
            let permission = Reach::new(&surrounding, granted).judge(&plan, approval);
            let planned = Planned { changes: plan.changes(), permission };
            Ok((plan, planned))
        });
        let id = request.call.clone();
        let call = PatchCall::new(request, approval, self.absent_reviewer(), self.setup.config.approval_timeout);
        let stage = Stage::Planning(planning);
        self.begin_call(&id, Doing::Patch(Box::new(RunningPatch { call, stage, plan: None, applied: None })));
    }

    /// Feeds a running patch. Returns what the turn is told when the patch is over.
    pub(super) fn step_patch(&mut self, id: &ItemId, input: patching::Input) -> Option<Input> {
        let effects = self.running_patch(id)?.call.step(input);
        self.perform_patch(id, effects)
    }

    /// Waits for a patch that is being written: half of one is worse than a moment's patience. Returns its end.
    pub(super) async fn finish_applying(&mut self) -> Option<(ItemId, FunctionCallOutputPayload)> {
        let id = self.running.as_ref()?.work.calls().iter().find_map(|call| match &call.doing {
            Doing::Patch(patch) if matches!(patch.stage, Stage::Applying(_)) => Some(call.id.clone()),
            _ => None,
        })?;
        let input = self.running_patch(&id)?.next().await;
        match self.step_patch(&id, input)? {
            Input::CallEnded(id, output) => Some((id, output)),
            _ => None,
        }
    }

    /// Ends a running patch because its turn stops.
    pub(super) fn cut_off_patch(&mut self, id: &ItemId) {
        let Some(patch) = self.running_patch(id) else { return };
        let effects = patch.call.stop();
        self.perform_patch(id, effects);
    }

    fn running_patch(&mut self, id: &ItemId) -> Option<&mut RunningPatch> {
        match self.running.as_mut()?.work.call(id)? {
            Doing::Patch(patch) => Some(patch),
            Doing::Command(_) | Doing::Poll(_) | Doing::Other(_) => None,
        }
    }

    fn perform_patch(&mut self, id: &ItemId, effects: Vec<patching::Effect>) -> Option<Input> {
        for effect in effects {
            match effect {
                patching::Effect::Emit(body) => self.emit(body),
                patching::Effect::TellOfNobody => self.tell_of_nobody(),
                patching::Effect::AwaitAnswer => self.await_patch_answer(id),
                patching::Effect::Apply(permission) => self.apply_patch(id, permission),
                patching::Effect::Grant(root) => self.grant(root),
                patching::Effect::TellDiff => self.tell_diff(id),
                patching::Effect::End(output) => return Some(self.end_call(id, output)),
                patching::Effect::AbortTurn => return Some(self.abort_turn(id)),
            }
        }
        None
    }

    /// Makes the answer to a patch due, at once when nobody answers any more.
    pub(super) fn await_patch_answer(&mut self, id: &ItemId) {
        let deadline = self.answer_deadline();
        if let Some(patch) = self.running_patch(id) {
            patch.stage = Stage::Asking(deadline);
        }
    }

    fn apply_patch(&mut self, id: &ItemId, permission: Permission) {
        let (surrounding, granted) = (self.surrounding(), self.granted_roots());
        let Some(patch) = self.running_patch(id) else { return };
        let Some(plan) = patch.plan.take() else { return };
        patch.stage = Stage::Applying(tokio::task::spawn_blocking(move || {
            let since = Instant::now();
            let guard = Reach::new(&surrounding, granted).guard(&permission);
            let applied = plan.apply(&guard).map_err(|error| full_message(&error));
            (applied, since.elapsed())
        }));
    }

    /// Opens a folder to later patches, for as long as the policy stays what it is.
    fn grant(&mut self, root: PathBuf) {
        let policy = self.turn_settings().sandbox_policy.clone();
        self.allowed.roots.push((policy, root));
    }

    /// The folders that people have granted under the policy in force.
    fn granted_roots(&self) -> Vec<PathBuf> {
        let policy = &self.turn_settings().sandbox_policy;
        let granted = self.allowed.roots.iter().filter(|(under, _)| under == policy);
        granted.map(|(_, root)| root.clone()).collect()
    }

    fn tell_diff(&mut self, id: &ItemId) {
        let Some(applied) = self.running_patch(id).and_then(|patch| patch.applied.take()) else { return };
        let cwd = self.turn_settings().cwd.clone();
        let Some(running) = &mut self.running else { return };
        let diff = running.diff.get_or_insert_with(|| TurnDiff::new(&cwd));
        diff.note(&applied);
        if let Some(unified) = diff.unified() {
            self.emit(Body::DiffChanged(unified.into()));
        }
    }
}
