//! `initialize`: the identity of a client and its capabilities.

use std::sync::{Arc, OnceLock};

use codex_config::user_agent;
use codex_dialects::ProtocolRelease;
use codex_dialects::event_filter::ClientTraits;
use codex_protocol::methods::call;
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::initialize::{InitializeParams, InitializeResponse, Release};

use super::client_kinds::Signs;
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
    let InitializeParams { client_info, capabilities, relay } = params;
    client_info.check_name()?;
    // The server that the client has connected to decides for it.
    let (emulate, flag) = match &relay {
        Some(relay) => (relay.emulate.map(of_release), relay.dialect),
        None => (connection.host.start.release, connection.host.start.dialect),
    };
    let default = match (emulate, &relay, &connection.host.at_start) {
        (Some(release), ..) => release,
        (None, Some(relay), _) => of_release(relay.release),
        (None, None, Some(at_start)) => at_start.release,
        (None, None, None) => {
            let host = Arc::clone(&connection.host);
            blocking(move || Ok(host.release())).await?
        }
    };
    let traits = [false, true].map(|has_old_policy| {
        let dialect = flag.or(capabilities.as_ref().and_then(|capabilities| capabilities.dialect));
        let (name, has_capabilities) = (client_info.name.as_str(), capabilities.is_some());
        Signs { emulate, default, dialect, name, has_capabilities, has_old_policy }.traits()
    });
    let release = traits[0].release;
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
    let has_no_events = groups.iter().any(|group| EVENT_PREFIX.starts_with(group.trim_end_matches('*')));
    let client = Client {
        name: client_info.name,
        user_agent: response.user_agent.clone(),
        traits: traits.map(|traits| ClientTraits { has_events: traits.has_events && !has_no_events, ..traits }),
        spelling: OnceLock::new(),
        is_relayed: relay.is_some(),
        unwanted_groups: groups.into_iter().map(|name| name.trim_end_matches('*').to_owned()).collect(),
        unwanted_events: unwanted
            .iter()
            .filter_map(|name| name.strip_prefix(EVENT_PREFIX))
            .map(str::to_owned)
            .collect(),
        unwanted: unwanted.into_iter().collect(),
    };
    connection.client.set(client).map_err(|_| ErrorObject::invalid("Already initialized"))?;
    if let Some(relay) = relay {
        connection.outbox.number_requests_from(relay.first_request_id);
    }
    Ok(response)
}

fn of_release(release: Release) -> ProtocolRelease {
    match release {
        Release::V058 => ProtocolRelease::V058,
        Release::V077 => ProtocolRelease::V077,
        Release::V0166 => ProtocolRelease::V0166,
    }
}
