//! A login with a browser, as a machine: the meaning of each request of the browser, and the response.

use codex_config::Secret;
use reqwest::Url;
use subtle::ConstantTimeEq as _;

use crate::LoginError;
use crate::issuer::{Asked, Issuer};
use crate::pkce::{Pkce, random};
use crate::tokens::{Grant, is_code};

/// One login. It ends with the first request that has the right state.
#[derive(Debug)]
pub struct BrowserFlow {
    pkce: Pkce,
    /// The state parameter, which distinguishes the browser from any other client.
    state: Secret,
    port: u16,
    /// The path that the browser comes back to.
    path: &'static str,
    redirect_uri: String,
    issuer: Option<ExpectedIssuer>,
}

/// The issuer that an answer has to name (RFC 9207), so that no other can pass its codes off as this one's.
#[derive(Debug)]
pub(crate) struct ExpectedIssuer {
    pub(crate) name: String,
    /// Whether an answer that names none is refused.
    pub(crate) is_required: bool,
}

/// A request of a browser, or of any other program that finds the port.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallbackRequest {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) host: String,
    /// Whether another web page has caused it.
    pub(crate) is_foreign: bool,
}

/// The outcome of a request of the browser.
#[derive(Debug, PartialEq, Eq)]
pub enum CallbackOutcome {
    /// The code that is exchanged for tokens.
    Code(Secret),
    /// The user or the issuer declined.
    Denied { code: String },
    /// Another program needs the port for its own login.
    Cancelled,
}

/// The page for the browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallbackPage {
    /// The login is complete.
    Done,
    /// The login has failed; the terminal shows the reason.
    Failed,
    /// The login was cancelled.
    Cancelled,
    /// The request does not belong to this login.
    Refused,
    /// The page does not exist.
    Missing,
}

impl BrowserFlow {
    /// A login whose browser returns to a port of this machine.
    pub(crate) fn new(port: u16) -> Result<Self, LoginError> {
        Self::at("localhost", port, "/auth/callback", None)
    }

    /// As above, with another name of this machine, another path, and an issuer that the answer has to name.
    pub(crate) fn at(
        host: &str,
        port: u16,
        path: &'static str,
        issuer: Option<ExpectedIssuer>,
    ) -> Result<Self, LoginError> {
        let redirect_uri = format!("http://{host}:{port}{path}");
        Ok(Self { pkce: Pkce::new()?, state: random::<32>()?, port, path, redirect_uri, issuer })
    }

