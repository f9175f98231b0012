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
        let config = host.config()?;
        let (web_search, namespace_tools) =
            (config.provider.wire_api == WireApi::Responses, config.provider.traits.hosted_tools);
        Ok(ProviderCapabilities { image_generation: false, web_search, namespace_tools })
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

/// Enables or disables features for threads that start later. The file is unchanged. The answer leaves out features
/// that there are not, so that a client of another release can tell.
async fn switch(
    connection: &Arc<Connection>,
    mut params: ExperimentalFeatureEnablement,
) -> Result<ExperimentalFeatureEnablement, ErrorObject> {
    with_host(connection, move |host| {
        let known = list_features(&*host.config()?);
        params.enablement.retain(|name, _| known.iter().any(|feature| feature.name == name.as_str()));
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
