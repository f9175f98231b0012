//! The rate limits of an account, with a provider that sends them and one that does not.
#![expect(clippy::expect_used, reason = "a test may fail where it stands")]

use codex_dialects::ProtocolRelease;
use codex_dialects::eq::{self, Vocabulary};
use codex_dialects::v2::project::{ProjectionOptions, Projector};
use codex_log::{Body, Event, Seq, TurnId};
use codex_protocol::v2::notification::ServerNotification;
use codex_wire::ids::ThreadId;
use codex_wire::tokens::RateLimitSnapshot;

fn counted(rate_limits: Option<RateLimitSnapshot>) -> Event {
    let body = Body::TokensCounted { info: None, rate_limits: rate_limits.map(Box::new) };
    Event { thread: ThreadId::unknown(), seq: Seq::default(), at_ms: 1000, turn: Some(TurnId::new("t1")), body }
}

/// The limits in the event of the queue, and the methods of the notifications.
fn told(event: &Event, release: ProtocolRelease) -> (String, Vec<&'static str>) {
    let (mut messages, mut notifications) = (Vec::new(), Vec::new());
    eq::project(event, Vocabulary::default(), &mut messages);
    let message = serde_json::to_value(&messages[0]).expect("a message is JSON");
    Projector::new("th".to_owned(), release, ProjectionOptions::default()).project(event, &mut notifications);
    (message["rate_limits"].to_string(), notifications.iter().map(ServerNotification::method).collect())
}

#[test]
fn without_rate_limits_the_event_has_null_and_there_is_no_notification() {
    for release in [ProtocolRelease::V077, ProtocolRelease::V0166] {
        let (limits, methods) = told(&counted(None), release);
        assert_eq!((limits.as_str(), methods), ("null", Vec::new()), "{release:?}");
        let (limits, methods) = told(&counted(Some(RateLimitSnapshot::default())), release);
        assert!(limits.starts_with(r#"{"primary":null"#), "{limits}");
        assert_eq!(methods, ["account/rateLimits/updated"], "{release:?}");
    }
}
