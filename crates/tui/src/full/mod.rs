//! The full-screen chat.
//!
//! ```text
//! keys, mouse, time ─┐
//! events, answers ───┼─▶ update(state, input) → effects ─▶ run: calls, answers, the clipboard, the terminal
//!                    │        │
//!                    │        └─▶ draw(state) → rows ─▶ paint: a thread that writes the rows that changed
//! ```
//!
//! The state is that of the client library and what the person has opened. The transcript lives on the alternate screen;
//! the conversation is printed once when the screen is left.
//!
//! Invariants: `update` and `draw` are pure, except that layouts are cached. A frame is drawn only after a change, and a
//! terminal that takes no bytes costs frames and never memory or keys.

mod app;
mod approval;
mod asking;
mod back;
mod calls;
mod changes;
mod choices;
mod commands;
mod completion;
mod composer;
mod draw;
mod events;
mod keys;
mod layout;
mod loading;
mod mouse;
mod queue;
mod reconnecting;
mod run;
mod status;
mod transcript;
mod views;

#[cfg(test)]
mod tests;

pub use crate::theme::{OwnTheme, Theme, ThemeName};
pub use run::{FullChat, FullParts};
pub use status::DisplaySettings;
