//! The app-server over every transport, as seen by clients and by intruders.

#![expect(clippy::expect_used, reason = "a test may fail where it stands")]

mod chaos;
mod client;
mod comings;
mod flood;
mod http_requests;
mod idle;
mod returns;
mod strangers;
mod turns;
mod world;
