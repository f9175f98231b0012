//! Child agents: a tree of threads for each root, the tools that its agents call, and the task that runs it.
//!
//! Invariant: [`tree`] decides and does no I/O; everything else translates for it or performs its effects.

mod agent_json;
mod applying;
mod call;
mod clock;
mod handle;
mod header;
mod mailbox;
mod namespace;
mod options;
mod outline;
mod path_tools;
mod recent_events;
mod roles;
mod spawning;
mod subagent_tools;
mod task;
pub mod tree;
mod unread_messages;
mod writers;

pub use handle::LocalTrees;
pub use outline::outline;
