//! The agent: sessions, turns, tools, and the log that everything else is a projection of.
//!
//! Invariant: no JSON-RPC, no terminal. One task owns one thread's state; others send it messages.
#![cfg_attr(test, allow(clippy::needless_raw_string_hashes, reason = "expect-test writes its snapshots that way"))]

mod beginning;
mod command;
mod compaction;
mod context;
mod environment;
mod foreign;
mod goal;
mod images;
mod journal;
mod login;
mod notify;
pub mod one_off;
mod open_error;
mod opening;
pub mod own_git;
mod patching;
pub mod preview;
mod provider;
pub mod review;
pub mod rules;
mod session;
mod setup;
pub mod skills;
mod tools;
mod turn;
mod work;

pub use codex_model::Model;

pub use beginning::{Beginning, Insisted};
pub use codex_config::project_doc::repository_root;
pub use codex_patch::{PatchError, apply_patch};
pub use images::{check_image, check_pictures};
pub use provider::{ConnectError, connect};
pub use setup::{Recall, Setup};
