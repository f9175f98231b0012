//! The metadata of servers and of authorization servers, as far as it is used.

use reqwest::Url;
use serde::Deserialize;

use super::OauthError;
use super::addresses::{Allowed, at};

/// The most entries of a list that are used.
const MOST_ENTRIES: usize = 64;

/// The metadata of a server (RFC 9728).
#[derive(Debug, Default, PartialEq, Deserialize)]
pub(super) struct ResourceMetadata {
    pub(super) resource: String,
    #[serde(default)]
    pub(super) authorization_servers: Vec<String>,
    #[serde(default)]
    pub(super) scopes_supported: Option<Vec<String>>,
}

/// The metadata of an authorization server (RFC 8414) as it is sent.
#[derive(Debug, Deserialize)]
pub(super) struct IssuerDocument {
    pub(super) issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    #[serde(default)]
    registration_endpoint: Option<String>,
    #[serde(default)]
    revocation_endpoint: Option<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    #[serde(default)]
    client_id_metadata_document_supported: bool,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

/// An authorization server, with addresses that may be used.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AuthorizationServer {
    pub(super) issuer: String,
    pub(super) authorization: Url,
    pub(super) token: Url,
    pub(super) registration: Option<Url>,
    pub(super) revocation: Option<Url>,
    pub(super) scopes: Vec<String>,
    /// The ways in which clients authenticate; unknown if the server does not say.
    pub(super) auth_methods: Option<Vec<String>>,
    /// Whether a client may name itself by the address of its description.
    pub(super) takes_client_documents: bool,
    /// Whether its answers name it.
    pub(super) names_itself: bool,
}

impl AuthorizationServer {
    /// The server that a document describes.
    pub(super) fn of(document: IssuerDocument, allowed: Allowed) -> Result<Self, OauthError> {
        if !document.code_challenge_methods_supported.iter().any(|method| method == "S256") {
            return Err(OauthError::NoPkce { issuer: document.issuer });
        }
        let optional = |url: Option<String>| url.map(|url| allowed.check(&url)).transpose();
        Ok(Self {
            authorization: allowed.check(&document.authorization_endpoint)?,
            token: allowed.check(&document.token_endpoint)?,
            registration: optional(document.registration_endpoint)?,
            revocation: optional(document.revocation_endpoint)?,
            scopes: document.scopes_supported.into_iter().take(MOST_ENTRIES).collect(),
            auth_methods: document.token_endpoint_auth_methods_supported,
            takes_client_documents: document.client_id_metadata_document_supported,
            names_itself: document.authorization_response_iss_parameter_supported,
            issuer: document.issuer,
        })
    }

    /// The server that MCP of 2025-03-26 assumes where no metadata is found: at the host of the MCP server.
    pub(super) fn at_host_of(server: &Url) -> Self {
        Self {
            issuer: at(server, "").as_str().trim_end_matches('/').to_owned(),
            authorization: at(server, "/authorize"),
            token: at(server, "/token"),
            registration: Some(at(server, "/register")),
            revocation: None,
            scopes: Vec::new(),
            auth_methods: None,
            takes_client_documents: false,
            names_itself: false,
        }
    }
}

impl ResourceMetadata {
    /// The scopes that it lists.
    pub(super) fn scopes(&self) -> Option<Vec<String>> {
        let scopes = self.scopes_supported.as_ref()?;
        Some(scopes.iter().take(MOST_ENTRIES).flat_map(|scope| super::challenge::words(scope)).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(change: Value) -> Result<AuthorizationServer, OauthError> {
        let mut document = json!({
            "issuer": "https://id.example", "authorization_endpoint": "https://id.example/a",
            "token_endpoint": "https://id.example/t", "code_challenge_methods_supported": ["plain", "S256"],
        });
        document.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let server = Url::parse("https://mcp.example/").unwrap();
        AuthorizationServer::of(serde_json::from_value(document).unwrap(), Allowed::by(&server))
    }

    #[test]
    fn metadata_without_pkce_or_with_odd_addresses_is_refused() {
        let server = read(json!({"revocation_endpoint": "https://id.example/r"})).unwrap();
        assert_eq!(server.revocation.unwrap().as_str(), "https://id.example/r");
        assert!((server.registration, server.auth_methods) == (None, None) && !server.takes_client_documents);
        for methods in [json!([]), json!(["plain"])] {
            let refused = read(json!({"code_challenge_methods_supported": methods})).unwrap_err();
            assert!(matches!(refused, OauthError::NoPkce { .. }), "{refused}");
        }
        for (key, value) in [
            ("authorization_endpoint", "javascript:alert(1)"),
            ("token_endpoint", "http://id.example/t"),
            ("registration_endpoint", "http://169.254.169.254/"),
            ("revocation_endpoint", "http://127.0.0.1:1/"),
        ] {
            let refused = read(json!({key: value})).unwrap_err();
            assert!(matches!(refused, OauthError::Insecure { .. }), "{key}: {refused}");
        }
    }

    #[test]
    fn without_metadata_the_endpoints_are_those_of_2025_03_26() {
        let server = AuthorizationServer::at_host_of(&Url::parse("https://mcp.example/v1/mcp?x").unwrap());
        assert_eq!(server.issuer, "https://mcp.example");
        assert_eq!(server.authorization.as_str(), "https://mcp.example/authorize");
        assert_eq!(server.token.as_str(), "https://mcp.example/token");
        assert_eq!(server.registration.unwrap().as_str(), "https://mcp.example/register");
    }
}
