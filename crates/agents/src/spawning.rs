//! The settings of a new agent: those of its parent at the time of the call, never wider.

use std::sync::Arc;

use codex_config::{AgentIsolation, RoleSettings};
use codex_log::settings::Settings;
use codex_wire::policy::{SandboxPolicy, WorkspaceWrite};
use codex_wire::reasoning::ReasoningEffort;

use crate::roles::Roles;

/// The word for an agent without a role.
const NO_ROLE: &str = "default";

/// The options of a call that starts an agent.
#[derive(Debug, Default)]
pub(crate) struct ChildOptions {
    pub(crate) model: Option<String>,
    pub(crate) effort: Option<ReasoningEffort>,
    pub(crate) sandbox_mode: Option<String>,
    pub(crate) role: Option<String>,
    pub(crate) isolation: Option<String>,
}

/// A new agent.
#[derive(Debug)]
pub(crate) struct NewChild {
    pub(crate) settings: Arc<Settings>,
    pub(crate) role: Option<String>,
    /// The instructions of its role.
    pub(crate) instructions: Option<String>,
    pub(crate) isolation: Option<AgentIsolation>,
}

/// A new agent with these options. The settings of its role take precedence over them.
///
/// # Errors
/// When the role or the isolation is unknown or cannot be used, or the sandbox mode is unknown or wider than the parent's.
pub(crate) async fn new_child(parent: &Settings, options: ChildOptions, roles: &Roles) -> Result<NewChild, String> {
    let role = options.role.as_deref().map(str::trim).filter(|role| !role.is_empty() && *role != NO_ROLE);
    let role = role.map(str::to_owned);
    let isolation = isolation(options.isolation.as_deref())?;
    let settings = settings(parent, options)?;
    let Some(name) = role else { return Ok(NewChild { settings, role: None, instructions: None, isolation }) };
    let mut of_role = roles.settings(&name).await?;
    let (instructions, isolation) = (of_role.instructions.take(), of_role.isolation.or(isolation));
    let settings = Arc::new(in_role((*settings).clone(), of_role));
    Ok(NewChild { settings, role: Some(name), instructions, isolation })
}

/// The settings in a role, which never widens anything.
fn in_role(settings: Settings, role: RoleSettings) -> Settings {
    let RoleSettings { model, effort, approval_policy, sandbox_mode, instructions: _, isolation: _ } = role;
    let mut settings = with_model(settings, model, effort);
    if let Some(mode) = sandbox_mode
        && let Ok(policy) = narrowed(&settings.sandbox_policy, mode.as_str())
    {
        settings.sandbox_policy = policy;
    }
    if let Some(policy) = approval_policy {
        settings.approval_policy = settings.approval_policy.stricter(policy);
    }
    settings
}

/// The settings of a new agent, without a role.
fn settings(parent: &Settings, options: ChildOptions) -> Result<Arc<Settings>, String> {
    let mut settings = parent.clone();
    if let Some(mode) = options.sandbox_mode.as_deref().filter(|mode| !mode.trim().is_empty()) {
        settings.sandbox_policy = narrowed(&parent.sandbox_policy, mode)?;
    }
    Ok(Arc::new(with_model(settings, options.model, options.effort)))
}

/// The settings with another model, which thinks as hard as it does by itself, and another effort.
fn with_model(mut settings: Settings, model: Option<String>, effort: Option<ReasoningEffort>) -> Settings {
    if let Some(model) = model.filter(|model| !model.trim().is_empty()) {
        if model != settings.model {
            settings.effort = None;
        }
        settings.model = model;
    }
    settings.effort = effort.or(settings.effort);
    settings
}

/// The folder of a new agent: its parent's, unless the call names another.
///
/// # Errors
/// When the name is unknown.
fn isolation(name: Option<&str>) -> Result<Option<AgentIsolation>, String> {
    let Some(name) = name.map(str::trim).filter(|name| !matches!(*name, "" | "none")) else { return Ok(None) };
    name.parse().map(Some).map_err(|_| {
        let shown: String = name.chars().take(40).collect();
        format!("unknown isolation `{shown}`; use `worktree`, or leave it out to share your folder")
    })
}

