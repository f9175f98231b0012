//! The schedule of renewals.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::DateTime;
use codex_config::{Auth, Claims, Tokens};

/// The maximum age of a login whose token has no expiry.
const USUAL_AGE: Duration = Duration::from_secs(8 * 24 * 60 * 60);

/// The action that tokens need before they are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// None: they are new.
    Not,
    /// They should be renewed, but still work.
    Soon,
    /// They have expired.
    Over,
}

impl Due {
    /// The action that a login needs at a given time: it is renewed after 80 % of its lifetime.
    #[must_use]
    pub fn of(auth: &Auth, tokens: &Tokens, now: SystemTime) -> Self {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let Claims { issued_at, expires_at, .. } = Claims::of(&tokens.access_token);
        let renewed_at = auth.last_refresh.as_deref().and_then(seconds);
        match (expires_at, issued_at.or(renewed_at)) {
            (Some(end), _) if end <= now => Self::Over,
            (Some(end), Some(begin)) if begin < end => {
                if now >= begin + (end - begin) / 5 * 4 {
                    Self::Soon
                } else {
                    Self::Not
                }
            }
            (Some(_), _) => Self::Not,
            (None, Some(begin)) if now >= begin.saturating_add(USUAL_AGE.as_secs()) => Self::Soon,
            (None, _) => Self::Not,
        }
    }
}

fn seconds(time: &str) -> Option<u64> {
    DateTime::parse_from_rfc3339(time).ok()?.timestamp().try_into().ok()
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    use codex_config::Secret;

    use super::*;

    #[track_caller]
    fn check(claims: &str, last_refresh: Option<&str>, now: u64, expected: Due) {
        let access_token = Secret::new(format!("e30.{}.s", URL_SAFE_NO_PAD.encode(claims)));
        let tokens = Tokens { id_token: None, access_token, refresh_token: None, account_id: None };
        let auth = Auth { last_refresh: last_refresh.map(str::to_owned), ..Auth::default() };
        assert_eq!(Due::of(&auth, &tokens, UNIX_EPOCH + Duration::from_secs(now)), expected, "{claims} at {now}");
    }

    #[test]
    fn a_token_is_renewed_after_four_fifths_of_its_life() {
        let claims = r#"{"iat": 1000, "exp": 2000}"#;
        check(claims, None, 1000, Due::Not);
        check(claims, None, 1799, Due::Not);
        check(claims, None, 1800, Due::Soon);
        check(claims, None, 1999, Due::Soon);
        check(claims, None, 2000, Due::Over);
        check(claims, None, 900, Due::Not);
    }

    #[test]
    fn a_token_without_an_issue_time_starts_at_the_last_renewal() {
        let claims = r#"{"exp": 2000}"#;
        check(claims, Some("1970-01-01T00:16:40Z"), 1799, Due::Not);
        check(claims, Some("1970-01-01T00:16:40Z"), 1800, Due::Soon);
        check(claims, None, 1999, Due::Not);
        check(claims, Some("yesterday"), 2000, Due::Over);
    }

    #[test]
    fn a_token_without_claims_is_renewed_after_eight_days() {
        let day = 24 * 60 * 60;
        check("{}", Some("1970-01-01T00:00:00Z"), 8 * day - 1, Due::Not);
        check("{}", Some("1970-01-01T00:00:00Z"), 8 * day, Due::Soon);
        check("{}", None, 99 * day, Due::Not);
    }
}
