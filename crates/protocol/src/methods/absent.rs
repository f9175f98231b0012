//! Methods of other releases that this one does not have, each with the reason.

use super::METHODS;
use crate::rpc::ErrorObject;

/// Prefixes of methods of other releases that need the cloud of their vendor.
const CLOUD: &[(&str, &str)] = &[
    ("plugin/", "plugins come from a marketplace service that this program does not talk to"),
    ("marketplace/", "plugins come from a marketplace service that this program does not talk to"),
    ("app/", "apps are connectors of a hosted service that this program does not talk to"),
    ("remoteControl/", "remote control goes through a hosted relay that this program does not talk to"),
    ("thread/realtime/", "speech needs a hosted realtime service that this program does not talk to"),
    ("account/rateLimitResetCredit/", "credits need a hosted service that this program does not use"),
    ("account/sendAddCreditsNudgeEmail", "mail is sent by a hosted service that this program does not talk to"),
    ("account/workspaceMessages/", "workspace messages come from a hosted service that this program does not talk to"),
    ("windowsSandbox/", "this is not Windows"),
    ("userVerification/", "keys of the operating system are not used by this program"),
    ("account/gatewayOAuth/", "the gateway is a hosted service that this program does not talk to"),
    ("account/usage/", "usage is counted by a hosted service that this program does not talk to"),
    ("account/bedrock/", "this program stores no keys of a cloud; configure a provider in config.toml"),
    ("account/gcp/", "this program stores no keys of a cloud; configure a provider in config.toml"),
    ("accountSession/", "this program keeps one login"),
];

/// Prefixes of methods of other releases that this one does not have.
const ABSENT: &[(&str, &str)] = &[
    ("mcpServer/", "this release knows tools, resources and logins of MCP servers, and no events"),
    ("externalAgentConfig/", "this release takes over no settings of other agents"),
    ("thread/approveGuardianDeniedAction", "this release has no reviewer of approvals but the user"),
    ("thread/memory", "this release keeps no memories across threads"),
    ("memory/", "this release keeps no memories across threads"),
    ("project/", "in this release, a project is a folder"),
    ("environment/", "this release runs commands on this machine only"),
    ("process/", "this release runs commands with `command/exec`"),
    ("rollout/compress", "this release compresses no rollouts"),
    ("server/diagnostics", "this release measures nothing while it runs"),
];

/// The reason why this method is not served.
pub(super) fn refusal(method: &str) -> ErrorObject {
    if let Some((_, why)) = CLOUD.iter().chain(ABSENT).find(|(prefix, _)| method.starts_with(prefix)) {
        return ErrorObject::invalid(format!("unsupported method `{method}`: {why}"));
    }
    let hint = nearest(method).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
    ErrorObject::invalid(format!("Invalid request: unknown variant `{method}`{hint}"))
}

/// The method that a misspelled one may be: the same except for case and separators, or for its last word.
fn nearest(method: &str) -> Option<&'static str> {
    let plain = |name: &str| name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let wanted = plain(method);
    let names = || METHODS.iter().map(|row| row.name);
    let group = method.rsplit_once('/').map(|(group, _)| format!("{group}/"));
    let same = names().find(|name| plain(name) == wanted);
    same.or_else(|| group.and_then(|group| names().find(|name| name.starts_with(&group))))
}
