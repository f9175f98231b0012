//! `codex mcp login` and `codex mcp logout`, and the authentication of requests to servers.

use std::io::Write as _;
use std::time::Duration;

use anyhow::bail;
use codex_config::{Config, Env, Home, McpServer, McpTransport};
use codex_login::{LoginRequest, OauthError, ServerLogin, ServerLogins};
use futures_util::future::join_all;

use crate::console;
use crate::failure::ErrorWithHint;
use crate::login::{block_on, open_browser};

/// The time limit for a server to tell whether it offers a login.
const OFFER: Duration = Duration::from_secs(5);

/// The authentication of requests to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AuthState {
    Unsupported,
    NotLoggedIn,
    BearerToken,
    Oauth,
}

impl AuthState {
    /// For programs.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Unsupported => "unsupported",
            Self::NotLoggedIn => "not_logged_in",
            Self::BearerToken => "bearer_token",
            Self::Oauth => "o_auth",
        }
    }

    /// For people.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Unsupported => "Unsupported",
            Self::NotLoggedIn => "Not logged in",
            Self::BearerToken => "Bearer token",
            Self::Oauth => "OAuth",
        }
    }
}

/// The state of each server. Servers that may offer a login are asked, all at once.
pub(super) fn states(config: &Config, home: &Home, env: &Env, servers: &[McpServer]) -> anyhow::Result<Vec<AuthState>> {
    let logins = ServerLogins::new(env);
    let states = servers.iter().map(async |server| match logins.to(home, config.mcp_login(), server) {
        Some(login) if login.is_logged_in().await => AuthState::Oauth,
        Some(login) if server.is_enabled && login.is_offered(OFFER).await => AuthState::NotLoggedIn,
        None if server.has_bearer_token() => AuthState::BearerToken,
        Some(_) | None => AuthState::Unsupported,
    });
    block_on(join_all(states))
}

/// Logs in to a server.
pub(super) fn log_in(config: &Config, home: &Home, env: &Env, name: &str, scopes: Vec<String>) -> anyhow::Result<()> {
    let login = find(config, home, env, name, "OAuth login is only supported for streamable HTTP servers.")?;
    let scopes = Some(scopes).filter(|scopes| !scopes.is_empty());
    block_on(async {
        let pending = login.begin(LoginRequest { scopes, timeout: None }).await.map_err(with_hint)?;
        let mut out = console::out();
        writeln!(out, "Authorize `{name}` by opening this URL in your browser:\n{}\n", pending.url())?;
        if !open_browser(pending.url(), env) {
            console::note("(Browser launch failed; please copy the URL above manually.)");
        }
        pending.finish().await.map_err(with_hint)
    })??;
    writeln!(console::out(), "Successfully logged in to MCP server '{name}'.")?;
    Ok(())
}

/// Forgets the login to a server, and revokes it where that is offered.
pub(super) fn log_out(config: &Config, home: &Home, env: &Env, name: &str) -> anyhow::Result<()> {
    let login = find(config, home, env, name, "OAuth logout is only supported for streamable_http transports.")?;
    let (was_there, told) = block_on(login.log_out())?.map_err(with_hint)?;
    let done = if was_there { "Removed OAuth credentials for" } else { "No OAuth credentials stored for" };
    writeln!(console::out(), "{done} '{name}'.")?;
    if let Err(error) = told {
        console::note(format_args!("warning: the login could not be revoked, and ends by itself: {}", error.in_full()));
    }
    Ok(())
}

fn find(config: &Config, home: &Home, env: &Env, name: &str, otherwise: &str) -> anyhow::Result<ServerLogin> {
    let servers = config.mcp_servers(home.user_dir());
    let Some(server) = servers.iter().find(|server| server.name == name) else {
        bail!("No MCP server named '{name}' found in configuration.")
    };
    match ServerLogins::new(env).to(home, config.mcp_login(), server) {
        Some(login) => Ok(login),
        None if matches!(server.transport, McpTransport::Http(_)) => {
            bail!("'{name}' has a token in config.toml, which is used in place of a login.")
        }
        None => bail!("{otherwise}"),
    }
}

fn with_hint(error: OauthError) -> anyhow::Error {
    match error.hint() {
        Some(hint) => {
            let causes = std::iter::successors(std::error::Error::source(&error), |error| error.source());
            let what = causes.fold(error.to_string(), |said, cause| format!("{said}: {cause}"));
            ErrorWithHint { what, hint }.into()
        }
        None => error.into(),
    }
}
