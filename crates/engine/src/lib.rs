//! The agent: sessions, turns, tools, and the log that everything else is a projection of.
//!
//! Invariant: no JSON-RPC, no terminal. One task owns one thread's state; others send it messages.
#![cfg_attr(test, allow(clippy::needless_raw_string_hashes, reason = "expect-test writes its snapshots that way"))]

mod beginning;
mod compaction;
mod context;
mod environment;
mod feed;
mod foreign;
pub mod goal;
mod images;
mod journal;
mod login;
mod notify;
mod opening;
pub mod preview;
mod provider;
pub mod review;
mod session;
pub mod skills;
mod thread;
mod turn;
mod work;

pub use codex_model::Model;

pub use beginning::{Beginning, Insisted};
pub use feed::Feed;
pub use provider::{ConnectError, connect};
pub use thread::{
    Closed, FeedStart, OpenQuestions, Place, Recall, Saying, Setup, StartError, Subscription, Thread, TurnStart,
    WayBack,
};
