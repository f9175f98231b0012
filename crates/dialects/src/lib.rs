//! The views of a thread for each kind of client: pure projections of its log.
//!
//! Invariant: the same events always give the same messages. No files, no clock, no async runtime, and no engine.

pub mod eq;
pub mod event_filter;
pub mod exec;
pub mod git_diff;
pub mod items;
pub mod json_form;
mod mcp_tool;
mod protocol_release;
pub mod replay;
pub mod v1;
pub mod v2;

pub use protocol_release::ProtocolRelease;
