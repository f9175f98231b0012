//! The time that a provider asks clients to wait.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The longest delay that a provider can ask for.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Reads a `Retry-After` header: seconds, or a date. A delay that is longer than [`LONGEST_WAIT`] means that the
/// allowance is exhausted.
pub(crate) fn retry_after(header: &str, now: SystemTime) -> Option<Duration> {
    let header = header.trim();
    if let Ok(seconds) = header.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = chrono::DateTime::parse_from_rfc2822(header).ok()?.timestamp();
    Some(until(date, now))
}

/// Finds the wait in a message such as `Please try again in 1.5s.` or `try again in 6m0s`.
pub(crate) fn wait_in_message(message: &str) -> Option<Duration> {
    const PHRASE: &str = "try again in ";
    // ASCII lower case keeps byte offsets.
    let start = message.to_ascii_lowercase().find(PHRASE)? + PHRASE.len();
    parse_duration(message.get(start..)?).map(|wait| wait.min(LONGEST_WAIT))
}

/// The duration at the beginning of a text, such as `6m0s`.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let (mut rest, mut span) = (text, None);
    while let Some((part, after)) = parse_part(rest) {
        span = Some(span.unwrap_or(Duration::ZERO).saturating_add(part));
        rest = after;
    }
    span
}

/// Parses one number with its unit, and returns the rest.
fn parse_part(text: &str) -> Option<(Duration, &str)> {
    let text = text.trim_start();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at(digits);
    let rest = rest.trim_start();
    let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(letters);
    let seconds = match unit.to_ascii_lowercase().as_str() {
        "ms" | "millisecond" | "milliseconds" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        _ => return None,
    };
    let span = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()?;
    Some((span, rest))
}

/// The time from now to a Unix time; nothing if it is past.
pub(crate) fn until(unix_seconds: i64, now: SystemTime) -> Duration {
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    Duration::from_secs(u64::try_from(unix_seconds).unwrap_or(0)).saturating_sub(now)
}

/// Formats a duration with its two largest units, such as `2 h 5 min`.
pub(crate) fn format_duration(span: Duration) -> String {
    let seconds = span.as_secs();
    let (large, small) = match seconds {
        86_400.. => ((seconds / 86_400, "d"), (seconds % 86_400 / 3600, "h")),
        3600.. => ((seconds / 3600, "h"), (seconds % 3600 / 60, "min")),
        60.. => ((seconds / 60, "min"), (seconds % 60, "s")),
        _ => ((seconds, "s"), (0, "")),
    };
    if small.0 == 0 {
        return format!("{} {}", large.0, large.1);
    }
    format!("{} {} {} {}", large.0, large.1, small.0, small.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_message(message: &str, expected_ms: Option<u64>) {
        assert_eq!(wait_in_message(message), expected_ms.map(Duration::from_millis), "{message}");
    }

    #[test]
    fn reads_the_wait_of_a_message() {
        check_message("Rate limit reached. Please try again in 1.5s. Visit …", Some(1500));
        check_message("Please try again in 500ms.", Some(500));
        check_message("Try Again In 2 seconds", Some(2000));
        check_message("try again in 0m1.25s", Some(1250));
        check_message("é try again in 6m0s", Some(60_000));
        check_message("try again in a while", None);
        check_message("try again in 5 moons", None);
        check_message("try again in 1.2.3s", None);
        check_message("try again in ", None);
        check_message("later", None);
    }

    #[track_caller]
    fn check_header(header: &str, expected_ms: Option<u64>) {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_770);
        assert_eq!(retry_after(header, now), expected_ms.map(Duration::from_millis), "{header}");
    }

    #[test]
    fn reads_a_retry_after_header() {
        check_header("2", Some(2000));
        check_header(" 0.5 ", Some(500));
        check_header("86400", Some(86_400_000));
        check_header("Sun, 06 Nov 1994 08:49:37 GMT", Some(7000));
        check_header("Sun, 06 Nov 1994 08:49:00 GMT", Some(0));
        check_header("-3", None);
        check_header("NaN", None);
        check_header("soon", None);
    }

    #[test]
    fn spells_two_units() {
        let spelled = [0, 59, 60, 61, 3600, 3661, 90_000, 86_400].map(|s| format_duration(Duration::from_secs(s)));
        assert_eq!(spelled, ["0 s", "59 s", "1 min", "1 min 1 s", "1 h", "1 h 1 min", "1 d 1 h", "1 d"]);
    }
}
