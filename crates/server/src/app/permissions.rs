//! `thread/permissions/*`.

use codex_log::settings::SettingsChange;
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::empty::Empty;
use codex_protocol::v2::thread::ThreadParams;
use codex_protocol::v2::thread_permissions::{
    ThreadPermissionsCheckParams, ThreadPermissionsReadResponse, ThreadPermissionsRevokeParams,
    ThreadPermissionsRevokeResponse, ThreadPermissionsRuleDeleteParams,
};
use codex_wire::permissions::{CommandForecast, CommandRule, Permissions, RuleDecision};

use super::dispatch::serve;
use super::subscriber::ThreadSubscriber;
use super::turns::closed;

serve! {
    subscribed {
        ThreadPermissionsRead => read,
        ThreadPermissionsCheck => check,
        ThreadPermissionsRevoke => revoke,
        ThreadPermissionsRuleDelete => delete_rule,
    }
}

async fn read(
    subscriber: &mut ThreadSubscriber,
    _: ThreadParams,
) -> Result<ThreadPermissionsReadResponse, ErrorObject> {
    let Permissions { rules, grants } = subscriber.thread.permissions().await.map_err(|_| closed(subscriber))?;
    let settings = subscriber.thread.configure(SettingsChange::default()).await.map_err(|_| closed(subscriber))?;
    let (approval_policy, sandbox) = (settings.approval_policy, (&settings.sandbox_policy).into());
    Ok(ThreadPermissionsReadResponse { approval_policy, sandbox, rules, grants })
}

async fn check(
    subscriber: &mut ThreadSubscriber,
    params: ThreadPermissionsCheckParams,
) -> Result<CommandForecast, ErrorObject> {
    let told = subscriber.thread.forecast(params.command).await.map_err(|_| closed(subscriber))?;
    told.map_err(ErrorObject::invalid)
}

async fn revoke(
    subscriber: &mut ThreadSubscriber,
    params: ThreadPermissionsRevokeParams,
) -> Result<ThreadPermissionsRevokeResponse, ErrorObject> {
    let revoked = subscriber.thread.revoke(params.grant_id).await.map_err(|_| closed(subscriber))?;
    Ok(ThreadPermissionsRevokeResponse { revoked })
}

async fn delete_rule(
    subscriber: &mut ThreadSubscriber,
    params: ThreadPermissionsRuleDeleteParams,
) -> Result<Empty, ErrorObject> {
    let ThreadPermissionsRuleDeleteParams { file, line, text, .. } = params;
    // Only its place and its text say which rule it is.
    let decision = RuleDecision::Allow;
    let rule = CommandRule { decision, text, file, line, sandbox_only: false, justification: None };
    let done = subscriber.thread.remove_rule(rule).await.map_err(|_| closed(subscriber))?;
    done.map(|()| Empty {}).map_err(ErrorObject::invalid)
}