fn narrowed(parent: &SandboxPolicy, mode: &str) -> Result<SandboxPolicy, String> {
    let word: String = mode.chars().filter(char::is_ascii_alphabetic).collect::<String>().to_ascii_lowercase();
    let wished = match word.as_str() {
        "readonly" => SandboxPolicy::ReadOnly,
        "workspace" | "workspacewrite" => match parent {
            SandboxPolicy::WorkspaceWrite(_) => parent.clone(),
            _ => SandboxPolicy::WorkspaceWrite(WorkspaceWrite::default()),
        },
        "danger" | "dangerfullaccess" => SandboxPolicy::DangerFullAccess,
        _ => {
            return Err(format!(
                "unknown sandbox_mode `{}`; use read-only, workspace-write or danger-full-access",
                mode.chars().take(40).collect::<String>()
            ));
        }
    };
    if wished.clone().tighter(parent) == wished {
        Ok(wished)
    } else {
        Err(format!("sandbox_mode {mode} is wider than your own; a subagent never gets more access than its parent"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(policy: SandboxPolicy) -> Settings {
        Settings { sandbox_policy: policy, ..Settings::of_folder("/w".into()) }
    }

    fn mode(parent: SandboxPolicy, mode: &str) -> Result<SandboxPolicy, String> {
        let options = ChildOptions { sandbox_mode: Some(mode.to_owned()), ..ChildOptions::default() };
        settings(&of(parent), options).map(|settings| settings.sandbox_policy.clone())
    }

    #[test]
    fn a_child_never_gets_more_than_its_parent() {
        let workspace = || {
            let writable_roots = vec!["/granted".into()];
            SandboxPolicy::WorkspaceWrite(WorkspaceWrite { writable_roots, ..WorkspaceWrite::default() })
        };
        for wide in ["danger-full-access", "danger", "DANGER_FULL_ACCESS"] {
            assert!(mode(workspace(), wide).is_err(), "{wide}");
            assert!(mode(SandboxPolicy::ReadOnly, wide).is_err(), "{wide}");
        }
        assert!(mode(SandboxPolicy::ReadOnly, "workspace_write").is_err());
        assert_eq!(mode(workspace(), "read only"), Ok(SandboxPolicy::ReadOnly));
        assert_eq!(mode(workspace(), "workspace"), Ok(workspace()));
        let plain = SandboxPolicy::WorkspaceWrite(WorkspaceWrite::default());
        assert_eq!(mode(SandboxPolicy::DangerFullAccess, "workspace-write"), Ok(plain));
        assert!(mode(workspace(), "everything").is_err());
    }

    #[test]
    fn an_unknown_isolation_is_refused() {
        assert_eq!(isolation(Some("worktree")), Ok(Some(AgentIsolation::Worktree)));
        assert_eq!((isolation(None), isolation(Some("none"))), (Ok(None), Ok(None)));
        assert!(isolation(Some("container")).unwrap_err().contains("unknown isolation `container`"));
    }

    #[test]
    fn a_role_narrows_and_never_widens() {
        use codex_wire::policy::{AskForApproval, SandboxMode};
        let role = |approval_policy, sandbox_mode| RoleSettings {
            approval_policy: Some(approval_policy),
            sandbox_mode: Some(sandbox_mode),
            ..RoleSettings::default()
        };
        let parent = Settings { approval_policy: AskForApproval::OnRequest, ..of(SandboxPolicy::ReadOnly) };
        let wide = in_role(parent.clone(), role(AskForApproval::Never, SandboxMode::DangerFullAccess));
        assert_eq!(wide, parent);
        let parent = Settings { approval_policy: AskForApproval::Never, ..of(SandboxPolicy::DangerFullAccess) };
        let narrow = in_role(parent, role(AskForApproval::UnlessTrusted, SandboxMode::ReadOnly));
        assert_eq!(
            (narrow.approval_policy, narrow.sandbox_policy),
            (AskForApproval::UnlessTrusted, SandboxPolicy::ReadOnly)
        );
    }

    #[test]
    fn another_model_thinks_as_hard_as_it_does_by_itself() {
        let parent =
            Settings { effort: Some(ReasoningEffort::High), model: "a".to_owned(), ..of(SandboxPolicy::ReadOnly) };
        let other = ChildOptions { model: Some("b".to_owned()), ..ChildOptions::default() };
        assert_eq!(settings(&parent, other).unwrap().effort, None);
        assert_eq!(settings(&parent, ChildOptions::default()).unwrap().effort, Some(ReasoningEffort::High));
    }
}
