//! Lists for pickers: models, features, collaboration modes, permissions, MCP servers.

use std::sync::Arc;

use codex_config::{
    Config, Feature, ModelTable, OfferedMode, OfferedModel, WireApi, collaboration_modes, describe_effort,
    list_features,
};
use codex_methods::pagination::{CursorError, page};
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::empty::Empty as Nothing;
use codex_protocol::v2::features::{
    CollaborationModeListResponse, CollaborationModeMask, ExperimentalFeature, ExperimentalFeatureEnablement,
    ExperimentalFeatureListParams, ExperimentalFeatureListResponse, ExperimentalFeatureStage,
};
use codex_protocol::v2::model::{
    InputModality, Model, ModelListParams, ModelListResponse, ProviderCapabilities, ReasoningEffortOption,
};
use codex_protocol::v2::permissions::{
    PermissionProfileListParams, PermissionProfileListResponse, PermissionProfileSummary,
};
use codex_wire::policy::SandboxMode;
use codex_wire::reasoning::ReasoningEffort;

use super::with_host;
use crate::app::connection::Connection;
use crate::app::dispatch::serve;

serve! {
    sure {
        CollaborationModeList => modes,
    }
    plain {
        PermissionProfileList => permissions,
    }
    waits {
        ModelList => models,
        ModelProviderCapabilitiesRead => capabilities,
        ExperimentalFeatureList => features,
        ExperimentalFeatureEnablementSet => switch,
    }
}

async fn models(connection: &Arc<Connection>, params: ModelListParams) -> Result<ModelListResponse, ErrorObject> {
    let listed = connection.host.start.threads.listed_models().await;
    with_host(connection, move |host| {
        page_of_models(&*host.config()?, listed, &params).map_err(ErrorObject::from_display)
    })
    .await
}

fn page_of_models(
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

/// The capabilities of the provider that this program uses.
async fn capabilities(connection: &Arc<Connection>, _: Nothing) -> Result<ProviderCapabilities, ErrorObject> {
    with_host(connection, |host| {
        let can_search = host.config()?.provider.wire_api == WireApi::Responses;
        Ok(ProviderCapabilities { image_generation: false, web_search: can_search })
    })
    .await
}

async fn features(
    connection: &Arc<Connection>,
    params: ExperimentalFeatureListParams,
) -> Result<ExperimentalFeatureListResponse, ErrorObject> {
    with_host(connection, move |host| {
        let features = list_features(&*host.config()?);
        let (features, next_cursor) =
            page(features, params.cursor.as_deref(), params.limit).map_err(ErrorObject::from_display)?;
        Ok(ExperimentalFeatureListResponse { data: features.into_iter().map(feature).collect(), next_cursor })
    })
    .await
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

/// Enables or disables features for threads that start later. The file is unchanged.
async fn switch(
    connection: &Arc<Connection>,
    params: ExperimentalFeatureEnablement,
) -> Result<ExperimentalFeatureEnablement, ErrorObject> {
    with_host(connection, move |host| {
        let known = list_features(&*host.config()?);
        let is_known = |name: &&String| known.iter().any(|feature| feature.name == name.as_str());
        if let Some(name) = params.enablement.keys().find(|name| !is_known(name)) {
            let known: Vec<&str> = known.iter().map(|feature| feature.name).collect();
            let known = known.join(", ");
            return Err(ErrorObject::invalid(format!("unknown feature `{name}`; known features: {known}")));
        }
        host.start.config.switch(params.enablement.clone());
        Ok(params)
    })
    .await
}

fn modes(_: &Arc<Connection>, _: Nothing) -> CollaborationModeListResponse {
    let mask = |offered: OfferedMode| CollaborationModeMask {
        name: offered.name.to_owned(),
        mode: Some(offered.mode),
        model: None,
        reasoning_effort: offered.effort,
    };
    CollaborationModeListResponse { data: collaboration_modes().into_iter().map(mask).collect() }
}

/// The sets of permissions are the modes of the sandbox.
fn permissions(
    _: &Arc<Connection>,
    params: PermissionProfileListParams,
) -> Result<PermissionProfileListResponse, ErrorObject> {
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
    let (data, next_cursor) = page(all, params.cursor.as_deref(), params.limit).map_err(ErrorObject::from_display)?;
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
