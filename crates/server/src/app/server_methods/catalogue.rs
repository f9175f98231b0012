//! Lists for pickers: models, features, collaboration modes, permissions, MCP servers.

use std::sync::Arc;

use codex_config::{WireApi, list_features};
use codex_methods::catalogue::{self, page_of_features, page_of_models};
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::empty::Empty as Nothing;
use codex_protocol::v2::features::{
    CollaborationModeListResponse, ExperimentalFeatureEnablement, ExperimentalFeatureListParams,
    ExperimentalFeatureListResponse,
};
use codex_protocol::v2::model::{ModelListParams, ModelListResponse, ProviderCapabilities};
use codex_protocol::v2::permissions::{PermissionProfileListParams, PermissionProfileListResponse};

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
    with_host(connection, move |host| page_of_features(&*host.config()?, &params).map_err(ErrorObject::from_display))
        .await
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
    catalogue::modes()
}

fn permissions(
    _: &Arc<Connection>,
    params: PermissionProfileListParams,
) -> Result<PermissionProfileListResponse, ErrorObject> {
    catalogue::permissions(&params).map_err(ErrorObject::from_display)
}
