//! Failed logins to servers.

use crate::{KeyringError, LoginError};

/// A login to a server, or a renewal of one, that failed.
#[derive(Debug, thiserror::Error)]
pub enum OauthError {
    /// The server has no authorization server that could be found.
    #[error("{name} offers no login with OAuth")]
    Unsupported { name: String },
    /// The metadata is for another server.
    #[error("the metadata of the server is for {found}, not for {expected}")]
    Resource { found: String, expected: String },
    /// The metadata of an authorization server is of another one.
    #[error("the metadata of {expected} is of the issuer {found}")]
    Issuer { found: String, expected: String },
    /// Somebody on the way could read what is sent there.
    #[error("{url} is neither https nor on the machine of the server")]
    Insecure { url: String },
    #[error("the authorization server {issuer} does not support PKCE with S256")]
    NoPkce { issuer: String },
    #[error("the authorization server {issuer} registers no clients")]
    NoRegistration { issuer: String },
    #[error("the authorization server {issuer} accepts none of our ways to authenticate")]
    NoAuthMethod { issuer: String },
    #[error("the variable {variable} with the secret of the client is not set")]
    NoSecret { variable: String },
    #[error("not logged in")]
    NotLoggedIn { name: String },
    /// The tokens are void and cannot be renewed.
    #[error("the login has ended ({code})")]
    Ended { name: String, code: String },
    /// The login does not allow a request.
    #[error("the login lacks a scope; the request needs {}", if scopes.is_empty() { "others" } else { scopes })]
    Scopes { name: String, scopes: String },
    #[error("could not {what} {}", path.display())]
    File { what: &'static str, path: std::path::PathBuf, source: std::io::Error },
    #[error("mcp_oauth_credentials_store = \"keyring\": this build has no keyring")]
    NoKeyring,
    #[error(transparent)]
    Keyring(#[from] KeyringError),
    #[error(transparent)]
    Login(#[from] LoginError),
}

impl OauthError {
    /// A next step for the person, shown on a line of its own.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotLoggedIn { name } | Self::Ended { name, .. } => Some(format!("run `codex mcp login {name}`")),
            Self::Scopes { name, scopes } if scopes.is_empty() => {
                Some(format!("run `codex mcp login {name} --scopes …`"))
            }
            Self::Scopes { name, scopes } => {
                Some(format!("run `codex mcp login {name} --scopes {}`", scopes.replace(' ', ",")))
            }
            Self::NoRegistration { .. } => {
                Some("set oauth.client_id of the server to a client that it knows".to_owned())
            }
            Self::NoKeyring => Some("build it with `--features keyring`, or set it to \"file\" or \"auto\"".to_owned()),
            Self::Keyring(_) => Some("unlock the keyring, or set mcp_oauth_credentials_store to \"file\"".to_owned()),
            Self::Login(LoginError::Ports { .. }) => Some("set mcp_oauth_callback_port to a free port".to_owned()),
            Self::Login(LoginError::Connect { .. }) => Some("check the network and the proxy settings".to_owned()),
            _ => None,
        }
    }

    /// The error with its causes and its hint, in one line.
    #[must_use]
    pub fn in_full(&self) -> String {
        let causes = std::iter::successors(std::error::Error::source(self), |error| error.source());
        let said = causes.fold(self.to_string(), |said, cause| format!("{said}: {cause}"));
        self.hint().map_or(said.clone(), |hint| format!("{said}; {hint}"))
    }
}
