//! Confinement on Linux.
//!
//! The parent plans ([`plan`]), starts a supervisor ([`supervisor`], [`child`]), and that makes the sandbox ([`world`],
//! [`landlock`], [`filter`]) and the command in it.

mod cgroup;
mod child;
mod descriptors;
mod filter;
mod ground;
mod harden;
pub(crate) mod landlock;
mod messages;
mod metadata;
mod plan;
mod pty;
mod reap;
mod replaced;
mod rungs;
mod running;
mod scope;
mod spawn;
mod stack;
mod stand_in;
mod start;
mod supervisor;
mod sys;
mod tidy;
mod veil;
mod world;

pub use cgroup::unenforced_memory_limit;
pub use descriptors::{raise_descriptor_limit, with_first_descriptor_limit};
pub use harden::harden;
pub use pty::Pty;
pub use rungs::{force_rung, landlock_rung, rung};
pub use running::{Input, Output, Running};
pub use spawn::spawn;
pub use stand_in::remove_left_stand_ins;
pub use tidy::tidied;
pub(crate) use tidy::{Inspection, Mess, tidy_aside};
