//! The claims of a token: its owner and its expiry.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value as Json;

use crate::Secret;

/// The claims with the subscription and the user.
const OPENAI_CLAIMS: &str = "https://api.openai.com/auth";
const PROFILE_CLAIMS: &str = "https://api.openai.com/profile";

/// The claims of a token. The signature is not checked: they only determine what is shown to the user, which workspace
/// is named, and when the token is renewed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claims {
    /// The user's email address.
    pub email: Option<String>,
    /// The subscription, such as `plus`.
    pub plan: Option<String>,
    /// The workspace.
    pub account_id: Option<String>,
    /// The issuer.
    pub issuer: Option<String>,
    /// The client that it was issued for.
    pub audience: Option<String>,
    /// The time of issue, in seconds of Unix time.
    pub issued_at: Option<u64>,
    /// The expiry time, in seconds of Unix time.
    pub expires_at: Option<u64>,
}

impl Claims {
    /// The claims of a token; `None` if it has none.
    #[must_use]
    pub fn of(token: &Secret) -> Self {
        let claims = decode(token.reveal()).unwrap_or_default();
        let member = |group: &str, name: &str| Some(claims.get(group)?.get(name)?.as_str()?.to_owned());
        let email = claims.get("email").and_then(Json::as_str).map(str::to_owned);
        let audience = claims.get("aud");
        let audience = audience.and_then(Json::as_array).and_then(|all| all.first()).or(audience);
        Self {
            email: email.or_else(|| member(PROFILE_CLAIMS, "email")),
            plan: member(OPENAI_CLAIMS, "chatgpt_plan_type"),
            account_id: member(OPENAI_CLAIMS, "chatgpt_account_id"),
            issuer: claims.get("iss").and_then(Json::as_str).map(str::to_owned),
            audience: audience.and_then(Json::as_str).map(str::to_owned),
            issued_at: claims.get("iat").and_then(Json::as_u64),
            expires_at: claims.get("exp").and_then(Json::as_u64),
        }
    }
}

fn decode(token: &str) -> Option<Json> {
    let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?.trim_end_matches('=')).ok()?;
    serde_json::from_slice(&payload).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_have_the_owner_and_the_expiry() {
        let payload = r#"{"iat":1,"exp":9,"iss":"i","aud":["c"],"https://api.openai.com/profile":{"email":"a@b.c"},
            "https://api.openai.com/auth":{"chatgpt_account_id":"acct","chatgpt_plan_type":"pro"}}"#;
        let claims = Claims::of(&Secret::new(format!("e30.{}.sig", URL_SAFE_NO_PAD.encode(payload))));
        let text = |text: &str| Some(text.to_owned());
        let expected = Claims {
            email: text("a@b.c"),
            plan: text("pro"),
            account_id: text("acct"),
            issuer: text("i"),
            audience: text("c"),
            issued_at: Some(1),
            expires_at: Some(9),
        };
        assert_eq!(claims, expected);
        for broken in ["", "a.b", "a.!!.c", "a.bnVsbA.c"] {
            assert_eq!(Claims::of(&Secret::new(broken)), Claims::default());
        }
    }
}
