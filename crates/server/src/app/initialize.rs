//! `initialize`: the identity of a client and its capabilities.

use std::sync::Arc;

use codex_config::user_agent;
use codex_dialects::ProtocolRelease;
use codex_protocol::methods::call;
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::initialize::{Capabilities, Dialect, InitializeParams, InitializeResponse};

use super::connection::{Client, Connection};
use super::disk::blocking;
use super::dispatch::{Request, Serve};
use super::encoded::EVENT_PREFIX;

/// Notifications for clients that have enabled the experimental API.
const EXPERIMENTAL: &[&str] = &["thread/readState/changed"];

impl Serve for call::Initialize {
    async fn serve(request: Request<Self>, params: InitializeParams) {
        let connection = Arc::clone(&request.connection);
        let result = initialize(&connection, params).await;
        let is_new = result.is_ok();
        request.answer(result).await;
        if is_new {
            super::config_warnings::greet(&connection).await;
            connection.host.initialized.notify_one();
        }
    }
}

async fn initialize(connection: &Connection, params: InitializeParams) -> Result<InitializeResponse, ErrorObject> {
    let InitializeParams { client_info, capabilities } = params;
    client_info.check_name()?;
    let asked = connection.host.start.release.or_else(|| capabilities.as_ref().map(implied_release));
    let release = match (asked, &connection.host.at_start) {
        (Some(release), _) => release,
        (None, Some(at_start)) => at_start.release,
        (None, None) => {
            let host = Arc::clone(&connection.host);
            blocking(move || Ok(host.release())).await?
        }
    };
    let capabilities = capabilities.unwrap_or_default();
    let start = &connection.host.start;
    let agent = user_agent(connection.host.originator(&client_info.name), start.config.env());
    let response = InitializeResponse {
        user_agent: format!("{agent} ({}; {})", client_info.name, client_info.version),
        codex_home: start.config.home().path().to_owned(),
        platform_family: std::env::consts::FAMILY.into(),
        platform_os: std::env::consts::OS.into(),
    };
    let mut unwanted = capabilities.opt_out_notification_methods.unwrap_or_default();
    if release != ProtocolRelease::V0166 || !capabilities.experimental_api {
        unwanted.extend(EXPERIMENTAL.iter().map(|name| (*name).to_owned()));
    }
    let (groups, unwanted): (Vec<_>, Vec<_>) = unwanted.into_iter().partition(|name| name.ends_with('*'));
    let client = Client {
        name: client_info.name,
        user_agent: response.user_agent.clone(),
        release,
        dialect: capabilities.dialect.or(start.dialect),
        unwanted_groups: groups.into_iter().map(|name| name.trim_end_matches('*').to_owned()).collect(),
        unwanted_events: unwanted
            .iter()
            .filter_map(|name| name.strip_prefix(EVENT_PREFIX))
            .map(str::to_owned)
            .collect(),
        unwanted: unwanted.into_iter().collect(),
        // Only clients of the newest release send capabilities, and that release sends no legacy events.
        has_events: asked != Some(ProtocolRelease::V0166),
    };
    connection.client.set(client).map_err(|_| ErrorObject::invalid("Already initialized"))?;
    Ok(response)
}

/// The release of a client that sends capabilities: one with legacy events if the client wants them, otherwise the
/// newest, because only its clients send any.
fn implied_release(capabilities: &Capabilities) -> ProtocolRelease {
    match capabilities.dialect {
        Some(Dialect::V1 | Dialect::Both | Dialect::Items) => ProtocolRelease::V077,
        Some(Dialect::V2) | None => ProtocolRelease::V0166,
    }
}
