//! The rate limits of the account, from the headers of a response.

use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::DateTime;
use codex_wire::tokens::{CreditsSnapshot, RateLimitSnapshot, RateLimitWindow};

use crate::retry_delay::{parse_duration, until};

/// Reads the rate-limit headers. Missing and unreadable ones stay empty.
pub(crate) fn rate_limits<'h>(header: impl Fn(&str) -> Option<&'h str>, now: SystemTime) -> RateLimitSnapshot {
    let own = RateLimitSnapshot {
        primary: window(&header, "primary", now),
        secondary: window(&header, "secondary", now),
        credits: credits(&header),
        plan_type: None,
    };
    if own != RateLimitSnapshot::default() {
        return own;
    }
    RateLimitSnapshot {
        primary: counted(&header, "requests", now),
        secondary: counted(&header, "tokens", now),
        ..RateLimitSnapshot::default()
    }
}

/// The time when an exhausted allowance is restored: with the last of the full windows.
pub(crate) fn full_until(limits: &RateLimitSnapshot, now: SystemTime) -> Option<Duration> {
    let full = limits.primary.iter().chain(&limits.secondary).filter(|window| window.used_percent >= 100.0);
    full.filter_map(|window| window.resets_at).max().map(|at| until(at, now))
}

/// The time after a duration, in Unix seconds. Newer clients know only the time, and older ones only the duration.
fn after(seconds: Option<i64>, now: SystemTime) -> Option<i64> {
    let now = i64::try_from(now.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok()?;
    now.checked_add(seconds?)
}

/// The headers of other providers for one kind of limit: the maximum, the rest, and the time of the reset.
fn counted<'h>(header: &impl Fn(&str) -> Option<&'h str>, what: &str, now: SystemTime) -> Option<RateLimitWindow> {
    let anthropic = |name: &str| header(&format!("anthropic-ratelimit-{what}-{name}"));
    let others = |name: &str| header(&format!("x-ratelimit-{name}-{what}"));
    let read = |name: &str| anthropic(name).or_else(|| others(name));
    let (limit, left) = (number::<f64>(read("limit"))?, number::<f64>(read("remaining"))?);
    let used_percent = (100.0 * (limit - left) / limit).clamp(0.0, 100.0);
    let reset = read("reset").map(str::trim).unwrap_or_default();
    let resets_in_seconds = parse_duration(reset).and_then(|span| i64::try_from(span.as_secs()).ok());
    let resets_at = DateTime::parse_from_rfc3339(reset).ok().map(|time| time.timestamp());
    Some(RateLimitWindow {
        used_percent: if used_percent.is_finite() { used_percent } else { return None },
        window_minutes: None,
        resets_at: resets_at.or_else(|| after(resets_in_seconds, now)),
        resets_in_seconds,
    })
}

fn window<'h>(header: &impl Fn(&str) -> Option<&'h str>, name: &str, now: SystemTime) -> Option<RateLimitWindow> {
    let read = |what: &str| header(&format!("x-codex-{name}-{what}"));
    let used_percent = number::<f64>(read("used-percent")).filter(|used| used.is_finite())?;
    let resets_in_seconds = number(read("reset-after-seconds").or_else(|| read("resets-in-seconds")));
    Some(RateLimitWindow {
        used_percent,
        window_minutes: number(read("window-minutes")),
        resets_at: number(read("reset-at")).or_else(|| after(resets_in_seconds, now)),
        resets_in_seconds,
    })
}

fn credits<'h>(header: &impl Fn(&str) -> Option<&'h str>) -> Option<CreditsSnapshot> {
    let balance = header("x-codex-credits-balance").map(str::trim).filter(|text| !text.is_empty());
    Some(CreditsSnapshot {
        has_credits: truth(header("x-codex-credits-has-credits"))?,
        unlimited: truth(header("x-codex-credits-unlimited"))?,
        balance: balance.map(str::to_owned),
    })
}

fn number<T: FromStr>(text: Option<&str>) -> Option<T> {
    text?.trim().parse().ok()
}

