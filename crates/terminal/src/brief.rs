//! Failures of the network in one line.

use std::borrow::Cow;

/// The prefix of a rate limit error, for programs.
const TOO_MANY: &str = "exceeded retry limit, last status: 429 Too Many Requests: ";

/// A network failure in one line. The details are for verbose output.
#[must_use]
pub fn in_brief(message: &str) -> Cow<'_, str> {
    if let Some(why) = message.strip_prefix(TOO_MANY) {
        return format!("rate limit reached: {why}").into();
    }
    let told = message.strip_prefix("could not get an answer from ").and_then(|rest| rest.split_once(": "));
    let Some((host, causes)) = told else { return message.into() };
    let lower = causes.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let (host, why) = if says(&["dns error", "failed to lookup address"]) {
        // Without an address the port does not matter.
        (host.rsplit_once(':').map_or(host, |(name, _)| name), "name not found")
    } else if says(&["connection refused"]) {
        (host, "connection refused")
    } else if says(&["network is unreachable", "no route to host"]) {
        (host, "network unreachable")
    } else if says(&["certificate"]) {
        (host, "its certificate is not trusted")
    } else if says(&["timed out", "timeout", "deadline has elapsed"]) {
        (host, "timed out")
    } else if says(&["connection reset", "connection closed", "broken pipe", "unexpected eof", "incomplete message"]) {
        (host, "connection closed")
    } else {
        (host, causes.rsplit(": ").next().unwrap_or(causes))
    };
    format!("cannot reach {host}: {why}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_of_the_network_is_one_line() {
        for (causes, expected) in [
            (
                "a.invalid:443: error sending request: client error (Connect): dns error: error resolving DNS: failed to \
              lookup address information: Name or service not known",
                "cannot reach a.invalid: name not found",
            ),
            (
                "127.0.0.1:9: error sending request: client error (Connect): tcp connect error: Connection refused (os \
              error 111)",
                "cannot reach 127.0.0.1:9: connection refused",
            ),
            ("a:443: error sending request: operation timed out", "cannot reach a:443: timed out"),
            ("a:443: error sending request: something new", "cannot reach a:443: something new"),
        ] {
            assert_eq!(in_brief(&format!("could not get an answer from {causes}")), expected);
        }
        assert_eq!(in_brief("the key is wrong: no"), "the key is wrong: no");
        assert_eq!(in_brief(&format!("{TOO_MANY}slow down")), "rate limit reached: slow down");
    }
}
