//! The rate limits of an account, with a provider that sends them and one that does not, and exhausted budgets.
#![expect(clippy::expect_used, reason = "a test may fail where it stands")]

use codex_dialects::ProtocolRelease;
use codex_dialects::eq::{self, Vocabulary};
use codex_dialects::v2::project::{ProjectionOptions, Projector};
use codex_log::{Body, Event, Failure, Outcome, Seq, TurnId};
use codex_protocol::v2::notification::ServerNotification;
use codex_wire::error_info::CodexErrorInfo;
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

/// Clients that do not know the kind of error would not understand the whole message.
#[test]
fn an_exhausted_budget_has_a_kind_for_clients_that_know_it() {
    let info = CodexErrorInfo::SessionBudgetExceeded;
    let failure = Failure { message: "budget of 2 requests exhausted: 2 used".to_owned(), hint: None, info };
    let event = Event { body: Body::TurnEnded(Outcome::Failed(failure)), ..counted(None) };
    let mut messages = Vec::new();
    eq::project(&event, Vocabulary::default(), &mut messages);
    let message = serde_json::to_value(&messages[0]).expect("a message is JSON");
    assert_eq!((&message["type"], &message["codex_error_info"]), (&"error".into(), &"other".into()), "{message}");
    for (release, kind) in [(ProtocolRelease::V077, "other"), (ProtocolRelease::V0166, "sessionBudgetExceeded")] {
        let mut notifications = Vec::new();
        Projector::new("th".to_owned(), release, ProjectionOptions::default()).project(&event, &mut notifications);
        let told = serde_json::to_string(&notifications).expect("notifications are JSON");
        assert_eq!(told.matches(&format!(r#""codexErrorInfo":"{kind}""#)).count(), 2, "the error and the end: {told}");
    }
}