fn truth(text: Option<&str>) -> Option<bool> {
    match text?.trim().to_ascii_lowercase().as_str() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn now() -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1000)
    }

    #[track_caller]
    fn check(headers: &str, expected: Expect) {
        let headers = headers.split_whitespace().filter_map(|pair| pair.split_once('=')).collect::<Vec<_>>();
        let header = |name: &str| {
            let name = name.strip_prefix("x-codex-")?;
            headers.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
        };
        expected.assert_eq(&serde_json::to_string(&rate_limits(header, now())).unwrap());
    }

    #[test]
    fn reads_windows_and_credits() {
        check(
            "primary-used-percent=12.5 primary-window-minutes=300 primary-reset-at=1700000000 \
             secondary-used-percent=3 secondary-window-minutes=10080 \
             credits-has-credits=true credits-unlimited=False credits-balance=9.99",
            expect![[
                r#"{"primary":{"used_percent":12.5,"window_minutes":300,"resets_at":1700000000},"secondary":{"used_percent":3.0,"window_minutes":10080,"resets_at":null},"credits":{"has_credits":true,"unlimited":false,"balance":"9.99"},"plan_type":null}"#
            ]],
        );
    }

    #[test]
    fn reads_older_spellings() {
        check(
            "primary-used-percent=1 primary-reset-after-seconds=60 \
             secondary-used-percent=2 secondary-resets-in-seconds=90",
            expect![[
                r#"{"primary":{"used_percent":1.0,"window_minutes":null,"resets_at":1060,"resets_in_seconds":60},"secondary":{"used_percent":2.0,"window_minutes":null,"resets_at":1090,"resets_in_seconds":90},"credits":null,"plan_type":null}"#
            ]],
        );
    }

    #[track_caller]
    fn check_others(headers: &[(&'static str, &'static str)], expected: Expect) {
        let header = |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        expected.assert_eq(&serde_json::to_string(&rate_limits(header, now())).unwrap());
    }

    #[test]
    fn reads_the_headers_of_other_providers() {
        check_others(
            &[
                ("x-ratelimit-limit-requests", "100"),
                ("x-ratelimit-remaining-requests", "75"),
                ("x-ratelimit-reset-requests", "6m0s"),
                ("x-ratelimit-limit-tokens", "1000"),
                ("x-ratelimit-remaining-tokens", "0"),
                ("x-ratelimit-reset-tokens", "1.5s"),
            ],
            expect![[
                r#"{"primary":{"used_percent":25.0,"window_minutes":null,"resets_at":1360,"resets_in_seconds":360},"secondary":{"used_percent":100.0,"window_minutes":null,"resets_at":1001,"resets_in_seconds":1},"credits":null,"plan_type":null}"#
            ]],
        );
        check_others(
            &[
                ("anthropic-ratelimit-requests-limit", "50"),
                ("anthropic-ratelimit-requests-remaining", "40"),
                ("anthropic-ratelimit-requests-reset", "2023-11-14T22:13:20Z"),
                ("anthropic-ratelimit-tokens-limit", "0"),
                ("anthropic-ratelimit-tokens-remaining", "0"),
            ],
            expect![[
                r#"{"primary":{"used_percent":20.0,"window_minutes":null,"resets_at":1700000000},"secondary":null,"credits":null,"plan_type":null}"#
            ]],
        );
    }

    #[test]
    fn the_last_full_window_determines_the_reset_time() {
        let window = |used_percent, resets_at| {
            Some(RateLimitWindow { used_percent, window_minutes: None, resets_at, resets_in_seconds: None })
        };
        let seconds = |primary, secondary| {
            let limits = RateLimitSnapshot { primary, secondary, ..RateLimitSnapshot::default() };
            full_until(&limits, now()).map(|span| span.as_secs())
        };
        assert_eq!(seconds(window(100.0, Some(1500)), window(100.0, Some(9000))), Some(8000));
        assert_eq!(seconds(window(100.0, Some(1500)), window(99.0, Some(9000))), Some(500));
        assert_eq!(seconds(window(100.0, Some(10)), None), Some(0));
        assert_eq!(seconds(window(100.0, None), window(3.0, Some(9000))), None);
    }

    #[test]
    fn unreadable_headers_leave_it_empty() {
        check(
            "primary-used-percent=NaN secondary-used-percent=lots credits-has-credits=true",
            expect![[r#"{"primary":null,"secondary":null,"credits":null,"plan_type":null}"#]],
        );
    }
}
