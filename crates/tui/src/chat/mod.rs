//! A chat in the terminal that appends lines, and what both user interfaces need: the connection, child agents, and the
//! thread to open.
//!
//! ```text
//! keys ─▶ editor ─┐                      ┌─ connection ⇄ app-server, in this process, in the background or elsewhere
//!                 ├─▶ session (one task) ┤
//! signals, time ──┘                      └─ view (notifications → text) ─▶ screen
//! ```
//!
//! The program around it starts the server, and implements [`ChatContext`] and [`codex_dialogue::SavedPrompts`].

mod agents;
mod answering;
mod commands;
mod connection;
mod context;
mod error;
mod open_thread;
mod reconnecting;
mod sending;
mod session;
mod tasks;
mod view;

pub(crate) use agents::Agents;
pub(crate) use codex_views::threads::written;
pub use connection::Connection;
pub use context::ChatContext;
pub use error::{ChatError, Refused};
pub use open_thread::ThreadToOpen;
pub(crate) use open_thread::{approvals_name, sandbox_name};
pub(crate) use session::about;
pub use session::{Chat, ChatParts, Ended};
pub(crate) use tasks::{AGENTS, INIT};
pub(crate) use view::command_text;
