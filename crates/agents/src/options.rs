//! The options of a tree, from the configuration.

use codex_config::Config;

use crate::tree::Limits;

/// The tools that agents have for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolSet {
    /// `subagent_spawn` and its eight companions.
    Subagents,
    /// The namespace `multi_agent_v1`.
    Namespace,
}

/// The options of a tree.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) limits: Limits,
    pub(crate) tool_set: ToolSet,
    /// Whether an agent sees messages from above as messages of its user.
    pub(crate) uses_user_messages: bool,
}

impl Options {
    /// The options; none if the configuration offers no agents.
    pub(crate) fn of(config: &Config, is_offered_by_default: bool) -> Option<Self> {
        let is_on = |feature: &str| config.features.get(feature).copied();
        let tool_set = if is_on("subagent_tools") == Some(true) {
            ToolSet::Subagents
        } else if is_on("multi_agent").unwrap_or(is_offered_by_default) {
            ToolSet::Namespace
        } else {
            return None;
        };
        let agents = config.agents();
        let limits =
            Limits { active: agents.active, depth: agents.depth, turns: agents.turns, wakes_root: agents.wakes_root };
        // Clients of these tools expect that a turn begins only when a person speaks.
        let wakes_root = limits.wakes_root && tool_set == ToolSet::Subagents;
        let uses_user_messages = agents.uses_user_messages;
        Some(Self { limits: Limits { wakes_root, ..limits }, tool_set, uses_user_messages })
    }
}
