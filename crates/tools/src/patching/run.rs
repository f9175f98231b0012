//! Patches as calls: checked and applied on blocking threads, judged by the current policy.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use codex_log::{Answer, ItemId};
use codex_patch::{Applied, Plan};
use codex_sandbox::OwnChanges;
use codex_wire::provider_traits::PatchForm;
use codex_wire::tool_spec::ToolSpec;
use futures_util::future::BoxFuture;

use super::request::ReportFormat;
use super::{Input, PatchCall, PatchRequest, Permission, Planned, Reach, machine};
use crate::call::{Concurrency, ToolCall};
use crate::context::ToolContext;
use crate::full_message;
use crate::grants::{Grant, Grants};
use crate::lifecycle::{Call, Effect};
use crate::plain::refused;
use crate::registry::{Offer, Tool};
use crate::specs;

/// The tool for patches.
pub(crate) struct ApplyPatchTool;

impl Tool for ApplyPatchTool {
    fn spec(&self, offer: Offer) -> Option<ToolSpec> {
        Some(match offer.patch {
            PatchForm::Freeform => specs::APPLY_PATCH_TEXT.clone(),
            PatchForm::Function => specs::APPLY_PATCH.clone(),
        })
    }

    fn takes(&self, call: &ToolCall) -> bool {
        call.tool == "apply_patch"
    }

    /// Later calls may depend on a patch.
    fn concurrency(&self, _: &ToolCall) -> Concurrency {
        Concurrency::Alone
    }

    fn begin(&self, call: ToolCall, cx: &Arc<ToolContext>, grants: &Grants) -> Box<dyn Call> {
        match PatchRequest::read(&call, cx.cwd()) {
            Some(Ok(request)) => Box::new(PatchRun::new(request, cx, grants)),
            Some(Err(error)) => refused(format!("failed to parse function arguments: {error}")),
            None => refused(format!("unsupported call: {}", call.tool)),
        }
    }
}

/// Changes of another origin than a patch.
pub struct ForeignChanges {
    /// Reads the files and computes the changes. Nothing is written.
    pub plan: BoxFuture<'static, Result<Plan, String>>,
    /// Runs on a blocking thread after the changes were made. A problem is told with the report.
    pub applied: Box<dyn FnOnce() -> Result<(), String> + Send>,
}

impl fmt::Debug for ForeignChanges {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ForeignChanges").finish_non_exhaustive()
    }
}

/// Makes changes of another origin exactly like a patch: judged by the policy, shown, and approved if need be.
#[must_use]
pub fn apply_changes(call: ItemId, cx: &Arc<ToolContext>, grants: &Grants, changes: ForeignChanges) -> Box<dyn Call> {
    let ForeignChanges { plan, applied } = changes;
    let request = PatchRequest { call, text: String::new(), cwd: cx.cwd().clone(), voice: ReportFormat::Plain };
    let granted = grants.roots(&cx.settings.sandbox_policy);
    let planning = judged(plan, Arc::clone(cx), granted.clone());
    Box::new(PatchRun { after: Some(applied), ..PatchRun::planning(request, cx, granted, Box::pin(planning)) })
}

/// A patch and what it waits for.
pub(crate) struct PatchRun {
    call: PatchCall,
    cx: Arc<ToolContext>,
    /// The folders that people have granted under the current policy.
    granted: Vec<PathBuf>,
    stage: Stage,
    /// The checked patch, until it is applied or refused.
    plan: Option<Plan>,
    /// The applied changes, for the turn's diff.
    applied: Option<Applied>,
    /// Runs after the changes were made.
    after: Option<Box<dyn FnOnce() -> Result<(), String> + Send>>,
}

type Planning = BoxFuture<'static, Result<(Plan, Planned), String>>;

/// The current stage of a patch.
enum Stage {
    Planning(Planning),
    Applying(tokio::task::JoinHandle<(Result<Applied, String>, Duration)>),
    Nothing,
}

impl PatchRun {
    /// A patch that is being checked.
    pub(crate) fn new(request: PatchRequest, cx: &Arc<ToolContext>, grants: &Grants) -> Self {
        let granted = grants.roots(&cx.settings.sandbox_policy);
        let planning = judged(plan(&request), Arc::clone(cx), granted.clone());
        Self::planning(request, cx, granted, Box::pin(planning))
    }

    fn planning(request: PatchRequest, cx: &Arc<ToolContext>, granted: Vec<PathBuf>, planning: Planning) -> Self {
        let approval = cx.settings.approval_policy;
        let call = PatchCall::new(request, approval, cx.absent_reviewer(), cx.limits.answer_within);
        let stage = Stage::Planning(planning);
        Self { call, cx: Arc::clone(cx), granted, stage, plan: None, applied: None, after: None }
    }

