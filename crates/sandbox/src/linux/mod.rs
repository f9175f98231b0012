//! Confinement on Linux.
//!
//! The parent makes a plan ([`plan`]) and starts a supervisor ([`supervisor`], [`child`]), which sets up the sandbox
//! ([`world`], [`landlock`], [`filter`]) and starts the command in it.

mod cgroup;
mod child;
mod cleanup;
mod deadline;
mod descriptors;
mod filter;
mod harden;
mod home_overlay;
pub(crate) mod landlock;
mod levels;
mod messages;
mod metadata;
mod placeholder;
mod plan;
mod pty;
mod reap;
mod replaced;
mod running;
mod scope;
mod shared_namespaces;
mod spawn;
mod stack;
mod start;
mod supervisor;
mod sys;
mod world;

pub use cgroup::unenforced_memory_limit;
pub(crate) use cleanup::{Inspection, PendingCleanup, clean_up_aside};
pub use cleanup::{OwnChanges, cleanup_done};
pub use deadline::set_command_deadline;
pub use descriptors::{raise_descriptor_limit, with_first_descriptor_limit};
pub use harden::harden;
pub use levels::{force_level, landlock_level, level};
pub use placeholder::remove_left_placeholders;
pub use pty::Pty;
pub(crate) use replaced::settle;
pub use running::{Input, Output, Running};
pub use spawn::spawn;
