//! Keys in messages of providers. Some providers repeat the key of a request, and errors are shown and logged.

use serde::de::Error as _;

use crate::{Authorization, ModelError, Provider, Secret};

/// Replaces a key.
const HIDDEN: &str = "[key]";

/// The minimum length of a key that is searched for; anything shorter would match by chance.
const SHORTEST: usize = 8;

/// Parts of the names of headers and parameters that contain keys.
const NAMES: [&str; 5] = ["key", "token", "auth", "secret", "cookie"];

/// The keys of one request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Secrets(Vec<Secret>);

impl Secrets {
    /// The keys in a request to this provider.
    pub(crate) fn of(provider: &Provider, used: &Authorization) -> Self {
        let is_key = |name: &str| NAMES.iter().any(|part| name.to_ascii_lowercase().contains(part));
        let configured = provider.headers.iter().chain(&provider.query).filter(|(name, _)| is_key(name));
        // A key may follow a word such as `Bearer`.
        let configured = configured.filter_map(|(_, value)| value.split_whitespace().next_back());
        let keys = used.bearer.iter().map(Secret::expose).chain(configured);
        Self(keys.filter(|key| key.len() >= SHORTEST).map(Secret::from).collect())
    }

    /// A text without the keys.
    pub(crate) fn remove(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for key in self.0.iter().map(Secret::expose) {
            text = text.replace(key, HIDDEN);
            // A text that was cut may end within a key.
            let end = text.trim_end_matches('"');
            let cut = (SHORTEST..key.len())
                .rev()
                .find(|&length| key.is_char_boundary(length) && end.ends_with(&key[..length]));
            if let Some(length) = cut {
                let begin = end.len() - length;
                text.replace_range(begin..begin + length, HIDDEN);
            }
        }
        text
    }
}

impl ModelError {
    /// The same error, without keys in its text or that of its cause.
    pub(crate) fn without(mut self, secrets: &Secrets) -> Self {
        match &mut self {
            Self::Status { message, .. }
            | Self::Unauthorized { message, .. }
            | Self::BadRequest { message }
            | Self::UsageLimit { message, .. }
            | Self::ContextWindow { message }
            | Self::Incomplete { reason: message } => *message = secrets.remove(message),
            Self::Failed { code, message, .. } => (*code, *message) = (secrets.remove(code), secrets.remove(message)),
            Self::Malformed { event, source } => {
                *event = secrets.remove(event);
                // The cause may quote a value of the event.
                let cause = source.to_string();
                let redacted = secrets.remove(&cause);
                if redacted != cause {
                    *source = serde_json::Error::custom(redacted);
                }
            }
            // These contain no text of a provider.
            Self::Unavailable { .. }
            | Self::ScriptExhausted
            | Self::Url { .. }
            | Self::Header { .. }
            | Self::Tls { .. }
            | Self::Connect { .. }
            | Self::Disconnected { .. }
            | Self::Idle { .. }
            | Self::Stream(_) => {}
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets() -> Secrets {
        let mut provider = Provider::new("mock", "http://h/v1");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        provider.headers = vec![pair("Authorization", "Bearer header-key"), pair("x-team", "team-of-blue")];
        provider.query = vec![pair("api_key", "query-key"), pair("api-version", "2026-01-01"), pair("token", "short")];
        Secrets::of(&provider, &Authorization::bearer("sk-12345678"))
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(secrets().remove(text), expected);
    }

    #[test]
    fn keys_are_removed_wherever_they_were_sent() {
        check("sk-12345678, query-key and header-key", "[key], [key] and [key]");
        check("Bearer sk-12345678sk-12345678", "Bearer [key][key]");
    }

    #[test]
    fn other_values_stay() {
        check("team-of-blue, 2026-01-01, short, Bearer", "team-of-blue, 2026-01-01, short, Bearer");
        check("sk-1234 is short", "sk-1234 is short");
    }

    #[test]
    fn a_key_at_the_end_of_a_cut_text_is_removed() {
        check("the key sk-123456", "the key [key]");
        check("\"{oops sk-1234567\"", "\"{oops [key]\"");
    }

    #[test]
    fn the_cause_of_an_error_shows_no_key() {
        let source = serde_json::from_str::<u32>(r#""sk-12345678""#).unwrap_err();
        assert!(source.to_string().contains("sk-12345678"));
        let error = ModelError::Malformed { event: "\"sk-12345678\"".to_owned(), source }.without(&secrets());
        assert!(!format!("{error} {error:?}").contains("sk-12345678"), "{error:?}");
        assert!(format!("{error:?}").contains("[key]"), "{error:?}");
    }
}
