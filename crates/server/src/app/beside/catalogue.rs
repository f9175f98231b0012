//! Lists for pickers: models, switches, ways to work together, permissions, MCP servers.

use std::sync::Arc;

use codex_config::{WireApi, collaboration_modes, list_features, list_mcp_servers, list_models, page};
use codex_protocol::methods::ClientRequest;
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::empty::Empty as Nothing;
use codex_protocol::v2::features::{
    CollaborationModeListResponse, ExperimentalFeatureEnablement, ExperimentalFeatureListParams,
    ExperimentalFeatureListResponse,
};
use codex_protocol::v2::mcp_status::{ListMcpServerStatusParams, ListMcpServerStatusResponse};
use codex_protocol::v2::model::{ModelListParams, ModelListResponse, ProviderCapabilities};
use codex_protocol::v2::permissions::{
    PermissionProfileListParams, PermissionProfileListResponse, PermissionProfileSummary,
};
use codex_wire::policy::SandboxMode;

use super::{Passed, group, with_host};
use crate::app::connection::{Connection, Unanswered};

/// Serves the requests of this group.
pub(super) async fn serve(connection: &Arc<Connection>, unanswered: Unanswered, request: ClientRequest) -> Passed {
    group! {
        connection, unanswered, request;
        sure { CollaborationModeList => modes, }
        plain {
            PermissionProfileList => permissions,
        }
        now {
            ModelList => models,
            ModelProviderCapabilitiesRead => capabilities,
            ExperimentalFeatureList => features,
            ExperimentalFeatureEnablementSet => switch,
            McpServerStatusList => mcp_servers,
        }
        aside {}
    }
}

async fn models(connection: &Arc<Connection>, params: ModelListParams) -> Result<ModelListResponse, ErrorObject> {
    with_host(connection, move |host| list_models(&*host.config()?, &params).map_err(ErrorObject::from_display)).await
}

/// What the provider can do as far as this program asks it to.
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
    with_host(connection, move |host| list_features(&*host.config()?, &params).map_err(ErrorObject::from_display)).await
}

/// Switches things on or off for threads that start later. The file stays as it is.
async fn switch(
    connection: &Arc<Connection>,
    params: ExperimentalFeatureEnablement,
) -> Result<ExperimentalFeatureEnablement, ErrorObject> {
    with_host(connection, move |host| {
        let all = ExperimentalFeatureListParams::default();
        let known = list_features(&*host.config()?, &all).map_err(ErrorObject::from_display)?.data;
        let is_known = |name: &&String| known.iter().any(|feature| feature.name == **name);
        if let Some(name) = params.enablement.keys().find(|name| !is_known(name)) {
            let known: Vec<&str> = known.iter().map(|feature| feature.name.as_str()).collect();
            let known = known.join(", ");
            return Err(ErrorObject::invalid(format!("there is no feature `{name}` to switch; there are: {known}")));
        }
        host.switch(params.enablement.clone());
        Ok(params)
    })
    .await
}

fn modes(_: &Arc<Connection>, _: Nothing) -> CollaborationModeListResponse {
    collaboration_modes()
}

/// The modes of the sandbox are the sets of permissions that there are.
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

async fn mcp_servers(
    connection: &Arc<Connection>,
    params: ListMcpServerStatusParams,
) -> Result<ListMcpServerStatusResponse, ErrorObject> {
    with_host(connection, move |host| list_mcp_servers(&*host.config()?, &params).map_err(ErrorObject::from_display))
        .await
}
