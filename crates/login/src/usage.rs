//! The rate limits of an account, queried from `ChatGPT`.

use codex_config::LoginConfig;
use codex_wire::tokens::{CreditsSnapshot, RateLimitSnapshot, RateLimitWindow};
use serde_json::Value as Json;

use crate::http::{Body, Request};
use crate::tokens::{granted, send};
use crate::{Accounts, LoginError};

impl Accounts {
    /// Queries the limits of the account that is logged in with `ChatGPT`.
    pub async fn limits(&self, login: &LoginConfig) -> Result<RateLimitSnapshot, LoginError> {
        let mut tokens = self.tokens(None).await?;
        for is_last in [false, true] {
            let request = Request {
                url: login.usage_url(),
                body: Body::None,
                bearer: Some(tokens.access_token.clone()),
                basic: None,
                account: tokens.account(),
            };
            let answer = send(self.http(), request).await?;
            if answer.status == 401 && !is_last {
                tokens = self.tokens(Some(&tokens.access_token)).await?;
                continue;
            }
            return granted(answer).map(|usage| snapshot(&usage));
        }
        Err(LoginError::NotRenewable)
    }
}

fn snapshot(usage: &Json) -> RateLimitSnapshot {
    let limit = usage.get("rate_limit");
    let window = |name: &str| limit.and_then(|limit| limit.get(name)).and_then(window);
    RateLimitSnapshot {
        primary: window("primary_window"),
        secondary: window("secondary_window"),
        credits: usage.get("credits").and_then(credits),
        plan_type: usage.get("plan_type").and_then(|plan| serde_json::from_value(plan.clone()).ok()),
    }
}

fn window(window: &Json) -> Option<RateLimitWindow> {
    Some(RateLimitWindow {
        used_percent: window.get("used_percent")?.as_f64()?,
        window_minutes: window.get("limit_window_seconds").and_then(Json::as_i64).map(|seconds| (seconds + 59) / 60),
        resets_at: window.get("reset_at").and_then(Json::as_i64),
        resets_in_seconds: None,
    })
}

fn credits(credits: &Json) -> Option<CreditsSnapshot> {
    let balance = credits.get("balance");
    Some(CreditsSnapshot {
        has_credits: credits.get("has_credits")?.as_bool()?,
        unlimited: credits.get("unlimited")?.as_bool()?,
        balance: balance
            .and_then(|balance| balance.as_str().map(str::to_owned).or_else(|| Some(balance.as_f64()?.to_string()))),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn usage_becomes_limits() {
        let usage = json!({
            "plan_type": "pro",
            "rate_limit": {
                "allowed": true, "limit_reached": false,
                "primary_window": {"used_percent": 42, "limit_window_seconds": 18000, "reset_at": 1_800_000_000},
                "secondary_window": {"used_percent": 5, "limit_window_seconds": 604_800, "reset_at": 1_800_500_000},
            },
            "credits": {"has_credits": true, "unlimited": false, "balance": "9.5"},
        });
        let snapshot = serde_json::to_value(snapshot(&usage)).unwrap();
        assert_eq!(
            snapshot,
            json!({
                "primary": {"used_percent": 42.0, "window_minutes": 300, "resets_at": 1_800_000_000},
                "secondary": {"used_percent": 5.0, "window_minutes": 10080, "resets_at": 1_800_500_000},
                "credits": {"has_credits": true, "unlimited": false, "balance": "9.5"},
                "plan_type": "pro",
            })
        );
    }
}
