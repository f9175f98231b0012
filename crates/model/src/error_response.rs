//! Errors from the responses and events of providers.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::{
    ModelError,
    limits::{full_until, rate_limits},
    retry_delay::{LONGEST_WAIT, retry_after, until, wait_in_message},
};

/// The number of bytes that are read of a response that is no stream.
pub(crate) const READ_LIMIT: usize = 64 * 1024;

/// The number of bytes of it that are shown.
const SHOWN_LIMIT: usize = 2 * 1024;

/// The error in a response with an error status.
pub(crate) fn error_of_response<'h>(
    status: u16,
    header: impl Fn(&str) -> Option<&'h str>,
    body: &str,
    now: SystemTime,
) -> ModelError {
    let body_json = serde_json::from_str::<Value>(body).unwrap_or_default();
    let error = &body_json["error"];
    let message = [&error["message"], error, &body_json["message"], &body_json["detail"]]
        .into_iter()
        .find_map(Value::as_str)
        .unwrap_or(body);
    let message = shown(message, "the provider gave no reason");
    let says = |word: &str| error["code"] == word || error["type"] == word;
    if says("context_length_exceeded") || status == 400 && is_too_long(&message) {
        return ModelError::ContextWindow { message };
    }
    if FATAL_LIMITS.iter().any(|word| says(word)) {
        let limits = rate_limits(&header, now);
        return ModelError::UsageLimit {
            message,
            plan: error["plan_type"].as_str().map(str::to_owned),
            resets_in: resets_in(error, now).or_else(|| full_until(&limits, now)),
            rate_limits: (status == 429 && says("usage_limit_reached")).then(|| Box::new(limits)),
        };
    }
    match status {
        400 => ModelError::BadRequest { message },
        401 | 403 => ModelError::Unauthorized { status, message },
        _ => {
            let asked = header("retry-after").and_then(|value| retry_after(value, now));
            if let Some(resets_in) = asked.filter(|asked| status == 429 && *asked > LONGEST_WAIT) {
                let rate_limits = Some(Box::new(rate_limits(&header, now)));
                return ModelError::UsageLimit { message, plan: None, resets_in: Some(resets_in), rate_limits };
            }
            let after = asked.map(|asked| asked.min(LONGEST_WAIT)).or_else(|| wait_in_message(&message));
            ModelError::Status { status, message, after }
        }
    }
}

/// The error in an event, by its code.
pub(crate) fn error_of_code(code: &str, message: &str) -> ModelError {
    let message = shown(message, "the model failed without a reason");
    match code {
        "context_length_exceeded" => ModelError::ContextWindow { message },
        "invalid_request_error" if is_too_long(&message) => ModelError::ContextWindow { message },
        "invalid_prompt" | "invalid_request_error" => ModelError::BadRequest { message },
        code if FATAL_LIMITS.contains(&code) => {
            ModelError::UsageLimit { message, plan: None, resets_in: None, rate_limits: None }
        }
        code => ModelError::Failed { code: code.to_owned(), after: wait_in_message(&message), message },
    }
}

/// Whether a message says that the conversation is too long. Not every provider has a code for it.
fn is_too_long(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    let words =
        ["prompt is too long", "maximum context length", "exceeds the available context size", "context window"];
    words.iter().any(|words| message.contains(words))
}

/// Codes of limits that do not go away by waiting a little.
const FATAL_LIMITS: [&str; 3] = ["usage_limit_reached", "usage_not_included", "insufficient_quota"];

fn resets_in(error: &Value, now: SystemTime) -> Option<Duration> {
    let from_now = error["resets_in_seconds"].as_u64().map(Duration::from_secs);
    from_now.or_else(|| error["resets_at"].as_i64().map(|at| until(at, now)))
}

/// The provider's message, short enough to show.
fn shown(message: &str, otherwise: &str) -> String {
    let message = message.trim();
    shorten(if message.is_empty() { otherwise } else { message }, SHOWN_LIMIT).to_owned()
}

