//! `request_permissions`: the model asks a person to let commands write to more folders or use the network.
//!
//! Invariants: only a person grants anything, and never more than was asked for; neither a protected name nor a folder
//! that contains a home can be asked for; what is granted for a turn ends with it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use codex_log::permissions::{GrantScope, Permissions};
use codex_log::{Answer, Body, Question, QuestionId, QuestionKind};
use codex_wire::decision::ReviewDecision;
use codex_wire::policy::ApprovalKind;
use codex_wire::tool_spec::ToolSpec;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::json;

use crate::call::{Concurrency, ToolCall, ToolInput};
use crate::context::ToolContext;
use crate::grants::Grants;
use crate::lifecycle::{Call, Effect, ToolOutput};
use crate::patching::grantable;
use crate::plain::refused;
use crate::registry::{Offer, Tool};
use crate::specs;

const NAME: &str = "request_permissions";
/// The maximum number of folders of one request.
const MOST_FOLDERS: usize = 16;

/// The permissions that people have granted to the commands of a thread.
#[derive(Debug, Clone, Default)]
pub(crate) struct GrantedPermissions(Arc<Mutex<Granted>>);

#[derive(Debug, Default)]
struct Granted {
    turn: Permissions,
    session: Permissions,
}

impl GrantedPermissions {
    /// All that is granted now.
    pub(crate) fn current(&self) -> Permissions {
        let granted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        granted.session.and(&granted.turn)
    }

    fn add(&self, more: &Permissions, scope: GrantScope) {
        let mut granted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match scope {
            GrantScope::Turn => granted.turn = granted.turn.and(more),
            GrantScope::Session => granted.session = granted.session.and(more),
        }
    }

    /// Ends what was granted for a turn.
    pub(crate) fn end_turn(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).turn = Permissions::default();
    }
}

/// The tool.
pub(crate) struct RequestPermissionsTool;

#[derive(Deserialize)]
struct Arguments {
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    permissions: Wished,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Wished {
    network: Option<WishedNetwork>,
    #[serde(alias = "fileSystem")]
    file_system: Option<WishedFiles>,
}

#[derive(Deserialize)]
struct WishedNetwork {
    #[serde(default)]
    enabled: Option<bool>,
}

#[derive(Deserialize)]
struct WishedFiles {
    #[serde(default)]
    write: Option<Vec<PathBuf>>,
}

impl Tool for RequestPermissionsTool {
    fn spec(&self, offer: Offer) -> Option<ToolSpec> {
        offer.asks_permissions.then(|| specs::REQUEST_PERMISSIONS.clone())
    }

    fn takes(&self, call: &ToolCall) -> bool {
        call.tool == NAME && matches!(call.input, ToolInput::Function(_))
    }

    fn concurrency(&self, _: &ToolCall) -> Concurrency {
        // Later commands of the same answer count on it.
        Concurrency::Alone
    }

    fn begin(&self, call: ToolCall, cx: &Arc<ToolContext>, _: &Grants) -> Box<dyn Call> {
        let ToolInput::Function(arguments) = &call.input else { return refused(format!("unsupported call: {NAME}")) };
        let parsed = serde_json::from_str::<Arguments>(arguments);
        let Arguments { reason, permissions } = match parsed {
            Ok(arguments) => arguments,
            Err(error) => return refused(format!("failed to parse function arguments: {error}")),
        };
        match wanted(permissions, cx) {
            Ok(asked) => {
                Box::new(PermissionsCall { question: QuestionId::first(call.id), reason, asked, cx: Arc::clone(cx) })
            }
            Err(why) => refused(why),
        }
    }
}

/// The permissions to ask for, or the reason why there is nothing to ask.
fn wanted(wished: Wished, cx: &ToolContext) -> Result<Permissions, String> {
    if let Some(silence) = cx.settings.approval_policy.silence(ApprovalKind::Permissions) {
        return Err(format!("the permissions were not granted: {silence}"));
    }
    if !cx.thread.asks_permissions() {
        return Err("nobody can be asked for permissions in this thread".to_owned());
    }
    if let Some(why) = cx.absent_reviewer() {
        return Err(format!("the permissions were not granted: {why}"));
    }
    let Some(profile) = cx.launch.profile() else {
        return Err("commands are not confined here, so they need no permissions".to_owned());
    };
    let folders = wished.file_system.and_then(|files| files.write).unwrap_or_default();
    if folders.len() > MOST_FOLDERS {
        return Err(format!("{} folders, {MOST_FOLDERS} are allowed", folders.len()));
    }
    let mut write = Vec::new();
    for folder in folders {
        let folder = grantable(&cx.launch, &cx.cwd().join(folder))?;
        if !profile.writable_roots().contains(&folder) && !write.contains(&folder) {
            write.push(folder);
        }
    }
    let network = wished.network.and_then(|network| network.enabled).unwrap_or(false) && !profile.network();
    let asked = Permissions { write, network };
    if asked.is_empty() {
        return Err("commands may do this already: they can read everything but secrets".to_owned());
    }
    Ok(asked)
}

/// A request that waits for a person.
struct PermissionsCall {
    question: QuestionId,
    reason: Option<String>,
    asked: Permissions,
    cx: Arc<ToolContext>,
}

impl PermissionsCall {
    fn grant(&self, permissions: &Permissions, scope: GrantScope) -> String {
        self.cx.thread.granted.add(permissions, scope);
        // The folders stay the ones that the person has seen.
        self.cx.hold_roots();
        let (scope, end) = match scope {
            GrantScope::Turn => ("turn", "this turn ends"),
            GrantScope::Session => ("session", "the session ends"),
        };
        let granted = json!({"fileSystem": {"write": permissions.write}, "network": {"enabled": permissions.network}});
        json!({"permissions": granted, "scope": scope, "note": format!("valid until {end}")}).to_string()
    }
}

impl Call for PermissionsCall {
    fn begun(&mut self) -> Vec<Effect> {
        vec![Effect::Ask(Question {
            id: self.question.clone(),
            reason: self.reason.clone(),
            kind: QuestionKind::Permissions { asked: self.asked.clone(), cwd: self.cx.cwd().clone() },
            deadline: self.cx.answer_within(),
        })]
    }

    fn answered(&mut self, answer: Answer) -> Vec<Effect> {
        let (granted, scope) = match &answer {
            Answer::Granted { permissions, scope } => (permissions.within(&self.asked), *scope),
            Answer::Decision(ReviewDecision::ApprovedForSession) => (self.asked.clone(), GrantScope::Session),
            Answer::Decision(decision) if decision.allows() => (self.asked.clone(), GrantScope::Turn),
            Answer::Decision(_) | Answer::Given { .. } | Answer::Declined => (Permissions::default(), GrantScope::Turn),
        };
        let is_stop = answer.decision() == ReviewDecision::Abort;
        let noted = Effect::Emit(Body::Answered { question: self.question.clone(), answer, item: None });
        if is_stop {
            return vec![noted, Effect::EndTurn];
        }
        let text = if granted.is_empty() {
            "the permissions were not granted".to_owned()
        } else {
            self.grant(&granted, scope)
        };
        vec![noted, Effect::End(ToolOutput::Text(text))]
    }

    fn next(&mut self) -> BoxFuture<'_, Vec<Effect>> {
        Box::pin(std::future::pending())
    }

    fn stop(&mut self) -> Vec<Effect> {
        Vec::new()
    }

    fn may_begin_again(&self) -> bool {
        true
    }
}
