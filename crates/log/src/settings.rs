//! The settings of a turn, and changes to them.

use std::path::PathBuf;

use codex_wire::agent::MultiAgentVersion;
use codex_wire::collaboration::CollaborationMode;
pub use codex_wire::collaboration::Mode;
use codex_wire::policy::{ApprovalsReviewer, AskForApproval, SandboxPolicy};
use codex_wire::reasoning::{ReasoningEffort, ReasoningSummary, Verbosity};
use codex_wire::rollout::TurnContextItem;
use serde_json::Value;

/// The settings of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The working directory of commands, at which relative paths start.
    pub cwd: PathBuf,
    /// The approval policy.
    pub approval_policy: AskForApproval,
    /// The reviewer of approval requests. Unless it is the user, requests are declined.
    pub reviewer: ApprovalsReviewer,
    /// The sandbox policy of commands.
    pub sandbox_policy: SandboxPolicy,
    /// The sandbox policy of an imported thread, which applies once the user has chosen its folder.
    pub withheld: Option<SandboxPolicy>,
    pub model: String,
    /// The reasoning effort; `None` leaves it to the provider.
    pub effort: Option<ReasoningEffort>,
    /// The amount of reasoning that is summarised.
    pub summary: ReasoningSummary,
    /// The verbosity of answers; `None` leaves it to the provider.
    pub verbosity: Option<Verbosity>,
    /// The collaboration mode.
    pub mode: Mode,
    /// The generation of its tools for other agents, if another release knows them.
    pub agent_tools: Option<MultiAgentVersion>,
}

impl Settings {
    /// The default settings of a thread in a folder.
    #[must_use]
    pub fn of_folder(cwd: PathBuf) -> Self {
        Self {
            cwd,
            approval_policy: AskForApproval::OnRequest,
            reviewer: ApprovalsReviewer::User,
            sandbox_policy: SandboxPolicy::ReadOnly,
            withheld: None,
            model: String::new(),
            effort: None,
            summary: ReasoningSummary::Auto,
            verbosity: None,
            mode: Mode::default(),
            agent_tools: None,
        }
    }

    /// The settings of a request that a line records.
    #[must_use]
    pub fn recorded(context: TurnContextItem) -> Self {
        Self {
            approval_policy: context.approval_policy,
            sandbox_policy: context.sandbox_policy,
            model: context.model,
            effort: context.effort,
            summary: context.summary,
            mode: context.collaboration_mode.as_ref().map(Mode::of).unwrap_or_default(),
            agent_tools: context.multi_agent_version.and_then(|version| version.parse().ok()),
            ..Self::of_folder(context.cwd)
        }
    }
}

/// A change to the settings; absent members are unchanged.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SettingsChange {
    /// See [`Settings::cwd`].
    pub cwd: Option<PathBuf>,
    /// See [`Settings::approval_policy`].
    pub approval_policy: Option<AskForApproval>,
    /// See [`Settings::reviewer`].
    pub reviewer: Option<ApprovalsReviewer>,
    /// See [`Settings::sandbox_policy`].
    pub sandbox_policy: Option<SandboxPolicy>,
    /// See [`Settings::model`].
    pub model: Option<String>,
    /// See [`Settings::effort`]; `Some(None)` clears it.
    pub effort: Option<Option<ReasoningEffort>>,
    /// See [`Settings::summary`].
    pub summary: Option<ReasoningSummary>,
    /// See [`Settings::mode`].
    pub mode: Option<Mode>,
    /// The schema that the final message of the next turn must follow.
    pub output_schema: Option<Value>,
}

impl SettingsChange {
    /// The same change with a mode, which takes precedence over the given model and effort.
    #[must_use]
    pub fn under(self, mode: Option<CollaborationMode>) -> Self {
        let Some(under) = mode else { return self };
        let mode = Some(Mode::of(&under));
        Self { model: under.settings.model.or(self.model), effort: Some(under.settings.reasoning_effort), mode, ..self }
    }
}

impl Settings {
    /// The same settings with policies that are no wider than others'.
    #[must_use]
    pub fn tightened_by(&self, above: &Self) -> Self {
        let is_absent = above.reviewer != ApprovalsReviewer::User;
        Self {
            approval_policy: self.approval_policy.stricter(above.approval_policy),
            reviewer: if is_absent { above.reviewer.clone() } else { self.reviewer.clone() },
            sandbox_policy: self.sandbox_policy.clone().tighter(&above.sandbox_policy),
            ..self.clone()
        }
    }

    /// The settings after a change. A relative working directory starts at the current one.
    #[must_use]
    pub fn changed(&self, change: &SettingsChange) -> Self {
        let (sandbox_policy, withheld) = self.changed_limits(change);
        Self {
            cwd: change.cwd.as_ref().map_or_else(|| self.cwd.clone(), |cwd| self.cwd.join(cwd)),
            approval_policy: change.approval_policy.unwrap_or(self.approval_policy),
            reviewer: change.reviewer.clone().unwrap_or_else(|| self.reviewer.clone()),
            sandbox_policy,
            withheld,
            model: change.model.clone().unwrap_or_else(|| self.model.clone()),
            effort: change.effort.clone().unwrap_or_else(|| self.effort.clone()),
            summary: change.summary.clone().unwrap_or_else(|| self.summary.clone()),
            verbosity: self.verbosity.clone(),
            mode: change.mode.clone().unwrap_or_else(|| self.mode.clone()),
            agent_tools: self.agent_tools,
        }
    }

    /// The collaboration mode in the form for clients.
    #[must_use]
    pub fn collaboration_mode(&self) -> CollaborationMode {
        self.mode.with(self.model.clone(), self.effort.clone())
    }

    /// The sandbox policy after a change, and the policy that is still withheld.
    fn changed_limits(&self, change: &SettingsChange) -> (SandboxPolicy, Option<SandboxPolicy>) {
        match (&self.withheld, &change.sandbox_policy) {
            (Some(withheld), wanted) if change.cwd.is_some() => (wanted.as_ref().unwrap_or(withheld).clone(), None),
            // The policy would apply to the folder that the user has not confirmed.
            (Some(_), Some(wanted @ SandboxPolicy::WorkspaceWrite(_))) => {
                (self.sandbox_policy.clone(), Some(wanted.clone()))
            }
            (_, Some(wanted)) => (wanted.clone(), None),
            (withheld, None) => (self.sandbox_policy.clone(), withheld.clone()),
        }
    }
}
