//! Child agents: a tree of threads for each root, the tools that its agents call, and the task that runs it.
//!
//! Invariant: [`tree`] decides and does no I/O; everything else translates for it or performs its effects.

mod call;
mod cards;
mod handle;
mod header;
mod letters;
mod mailbox;
mod namespace;
mod nine;
mod options;
mod outline;
mod ring;
mod spawning;
mod task;
pub mod tree;

pub use handle::LocalTrees;
pub use outline::{StoredAgent, outline};
