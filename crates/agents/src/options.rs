//! The options of a tree, from the configuration.

use codex_config::{Config, Home};
use codex_wire::agent::MultiAgentVersion;

use crate::roles::Roles;
use crate::tree::Limits;

/// The tools that agents have for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolSet {
    /// `subagent_spawn` and its eight companions.
    Subagents,
    /// The namespace `multi_agent_v1`.
    Namespace,
    /// Tools that address agents by paths.
    Paths,
    /// None: the model cannot use them.
    Off,
}

impl ToolSet {
    /// Its generation, if other releases know it.
    pub(crate) fn version(self) -> Option<MultiAgentVersion> {
        match self {
            Self::Subagents => None,
            Self::Namespace => Some(MultiAgentVersion::V1),
            Self::Paths => Some(MultiAgentVersion::V2),
            Self::Off => Some(MultiAgentVersion::Disabled),
        }
    }
}

/// The options of a tree.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    limits: Limits,
    /// `features.subagent_tools`, `features.multi_agent` and `features.multi_agent_v2`.
    has_subagent_tools: bool,
    has_namespace: Option<bool>,
    has_paths: Option<bool>,
    /// Whether an agent sees messages from above as messages of its user.
    pub(crate) uses_user_messages: bool,
    pub(crate) roles: Roles,
}

impl Options {
    /// The options; none if the configuration offers no agents.
    pub(crate) fn of(config: &Config, home: &Home, is_offered_by_default: bool) -> Option<Self> {
        let is_on = |feature: &str| config.features.get(feature).copied();
        let has_subagent_tools = is_on("subagent_tools") == Some(true);
        let (has_namespace, has_paths) = (is_on("multi_agent"), is_on("multi_agent_v2"));
        let is_wanted = has_namespace.unwrap_or(is_offered_by_default || has_paths == Some(true));
        if !has_subagent_tools && !is_wanted {
            return None;
        }
        let agents = config.agents();
        let limits =
            Limits { active: agents.active, depth: agents.depth, turns: agents.turns, wakes_root: agents.wakes_root };
        let uses_user_messages = agents.uses_user_messages;
        let roles = Roles::of(config, home);
        Some(Self { limits, has_subagent_tools, has_namespace, has_paths, uses_user_messages, roles })
    }

    /// The options of a tree with the nine tools.
    #[cfg(test)]
    pub(crate) fn with_nine_tools() -> Self {
        let (has_namespace, has_paths, roles) = (None, None, Roles::default());
        let limits = Limits::default();
        Self { limits, has_subagent_tools: true, has_namespace, has_paths, uses_user_messages: true, roles }
    }

    /// The tools of a thread. The features that the user has set take precedence over its log, and its log over its
    /// model: a conversation keeps the tools that it began with.
    pub(crate) fn choose(&self, stored: Option<MultiAgentVersion>, of_model: Option<MultiAgentVersion>) -> ToolSet {
        let paths = if self.has_paths == Some(false) { ToolSet::Namespace } else { ToolSet::Paths };
        let is_set = self.has_namespace == Some(true) || self.has_paths == Some(true);
        let known = |version| match version {
            MultiAgentVersion::V1 => Some(ToolSet::Namespace),
            MultiAgentVersion::V2 => Some(paths),
            MultiAgentVersion::Disabled => (!is_set).then_some(ToolSet::Off),
        };
        if self.has_subagent_tools {
            return ToolSet::Subagents;
        }
        let set = (self.has_paths == Some(true)).then_some(ToolSet::Paths);
        stored.and_then(known).or(set).or(of_model.and_then(known)).unwrap_or(ToolSet::Namespace)
    }

    /// The limits of a tree with these tools.
    pub(crate) fn limits(&self, tools: ToolSet) -> Limits {
        // Clients of the other tools expect that a turn begins only when a person speaks.
        Limits { wakes_root: self.limits.wakes_root && tools == ToolSet::Subagents, ..self.limits }
    }
}

#[cfg(test)]
mod tests {
    use codex_config::{Env, Overrides};

    use super::*;

    fn choice(
        features: &str,
        is_offered: bool,
        stored: Option<MultiAgentVersion>,
        of_model: Option<MultiAgentVersion>,
    ) -> Option<ToolSet> {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::at(temp.path());
        std::fs::write(home.config_file(), format!("[features]\n{features}")).unwrap();
        let env = Env::from_iter::<[(&str, &str); 0]>([]);
        let config = Config::load(&home, &env, &Overrides::default()).unwrap();
        Options::of(&config, &home, is_offered).map(|options| options.choose(stored, of_model))
    }

    #[test]
    fn the_user_the_log_and_the_model_choose_the_tools_in_this_order() {
        use MultiAgentVersion::{Disabled, V1, V2};
        let (on, off) = ("multi_agent_v2 = true", "multi_agent_v2 = false");
        for (features, stored, of_model, expected) in [
            ("", None, None, Some(ToolSet::Namespace)),
            ("", None, Some(V1), Some(ToolSet::Namespace)),
            ("", None, Some(V2), Some(ToolSet::Paths)),
            ("", None, Some(Disabled), Some(ToolSet::Off)),
            ("", Some(V2), Some(V1), Some(ToolSet::Paths)),
            ("", Some(V1), Some(V2), Some(ToolSet::Namespace)),
            (on, None, None, Some(ToolSet::Paths)),
            (on, Some(V1), None, Some(ToolSet::Namespace)),
            (on, None, Some(Disabled), Some(ToolSet::Paths)),
            (off, Some(V2), None, Some(ToolSet::Namespace)),
            (off, None, Some(V2), Some(ToolSet::Namespace)),
            ("multi_agent = true", None, Some(Disabled), Some(ToolSet::Namespace)),
            ("multi_agent = false", Some(V2), Some(V2), None),
            ("subagent_tools = true", Some(V1), Some(V2), Some(ToolSet::Subagents)),
        ] {
            assert_eq!(choice(features, true, stored, of_model), expected, "{features} {stored:?} {of_model:?}");
        }
        for features in ["", off, "subagent_tools = false"] {
            assert_eq!(choice(features, false, Some(V2), Some(V2)), None, "{features}");
        }
        assert_eq!(choice(on, false, None, None), Some(ToolSet::Paths));
    }
}
