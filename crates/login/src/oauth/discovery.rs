//! Finds the authorization server of a server.

use std::time::Duration;

use reqwest::Url;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::addresses::{Allowed, at, covers, issuer_metadata, resource, resource_metadata, shown};
use super::metadata::{AuthorizationServer, IssuerDocument, ResourceMetadata};
use super::{Challenge, OauthError};
use crate::LoginError;
use crate::http::{Request, Transport};
use crate::tokens::send;

/// The time limit for all requests of a discovery.
const WHOLE: Duration = Duration::from_secs(60);
/// The most authorization servers of one server that are tried.
const MOST_ISSUERS: usize = 4;

/// The way to log in to a server.
#[derive(Debug)]
pub(super) struct Discovered {
    pub(super) issuer: AuthorizationServer,
    /// The name of the server in requests for tokens.
    pub(super) resource: String,
    /// The scopes that the server lists.
    pub(super) scopes: Option<Vec<String>>,
}

/// Finds the authorization server by the metadata that a challenge names, by the well-known places, and else as MCP of
/// 2025-03-26 did, at the server itself.
pub(super) async fn discover(
    http: &dyn Transport,
    name: &str,
    server: &Url,
    challenge: Option<&Challenge>,
) -> Result<Discovered, OauthError> {
    let found = timeout(WHOLE, find(http, name, server, challenge)).await;
    found.unwrap_or(Err(LoginError::Expired { after: WHOLE }.into()))
}

async fn find(
    http: &dyn Transport,
    name: &str,
    server: &Url,
    challenge: Option<&Challenge>,
) -> Result<Discovered, OauthError> {
    // Tokens go to the server, so it must be safe as well.
    let allowed = Allowed::by(server);
    allowed.check(server.as_str())?;
    let Some(metadata) = described(http, server, challenge, allowed).await? else {
        let issuer = match document(http, &at(server, "")).await? {
            Some(document) => AuthorizationServer::of(document, allowed)?,
            None if challenge.is_some() => AuthorizationServer::at_host_of(server),
            None => return Err(OauthError::Unsupported { name: name.to_owned() }),
        };
        return Ok(Discovered { issuer, resource: resource(server), scopes: None });
    };
    if !covers(&metadata.resource, server) {
        return Err(OauthError::Resource { found: shown(&metadata.resource), expected: resource(server) });
    }
    let mut failure = OauthError::Unsupported { name: name.to_owned() };
    for text in metadata.authorization_servers.iter().take(MOST_ISSUERS) {
        let found = match allowed.check(text) {
            Ok(url) => by_issuer(http, &url, allowed).await,
            Err(error) => Err(error),
        };
        match found {
            Ok(issuer) => {
                return Ok(Discovered { issuer, scopes: metadata.scopes(), resource: metadata.resource });
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// The metadata of a server.
async fn described(
    http: &dyn Transport,
    server: &Url,
    challenge: Option<&Challenge>,
    allowed: Allowed,
) -> Result<Option<ResourceMetadata>, OauthError> {
    if let Some(place) = challenge.and_then(|challenge| challenge.resource_metadata.as_deref()) {
        let place = allowed.check(place)?;
        if let Some(metadata) = fetch(http, &place).await? {
            return Ok(Some(metadata));
        }
    }
    for place in resource_metadata(server) {
        if let Some(metadata) = fetch(http, &place).await? {
            return Ok(Some(metadata));
        }
    }
    Ok(None)
}

/// The authorization server that calls itself by this address.
async fn by_issuer(http: &dyn Transport, issuer: &Url, allowed: Allowed) -> Result<AuthorizationServer, OauthError> {
    let expected = issuer.as_str().trim_end_matches('/');
    let Some(document) = document(http, issuer).await? else {
        return Err(OauthError::Unsupported { name: expected.to_owned() });
    };
    if document.issuer.trim_end_matches('/') != expected {
        return Err(OauthError::Issuer { found: shown(&document.issuer), expected: expected.to_owned() });
    }
    AuthorizationServer::of(document, allowed)
}

async fn document(http: &dyn Transport, issuer: &Url) -> Result<Option<IssuerDocument>, OauthError> {
    for place in issuer_metadata(issuer) {
        if let Some(document) = fetch(http, &place).await? {
            return Ok(Some(document));
        }
    }
    Ok(None)
}

/// The document at an address, if there is one that can be understood.
async fn fetch<T: DeserializeOwned>(http: &dyn Transport, place: &Url) -> Result<Option<T>, OauthError> {
    let answer = send(http, Request::get(place.to_string())).await?;
    Ok(if answer.is_success() { serde_json::from_slice(&answer.body).ok() } else { None })
}
