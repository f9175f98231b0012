//! Threads as the second version describes them.

use codex_engine::log::ThreadStarted;
use codex_engine::settings::Settings;
use codex_wire::ids::ThreadId;
use codex_wire::rollout::SessionMeta;
use codex_wire::v2::thread::{Environment, GitInfo, Thread, ThreadOpened, ThreadStatus};
use codex_wire::v2::turn::Turn;
use serde_json::Value;

/// A loaded thread.
pub(crate) fn loaded(id: ThreadId, started: &ThreadStarted, settings: &Settings, status: ThreadStatus) -> Thread {
    let SessionMeta { timestamp, originator, cli_version, source, git, .. } = &started.meta;
    let created_at = seconds(timestamp);
    let name = id.to_string();
    Thread {
        environments: vec![environment(settings)],
        extra: (),
        session_id: name.clone(),
        id: name,
        forked_from_id: None,
        parent_thread_id: None,
        preview: String::new(),
        ephemeral: false,
        section: (),
        section_entered_at: (),
        project_id: (),
        history_mode: "paginated",
        model_provider: started.provider.clone(),
        model: Some(settings.model.clone()),
        reasoning_effort: settings.effort.clone(),
        created_at,
        updated_at: created_at,
        recency_at: created_at,
        status,
        path: Some(started.rollout.clone()),
        cwd: settings.cwd.clone(),
        cli_version: cli_version.clone(),
        originator: Some(originator.clone()),
        source: source.as_ref().and_then(|source| serde_json::to_value(source).ok()).unwrap_or(Value::Null),
        can_accept_direct_input: Some(true),
        thread_source: (),
        agent_nickname: None,
        agent_role: None,
        git_info: git.as_ref().map(|git| GitInfo {
            sha: git.commit_hash.clone(),
            branch: git.branch.clone(),
            origin_url: git.repository_url.clone(),
        }),
        name: None,
        daybreak_enabled: (),
        turns: Vec::<Turn>::new(),
    }
}

fn environment(settings: &Settings) -> Environment {
    Environment {
        environment_id: "local",
        cwd: settings.cwd.clone(),
        runtime_workspace_roots: vec![settings.cwd.clone()],
    }
}

/// What answers a request that opened a thread.
pub(crate) fn opened(thread: Thread, settings: &Settings) -> ThreadOpened {
    ThreadOpened {
        model: settings.model.clone(),
        model_provider: thread.model_provider.clone(),
        service_tier: (),
        disabled_plugin_ids: Vec::new(),
        cwd: settings.cwd.clone(),
        runtime_workspace_roots: vec![settings.cwd.clone()],
        instruction_sources: Vec::new(),
        approval_policy: settings.approval_policy,
        approvals_reviewer: "user",
        sandbox: (&settings.sandbox_policy).into(),
        active_permission_profile: (),
        reasoning_effort: settings.effort.clone(),
        multi_agent_mode: "explicitRequestOnly",
        thread,
    }
}

/// A time of a rollout in seconds of Unix time; 0 if it is none.
pub(crate) fn seconds(timestamp: &str) -> i64 {
    chrono::DateTime::parse_from_rfc3339(timestamp).map(|time| time.timestamp()).unwrap_or_default()
}
