//! Views of a server for people, made of its answers: agents, MCP servers, the approval policy, terminals, and threads to
//! pick from; and the board that most of them are shown on.
//!
//! Invariants: pure. Nothing here calls a server, opens a terminal or knows a client library: JSON and keys come in, and
//! rows and wishes come out. Text of a server becomes text of the screen only through `printable` or `visible`.

pub mod agents;
pub mod board;
pub mod completions;
pub mod fields;
pub mod fold;
pub mod help;
pub mod list;
pub mod page;
pub mod plan;
pub mod policy;
pub mod servers;
pub mod status_parts;
pub mod terminals;
pub mod threads;
pub mod timeline;
mod words;
