//! Every key of `config.toml` that this or another release knows, as data: its effect here, and whether the file of a
//! project may set it.
//!
//! The audit, the suggestion for a misspelled key, `--strict-config` and the filter of project files all use this
//! table. A test compares it with the keys that the readers really read.

use crate::Value;
use crate::agents::MOST_ACTIVE;

/// The effect of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// It has an effect.
    Honoured,
    /// A number that has an effect. A higher one counts as this one.
    AtMost(i64),
    /// It has an effect only with these values, and why not with others.
    Only(&'static [&'static str], &'static str),
    /// It is not used, which makes no difference, and why.
    Moot(&'static str),
}

/// Whether the file of a project may set a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Project {
    /// It may.
    May,
    /// Only to these values.
    MayOnly(&'static [&'static str]),
    /// Only to a number that is lower than the user's, if there is one.
    MayLower,
    /// It may not.
    MayNot,
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    /// The dotted path. `*` is a name that users choose, and a trailing `**` anything below.
    pub(crate) pattern: &'static str,
    pub(crate) usage: Use,
    pub(crate) project: Project,
}

/// A key with an effect, from any layer.
const fn shared(pattern: &'static str) -> Known {
    Known { pattern, usage: Use::Honoured, project: Project::May }
}

/// A key with an effect, but not from a project.
const fn own(pattern: &'static str) -> Known {
    Known { pattern, usage: Use::Honoured, project: Project::MayNot }
}

/// A number with an effect up to a limit, but not from a project.
const fn at_most(pattern: &'static str, most: i64) -> Known {
    Known { pattern, usage: Use::AtMost(most), project: Project::MayNot }
}

