//! Human-readable errors: one line with the problem and its place, and a hint on a separate line.

use std::borrow::Cow;
use std::process::ExitCode;

use codex_config::{AuthError, ConfigError, ConfigWriteError, HomeError};
use codex_files::OutputError;
use codex_login::LoginError;
use codex_transport::DialError;

use crate::console;
use crate::login;

#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub(crate) struct ErrorWithHint {
    pub(crate) what: String,
    pub(crate) hint: String,
}

/// Prints an error to stderr and returns the exit status.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if is_broken_pipe(error) {
        // The reader of the output has seen enough.
        return ExitCode::SUCCESS;
    }
    say(error);
    ExitCode::FAILURE
}

/// Prints an error to stderr, for a caller with its own exit status.
pub(crate) fn say(error: &anyhow::Error) {
    console::note(format_args!("error: {error:#}"));
    if let Some(hint) = hint(error) {
        console::note(format_args!("hint: {hint}"));
    }
}

pub(crate) fn warn(what: &str) {
    console::note(format_args!("warning: {what}"));
}

/// The prefix of a rate limit error, for programs.
const TOO_MANY: &str = "exceeded retry limit, last status: 429 Too Many Requests: ";

/// A network failure in one line. The details are for verbose output.
pub(crate) fn in_brief(message: &str) -> Cow<'_, str> {
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

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    causes.any(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe)
}

/// A next step for the person, from the first cause that has one.
pub(crate) fn hint(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        if let Some(error) = cause.downcast_ref::<ConfigError>() {
            error.hint()
        } else if let Some(error) = cause.downcast_ref::<HomeError>() {
            error.hint()
        } else if let Some(error) = cause.downcast_ref::<AuthError>() {
            login::hint(error)
        } else if let Some(error) = cause.downcast_ref::<LoginError>() {
            error.hint()
        } else if let Some(error) = cause.downcast_ref::<ConfigWriteError>() {
            error.hint()
        } else if let Some(error) = cause.downcast_ref::<OutputError>() {
            error.hint()
        } else if let Some(ErrorWithHint { hint, .. }) = cause.downcast_ref() {
            Some(hint.clone())
        } else if let Some(DialError::Connect { .. }) = cause.downcast_ref() {
            Some("start a server there, or one in the background with `codex app-server daemon start`".to_owned())
        } else {
            None
        }
    })
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
