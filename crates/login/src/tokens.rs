//! Requesting tokens from an issuer, and revoking them.

use codex_config::{Secret, Tokens};
use serde_json::{Value as Json, json};

use crate::http::{Answer, Body, Request, Transport};
use crate::{Issuer, LoginError};

/// Error codes of a login that can never be renewed again.
const FINAL: &[&str] = &[
    "refresh_token_expired",
    "refresh_token_reused",
    "refresh_token_invalidated",
    "invalid_grant",
    "app_session_terminated",
];

/// The maximum length of an issuer's code that is shown.
const LONGEST_CODE: usize = 64;

/// An authorization code, with the proof that it belongs to this login.
pub(crate) struct Grant {
    pub(crate) code: Secret,
    pub(crate) verifier: Secret,
    pub(crate) redirect_uri: String,
}

/// Exchanges a code for tokens.
pub(crate) async fn exchange(http: &dyn Transport, issuer: &Issuer, grant: &Grant) -> Result<Tokens, LoginError> {
    let fields = vec![
        ("grant_type", "authorization_code".to_owned()),
        ("code", grant.code.reveal().to_owned()),
        ("redirect_uri", grant.redirect_uri.clone()),
        ("client_id", issuer.client_id().to_owned()),
        ("code_verifier", grant.verifier.reveal().to_owned()),
    ];
    let answer = send(http, Request::post(issuer.token_url(), Body::Form(fields))).await?;
    let answer = granted(answer)?;
    let secret = |name: &str| answer.get(name).and_then(Json::as_str).filter(|text| !text.is_empty()).map(Secret::new);
    let access_token = secret("access_token").ok_or(LoginError::Malformed { what: "it has no access token" })?;
    let id_token = secret("id_token").ok_or(LoginError::Malformed { what: "it has no identity token" })?;
    let refresh_token = secret("refresh_token").ok_or(LoginError::Malformed { what: "it has no refresh token" })?;
    let mut tokens =
        Tokens { id_token: Some(id_token), access_token, refresh_token: Some(refresh_token), account_id: None };
    tokens.account_id = tokens.account();
    Ok(tokens)
}

/// Asks for new tokens. Members that the response omits stay unchanged.
pub(crate) async fn renew(http: &dyn Transport, issuer: &Issuer, old: &Tokens) -> Result<Tokens, LoginError> {
    let Some(refresh_token) = &old.refresh_token else { return Err(LoginError::NotRenewable) };
    let body = json!({
        "client_id": issuer.client_id(), "grant_type": "refresh_token", "refresh_token": refresh_token.reveal(),
    });
    let answer = send(http, Request::post(issuer.refresh_url(), Body::Json(body))).await?;
    let answer = granted(answer).map_err(|error| match error {
        LoginError::Status { code: Some(code), .. } if FINAL.contains(&code.as_str()) => LoginError::Ended { code },
        LoginError::Status { status: 401, code } => {
            LoginError::Ended { code: code.unwrap_or_else(|| "status 401".to_owned()) }
        }
        other => other,
    })?;
    let secret = |name: &str| answer.get(name).and_then(Json::as_str).filter(|text| !text.is_empty()).map(Secret::new);
    Ok(Tokens {
        access_token: secret("access_token").ok_or(LoginError::Malformed { what: "it has no access token" })?,
        id_token: secret("id_token").or_else(|| old.id_token.clone()),
        refresh_token: secret("refresh_token").or_else(|| old.refresh_token.clone()),
        account_id: old.account_id.clone(),
    })
}

/// Revokes a login at its issuer.
pub(crate) async fn revoke(http: &dyn Transport, issuer: &Issuer, tokens: &Tokens) -> Result<(), LoginError> {
    let (token, hint) = match &tokens.refresh_token {
        Some(token) => (token, "refresh_token"),
        None => (&tokens.access_token, "access_token"),
    };
    let fields = vec![
        ("token", token.reveal().to_owned()),
        ("token_type_hint", hint.to_owned()),
        ("client_id", issuer.client_id().to_owned()),
    ];
    let answer = send(http, Request::post(issuer.revoke_url(), Body::Form(fields))).await?;
    if answer.is_success() { Ok(()) } else { Err(refused(&answer)) }
}

pub(crate) async fn send(http: &dyn Transport, request: Request) -> Result<Answer, LoginError> {
    http.send(request).await.map_err(|error| LoginError::Connect { host: error.host, source: error.source })
}

/// The content of a successful response.
pub(crate) fn granted(answer: Answer) -> Result<Json, LoginError> {
    if !answer.is_success() {
        return Err(refused(&answer));
    }
    answer.json().ok_or(LoginError::Malformed { what: "it is not JSON" })
}

pub(crate) fn refused(answer: &Answer) -> LoginError {
    LoginError::Status { status: answer.status, code: code(answer) }
}

/// The code of an error, in the form of OAuth or of the API. Nothing else of the response is shown, because it may
/// repeat the request.
pub(crate) fn code(answer: &Answer) -> Option<String> {
    let json = answer.json()?;
    let error = json.get("error").unwrap_or(&json);
    let code = error.as_str().or_else(|| error.get("code")?.as_str())?;
    is_code(code).then(|| code.to_owned())
}

/// Whether a word is a code, and not a text or a secret.
pub(crate) fn is_code(word: &str) -> bool {
    (1..=LONGEST_CODE).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}