/// A key with an effect that a project may set to some values.
const fn partly(pattern: &'static str, values: &'static [&'static str]) -> Known {
    Known { pattern, usage: Use::Honoured, project: Project::MayOnly(values) }
}

/// A limit that a project may lower.
const fn limit(pattern: &'static str) -> Known {
    Known { pattern, usage: Use::Honoured, project: Project::MayLower }
}

/// A key that has an effect with some values.
const fn only(pattern: &'static str, values: &'static [&'static str], why: &'static str) -> Known {
    Known { pattern, usage: Use::Only(values, why), project: Project::MayNot }
}

/// A key of other releases without effect.
const fn unused(pattern: &'static str, why: &'static str) -> Known {
    only(pattern, &[], why)
}

/// A key of other releases that is not needed.
const fn moot(pattern: &'static str, why: &'static str) -> Known {
    Known { pattern, usage: Use::Moot(why), project: Project::MayNot }
}

const CHAT: &str = "the chat has no such setting";
const ABSENT: &str = "this release does not support it";
const NO_FEATURE: &str = "this release has no such feature";
const ALWAYS: &str = "the model always has this tool";
const SEARCH: &str = "set web_search instead";
const REALTIME: &str = "there are no voice conversations";
const INCLUDED: &str = "the messages to the model cannot be turned off";

/// The table. The first matching row counts.
pub(crate) const KEYS: &[Known] = &[
    // Models, effort, instructions and tools.
    shared("model"),
    shared("review_model"),
    shared("model_context_window"),
    shared("model_auto_compact_token_limit"),
    shared("model_reasoning_effort"),
    shared("model_reasoning_summary"),
    shared("model_verbosity"),
    shared("tool_output_token_limit"),
    shared("instructions"),
    shared("developer_instructions"),
    shared("project_doc_fallback_filenames"),
    partly("web_search", &["disabled"]),
    partly("tools.web_search", &["false"]),
    partly("tools.web_search_request", &["false"]),
    partly("features.web_search_request", &["false"]),
    shared("features.goals"),
    shared("features.parallel"),
    shared("features.unified_exec"),
    partly("features.request_permissions_tool", &["false"]),
    partly("features.subagent_tools", &["false"]),
    partly("features.multi_agent", &["false"]),
    partly("features.multi_agent_v2", &["false"]),
    own("features.multi_agent_v2.**"),
    shared("root_agent_uses_user_messages"),
    shared("subagent_root_inbox_autosubmit"),
    shared("subagent_inbox_inject_before_tools"),
    at_most("max_active_subagents", MOST_ACTIVE),
    at_most("agents.max_threads", MOST_ACTIVE),
    at_most("agents.max_concurrent_threads_per_session", MOST_ACTIVE),
    own("agents.max_depth"),
    own("agents.concurrent_turns"),
    own("agents.concurrent_requests"),
    // A role can only narrow what its agents may do, and a project's file of one has to be in the project.
    shared("agents.*.description"),
    shared("agents.*.config_file"),
    shared("agents.*.nickname_candidates"),
    shared("agents.*.isolation"),
    // Providers, programs and files. The contents of a file would be sent to the model, so a project names none.
    own("model_provider"),
    own("oss_provider"),
    own("model_catalog_json"),
    own("openai_base_url"),
    own("model_providers.*.name"),
    own("model_providers.*.base_url"),
    own("model_providers.*.env_key"),
    own("model_providers.*.env_key_instructions"),
    own("model_providers.*.experimental_bearer_token"),
    own("model_providers.*.models_timeout_ms"),
    own("model_providers.*.auth.command"),
    own("model_providers.*.auth.args"),
    own("model_providers.*.auth.timeout_ms"),
    own("model_providers.*.auth.refresh_interval_ms"),
    own("model_providers.*.auth.cwd"),
    own("model_providers.*.wire_api"),
    own("model_providers.*.query_params.*"),
    own("model_providers.*.http_headers.*"),
    own("model_providers.*.env_http_headers.*"),
    own("model_providers.*.request_max_retries"),
    own("model_providers.*.stream_max_retries"),
    own("model_providers.*.connect_timeout_ms"),
    own("model_providers.*.stream_idle_timeout_ms"),
    own("model_providers.*.supports_websockets"),
    own("model_providers.*.requires_openai_auth"),
    own("model_providers.*.script"),
    own("model_providers.*.key_header"),
    own("model_providers.*.api_version"),
    own("model_providers.*.custom_tools"),
    own("model_providers.*.hosted_tools"),
    own("model_providers.*.tool_name_length"),
    own("model_providers.*.tool_name_characters"),
    own("model_providers.*.schemas"),
    own("model_providers.*.reasoning"),
    own("model_providers.*.thoughts"),
    own("model_providers.*.returns_thoughts"),
    own("model_providers.*.stream_usage"),
    own("model_providers.*.cache"),
    own("model_providers.*.store"),
    // They are programs too, and addresses that receive keys.
    own("mcp_servers.*.command"),
    own("mcp_servers.*.args"),
    own("mcp_servers.*.env.*"),
    own("mcp_servers.*.env_vars"),
    own("mcp_servers.*.cwd"),
    own("mcp_servers.*.url"),
    own("mcp_servers.*.bearer_token_env_var"),
    own("mcp_servers.*.http_headers.*"),
    own("mcp_servers.*.env_http_headers.*"),
    own("mcp_servers.*.legacy_sse"),
    own("mcp_servers.*.enabled"),
    own("mcp_servers.*.required"),
    own("mcp_servers.*.startup_timeout_sec"),
    own("mcp_servers.*.startup_timeout_ms"),
    own("mcp_servers.*.tool_timeout_sec"),
    own("mcp_servers.*.enabled_tools"),
    own("mcp_servers.*.disabled_tools"),
    own("mcp_servers.*.supports_parallel_tool_calls"),
    own("mcp_servers.*.default_tools_approval_mode"),
    own("mcp_servers.*.tools.*.approval_mode"),
    own("mcp_servers.*.scopes"),
    own("mcp_servers.*.oauth.client_id"),
    own("mcp_servers.*.oauth.client_secret_env_var"),
    own("mcp_servers.*.oauth.callback_port"),
    own("mcp_servers.*.oauth_resource"),
    own("mcp_servers.*.sampling"),
    own("mcp_servers.*.sampling_max_tokens"),
    own("mcp_oauth_credentials_store"),
    own("mcp_oauth_callback_port"),
    own("notify"),
    own("experimental_instructions_file"),
    own("model_instructions_file"),
    own("project_doc_max_bytes"),
    // Policies. The strictest value cannot be looser than the user's.
    own("approval_policy"),
    own("approval_policy.granular.sandbox_approval"),
    own("approval_policy.granular.rules"),
    own("approval_policy.granular.skill_approval"),
    own("approval_policy.granular.request_permissions"),
    own("approval_policy.granular.mcp_elicitations"),
    own("approvals_reviewer"),
    own("approval_timeout_sec"),
    own("wait_for_limits"),
    own("max_turn_requests"),
    partly("sandbox_mode", &["read-only"]),
    own("sandbox_workspace_write.writable_roots"),
    own("sandbox_workspace_write.network_access"),
    own("sandbox_workspace_write.exclude_tmpdir_env_var"),
    own("sandbox_workspace_write.exclude_slash_tmp"),
    own("sandbox_workspace_write.protected_names"),
    own("sandbox_workspace_write.unprotected_names"),
    limit("budget.max_tokens"),
    limit("budget.max_cost"),
    limit("budget.max_seconds"),
    limit("budget.max_commands"),
    limit("budget.max_requests"),
    own("limits.memory"),
    own("limits.processes"),
    own("shell_environment_policy.inherit"),
    own("shell_environment_policy.ignore_default_excludes"),
    own("shell_environment_policy.exclude"),
    own("shell_environment_policy.set.*"),
    own("shell_environment_policy.include_only"),
    own("forced_login_method"),
    own("chatgpt_base_url"),
    own("forced_chatgpt_workspace_id"),
    own("cli_auth_credentials_store"),
    // Other keys with an effect.
    own("hide_agent_reasoning"),
    own("show_raw_agent_reasoning"),
    own("history.persistence"),
    own("history.max_bytes"),
    own("tui.screen"),
    own("tui.theme"),
    own("tui.mouse"),
    own("tui.vim"),
    own("tui.keys.*"),
    own("tui.fold"),
    own("tui.status_line"),
    own("tui.status_command"),
    own("tui.notifications"),
    own("tui.themes.*.*"),
    own("store.url"),
    own("store.password_file"),
    own("store.password_env_var"),
    own("store.schema"),
    own("store.server_name"),
    own("store.patience_sec"),
    own("store.advertise"),
    own("store.token_file"),
    own("store.drain_sec"),
    own("store.plain_sql"),
    own("store.keep_days"),
    own("projects.*.trust_level"),
    own("projects.*.approved_mcp_servers.*"),
    own("models.*.context_window"),
    own("models.*.reasoning"),
    own("models.*.parallel_tool_calls"),
    own("models.*.shell"),
    own("models.*.apply_patch"),
    own("models.*.thinking"),
    own("models.*.max_output_tokens"),
    own("models.*.multi_agent_version"),
    own("prices.*.input"),
    own("prices.*.cached"),
    own("prices.*.cache_write"),
    own("prices.*.output"),
    own("skills.config"),
    own("profile"),
    own("profiles.**"),
    // Keys of other releases.
    unused("mcp_servers.*.http_headers_helper", ABSENT),
    unused("mcp_servers.*.auth", ABSENT),
    unused("mcp_servers.*.omit_tools_from", ABSENT),
    unused("mcp_oauth_callback_url", "the browser always returns to this machine"),
    unused("otel.**", "telemetry is not supported yet"),
    unused("hooks.**", "hooks are not supported yet"),
    unused("tui.*", CHAT),
    unused("tui.*.**", CHAT),
    unused("file_opener", CHAT),
    moot("disable_paste_burst", "the terminal marks pastes"),
    moot("notice.**", "this release shows no such notices"),
    moot("check_for_update_on_startup", "this release never looks for updates"),
    moot("suppress_unstable_features_warning", "this release gives no such warning"),
    moot("analytics.**", "nothing is collected"),
    moot("feedback.**", "feedback stays on this machine"),
    moot("windows.**", "it is for Windows"),
    moot("windows_wsl_setup_acknowledged", "it is for Windows"),
    unused("ghost_snapshot.**", "there are no snapshots to restore"),
    unused("compact_prompt", "the prompt for summaries is built in"),
    unused("experimental_compact_prompt_file", "the prompt for summaries is built in"),
    unused("model_supports_reasoning_summaries", ABSENT),
    unused("model_auto_compact_token_limit_scope", ABSENT),
    unused("experimental_use_unified_exec_tool", "set features.unified_exec instead"),
    unused("experimental_use_freeform_apply_patch", ABSENT),
    moot("experimental_use_rmcp_client", "there is one client for MCP servers"),
    only("include_apply_patch_tool", &["true"], ALWAYS),
    only("tools_view_image", &["true"], ALWAYS),
    only("tools.view_image", &["true"], ALWAYS),
    only("features.view_image_tool", &["true"], ALWAYS),
    only("features.shell_tool", &["true"], ALWAYS),
    only("features.skills", &["true"], "switch skills off one by one"),
    only("features.exec_policy", &["true"], "rules always count"),
    unused("tools_web_search", SEARCH),
    unused("tools.web_search.**", "how the web is searched is up to the provider"),
    unused("features.*.**", NO_FEATURE),
    only("features.*", &["false"], NO_FEATURE),
    unused("permissions.**", "set sandbox_mode instead"),
    unused("default_permissions", "set sandbox_mode instead"),
    unused("agents.enabled", "set features.multi_agent instead"),
    unused("agents.default_subagent_model", ABSENT),
    unused("agents.default_subagent_reasoning_effort", ABSENT),
    unused("agents.interrupt_message", ABSENT),
    unused("agents.job_max_runtime_seconds", ABSENT),
    unused("apps.**", ABSENT),
    unused("apps_mcp_product_sku", ABSENT),
    unused("audio.**", REALTIME),
    unused("realtime.**", REALTIME),
    unused("experimental_realtime_start_instructions", REALTIME),
    unused("experimental_realtime_ws_backend_prompt", REALTIME),
    unused("experimental_realtime_ws_base_url", REALTIME),
    unused("experimental_realtime_ws_model", REALTIME),
    unused("experimental_realtime_ws_startup_context", REALTIME),
    unused("experimental_thread_config_endpoint", ABSENT),
    unused("experimental_thread_store.**", ABSENT),
    unused("auto_review.**", ABSENT),
    unused("background_terminal_max_timeout", ABSENT),
    unused("allow_login_shell", ABSENT),
    unused("debug.**", ABSENT),
    unused("desktop.**", "it is for the desktop application"),
    unused("browser_use.**", ABSENT),
    unused("computer_use.**", ABSENT),
    unused("goals.**", "set features.goals instead"),
    unused("include_apps_instructions", INCLUDED),
    unused("include_collaboration_mode_instructions", INCLUDED),
    unused("include_environment_context", INCLUDED),
    unused("include_permissions_instructions", INCLUDED),
    unused("log_dir", "the log is below CODEX_HOME"),
    unused("sqlite_home", "the index is below CODEX_HOME"),
    unused("marketplaces.**", "plugins are not supported yet"),
    unused("plugins.**", "plugins are not supported yet"),
    unused("memories.**", ABSENT),
    unused("personality", ABSENT),
    unused("plan_mode_reasoning_effort", ABSENT),
    unused("service_tier", ABSENT),
    unused("project_root_markers", "a project is a git repository"),
    unused("skills.bundled.**", "no skills come with this release"),
    unused("skills.include_instructions", INCLUDED),
    unused("tool_suggest.**", ABSENT),
    unused("zsh_path", ABSENT),
    unused("js_repl_node_path", ABSENT),
    unused("js_repl_node_module_dirs", ABSENT),
    unused("shell_environment_policy.experimental_use_profile", ABSENT),
    unused("model_providers.*.aws.**", ABSENT),
    unused("model_providers.*.websocket_connect_timeout_ms", ABSENT),
];

/// The relation of a path to a pattern.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// The pattern matches this key, or the table that it is.
    This,
    /// It matches something below this key.
    Below,
    /// It does not match.
    Other,
}

impl Known {
    /// The names of the pattern, without a trailing `**`.
    pub(crate) fn segments(&self) -> impl Iterator<Item = &'static str> {
        self.pattern.strip_suffix(".**").unwrap_or(self.pattern).split('.')
    }

    /// Compares a path with the pattern. A row for anything below a key matches only tables.
    pub(crate) fn fit<S: AsRef<str>>(&self, path: &[S], is_table: bool) -> Fit {
        let mut pattern = self.segments();
        let fits = path.iter().all(|name| pattern.next().is_some_and(|known| known == "*" || known == name.as_ref()));
        match (fits, pattern.next()) {
            (false, _) => Fit::Other,
            (true, Some(_)) => Fit::Below,
            (true, None) if self.pattern.ends_with(".**") && !is_table => Fit::Other,
            (true, None) => Fit::This,
        }
    }
}

