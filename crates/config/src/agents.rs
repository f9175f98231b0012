//! Child agents: which tools an agent has for them, and their limits.

use crate::{Reader, ValueError};

/// The limits of trees of agents, and the ways of their messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentsConfig {
    /// `max_active_subagents` or `agents.max_threads`: how many may be at work at once.
    pub active: usize,
    /// `agents.max_depth`: how deep they may be nested.
    pub depth: u32,
    /// `agents.concurrent_turns`: how many turns may run at once.
    pub turns: usize,
    /// `agents.concurrent_requests`: how many requests to a provider may run at once. By default as many as there are
    /// turns at once, with that of the root.
    pub requests: usize,
    /// `root_agent_uses_user_messages`: whether an agent sees messages from above as messages of its user.
    pub uses_user_messages: bool,
    /// `subagent_root_inbox_autosubmit`: whether mail wakes an idle root.
    pub wakes_root: bool,
    /// `subagent_inbox_inject_before_tools`: whether mail comes before the outputs of the calls that ran meanwhile.
    pub is_before_tools: bool,
}

impl Default for AgentsConfig {
    fn default() -> Self {
        let (active, depth, turns) = (8, 3, 8);
        let (uses_user_messages, wakes_root, is_before_tools) = (true, true, false);
        Self { active, depth, turns, requests: turns + 1, uses_user_messages, wakes_root, is_before_tools }
    }
}

/// The most agents of a tree. A higher number counts as this one, with a warning.
pub(crate) const MOST_ACTIVE: i64 = 64;

impl AgentsConfig {
    pub(crate) fn read(root: &Reader<'_>) -> Result<Self, ValueError> {
        let section = root.section("agents")?;
        let active: Option<i64> = root.integer("max_active_subagents", 1..)?;
        let threads =
            section.integer("max_threads", 1..)?.or(section.integer("max_concurrent_threads_per_session", 1..)?);
        let active = active.or(threads).map(|active| active.min(MOST_ACTIVE));
        let unset = Self::default();
        let turns = section.integer("concurrent_turns", 1..=64)?.unwrap_or(unset.turns);
        Ok(Self {
            active: active.and_then(|active| usize::try_from(active).ok()).unwrap_or(unset.active),
            depth: section.integer("max_depth", 1..=8)?.unwrap_or(unset.depth),
            turns,
            requests: section.integer("concurrent_requests", 1..=64)?.unwrap_or(turns + 1),
            uses_user_messages: root.bool("root_agent_uses_user_messages")?.unwrap_or(unset.uses_user_messages),
            wakes_root: root.bool("subagent_root_inbox_autosubmit")?.unwrap_or(unset.wakes_root),
            is_before_tools: root.bool("subagent_inbox_inject_before_tools")?.unwrap_or(unset.is_before_tools),
        })
    }
}
