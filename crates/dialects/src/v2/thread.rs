//! Threads in the form of v2.

use std::path::PathBuf;

use codex_log::ThreadStarted;
use codex_log::settings::Settings;
use codex_log::store::{Appearance, Section, ThreadSummary};
use codex_protocol::v2::section::{ThreadSection, ThreadSectionAppearance};
use codex_protocol::v2::thread::{
    Environment, GitInfo, Thread, ThreadOpened, ThreadOrigin, ThreadPlace, ThreadStatus, UnknownMembers,
};
use codex_wire::ids::ThreadId;
use codex_wire::rollout::{GitInfo as StoredGitInfo, SessionMeta, SessionSource, SubAgentSource, ThreadSpawn};
use serde_json::Value;

/// A loaded thread without turns, as far as is known here.
#[must_use]
pub fn loaded(started: &ThreadStarted, settings: &Settings, status: ThreadStatus) -> Thread {
    let SessionMeta { id, timestamp, originator, cli_version, source, git, lineage, .. } = &started.meta;
    let created_at = seconds(timestamp);
    Thread {
        model_provider: started.provider.clone(),
        model: Some(settings.model.clone()),
        reasoning_effort: settings.effort.clone(),
        status,
        path: file(started.rollout.clone()),
        origin: ThreadOrigin {
            forked_from_id: lineage.forked_from_id.map(|id| id.to_string()),
            parent_thread_id: lineage.parent_thread_id.map(|id| id.to_string()),
            cli_version: cli_version.clone(),
            originator: Some(originator.clone()),
            source: source_word(source.as_ref()),
            git_info: git.as_ref().map(git_info),
            thread_source: lineage.thread_source.clone(),
            agent_nickname: spawn_of(source.as_ref()).and_then(|spawn| spawn.agent_nickname.clone()),
            agent_role: spawn_of(source.as_ref()).and_then(|spawn| spawn.agent_role.clone()),
        },
        can_accept_direct_input: Some(true),
        session_id: lineage.session_id.unwrap_or(*id).to_string(),
        ..bare(*id, created_at, settings.cwd.clone())
    }
}

/// A thread from its summary in the index.
#[must_use]
pub fn stored(summary: ThreadSummary, default_provider: &str, status: ThreadStatus) -> Thread {
    let mut thread = bare(summary.id, summary.created_at.timestamp(), summary.cwd.clone());
    describe(&mut thread, &summary);
    let origin = ThreadOrigin {
        cli_version: summary.cli_version,
        originator: Some(summary.originator),
        source: source_word(summary.source.as_ref()),
        agent_nickname: spawn_of(summary.source.as_ref()).and_then(|spawn| spawn.agent_nickname.clone()),
        agent_role: spawn_of(summary.source.as_ref()).and_then(|spawn| spawn.agent_role.clone()),
        ..thread.origin
    };
    Thread {
        origin,
        model_provider: summary.provider.clone().unwrap_or_else(|| default_provider.to_owned()),
        status,
        path: file(summary.path),
        ..thread
    }
}

/// Adds the members that only the index has.
pub fn describe(thread: &mut Thread, summary: &ThreadSummary) {
    thread.preview.clone_from(&summary.preview);
    thread.place = ThreadPlace {
        name: summary.name.clone(),
        section: summary.section.as_ref().map(|placed| section(placed.section.clone())),
        section_entered_at: summary.section.as_ref().map(|placed| placed.since),
    };
    thread.updated_at = summary.updated_at.timestamp();
    thread.recency_at = thread.updated_at;
    thread.origin.git_info = summary.git.as_ref().map(git_info);
    thread.origin.thread_source.clone_from(&summary.thread_source);
    thread.origin.forked_from_id = summary.forked_from.map(|id| id.to_string());
    thread.origin.parent_thread_id = summary.parent.map(|id| id.to_string());
}

/// The call that has started a child.
fn spawn_of(source: Option<&SessionSource>) -> Option<&ThreadSpawn> {
    match source? {
        SessionSource::SubAgent(SubAgentSource::ThreadSpawn(spawn)) => Some(spawn),
        _ => None,
    }
}

fn bare(id: ThreadId, created_at: i64, cwd: PathBuf) -> Thread {
    let name = id.to_string();
    Thread {
        environments: vec![Environment {
            environment_id: "local".into(),
            cwd: cwd.clone(),
            runtime_workspace_roots: vec![cwd.clone()],
        }],
        session_id: name.clone(),
        id: name,
        preview: String::new(),
        ephemeral: false,
        history_mode: "paginated".into(),
        model_provider: String::new(),
        model: None,
        reasoning_effort: None,
        created_at,
        updated_at: created_at,
        recency_at: created_at,
        status: ThreadStatus::NotLoaded,
        path: None,
        cwd,
        origin: ThreadOrigin::default(),
        can_accept_direct_input: None,
        place: ThreadPlace::default(),
        unknown_members: UnknownMembers::default(),
        turns: Vec::new(),
    }
}

fn git_info(git: &StoredGitInfo) -> GitInfo {
    GitInfo { sha: git.commit_hash.clone(), branch: git.branch.clone(), origin_url: git.repository_url.clone() }
}

/// A section.
#[must_use]
pub fn section(section: Section) -> ThreadSection {
    let Section { id, name, appearance } = section;
    let appearance = appearance.map(|Appearance { color, icon }| ThreadSectionAppearance { color, icon });
    ThreadSection { id, name, appearance }
}

/// A thread without a recorded source was started by a client of the app-server.
fn source_word(source: Option<&SessionSource>) -> Value {
    let source = source.unwrap_or(&SessionSource::VsCode);
    let value = serde_json::to_value(source).unwrap_or(Value::Null);
    // This version of the protocol spells it so.
    match value.get("subagent") {
        Some(inner) => serde_json::json!({"subAgent": inner}),
        None => value,
    }
}

/// The response to a request that opened a thread.
#[must_use]
pub fn opened(thread: Thread, settings: &Settings, started: &ThreadStarted) -> ThreadOpened {
    ThreadOpened {
        model: settings.model.clone(),
        model_provider: thread.model_provider.clone(),
        service_tier: (),
        disabled_plugin_ids: Vec::new(),
        cwd: settings.cwd.clone(),
        runtime_workspace_roots: vec![settings.cwd.clone()],
        instruction_sources: started.instruction_sources.clone(),
        approval_policy: settings.approval_policy,
        approvals_reviewer: settings.reviewer.clone(),
        sandbox: (&settings.sandbox_policy).into(),
        active_permission_profile: (),
        reasoning_effort: settings.effort.clone(),
        multi_agent_mode: "explicitRequestOnly".into(),
        resumed: None,
        thread,
    }
}

/// A time of a rollout in seconds of Unix time; 0 if it is invalid.
fn seconds(timestamp: &str) -> i64 {
    chrono::DateTime::parse_from_rfc3339(timestamp).map(|time| time.timestamp()).unwrap_or_default()
}

/// The path of a thread that is a file.
fn file(place: PathBuf) -> Option<PathBuf> {
    Some(place).filter(|place| place.is_absolute())
}
