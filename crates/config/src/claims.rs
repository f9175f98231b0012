//! The claims of a token: its owner and its expiry.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value as Json;

use crate::Secret;

/// The members of a token that say what the user pays for, and who it is.
const OPENAI_CLAIMS: &str = "https://api.openai.com/auth";
const PROFILE_CLAIMS: &str = "https://api.openai.com/profile";

/// The claims of a token. The signature is not checked: they only tell what to show to the owner, which workspace to
/// name, and when to ask for another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claims {
    /// The user's address.
    pub email: Option<String>,
    /// The subscription, such as `plus`.
    pub plan: Option<String>,
    /// The workspace.
    pub account_id: Option<String>,
    /// Its origin.
    pub issuer: Option<String>,
    /// For which client it was made.
    pub audience: Option<String>,
    /// When it was made, in seconds since 1970.
    pub issued_at: Option<u64>,
    /// When it ends.
    pub expires_at: Option<u64>,
}

impl Claims {
    /// The claims of a token; none where it is not one that says anything.
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
    fn tokens_say_whose_they_are_and_how_long() {
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
