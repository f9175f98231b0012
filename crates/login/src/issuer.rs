//! The issuer of logins, and its endpoints.

use codex_config::{Claims, Env, Tokens};

use crate::http::form;

const DEFAULT_ISSUER: &str = "https://auth.openai.com";
const DEFAULT_CLIENT: &str = "app_EMoamEEZ73f0CkXaXp7hrann";
const SCOPE: &str = "openid profile email offline_access api.connectors.read api.connectors.invoke";

/// The variable that names another address for renewals.
const REFRESH_URL: &str = "CODEX_REFRESH_TOKEN_URL_OVERRIDE";

/// The issuer of logins, and the client id of this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer {
    url: String,
    client_id: String,
    refresh_url: Option<String>,
}

impl Issuer {
    /// The issuer at an address; the default one if none is named.
    #[must_use]
    pub fn new(url: Option<&str>, client_id: Option<&str>, env: &Env) -> Self {
        let url = url.map(|url| url.trim().trim_end_matches('/')).filter(|url| !url.is_empty());
        let client_id = client_id.map(str::trim).filter(|id| !id.is_empty());
        Self {
            url: url.unwrap_or(DEFAULT_ISSUER).to_owned(),
            client_id: client_id.unwrap_or(DEFAULT_CLIENT).to_owned(),
            refresh_url: env.text(REFRESH_URL),
        }
    }

    /// The issuer of these tokens by their claims. Without a claim it is the default issuer.
    pub(crate) fn of(tokens: &Tokens, env: &Env) -> Self {
        let Claims { issuer, audience, .. } = tokens.claims();
        let issuer = issuer.filter(|url| is_safe(url));
        // The id belongs to a client at this issuer, so it is replaced with it.
        let client = if issuer.is_some() { audience } else { None };
        Self::new(issuer.as_deref(), client.as_deref(), env)
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The id of this program.
    #[must_use]
    pub fn client_id(&self) -> &str {
        &self.client_id
    }

    /// The address that a browser opens to log in.
    pub(crate) fn authorize_url(&self, asked: &Asked<'_>) -> String {
        let text = str::to_owned;
        let mut fields = vec![
            ("response_type", text("code")),
            ("client_id", self.client_id.clone()),
            ("redirect_uri", text(asked.redirect_uri)),
            ("scope", text(SCOPE)),
            ("code_challenge", text(asked.challenge)),
            ("code_challenge_method", text("S256")),
            ("id_token_add_organizations", text("true")),
            ("codex_cli_simplified_flow", text("true")),
            ("state", text(asked.state)),
            ("originator", text(asked.originator)),
        ];
        if !asked.workspaces.is_empty() {
            fields.push(("allowed_workspace_id", asked.workspaces.join(",")));
        }
        format!("{}/oauth/authorize?{}", self.url, form(&fields))
    }

    pub(crate) fn token_url(&self) -> String {
        format!("{}/oauth/token", self.url)
    }

    pub(crate) fn refresh_url(&self) -> String {
        self.refresh_url.clone().unwrap_or_else(|| self.token_url())
    }

    pub(crate) fn revoke_url(&self) -> String {
        format!("{}/oauth/revoke", self.url)
    }

    pub(crate) fn user_code_url(&self) -> String {
        format!("{}/api/accounts/deviceauth/usercode", self.url)
    }

    pub(crate) fn device_token_url(&self) -> String {
        format!("{}/api/accounts/deviceauth/token", self.url)
    }

    /// The page where the user types the code.
    pub(crate) fn device_page(&self) -> String {
        format!("{}/codex/device", self.url)
    }

    pub(crate) fn device_redirect(&self) -> String {
        format!("{}/deviceauth/callback", self.url)
    }
}

/// The parameters of the authorization page.
pub(crate) struct Asked<'a> {
    pub(crate) redirect_uri: &'a str,
    pub(crate) challenge: &'a str,
    pub(crate) state: &'a str,
    pub(crate) originator: &'a str,
    pub(crate) workspaces: &'a [String],
}

/// Whether a token may be sent to an address: over TLS, or within this machine.
fn is_safe(url: &str) -> bool {
    let is_at = |host: &str| {
        let rest = url.strip_prefix("http://").and_then(|rest| rest.strip_prefix(host));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']))
    };
    url.starts_with("https://") || is_at("localhost") || is_at("127.0.0.1") || is_at("[::1]")
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    use codex_config::Secret;

    use super::*;

    #[track_caller]
    fn check(claims: &str, expected: (&str, &str)) {
        let env = Env::from_iter::<[(&str, &str); 0]>([]);
        let id_token = Secret::new(format!("e30.{}.s", URL_SAFE_NO_PAD.encode(claims)));
        let tokens =
            Tokens { id_token: Some(id_token), access_token: Secret::new("a"), refresh_token: None, account_id: None };
        let issuer = Issuer::of(&tokens, &env);
        assert_eq!((issuer.url(), issuer.client_id()), expected);
    }

    #[test]
    fn tokens_are_renewed_by_their_issuer() {
        check("{}", (DEFAULT_ISSUER, DEFAULT_CLIENT));
        check(r#"{"iss":"https://id.example.com/","aud":["mine"]}"#, ("https://id.example.com", "mine"));
        check(r#"{"iss":"http://localhost:18200","aud":"mine"}"#, ("http://localhost:18200", "mine"));
        check(r#"{"iss":"http://id.example.com","aud":"mine"}"#, (DEFAULT_ISSUER, DEFAULT_CLIENT));
        check(r#"{"iss":"http://localhost.example.com"}"#, (DEFAULT_ISSUER, DEFAULT_CLIENT));
    }
}