    pub(crate) fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// The parameters that tie an authorization to this login.
    pub(crate) fn parameters(&self) -> [(&'static str, String); 4] {
        [
            ("redirect_uri", self.redirect_uri.clone()),
            ("code_challenge", self.pkce.challenge.clone()),
            ("code_challenge_method", "S256".to_owned()),
            ("state", self.state.reveal().to_owned()),
        ]
    }

    /// The address that the browser is redirected to.
    pub(crate) fn url(&self, issuer: &Issuer, originator: &str, workspaces: &[String]) -> String {
        issuer.authorize_url(&Asked {
            redirect_uri: &self.redirect_uri,
            challenge: &self.pkce.challenge,
            state: self.state.reveal(),
            originator,
            workspaces,
        })
    }

    /// Processes a request: returns its result, or the page to show.
    pub(crate) fn receive(&self, request: &CallbackRequest) -> Result<CallbackOutcome, CallbackPage> {
        let is_own = [format!("localhost:{}", self.port), format!("127.0.0.1:{}", self.port)].contains(&request.host);
        let url = Url::parse("http://localhost").and_then(|base| base.join(&request.target));
        let (true, "GET", Ok(url)) = (is_own, request.method.as_str(), url) else { return Err(CallbackPage::Refused) };
        match url.path() {
            path if path == self.path => self.callback(&url),
            "/cancel" if !request.is_foreign => Ok(CallbackOutcome::Cancelled),
            "/cancel" => Err(CallbackPage::Refused),
            _ => Err(CallbackPage::Missing),
        }
    }

    fn callback(&self, url: &Url) -> Result<CallbackOutcome, CallbackPage> {
        let value = |name: &str| {
            let mut found = url.query_pairs().filter(|(key, _)| key == name).map(|(_, value)| value.into_owned());
            found.next().filter(|value| !value.is_empty())
        };
        let state = value("state").unwrap_or_default();
        if !bool::from(state.as_bytes().ct_eq(self.state.reveal().as_bytes())) {
            return Err(CallbackPage::Refused);
        }
        if let Some(expected) = &self.issuer
            && value("iss").map_or(expected.is_required, |found| found != expected.name)
        {
            return Ok(CallbackOutcome::Denied { code: "another issuer answered".to_owned() });
        }
        match (value("error"), value("code")) {
            (Some(code), _) => {
                let code = if is_code(&code) { code } else { "unknown error".to_owned() };
                Ok(CallbackOutcome::Denied { code })
            }
            (None, Some(code)) => Ok(CallbackOutcome::Code(Secret::new(code))),
            (None, None) => Err(CallbackPage::Refused),
        }
    }

    /// The grant that exchanges the code.
    pub(crate) fn grant(self, code: Secret) -> Grant {
        Grant { code, verifier: self.pkce.verifier, redirect_uri: self.redirect_uri }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(target: &str) -> CallbackRequest {
        CallbackRequest {
            method: "GET".into(),
            target: target.into(),
            host: "localhost:1455".into(),
            is_foreign: false,
        }
    }

    fn flow() -> BrowserFlow {
        BrowserFlow::new(1455).unwrap()
    }

    #[test]
    fn a_code_needs_the_right_state() {
        let flow = flow();
        let state = flow.state.reveal().to_owned();
        let with = |query: String| flow.receive(&request(&format!("/auth/callback?{query}")));
        assert_eq!(with(format!("code=c%2F1&state={state}")), Ok(CallbackOutcome::Code(Secret::new("c/1"))));
        for wrong in
            ["code=c", "code=c&state=", "code=c&state=x", &format!("code=c&state={state}x"), &format!("state={state}")]
        {
            assert_eq!(with(wrong.to_owned()), Err(CallbackPage::Refused), "{wrong}");
        }
        let denied = Ok(CallbackOutcome::Denied { code: "access_denied".to_owned() });
        assert_eq!(with(format!("error=access_denied&state={state}")), denied);
        assert_eq!(with("error=access_denied&state=x".to_owned()), Err(CallbackPage::Refused));
        let odd = Ok(CallbackOutcome::Denied { code: "unknown error".to_owned() });
        assert_eq!(with(format!("error=<b>&state={state}")), odd);
        assert!(!format!("{flow:?}").contains(&state));
    }

    #[test]
    fn a_code_of_another_issuer_is_refused() {
        let outcome = |is_required: bool, query: &str| {
            let issuer = ExpectedIssuer { name: "https://id.example".to_owned(), is_required };
            let flow = BrowserFlow::at("127.0.0.1", 1455, "/callback", Some(issuer)).unwrap();
            flow.receive(&request(&format!("/callback?code=c&state={}{query}", flow.state.reveal())))
        };
        let code = Ok(CallbackOutcome::Code(Secret::new("c")));
        let denied = Ok(CallbackOutcome::Denied { code: "another issuer answered".to_owned() });
        assert_eq!(outcome(true, "&iss=https%3A%2F%2Fid.example"), code);
        assert_eq!(outcome(false, ""), code);
        assert_eq!(outcome(true, ""), denied);
        assert_eq!(outcome(false, "&iss=https%3A%2F%2Fevil.example"), denied);
    }

    #[test]
    fn strangers_are_refused() {
        let flow = flow();
        let state = flow.state.reveal();
        let callback = format!("/auth/callback?code=c&state={state}");
        let rebound = CallbackRequest { host: "evil.example:1455".into(), ..request(&callback) };
        assert_eq!(flow.receive(&rebound), Err(CallbackPage::Refused));
        assert_eq!(
            flow.receive(&CallbackRequest { method: "POST".into(), ..request(&callback) }),
            Err(CallbackPage::Refused)
        );
        assert_eq!(
            flow.receive(&CallbackRequest { is_foreign: true, ..request("/cancel") }),
            Err(CallbackPage::Refused)
        );
        assert_eq!(flow.receive(&request("/cancel")), Ok(CallbackOutcome::Cancelled));
        assert_eq!(flow.receive(&request("/favicon.ico")), Err(CallbackPage::Missing));
    }

    #[test]
    fn the_browser_is_sent_with_everything_that_the_issuer_wants() {
        let flow = flow();
        let env = codex_config::Env::from_iter::<[(&str, &str); 0]>([]);
        let issuer = Issuer::new(None, None, &env);
        let url = Url::parse(&flow.url(&issuer, "codex_cli_rs", &["w1".to_owned()])).unwrap();
        assert_eq!((url.host_str(), url.path()), (Some("auth.openai.com"), "/oauth/authorize"));
        let query: std::collections::BTreeMap<_, _> = url.query_pairs().into_owned().collect();
        for (name, expected) in [
            ("response_type", "code"),
            ("client_id", "app_EMoamEEZ73f0CkXaXp7hrann"),
            ("redirect_uri", "http://localhost:1455/auth/callback"),
            ("code_challenge", &flow.pkce.challenge),
            ("code_challenge_method", "S256"),
            ("id_token_add_organizations", "true"),
            ("codex_cli_simplified_flow", "true"),
            ("state", flow.state.reveal()),
            ("originator", "codex_cli_rs"),
            ("allowed_workspace_id", "w1"),
        ] {
            assert_eq!(query[name], expected, "{name}");
        }
        assert!(!url.as_str().contains(flow.pkce.verifier.reveal()));
    }
}
