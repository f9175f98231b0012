//! The handshake.

use std::borrow::Cow;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::rpc::ErrorObject;

/// `initialize`: the identity and the capabilities of the client.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    #[serde(alias = "client_info")]
    pub client_info: ClientInfo,
    #[serde(default)]
    pub capabilities: Option<Capabilities>,
    /// Set by a server that passes on requests of one of its clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relay: Option<RelayedClient>,
}

/// The client of another server, which passes on its requests about a thread that this server has open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RelayedClient {
    /// The id of the server that has the thread open. Any other server refuses the client.
    pub server_id: String,
    /// The id of the first request to the client, so that requests of several servers have different ids.
    pub first_request_id: i64,
    /// The release that the other server was told to match.
    #[serde(default)]
    pub emulate: Option<Release>,
    /// The release that the other server matches for a client that does not choose one.
    pub release: Release,
    /// The dialect that the other server uses for a client that does not choose one.
    #[serde(default)]
    pub dialect: Option<Dialect>,
}

spelled! {
    /// A release whose behaviour a server matches.
    pub enum Release {
        "0.58" => V058,
        "0.77" => V077,
        "0.166" => V0166,
    }
}

/// The identity of a client.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClientInfo {
    /// Its name, for programs.
    pub name: String,
    /// Its name, for people.
    #[serde(default)]
    pub title: Option<String>,
    /// Its version.
    #[serde(default)]
    pub version: String,
}

impl ClientInfo {
    /// Checks that requests on the client's behalf can carry its name.
    ///
    /// # Errors
    /// If the name is not a valid header value.
    pub fn check_name(&self) -> Result<(), ErrorObject> {
        if self.name.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')) {
            return Ok(());
        }
        let text = format!("Invalid clientInfo.name: '{}'. Must be a valid HTTP header value.", self.name);
        Err(ErrorObject::invalid(text))
    }
}

/// The capabilities of a client.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "InitializeCapabilities"))]
#[serde(rename_all = "camelCase", default)]
pub struct Capabilities {
    /// Whether it may use what is not settled yet.
    pub experimental_api: bool,
    /// Notifications that it opts out of.
    pub opt_out_notification_methods: Option<Vec<String>>,
    /// The dialect of its notifications, independent of its requests.
    pub dialect: Option<Dialect>,
}

spelled! {
    /// A dialect of notifications and questions.
    pub enum Dialect {
        /// `codex/event/*`, and approval requests of v1.
        "v1" => V1,
        /// Notifications, and approval requests that name an item.
        "v2" => V2,
        /// Both of these.
        "both" => Both,
        /// `item/created` and `item/delta` in addition to the events that do not repeat these items.
        "items" => Items,
    }
}

/// The response of `initialize`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InitializeResponse {
    /// The user agent that is sent to providers.
    pub user_agent: String,
    /// The home folder.
    pub codex_home: PathBuf,
    /// `unix` or `windows`.
    pub platform_family: Cow<'static, str>,
    /// The operating system.
    pub platform_os: Cow<'static, str>,
}
