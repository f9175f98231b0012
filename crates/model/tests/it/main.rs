//! Models asked from outside: over real HTTP against the fake model, and from scripts on a paused clock.

#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes its snapshots with them")]
#![expect(clippy::unwrap_used, reason = "the lint takes only the tests themselves for tests, not what they call")]

mod answers;
mod asking;
mod compressed;
mod credentials;
mod failures;
mod http2;
mod network;
mod requests;
mod scripted;
mod sockets;
mod stored_answers;
mod unreadable;
