//! The origins of a thread: the client, thread or agent that it comes from.

use codex_log::history::SharedHistory;
use codex_log::settings::Settings;
use codex_log::state::ThreadState;
use codex_thread::{ClientAdditions, InitialHistory};
use codex_tools::agents::ChildStart;
use codex_wire::ids::ThreadId;
use codex_wire::rollout::{SessionLineage, SessionMeta};

use crate::setup::Setup;

/// The most copies of copies that are traced back.
const MOST_COPIES: usize = 16;

/// The lineage of a thread that a client has started.
pub(crate) fn lineage_of_client(setup: &Setup) -> SessionLineage {
    let ClientAdditions { thread_source, dynamic_tools, .. } = setup.additions.clone();
    SessionLineage { thread_source, dynamic_tools, ..SessionLineage::default() }
}

/// The lineage of a fork.
pub(crate) fn lineage_of_fork(of: &SessionMeta, new: &SessionLineage) -> SessionLineage {
    SessionLineage {
        forked_from_id: Some(of.id),
        imported_at: of.lineage.imported_at.clone(),
        thread_source: new.thread_source.clone(),
        dynamic_tools: of.lineage.dynamic_tools.clone(),
        ..SessionLineage::default()
    }
}

/// The first line of a copy.
pub(crate) fn meta_of_fork(of: &SessionMeta, new: &SessionMeta) -> SessionMeta {
    let SessionLineage { forked_from_id, imported_at, dynamic_tools, .. } = lineage_of_fork(of, &new.lineage);
    let lineage = SessionLineage { forked_from_id, imported_at, dynamic_tools, ..new.lineage.clone() };
    SessionMeta { lineage, ..new.clone() }
}

/// The state of a copy. The items of the conversation stay where they are.
pub(crate) fn shared_state(of: &SharedHistory, meta: SessionMeta) -> ThreadState {
    let mut state = of.state.clone();
    state.meta = meta;
    state.conversation.complete();
    state
}

/// The thread whose requests to the model begin like those of this one. An agent with a copy of its parent's history has
/// its parent's, so that the provider finds what it has cached.
pub(crate) fn cache_key(setup: &Setup, meta: &SessionMeta) -> ThreadId {
    if let InitialHistory::Shared { of, .. } = setup.initial_history.history() {
        return of.cache_key;
    }
    let parent = |meta: &SessionMeta| meta.lineage.forked_from_id.filter(|_| meta.lineage.parent_thread_id.is_some());
    let (mut key, mut next) = (meta.id, parent(meta));
    for _ in 0..MOST_COPIES {
        let Some(of) = next else { break };
        key = of;
        next = setup.store.meta(of).ok().and_then(|meta| parent(&meta));
    }
    key
}

/// The lineage of a child.
pub(crate) fn lineage_of_child(child: &ChildStart) -> SessionLineage {
    SessionLineage {
        session_id: Some(child.root),
        parent_thread_id: Some(child.spawn.parent_thread_id),
        thread_source: Some("subagent".to_owned()),
        agent_nickname: child.spawn.agent_nickname.clone(),
        // The tools of its tree are chosen already.
        multi_agent_version: child.agents.settle_version(None, None).map(|version| version.as_str().to_owned()),
        ..SessionLineage::default()
    }
}

/// The lineage of a new thread, with the generation of its tools for other agents.
pub(crate) fn with_tools(lineage: SessionLineage, settings: &Settings) -> SessionLineage {
    let multi_agent_version = settings.agent_tools.map(|version| version.as_str().to_owned());
    SessionLineage { multi_agent_version, ..lineage }
}
