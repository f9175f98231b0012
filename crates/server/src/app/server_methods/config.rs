//! `config/*`, `configRequirements/read`, `getUserSavedConfig` and `setDefaultModel`.

use std::sync::Arc;

use codex_config::{ConfigError, ConfigWriteError, Reader, UserConfig};
use codex_methods::config;
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v1::saved_config::{GetUserSavedConfigResponse, SetDefaultModelParams};
use codex_protocol::v2::config::{
    ConfigBatchWriteParams, ConfigReadParams, ConfigReadResponse, ConfigRequirementsReadResponse,
    ConfigValueWriteParams, ConfigWriteErrorData, ConfigWriteResponse,
};
use codex_protocol::v2::empty::Empty;

use super::{explain, with_host};
use crate::app::connection::Connection;
use crate::app::dispatch::serve;
use crate::app::host::Host;

serve! {
    sure {
        ConfigRequirementsRead => requirements,
    }
    waits {
        ConfigRead => read,
        ConfigValueWrite => write_value,
        ConfigBatchWrite => write_batch,
        ConfigMcpServerReload => reload,
        GetUserSavedConfig => saved,
        SetDefaultModel => set_default_model,
    }
}

fn user_config(host: &Host) -> UserConfig<'_> {
    let start = &host.start;
    UserConfig::new(start.config.home(), start.config.env(), start.config.overrides())
}

fn unreadable(error: ConfigError) -> ErrorObject {
    ErrorObject::invalid(explain(&error, error.hint()))
}

fn unwritten(error: ConfigWriteError) -> ErrorObject {
    let text = explain(&error, error.hint());
    let Some(fault) = error.fault() else { return ErrorObject::internal(text) };
    let data = serde_json::to_value(ConfigWriteErrorData { config_write_error_code: config::code(fault) });
    ErrorObject::invalid(text).with(data.unwrap_or_default())
}

/// Writes, and lets everything that starts later read the new values.
pub(super) async fn write<T: Send + 'static>(
    connection: &Connection,
    work: impl FnOnce(UserConfig<'_>) -> Result<T, ConfigWriteError> + Send + 'static,
) -> Result<T, ErrorObject> {
    with_host(connection, move |host| {
        let written = work(user_config(host));
        // A write that failed half-way may also have changed the file.
        host.start.config.forget();
        written.map_err(unwritten)
    })
    .await
}

async fn read(connection: &Arc<Connection>, params: ConfigReadParams) -> Result<ConfigReadResponse, ErrorObject> {
    with_host(connection, move |host| {
        let cwd = params.cwd.map(|cwd| host.start.cwd.join(cwd));
        let view = user_config(host).read(cwd.as_deref()).map_err(unreadable)?;
        let shown = config::read(view, host.start.config.home().user_dir(), params.include_layers);
        shown.map_err(|error| unreadable(error.into()))
    })
    .await
}

async fn write_value(
    connection: &Arc<Connection>,
    params: ConfigValueWriteParams,
) -> Result<ConfigWriteResponse, ErrorObject> {
    write(connection, move |user| user.write(&config::one_edit(params)).map(config::written)).await
}

async fn write_batch(
    connection: &Arc<Connection>,
    params: ConfigBatchWriteParams,
) -> Result<ConfigWriteResponse, ErrorObject> {
    write(connection, move |user| user.write(&config::several_edits(params)).map(config::written)).await
}

/// This program has no requirements set by an administrator.
fn requirements(_: &Arc<Connection>, _: Empty) -> ConfigRequirementsReadResponse {
    ConfigRequirementsReadResponse::default()
}

/// Connections to MCP servers do not outlive the configuration they were opened with, so it is enough to read it again.
async fn reload(connection: &Arc<Connection>, _: Empty) -> Result<Empty, ErrorObject> {
    with_host(connection, |host| {
        host.start.config.forget();
        host.config()?;
        let reloaded = host.start.servers.as_ref().map_or(Ok(()), |servers| servers.reload());
        reloaded.map(|()| Empty {}).map_err(ErrorObject::invalid)
    })
    .await
}

async fn saved(connection: &Arc<Connection>, _: Empty) -> Result<GetUserSavedConfigResponse, ErrorObject> {
    with_host(connection, |host| {
        let file = user_config(host).file().map_err(unreadable)?;
        let saved = config::saved(&Reader::new(&file, host.start.config.home().user_dir()));
        Ok(GetUserSavedConfigResponse { config: saved.map_err(|error| unreadable(error.into()))? })
    })
    .await
}

async fn set_default_model(connection: &Arc<Connection>, params: SetDefaultModelParams) -> Result<Empty, ErrorObject> {
    write(connection, move |config| {
        let SetDefaultModelParams { model, reasoning_effort } = params;
        config.set_default_model(model.as_deref(), reasoning_effort.as_ref()).map(|()| Empty {})
    })
    .await
}
