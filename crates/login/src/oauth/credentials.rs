//! The login to a server as it is stored: the members that other releases write, and those that a renewal needs.

use codex_config::Secret;
use serde_json::{Map, Value as Json};

use super::client::{AuthMethod, Client};
use super::token_endpoint::Issued;
use crate::Renewal;

/// The last seconds of a token in which it is renewed, if it is not known when it began.
const LAST_SECONDS: u64 = 60;

/// The login to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Credentials {
    pub(super) server_name: String,
    pub(super) server_url: String,
    pub(super) client: Client,
    pub(super) access_token: Secret,
    pub(super) refresh_token: Option<Secret>,
    /// When it was issued and when it ends, in seconds since 1970.
    pub(super) issued_at: Option<u64>,
    pub(super) expires_at: Option<u64>,
    pub(super) scopes: Vec<String>,
    pub(super) resource: Option<String>,
    /// The place that renews it; it is looked for if another release has stored the login.
    pub(super) token_endpoint: Option<String>,
    pub(super) revocation_endpoint: Option<String>,
}

impl Credentials {
    /// Reads an entry; nothing if it is none.
    pub(super) fn of(entry: &Json) -> Option<Self> {
        let text = |name: &str| entry.get(name).and_then(Json::as_str).filter(|text| !text.is_empty());
        let owned = |name: &str| text(name).map(str::to_owned);
        let secret = |name: &str| text(name).map(Secret::new);
        let client_secret = secret("client_secret");
        let usual = if client_secret.is_some() { AuthMethod::Basic } else { AuthMethod::None };
        let method = text("token_endpoint_auth_method").and_then(AuthMethod::by_name).unwrap_or(usual);
        let scopes = entry.get("scopes").and_then(Json::as_array).into_iter().flatten();
        Some(Self {
            server_name: owned("server_name")?,
            server_url: owned("server_url")?,
            client: Client { id: owned("client_id")?, secret: client_secret, method },
            access_token: secret("access_token")?,
            refresh_token: secret("refresh_token"),
            issued_at: entry.get("issued_at").and_then(Json::as_u64).map(|time| time / 1000),
            expires_at: entry.get("expires_at").and_then(Json::as_u64).map(|time| time / 1000),
            scopes: scopes.filter_map(Json::as_str).map(str::to_owned).collect(),
            resource: owned("resource"),
            token_endpoint: owned("token_endpoint"),
            revocation_endpoint: owned("revocation_endpoint"),
        })
    }

    /// The entry. Times are in milliseconds, as other releases write them.
    pub(super) fn entry(&self) -> Json {
        let mut entry = Map::new();
        let mut put = |name: &str, value: Option<Json>| {
            entry.extend(value.map(|value| (name.to_owned(), value)));
        };
        let text = |secret: &Option<Secret>| secret.as_ref().map(|secret| secret.reveal().into());
        let millis = |time: Option<u64>| time.map(|time| time.saturating_mul(1000).into());
        put("server_name", Some(self.server_name.clone().into()));
        put("server_url", Some(self.server_url.clone().into()));
        put("client_id", Some(self.client.id.clone().into()));
        put("client_secret", text(&self.client.secret));
        put("token_endpoint_auth_method", Some(self.client.method.name().into()));
        put("access_token", Some(self.access_token.reveal().into()));
        put("issued_at", millis(self.issued_at));
        put("expires_at", millis(self.expires_at));
        put("refresh_token", text(&self.refresh_token));
        put("scopes", Some(self.scopes.clone().into()));
        put("resource", self.resource.clone().map(Json::from));
        put("token_endpoint", self.token_endpoint.clone().map(Json::from));
        put("revocation_endpoint", self.revocation_endpoint.clone().map(Json::from));
        Json::Object(entry)
    }

    /// Puts new tokens in place of the old ones. A refresh token that was not replaced stays.
    pub(super) fn renew(&mut self, issued: Issued, now: u64) {
        self.access_token = issued.access_token;
        self.refresh_token = issued.refresh_token.or(self.refresh_token.take());
        self.issued_at = Some(now);
        self.expires_at = issued.life.map(|life| now.saturating_add(life));
        self.scopes = issued.scopes.unwrap_or(std::mem::take(&mut self.scopes));
    }

    /// The action that it needs: it is renewed after 80 % of its life.
    pub(super) fn due(&self, now: u64) -> Renewal {
        let Some(end) = self.expires_at else { return Renewal::NotNeeded };
        let soon = match self.issued_at.filter(|begin| *begin < end) {
            Some(begin) => begin + (end - begin) / 5 * 4,
            None => end.saturating_sub(LAST_SECONDS),
        };
        match now {
            now if now >= end => Renewal::Overdue,
            now if now >= soon => Renewal::Due,
            _ => Renewal::NotNeeded,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry() -> Json {
        json!({
            "server_name": "s", "server_url": "https://s.example/mcp", "client_id": "c", "access_token": "a",
            "expires_at": 2_000_000, "refresh_token": "r", "scopes": ["x"],
        })
    }

    #[test]
    fn an_entry_of_another_release_is_read_and_written() {
        let credentials = Credentials::of(&entry()).unwrap();
        assert_eq!((credentials.expires_at, credentials.client.method), (Some(2000), AuthMethod::None));
        assert_eq!(Credentials::of(&credentials.entry()), Some(credentials));
        for missing in ["server_name", "server_url", "client_id", "access_token"] {
            let mut entry = entry();
            entry.as_object_mut().unwrap().remove(missing);
            assert_eq!(Credentials::of(&entry), None, "{missing}");
        }
        assert_eq!(Credentials::of(&json!("x")), None);
    }

    #[test]
    fn a_token_is_renewed_after_four_fifths_of_its_life() {
        let mut credentials = Credentials::of(&entry()).unwrap();
        let due = |credentials: &Credentials, times: [u64; 4]| times.map(|now| credentials.due(now));
        assert_eq!(
            due(&credentials, [0, 1939, 1940, 2000]),
            [Renewal::NotNeeded, Renewal::NotNeeded, Renewal::Due, Renewal::Overdue]
        );
        credentials.issued_at = Some(1000);
        assert_eq!(
            due(&credentials, [1000, 1799, 1800, 2000]),
            [Renewal::NotNeeded, Renewal::NotNeeded, Renewal::Due, Renewal::Overdue]
        );
        credentials.expires_at = None;
        assert_eq!(due(&credentials, [0, 1, 2, u64::MAX]), [Renewal::NotNeeded; 4]);
    }

    #[test]
    fn new_tokens_keep_what_was_not_replaced() {
        let mut credentials = Credentials::of(&entry()).unwrap();
        let access_token = Secret::new("b");
        credentials.renew(Issued { access_token, refresh_token: None, life: Some(10), scopes: None }, 5);
        assert_eq!(credentials.refresh_token, Some(Secret::new("r")));
        assert_eq!((credentials.issued_at, credentials.expires_at, credentials.scopes.len()), (Some(5), Some(15), 1));
        assert!(!format!("{credentials:?}").contains("\"b\""));
    }
}