/// Whether a value is one of those in a row.
pub(crate) fn is_one_of(value: &Value, named: &[&str]) -> bool {
    match value {
        Value::String(text) => named.contains(&text.as_str()),
        Value::Boolean(flag) => named.contains(&if *flag { "true" } else { "false" }),
        _ => false,
    }
}

/// The known key that was probably meant: the same name elsewhere, else a similar name in the same table.
pub(crate) fn nearest<S: AsRef<str>>(path: &[S]) -> Option<String> {
    let (name, parents) = path.split_last()?;
    let name = name.as_ref();
    let is_free =
        |known: &&Known| !known.pattern.contains('*') && matches!(known.usage, Use::Honoured | Use::AtMost(_));
    let namesake = |known: &&Known| known.segments().last() == Some(name);
    if let Some(known) = KEYS.iter().filter(is_free).find(namesake) {
        return Some(known.pattern.to_owned());
    }
    let siblings = KEYS.iter().filter(|known| parents.is_empty() || known.fit(parents, true) == Fit::Below);
    let names = siblings.filter_map(|known| known.segments().nth(parents.len())).filter(|known| *known != "*");
    let most = match name.chars().count() {
        0..=4 => 1,
        5..=12 => 2,
        _ => 3,
    };
    let close = names.map(|known| (distance(name, known), known)).filter(|(distance, _)| *distance <= most);
    let (_, found) = close.min_by_key(|(distance, _)| *distance)?;
    let parents = parents.iter().fold(crate::KeyPath::default(), |path, parent| path.join(parent.as_ref()));
    Some(parents.join(found).to_string())
}

/// The number of letters to insert, delete, replace or transpose to turn one name into another.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    if from.len().abs_diff(to.len()) > 3 {
        return usize::MAX;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (row, letter) in from.iter().enumerate() {
        let mut next = vec![row + 1];
        for (column, other) in to.iter().enumerate() {
            let change = last[column] + usize::from(letter != other);
            let mut fewest = change.min(last[column + 1] + 1).min(next[column] + 1);
            if row > 0 && column > 0 && from[row - 1] == *other && to[column - 1] == *letter {
                fewest = fewest.min(before[column - 1] + 1);
            }
            next.push(fewest);
        }
        before = std::mem::replace(&mut last, next);
    }
    last[to.len()]
}

#[cfg(test)]
mod tests;
