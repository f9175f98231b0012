//! The schedule of renewals.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::DateTime;
use codex_config::{Auth, Claims, Tokens};

/// The maximum age of a login whose token has no expiry.
const USUAL_AGE: Duration = Duration::from_secs(8 * 24 * 60 * 60);

/// The action that tokens need before they are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    /// None: they are new.
    NotNeeded,
    /// They should be renewed, but still work.
    Due,
    /// They have expired.
    Overdue,
}

impl Renewal {
    /// The action that a login needs at a given time: it is renewed after 80 % of its lifetime.
    #[must_use]
    pub fn of(auth: &Auth, tokens: &Tokens, now: SystemTime) -> Self {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let Claims { issued_at, expires_at, .. } = Claims::of(&tokens.access_token);
        let renewed_at = auth.last_refresh.as_deref().and_then(seconds);
        match (expires_at, issued_at.or(renewed_at)) {
            (Some(end), _) if end <= now => Self::Overdue,
            (Some(end), Some(begin)) if begin < end => {
                if now >= begin + (end - begin) / 5 * 4 {
                    Self::Due
                } else {
                    Self::NotNeeded
                }
            }
            (Some(_), _) => Self::NotNeeded,
            (None, Some(begin)) if now >= begin.saturating_add(USUAL_AGE.as_secs()) => Self::Due,
            (None, _) => Self::NotNeeded,
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
    fn check(claims: &str, last_refresh: Option<&str>, now: u64, expected: Renewal) {
        let access_token = Secret::new(format!("e30.{}.s", URL_SAFE_NO_PAD.encode(claims)));
        let tokens = Tokens { id_token: None, access_token, refresh_token: None, account_id: None };
        let auth = Auth { last_refresh: last_refresh.map(str::to_owned), ..Auth::default() };
        assert_eq!(Renewal::of(&auth, &tokens, UNIX_EPOCH + Duration::from_secs(now)), expected, "{claims} at {now}");
    }

    #[test]
    fn a_token_is_renewed_after_four_fifths_of_its_life() {
        let claims = r#"{"iat": 1000, "exp": 2000}"#;
        check(claims, None, 1000, Renewal::NotNeeded);
        check(claims, None, 1799, Renewal::NotNeeded);
        check(claims, None, 1800, Renewal::Due);
        check(claims, None, 1999, Renewal::Due);
        check(claims, None, 2000, Renewal::Overdue);
        check(claims, None, 900, Renewal::NotNeeded);
    }

    #[test]
    fn a_token_without_an_issue_time_starts_at_the_last_renewal() {
        let claims = r#"{"exp": 2000}"#;
        check(claims, Some("1970-01-01T00:16:40Z"), 1799, Renewal::NotNeeded);
        check(claims, Some("1970-01-01T00:16:40Z"), 1800, Renewal::Due);
        check(claims, None, 1999, Renewal::NotNeeded);
        check(claims, Some("yesterday"), 2000, Renewal::Overdue);
    }

    #[test]
    fn a_token_without_claims_is_renewed_after_eight_days() {
        let day = 24 * 60 * 60;
        check("{}", Some("1970-01-01T00:00:00Z"), 8 * day - 1, Renewal::NotNeeded);
        check("{}", Some("1970-01-01T00:00:00Z"), 8 * day, Renewal::Due);
        check("{}", None, 99 * day, Renewal::NotNeeded);
    }
}
