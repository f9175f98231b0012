//! A chat in the terminal.
//!
//! ```text
//! keys ─▶ editor ─┐                      ┌─ connection ⇄ app-server, in this process, in the background or elsewhere
//!                 ├─▶ session (one task) ┤
//! signals, time ──┘                      └─ view (notifications → text) ─▶ screen
//! ```
//!
//! The program around it starts the server, and implements [`ChatContext`] and [`SavedPrompts`].

mod agents;
mod answering;
mod commands;
mod connection;
mod context;
mod dialogue;
mod error;
mod history;
pub mod keys;
mod open_thread;
pub mod screen;
mod session;
mod tasks;
mod view;

pub(crate) use agents::Agents;
pub use connection::Connection;
pub use context::ChatContext;
pub use dialogue::{Dialogue, ask};
pub use error::{ChatError, Refused};
pub use history::{History, SavedPrompts};
pub use open_thread::ThreadToOpen;
pub(crate) use open_thread::{sandbox_name, written};
pub(crate) use session::about;
pub use session::{Chat, ChatEnd, ChatParts, Ended, StopSignal};
pub(crate) use tasks::{AGENTS, INIT};
pub(crate) use view::command_text;