/// Cuts a text at a character boundary.
pub(crate) fn shorten(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(status: u16, headers: &[(&str, &str)], body: &str, expected: Expect) {
        let header = |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        let error = error_of_response(status, header, body, UNIX_EPOCH + Duration::from_secs(1000));
        expected.assert_eq(&format!("{error}\n{:?} {:?} {:?}", error.info(), error.retry(), error.asked_to_wait()));
    }

    #[test]
    fn bad_request_shows_the_message() {
        check(
            400,
            &[],
            r#"{"error":{"message":"unknown parameter","type":"invalid_request_error"}}"#,
            expect![[r"
                unknown parameter
                Other Never None"]],
        );
    }

    #[test]
    fn other_shapes_of_bodies() {
        check(
            404,
            &[],
            r#"{"detail":"no such model"}"#,
            expect![[r"
                unexpected status 404 Not Found: no such model
                HttpConnectionFailed { http_status_code: Some(404) } Never None"]],
        );
        check(
            599,
            &[],
            r#"{"error":"overloaded"}"#,
            expect![[r"
                unexpected status 599 <unknown status code>: overloaded
                HttpConnectionFailed { http_status_code: Some(599) } Stream { after: None } None"]],
        );
        check(
            502,
            &[],
            " <h1>Bad gateway</h1>\n",
            expect![[r"
                unexpected status 502 Bad Gateway: <h1>Bad gateway</h1>
                HttpConnectionFailed { http_status_code: Some(502) } Stream { after: None } None"]],
        );
    }

    #[test]
    fn empty_body_leaves_no_hole() {
        assert_eq!(error_of_response(400, |_| None, " ", UNIX_EPOCH).to_string(), "the provider gave no reason");
    }

    #[test]
    fn long_bodies_are_cut_between_characters() {
        let error = error_of_response(400, |_| None, &"é".repeat(2000), UNIX_EPOCH);
        assert_eq!(error.to_string().len(), 2048);
        let error = error_of_response(400, |_| None, &format!("x{}", "é".repeat(2000)), UNIX_EPOCH);
        assert_eq!(error.to_string().len(), 2047);
    }

    #[test]
    fn refused_keys() {
        check(
            401,
            &[],
            r#"{"error":{"message":"bad key"}}"#,
            expect![[r"
                not authorized, status 401 Unauthorized: bad key
                Unauthorized Never None"]],
        );
    }

    #[test]
    fn rate_limit_header_wins_over_the_message() {
        let body = r#"{"error":{"message":"Please try again in 1.5s.","code":"rate_limit_exceeded"}}"#;
        check(
            429,
            &[("retry-after", "3")],
            body,
            expect![[r"
                exceeded retry limit, last status: 429 Too Many Requests: Please try again in 1.5s.
                ResponseTooManyFailedAttempts { http_status_code: Some(429) } Stream { after: Some(3s) } Some(3s)"]],
        );
        check(
            429,
            &[],
            body,
            expect![[r"
                exceeded retry limit, last status: 429 Too Many Requests: Please try again in 1.5s.
                ResponseTooManyFailedAttempts { http_status_code: Some(429) } Stream { after: Some(1.5s) } Some(1.5s)"]],
        );
    }

    #[test]
    fn an_exhausted_allowance_has_a_reset_time() {
        check(
            429,
            &[("retry-after", "3")],
            r#"{"error":{"type":"usage_limit_reached","message":"limit","plan_type":"plus","resets_at":8260}}"#,
            expect![[r"
                usage limit reached: limit; it resets in 2 h 1 min
                UsageLimitExceeded AtReset { after: 7260s } None"]],
        );
        check(
            429,
            &[],
            r#"{"error":{"code":"insufficient_quota","message":"out of money"}}"#,
            expect![[r"
                usage limit reached: out of money
                UsageLimitExceeded Never None"]],
        );
    }

    #[test]
    fn a_long_wait_means_that_the_allowance_is_used_up() {
        let body = r#"{"type":"error","error":{"type":"rate_limit_error","message":"too many tokens"}}"#;
        check(
            429,
            &[("retry-after", "3600")],
            body,
            expect![[r"
                usage limit reached: too many tokens; it resets in 1 h
                UsageLimitExceeded AtReset { after: 3600s } None"]],
        );
        check(
            429,
            &[("retry-after", "60")],
            body,
            expect![[r"
                exceeded retry limit, last status: 429 Too Many Requests: too many tokens
                ResponseTooManyFailedAttempts { http_status_code: Some(429) } Stream { after: Some(60s) } Some(60s)"]],
        );
    }

    #[test]
    fn a_used_up_allowance_without_a_time_has_that_of_its_window() {
        check(
            429,
            &[("x-codex-primary-used-percent", "100"), ("x-codex-primary-reset-after-seconds", "1800")],
            r#"{"error":{"type":"usage_limit_reached","message":"limit"}}"#,
            expect![[r"
                usage limit reached: limit; it resets in 30 min
                UsageLimitExceeded AtReset { after: 1800s } None"]],
        );
    }

    #[test]
    fn full_window_is_known_by_its_code() {
        check(
            400,
            &[],
            r#"{"error":{"code":"context_length_exceeded","message":"too long"}}"#,
            expect![[r"
                the conversation does not fit the model's context window: too long
                ContextWindowExceeded Never None"]],
        );
    }

    #[test]
    fn a_full_window_is_recognised_by_messages_of_other_providers() {
        for words in [
            "prompt is too long: 210000 tokens > 200000 maximum",
            "This model's maximum context length is 8192 tokens.",
            "the request exceeds the available context size, try increasing it",
        ] {
            let body = serde_json::json!({"error": {"type": "invalid_request_error", "message": words}}).to_string();
            assert!(
                matches!(error_of_response(400, |_| None, &body, UNIX_EPOCH), ModelError::ContextWindow { .. }),
                "{words}"
            );
        }
    }

    #[test]
    fn failures_within_a_stream() {
        let retry = |code, message| error_of_code(code, message).retry();
        assert_eq!(retry("context_length_exceeded", "x"), crate::Retry::Never);
        assert_eq!(retry("invalid_prompt", "x"), crate::Retry::Never);
        assert_eq!(retry("insufficient_quota", "x"), crate::Retry::Never);
        assert_eq!(retry("server_error", "x"), crate::Retry::Stream { after: None });
        let after = Some(Duration::from_millis(500));
        assert_eq!(retry("rate_limit_exceeded", "try again in 500ms"), crate::Retry::Stream { after });
        assert_eq!(
            error_of_code("", "").to_string(),
            "stream disconnected before completion: the model failed without a reason"
        );
    }
}