    fn perform(&mut self, effects: Vec<machine::Effect>) -> Vec<Effect> {
        let mut out = Vec::with_capacity(effects.len());
        for effect in effects {
            match effect {
                machine::Effect::Emit(body) => out.push(Effect::Emit(body)),
                machine::Effect::TellOfNobody => out.extend(self.cx.tell_of_nobody().map(Effect::Emit)),
                machine::Effect::Ask(question) => out.push(Effect::Ask(question)),
                machine::Effect::Apply(permission) => self.apply(permission),
                machine::Effect::Grant(root) => {
                    let policy = self.cx.settings.sandbox_policy.clone();
                    out.push(Effect::Grant(Grant::Folder { policy, root }));
                }
                machine::Effect::TellDiff => {
                    let diff = self.applied.take().and_then(|applied| self.cx.diff_with(&applied));
                    out.extend(diff.map(Effect::Emit));
                }
                machine::Effect::End(output) => out.push(Effect::End(output)),
                machine::Effect::AbortTurn => out.push(Effect::EndTurn),
            }
        }
        out
    }

    fn apply(&mut self, permission: Permission) {
        let Some(plan) = self.plan.take() else { return };
        let (cx, granted, after) = (Arc::clone(&self.cx), std::mem::take(&mut self.granted), self.after.take());
        self.stage = Stage::Applying(tokio::task::spawn_blocking(move || {
            let since = Instant::now();
            let guard = Reach::new(&cx.launch, granted.clone()).guard(&permission);
            // A person may allow anything.
            let profile = cx.launch.profile_with(granted).filter(|_| permission != Permission::Person);
            let changes = profile.as_ref().map(OwnChanges::expected);
            let applied = plan.apply(&guard).map_err(|error| full_message(&error)).map(|mut applied| {
                if let Some(Err(problem)) = after.map(|after| after()) {
                    applied.summary.push_str(&problem);
                }
                applied
            });
            if let Some(changes) = changes {
                changes.inspect();
            }
            (applied, since.elapsed())
        }));
    }

    async fn input(&mut self) -> Input {
        match &mut self.stage {
            Stage::Planning(planning) => {
                let planned = planning.await;
                self.stage = Stage::Nothing;
                Input::Planned(planned.map(|(plan, planned)| {
                    self.plan = Some(plan);
                    planned
                }))
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
                Input::Applied(summary, duration)
            }
            Stage::Nothing => std::future::pending().await,
        }
    }
}

/// Checks a patch against the files.
fn plan(request: &PatchRequest) -> impl Future<Output = Result<Plan, String>> + Send + 'static {
    let (text, cwd) = (request.text.clone(), request.cwd.clone());
    async move {
        let planning = tokio::task::spawn_blocking(move || {
            let patch = codex_patch::parse(&text).map_err(|error| full_message(&error))?;
            patch.plan(&cwd).map_err(|error| full_message(&error))
        });
        planning.await.unwrap_or_else(|error| Err(error.to_string()))
    }
}

/// Finds the permission for a plan.
async fn judged(
    plan: impl Future<Output = Result<Plan, String>> + Send + 'static,
    cx: Arc<ToolContext>,
    granted: Vec<PathBuf>,
) -> Result<(Plan, Planned), String> {
    // A placeholder of a command is not a file of the user.
    codex_sandbox::cleanup_done().await;
    let plan = plan.await?;
    let judging = tokio::task::spawn_blocking(move || {
        let permission = Reach::new(&cx.launch, granted).judge(&plan, cx.settings.approval_policy);
        let planned = Planned { changes: plan.changes(), permission };
        (plan, planned)
    });
    judging.await.map_err(|error| error.to_string())
}

impl Call for PatchRun {
    fn begun(&mut self) -> Vec<Effect> {
        Vec::new()
    }

    fn answered(&mut self, answer: Answer) -> Vec<Effect> {
        let effects = self.call.step(Input::Answered(answer));
        self.perform(effects)
    }

    fn next(&mut self) -> BoxFuture<'_, Vec<Effect>> {
        Box::pin(async {
            let input = self.input().await;
            let effects = self.call.step(input);
            self.perform(effects)
        })
    }

    fn stop(&mut self) -> Vec<Effect> {
        let effects = self.call.stop();
        self.perform(effects)
    }

    fn must_finish(&self) -> bool {
        matches!(self.stage, Stage::Applying(_))
    }

    fn may_begin_again(&self) -> bool {
        self.call.is_asking()
    }
}
