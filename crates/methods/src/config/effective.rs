//! The effective configuration in the form that clients read: `config/read` and `getUserSavedConfig`.
//!
//! Every key that has a type is read with it, so a tree that can be shown is also one whose values are valid.

use std::collections::BTreeMap;

use codex_config::{Reader, SandboxConfig, ValueError, table_json, value_json};
use codex_protocol::v1::saved_config::{Profile, SandboxSettings, Tools, UserSavedConfig};
use codex_protocol::v2::config::{Config as WireConfig, ProfileV2, SandboxWorkspaceWrite, ToolsV2};
use codex_protocol::v2::hidden::Hidden;
use codex_wire::policy::WorkspaceWrite;
use serde_json::{Map, Value as Json};

/// Keys that 0.166 always names, with `null` where they are not set.
const NAMED_BY_0166: &[&str] = &[
    "model_auto_compact_token_limit_scope",
    "approvals_reviewer",
    "web_search",
    "service_tier",
    "analytics",
    "browser_use",
    "computer_use",
    "desktop",
];

/// The keys of a profile that have their own member.
const PROFILE_KEYS: &[&str] = &[
    "model",
    "model_provider",
    "approval_policy",
    "model_reasoning_effort",
    "model_reasoning_summary",
    "model_verbosity",
    "chatgpt_base_url",
];

/// The configuration as `config/read` shows it.
pub(super) fn effective(root: &Reader<'_>) -> Result<WireConfig, ValueError> {
    let mut config = WireConfig {
        model: root.str("model")?,
        review_model: root.str("review_model")?,
        model_context_window: root.integer("model_context_window", 1..)?,
        model_auto_compact_token_limit: root.integer("model_auto_compact_token_limit", 1..)?,
        model_provider: root.str("model_provider")?,
        approval_policy: root.approval_policy()?,
        sandbox_mode: root.word("sandbox_mode")?,
        sandbox_workspace_write: workspace_write(root)?.map(SandboxWorkspaceWrite::from),
        forced_chatgpt_workspace_id: root.node("forced_chatgpt_workspace_id").map(|node| value_json(&node.value)),
        forced_login_method: root.word("forced_login_method")?,
        tools: tools(root)?,
        profile: root.str("profile")?,
        profiles: root.map("profiles", |profiles, name| profile(&profiles.section(name)?).map(Some))?,
        instructions: root.str("instructions")?,
        developer_instructions: root.str("developer_instructions")?,
        compact_prompt: root.str("compact_prompt")?,
        model_reasoning_effort: root.word("model_reasoning_effort")?,
        model_reasoning_summary: root.word("model_reasoning_summary")?,
        model_verbosity: root.word("model_verbosity")?,
        additional: Hidden::default(),
    };
    config.additional = Hidden(additional(root, &config));
    Ok(config)
}

/// Every key that has no member of its own.
fn additional(root: &Reader<'_>, config: &WireConfig) -> Map<String, Json> {
    let named = match serde_json::to_value(config) {
        Ok(Json::Object(named)) => named,
        Ok(_) | Err(_) => Map::new(),
    };
    let mut rest = others(root, |key| named.contains_key(key));
    for key in NAMED_BY_0166 {
        rest.entry(*key).or_insert(Json::Null);
    }
    rest
}

/// The members of a table as JSON, without those that have their own member.
fn others(reader: &Reader<'_>, elsewhere: impl Fn(&str) -> bool) -> Map<String, Json> {
    let mut members = reader.table().map(table_json).unwrap_or_default();
    members.retain(|key, _| !elsewhere(key));
    members
}

/// `[sandbox_workspace_write]`, if present.
fn workspace_write(root: &Reader<'_>) -> Result<Option<WorkspaceWrite>, ValueError> {
    let limits = SandboxConfig::read(root)?.workspace_write;
    Ok(root.node("sandbox_workspace_write").map(|_| limits))
}

/// `[tools]`, if present.
fn tools(root: &Reader<'_>) -> Result<Option<ToolsV2>, ValueError> {
    let section = root.section("tools")?;
    let web_search = section.node("web_search").or_else(|| section.node("web_search_request"));
    let web_search = web_search.map(|node| value_json(&node.value));
    let tools = ToolsV2 { web_search, view_image: section.bool("view_image")? };
    Ok(root.node("tools").map(|_| tools))
}

fn profile(entry: &Reader<'_>) -> Result<ProfileV2, ValueError> {
    Ok(ProfileV2 {
        model: entry.str("model")?,
        model_provider: entry.str("model_provider")?,
        approval_policy: entry.approval_policy()?,
        model_reasoning_effort: entry.word("model_reasoning_effort")?,
        model_reasoning_summary: entry.word("model_reasoning_summary")?,
        model_verbosity: entry.word("model_verbosity")?,
        chatgpt_base_url: entry.str("chatgpt_base_url")?,
        additional: Hidden(others(entry, |key| PROFILE_KEYS.contains(&key))),
    })
}

/// The configuration as `getUserSavedConfig` shows it.
pub fn saved(root: &Reader<'_>) -> Result<UserSavedConfig, ValueError> {
    let config = effective(root)?;
    let settings = |limits: SandboxWorkspaceWrite| SandboxSettings {
        writable_roots: limits.writable_roots,
        network_access: Some(limits.network_access),
        exclude_tmpdir_env_var: Some(limits.exclude_tmpdir_env_var),
        exclude_slash_tmp: Some(limits.exclude_slash_tmp),
    };
    let workspace = config.forced_chatgpt_workspace_id.and_then(|id| id.as_str().map(str::to_owned));
    let profiles: BTreeMap<String, Profile> =
        config.profiles.into_iter().map(|(name, profile)| (name, saved_profile(profile))).collect();
    Ok(UserSavedConfig {
        approval_policy: config.approval_policy,
        sandbox_mode: config.sandbox_mode,
        sandbox_settings: config.sandbox_workspace_write.map(settings),
        forced_chatgpt_workspace_id: workspace,
        forced_login_method: config.forced_login_method,
        model: config.model,
        model_reasoning_effort: config.model_reasoning_effort,
        model_reasoning_summary: config.model_reasoning_summary,
        model_verbosity: config.model_verbosity,
        tools: config.tools.map(|tools| Tools {
            web_search: tools.web_search.as_ref().and_then(Json::as_bool),
            view_image: tools.view_image,
        }),
        profile: config.profile,
        profiles,
    })
}

fn saved_profile(profile: ProfileV2) -> Profile {
    Profile {
        model: profile.model,
        model_provider: profile.model_provider,
        approval_policy: profile.approval_policy,
        model_reasoning_effort: profile.model_reasoning_effort,
        model_reasoning_summary: profile.model_reasoning_summary,
        model_verbosity: profile.model_verbosity,
        chatgpt_base_url: profile.chatgpt_base_url,
    }
}
