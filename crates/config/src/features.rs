//! Features as data: the switches of `[features]`, and collaboration modes.

use codex_wire::collaboration::ModeKind;
use codex_wire::reasoning::ReasoningEffort;

use crate::Config;

/// A feature with an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feature {
    /// Its key in `[features]`.
    pub name: &'static str,
    pub display_name: &'static str,
    pub description: &'static str,
    pub is_on_by_default: bool,
    pub is_on: bool,
}

/// A collaboration mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedMode {
    pub name: &'static str,
    pub mode: ModeKind,
    /// The reasoning effort it uses.
    pub effort: Option<ReasoningEffort>,
}

/// The features with an effect: name, display name, description, default.
const FEATURES: &[(&str, &str, &str, bool)] = &[
    ("web_search_request", "Web search", "Lets a provider that can search the web while it answers.", false),
    ("goals", "Goals", "Lets a thread continue by itself until a goal is reached.", true),
    ("request_permissions_tool", "Permissions", "Lets the model ask for folders and the network.", false),
    ("subagent_tools", "Subagents", "Lets an agent start others and exchange messages with them.", false),
    ("multi_agent", "Multi-agent", "Lets an agent start others with the tools of newer releases.", true),
    ("multi_agent_v2", "Multi-agent by path", "Gives an agent tools that address others by paths.", false),
];

/// The features with an effect, and their current state.
#[must_use]
pub fn list_features(config: &Config) -> Vec<Feature> {
    let feature = |(name, display_name, description, default): &(&'static str, &'static str, &'static str, bool)| {
        let is_on = config.features.get(*name).copied().unwrap_or(*default);
        Feature { name, display_name, description, is_on_by_default: *default, is_on }
    };
    FEATURES.iter().map(feature).collect()
}

/// The available collaboration modes.
#[must_use]
pub fn collaboration_modes() -> Vec<OfferedMode> {
    let plan = OfferedMode { name: "Plan", mode: ModeKind::Plan, effort: Some(ReasoningEffort::Medium) };
    vec![plan, OfferedMode { name: "Default", mode: ModeKind::Default, effort: None }]
}

/// The default instructions for a model in a collaboration mode.
#[must_use]
pub fn mode_instructions(mode: &ModeKind) -> &'static str {
    match mode {
        ModeKind::Plan => include_str!("../prompts/plan_mode.md"),
        ModeKind::Default | ModeKind::Other(_) => "You are in the default mode: carry out what the user asks for.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Overrides, config::tests::load};

    #[test]
    fn switches_show_how_they_are_set() {
        for (file, expected) in [("", false), ("[features]\nweb_search_request = true\nother = true\n", true)] {
            let (_temp, config) = load(file, &Overrides::default());
            let list = list_features(&config.unwrap());
            let shown: Vec<_> = list.iter().map(|feature| (feature.name, feature.is_on)).collect();
            assert_eq!(shown[..2], [("web_search_request", expected), ("goals", true)]);
        }
    }
}
