//! What can be switched on, as data: switches of `[features]` and ways to work together.

use codex_wire::collaboration::ModeKind;
use codex_wire::reasoning::ReasoningEffort;

use crate::Config;

/// A switch that does something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feature {
    /// Its key in `[features]`.
    pub name: &'static str,
    /// Its name for people.
    pub display_name: &'static str,
    /// What it does.
    pub description: &'static str,
    /// Whether it is on when nobody says otherwise.
    pub is_on_by_default: bool,
    /// Whether it is on.
    pub is_on: bool,
}

/// A way to work together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedMode {
    /// Its name for people.
    pub name: &'static str,
    /// Which one it is.
    pub mode: ModeKind,
    /// The effort it asks for.
    pub effort: Option<ReasoningEffort>,
}

/// Switches of `[features]` that do something: name, name for people, what it does, whether it is on by default.
const FEATURES: &[(&str, &str, &str, bool)] = &[
    ("web_search_request", "Web search", "Lets a provider that can search the web while it answers.", false),
    ("goals", "Goals", "Lets a thread go on by itself until a goal is reached.", true),
];

/// The switches that do something, as they are set.
#[must_use]
pub fn list_features(config: &Config) -> Vec<Feature> {
    let feature = |(name, display_name, description, default): &(&'static str, &'static str, &'static str, bool)| {
        let is_on = config.features.get(*name).copied().unwrap_or(*default);
        Feature { name, display_name, description, is_on_by_default: *default, is_on }
    };
    FEATURES.iter().map(feature).collect()
}

/// The ways to work together that there are.
#[must_use]
pub fn collaboration_modes() -> Vec<OfferedMode> {
    let plan = OfferedMode { name: "Plan", mode: ModeKind::Plan, effort: Some(ReasoningEffort::Medium) };
    vec![plan, OfferedMode { name: "Default", mode: ModeKind::Default, effort: None }]
}

/// What a model is told of a way to work together when the client says nothing of it.
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
            assert_eq!(shown, [("web_search_request", expected), ("goals", true)]);
        }
    }
}
