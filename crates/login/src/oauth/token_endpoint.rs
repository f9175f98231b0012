//! Asking an authorization server for tokens, and giving them back.

use codex_config::Secret;
use serde_json::Value as Json;

use super::client::{AuthMethod, Client};
use crate::LoginError;
use crate::http::{Body, Request, Transport, form};
use crate::tokens::{Grant, granted, refused, send};

/// The longest token; it has to fit into a header.
const MOST_TOKEN: usize = 16 * 1024;
/// The longest life of a token that is believed, in seconds.
const MOST_LIFE: u64 = 10 * 365 * 24 * 60 * 60;

/// Tokens as they were issued.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Issued {
    pub(super) access_token: Secret,
    pub(super) refresh_token: Option<Secret>,
    /// The lifetime of the access token in seconds.
    pub(super) life: Option<u64>,
    /// The scopes, if they are not those that were asked for.
    pub(super) scopes: Option<Vec<String>>,
}

/// A place that gives out tokens, and who asks there for which server.
pub(super) struct TokenEndpoint<'a> {
    pub(super) http: &'a dyn Transport,
    pub(super) url: &'a str,
    pub(super) client: &'a Client,
    pub(super) resource: Option<&'a str>,
}

impl TokenEndpoint<'_> {
    /// Exchanges a code for tokens.
    pub(super) async fn exchange(&self, grant: &Grant) -> Result<Issued, LoginError> {
        self.ask(vec![
            ("grant_type", "authorization_code".to_owned()),
            ("code", grant.code.reveal().to_owned()),
            ("redirect_uri", grant.redirect_uri.clone()),
            ("code_verifier", grant.verifier.reveal().to_owned()),
        ])
        .await
    }

    /// Asks for new tokens.
    pub(super) async fn renew(&self, refresh_token: &Secret) -> Result<Issued, LoginError> {
        self.ask(vec![("grant_type", "refresh_token".to_owned()), ("refresh_token", refresh_token.reveal().to_owned())])
            .await
    }

    /// Tells the server that a token is not needed any more; `url` is its place for that.
    pub(super) async fn revoke(&self, url: &str, token: &Secret, hint: &str) -> Result<(), LoginError> {
        let fields = vec![("token", token.reveal().to_owned()), ("token_type_hint", hint.to_owned())];
        let answer = send(self.http, authenticated(url, self.client, fields)).await?;
        if answer.is_success() { Ok(()) } else { Err(refused(&answer)) }
    }

    async fn ask(&self, mut fields: Vec<(&'static str, String)>) -> Result<Issued, LoginError> {
        fields.extend(self.resource.map(|resource| ("resource", resource.to_owned())));
        let answer = send(self.http, authenticated(self.url, self.client, fields)).await?;
        issued(&granted(answer)?)
    }
}

/// A request that says who asks.
fn authenticated(url: &str, client: &Client, mut fields: Vec<(&'static str, String)>) -> Request {
    let secret = client.secret.as_ref().map(Secret::reveal).unwrap_or_default();
    let mut basic = None;
    match client.method {
        AuthMethod::None => fields.push(("client_id", client.id.clone())),
        AuthMethod::Post => {
            fields.extend([("client_id", client.id.clone()), ("client_secret", secret.to_owned())]);
        }
        AuthMethod::Basic => {
            // RFC 6749 §2.3.1: both are encoded as values of a form.
            let encoded = |text: &str| form(&[("", text.to_owned())]).trim_start_matches('=').to_owned();
            basic = Some(Secret::new(format!("{}:{}", encoded(&client.id), encoded(secret))));
        }
    }
    Request { basic, ..Request::post(url.to_owned(), Body::Form(fields)) }
}

fn issued(answer: &Json) -> Result<Issued, LoginError> {
    let secret = |name: &str| match answer.get(name).and_then(Json::as_str) {
        None | Some("") => Ok(None),
        Some(token) if token.len() <= MOST_TOKEN && token.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Ok(Some(Secret::new(token)))
        }
        Some(_) => Err(LoginError::Malformed { what: "its token cannot be sent" }),
    };
    let kind = answer.get("token_type").and_then(Json::as_str).unwrap_or("bearer");
    if !kind.eq_ignore_ascii_case("bearer") {
        return Err(LoginError::Malformed { what: "its token is not a bearer token" });
    }
    let life = answer.get("expires_in").and_then(|life| life.as_u64().or_else(|| life.as_str()?.parse().ok()));
    Ok(Issued {
        access_token: secret("access_token")?.ok_or(LoginError::Malformed { what: "it has no access token" })?,
        refresh_token: secret("refresh_token")?,
        life: life.map(|life| life.min(MOST_LIFE)),
        scopes: answer.get("scope").and_then(Json::as_str).map(super::challenge::words),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_client_says_who_it_is_in_its_own_way() {
        let request = |method| {
            let client = Client { id: "a:b".to_owned(), secret: Some(Secret::new("p w")), method };
            let Request { body: Body::Form(fields), basic, .. } = authenticated("u", &client, Vec::new()) else {
                panic!("it is a form")
            };
            (form(&fields), basic.map(|basic| basic.reveal().to_owned()))
        };
        assert_eq!(request(AuthMethod::None), ("client_id=a%3Ab".to_owned(), None));
        assert_eq!(request(AuthMethod::Post), ("client_id=a%3Ab&client_secret=p+w".to_owned(), None));
        assert_eq!(request(AuthMethod::Basic), (String::new(), Some("a%3Ab:p+w".to_owned())));
    }

    #[test]
    fn an_answer_is_checked() {
        let tokens = issued(&json!({"access_token": "a", "token_type": "BEARER", "expires_in": "60", "scope": "x y"}));
        let scopes = Some(vec!["x".to_owned(), "y".to_owned()]);
        let expected = Issued { access_token: Secret::new("a"), refresh_token: None, life: Some(60), scopes };
        assert_eq!(tokens.unwrap(), expected);
        assert_eq!(issued(&json!({"access_token": "a", "expires_in": u64::MAX})).unwrap().life, Some(MOST_LIFE));
        for odd in [
            json!({}),
            json!({"access_token": ""}),
            json!({"access_token": "a\r\nX-Other: 1"}),
            json!({"access_token": "a".repeat(MOST_TOKEN + 1)}),
            json!({"access_token": "a", "refresh_token": "b c"}),
            json!({"access_token": "a", "token_type": "mac"}),
            json!([]),
        ] {
            assert!(issued(&odd).is_err(), "{odd}");
        }
    }
}
