//! Whether a tool of a server may run: immediately, after a person has approved it, or not at all.
//!
//! Servers run outside of the sandbox, and the annotations of a tool are claims of its server, which the user has
//! configured. A tool without annotations counts as destructive and open to the world.

use codex_config::McpApprovalMode;
use codex_wire::policy::{ApprovalKind, AskForApproval, SandboxPolicy};
use serde_json::Value;

/// The judgement of a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    Run,
    Ask,
    /// It must not run, and why.
    Refuse(String),
}

/// The annotations of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claims {
    /// Whether it is read-only.
    pub(crate) reads_only: bool,
    /// Whether it may be destructive.
    destroys: bool,
    /// Whether it accesses things outside of its server.
    reaches_out: bool,
}

impl Claims {
    pub(crate) fn of(annotations: Option<&Value>) -> Self {
        let claim = |name: &str| annotations.and_then(|all| all.get(name)).and_then(Value::as_bool);
        Self {
            reads_only: claim("readOnlyHint").unwrap_or(false),
            destroys: claim("destructiveHint").unwrap_or(true),
            reaches_out: claim("openWorldHint").unwrap_or(true),
        }
    }

    fn is_harmless(self) -> bool {
        self.reads_only || !(self.destroys || self.reaches_out)
    }
}

/// Judges a call.
pub(crate) fn judge(
    mode: McpApprovalMode,
    claims: Claims,
    is_granted: bool,
    policy: AskForApproval,
    sandbox: &SandboxPolicy,
) -> Judgement {
    let is_free = match mode {
        McpApprovalMode::Approve => true,
        McpApprovalMode::Auto => is_granted || claims.is_harmless(),
        McpApprovalMode::Prompt => is_granted,
    };
    let is_unlimited = policy == AskForApproval::Never && matches!(sandbox, SandboxPolicy::DangerFullAccess);
    match policy.silence(ApprovalKind::Mcp) {
        _ if is_free => Judgement::Run,
        None => Judgement::Ask,
        // Without a sandbox and without questions, the user wants everything to run.
        Some(_) if mode == McpApprovalMode::Auto && is_unlimited => Judgement::Run,
        Some(silence) => Judgement::Refuse(format!(
            "the tool needs an approval, and {silence}; the user can allow it with `approval_mode = \"approve\"` in the \
             configuration of the server"
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const AUTO: McpApprovalMode = McpApprovalMode::Auto;

    fn judged(
        mode: McpApprovalMode,
        annotations: Option<Value>,
        policy: AskForApproval,
        sandbox: &SandboxPolicy,
    ) -> Judgement {
        judge(mode, Claims::of(annotations.as_ref()), false, policy, sandbox)
    }

    #[test]
    fn a_tool_without_claims_needs_an_approval() {
        let (ask, read) = (AskForApproval::OnRequest, SandboxPolicy::ReadOnly);
        for (annotations, expected) in [
            (None, Judgement::Ask),
            (Some(json!({})), Judgement::Ask),
            (Some(json!({"readOnlyHint": "true"})), Judgement::Ask),
            (Some(json!({"destructiveHint": false})), Judgement::Ask),
            (Some(json!({"destructiveHint": false, "openWorldHint": false})), Judgement::Run),
            (Some(json!({"readOnlyHint": true})), Judgement::Run),
        ] {
            assert_eq!(judged(AUTO, annotations.clone(), ask, &read), expected, "{annotations:?}");
        }
        let granted = judge(AUTO, Claims::of(None), true, ask, &read);
        assert_eq!(granted, Judgement::Run);
    }

    #[test]
    fn nobody_is_asked_under_never() {
        let never = AskForApproval::Never;
        let refused = |judgement| matches!(judgement, Judgement::Refuse(_));
        assert!(refused(judged(AUTO, None, never, &SandboxPolicy::ReadOnly)));
        assert_eq!(judged(AUTO, None, never, &SandboxPolicy::DangerFullAccess), Judgement::Run);
        assert!(refused(judged(McpApprovalMode::Prompt, None, never, &SandboxPolicy::DangerFullAccess)));
    }

    #[test]
    fn a_granular_policy_asks_about_tools_only_if_its_switch_is_on() {
        let policy = |mcp_elicitations: bool| {
            let switches = json!({"sandbox_approval": false, "rules": false, "mcp_elicitations": mcp_elicitations});
            serde_json::from_value(json!({"granular": switches})).unwrap()
        };
        assert_eq!(judged(AUTO, None, policy(true), &SandboxPolicy::ReadOnly), Judgement::Ask);
        for sandbox in [SandboxPolicy::ReadOnly, SandboxPolicy::DangerFullAccess] {
            let Judgement::Refuse(why) = judged(AUTO, None, policy(false), &sandbox) else { panic!("it is refused") };
            assert!(why.contains("`mcp_elicitations` is off in the approval policy"), "{why}");
        }
    }

    #[test]
    fn the_mode_goes_before_the_claims() {
        let (ask, read) = (AskForApproval::OnRequest, SandboxPolicy::ReadOnly);
        let harmless = Some(json!({"readOnlyHint": true}));
        assert_eq!(judged(McpApprovalMode::Prompt, harmless, ask, &read), Judgement::Ask);
        assert_eq!(judged(McpApprovalMode::Approve, None, AskForApproval::Never, &read), Judgement::Run);
    }
}
