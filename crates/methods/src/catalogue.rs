//! Lists for pickers: models, features, collaboration modes, permissions.

use codex_config::{
    Config, Feature, ModelTable, OfferedMode, OfferedModel, collaboration_modes, describe_effort, list_features,
};
use codex_protocol::v2::features::{
    CollaborationModeListResponse, CollaborationModeMask, ExperimentalFeature, ExperimentalFeatureListParams,
    ExperimentalFeatureListResponse, ExperimentalFeatureStage,
};
use codex_protocol::v2::model::{InputModality, Model, ModelListParams, ModelListResponse, ReasoningEffortOption};
use codex_protocol::v2::permissions::{
    PermissionProfileListParams, PermissionProfileListResponse, PermissionProfileSummary,
};
use codex_wire::policy::SandboxMode;
use codex_wire::reasoning::ReasoningEffort;

use crate::pagination::{CursorError, page};

/// A page of the models that a client may choose.
pub fn page_of_models(
    config: &Config,
    listed: Vec<String>,
    params: &ModelListParams,
) -> Result<ModelListResponse, CursorError> {
    // Each thread warns about a catalogue that cannot be read.
    let (table, _) = ModelTable::read(&config.model);
    let models = table.joined_by(listed).offered(config, params.include_hidden == Some(true));
    let (models, next_cursor) = page(models, params.cursor.as_deref(), params.limit)?;
    Ok(ModelListResponse { data: models.into_iter().map(model).collect(), next_cursor })
}

fn model(model: OfferedModel) -> Model {
    let effort = |effort: ReasoningEffort| {
        let description = describe_effort(&effort).to_owned();
        ReasoningEffortOption { reasoning_effort: effort, description }
    };
    let mut input_modalities = vec![InputModality::Text];
    input_modalities.extend(model.takes_images.then_some(InputModality::Image));
    Model {
        id: model.id.clone(),
        model: model.id,
        upgrade: None,
        upgrade_info: None,
        availability_nux: None,
        display_name: model.name,
        description: model.description,
        hidden: model.is_hidden,
        supported_reasoning_efforts: model.efforts.into_iter().map(effort).collect(),
        default_reasoning_effort: model.default_effort,
        input_modalities,
        supports_personality: false,
        additional_speed_tiers: Vec::new(),
        service_tiers: Vec::new(),
        default_service_tier: None,
        is_default: model.is_default,
    }
}

/// A page of the features that a client may enable or disable.
pub fn page_of_features(
    config: &Config,
    params: &ExperimentalFeatureListParams,
) -> Result<ExperimentalFeatureListResponse, CursorError> {
    let (features, next_cursor) = page(list_features(config), params.cursor.as_deref(), params.limit)?;
    Ok(ExperimentalFeatureListResponse { data: features.into_iter().map(feature).collect(), next_cursor })
}

fn feature(feature: Feature) -> ExperimentalFeature {
    ExperimentalFeature {
        name: feature.name.to_owned(),
        stage: ExperimentalFeatureStage::Stable,
        display_name: Some(feature.display_name.to_owned()),
        description: Some(feature.description.to_owned()),
        announcement: None,
        enabled: feature.is_on,
        default_enabled: feature.is_on_by_default,
    }
}

/// The collaboration modes.
#[must_use]
pub fn modes() -> CollaborationModeListResponse {
    let mask = |offered: OfferedMode| CollaborationModeMask {
        name: offered.name.to_owned(),
        mode: Some(offered.mode),
        model: None,
        reasoning_effort: offered.effort,
    };
    CollaborationModeListResponse { data: collaboration_modes().into_iter().map(mask).collect() }
}

/// The sets of permissions are the modes of the sandbox.
pub fn permissions(params: &PermissionProfileListParams) -> Result<PermissionProfileListResponse, CursorError> {
    let profile = |mode: SandboxMode, description: &str| PermissionProfileSummary {
        id: mode.to_string(),
        description: Some(description.to_owned()),
        allowed: true,
    };
    let all = vec![
        profile(SandboxMode::ReadOnly, "Commands may read everything and write nothing."),
        profile(SandboxMode::WorkspaceWrite, "Commands may read everything and write below the workspace."),
        profile(SandboxMode::DangerFullAccess, "Commands may do whatever the user may do."),
    ];
    let (data, next_cursor) = page(all, params.cursor.as_deref(), params.limit)?;
    Ok(PermissionProfileListResponse { data, next_cursor })
}

#[cfg(test)]
mod tests {
    use codex_config::{Env, Home, Overrides};

    use super::*;

    fn load(file: &str) -> Config {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        std::fs::write(home.config_file(), file).unwrap();
        Config::load(&home, &Env::from_iter::<[(&str, &str); 0]>([]), &Overrides::default()).unwrap()
    }

    /// The recorded case `v2-model-list`, without the list of models itself.
    #[test]
    fn pages_of_models_follow_each_other_as_recorded() {
        let config = load("model = 'mock-model'\n");
        let list = |cursor: Option<&str>, limit| {
            let params =
                ModelListParams { cursor: cursor.map(str::to_owned), limit: Some(limit), include_hidden: None };
            page_of_models(&config, Vec::new(), &params)
        };
        let ids = |page: &ModelListResponse| page.data.iter().map(|model| model.id.clone()).collect::<Vec<_>>();
        let first = list(None, 2).unwrap();
        assert_eq!(ids(&first), ["mock-model", "gpt-5.1-codex"]);
        assert_eq!(first.next_cursor.as_deref(), Some("2"));
        let second = list(first.next_cursor.as_deref(), 1).unwrap();
        assert_eq!((ids(&second).join(" "), second.next_cursor), ("gpt-5.1-codex-mini".to_owned(), None));
        assert_eq!(list(Some("nonsense"), 1).unwrap_err().to_string(), "invalid cursor: nonsense");
    }
}
