//! What can be switched on, as data: `experimentalFeature/list` and `collaborationMode/list`.

use codex_protocol::v2::features::{
    CollaborationModeListResponse, CollaborationModeMask, ExperimentalFeature, ExperimentalFeatureListParams,
    ExperimentalFeatureListResponse, ExperimentalFeatureStage,
};
use codex_wire::collaboration::ModeKind;
use codex_wire::reasoning::ReasoningEffort;

use crate::{
    Config,
    page::{CursorError, page},
};

/// Switches of `[features]` that do something: name, name for people, what it does, whether it is on by default.
const FEATURES: &[(&str, &str, &str, bool)] = &[
    ("web_search_request", "Web search", "Lets a provider that can search the web while it answers.", false),
    ("goals", "Goals", "Lets a thread go on by itself until a goal is reached.", true),
];

/// One page of the switches that do something, as they are set.
pub fn list_features(
    config: &Config,
    params: &ExperimentalFeatureListParams,
) -> Result<ExperimentalFeatureListResponse, CursorError> {
    let feature = |(name, display_name, description, default): &(&str, &str, &str, bool)| ExperimentalFeature {
        name: (*name).to_owned(),
        stage: ExperimentalFeatureStage::Stable,
        display_name: Some((*display_name).to_owned()),
        description: Some((*description).to_owned()),
        announcement: None,
        enabled: config.features.get(*name).copied().unwrap_or(*default),
        default_enabled: *default,
    };
    let features = FEATURES.iter().map(feature).collect();
    let (data, next_cursor) = page(features, params.cursor.as_deref(), params.limit)?;
    Ok(ExperimentalFeatureListResponse { data, next_cursor })
}

/// The ways to work together that there are.
#[must_use]
pub fn collaboration_modes() -> CollaborationModeListResponse {
    let mask = |name: &str, mode, reasoning_effort| CollaborationModeMask {
        name: name.to_owned(),
        mode: Some(mode),
        model: None,
        reasoning_effort,
    };
    let plan = mask("Plan", ModeKind::Plan, Some(ReasoningEffort::Medium));
    CollaborationModeListResponse { data: vec![plan, mask("Default", ModeKind::Default, None)] }
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
            let list = list_features(&config.unwrap(), &ExperimentalFeatureListParams::default()).unwrap();
            let shown: Vec<_> = list.data.iter().map(|feature| (feature.name.as_str(), feature.enabled)).collect();
            assert_eq!(shown, [("web_search_request", expected), ("goals", true)]);
        }
    }
}
