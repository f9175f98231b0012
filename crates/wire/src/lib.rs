//! The agent's own types: the submission and event queues, model items, rollout lines. Types that only the app-server
//! and its clients use are in `codex-protocol`.
//!
//! Decoding is lenient: unknown fields are ignored, both spellings are accepted where releases differ, and an unknown
//! kind is kept unchanged. Encoding is strict: one spelling, pinned by recordings.
//!
//! Invariant: types and their encoding only.

#[macro_use]
mod tagged;
#[macro_use]
mod spelled;

pub mod additional_context;
pub mod agent;
mod approval_policy;
pub mod budget;
pub mod change;
pub mod collaboration;
pub mod command;
pub mod command_line;
pub mod conversation_item;
pub mod decision;
pub mod dynamic_tool;
pub mod error_info;
pub mod event;
pub mod foreign_json;
pub mod forms;
pub mod goal;
pub mod history;
pub mod ids;
pub mod input;
pub mod marks;
pub mod mcp;
pub mod name;
pub mod op;
pub mod permissions;
pub mod plan;
pub mod policy;
pub mod prompt;
pub mod provider_traits;
pub mod reasoning;
pub mod response;
pub mod review;
pub mod rollout;
#[cfg(feature = "schema")]
pub mod schema;
pub mod skill;
pub mod text;
pub mod time;
pub mod tokens;
pub mod tool_spec;
