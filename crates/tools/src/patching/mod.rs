//! Patches: the model's changes, whether they are allowed, and their outcome.
//!
//! Invariant: nothing is written before everything was checked and allowed.

mod machine;
mod reach;
mod request;
mod run;

pub(crate) use self::machine::{Input, PatchCall, Planned};
pub(crate) use self::reach::{Permission, Reach, grantable};
pub(crate) use self::request::PatchRequest;
pub(crate) use self::run::{ApplyPatchTool, PatchRun};
pub use self::run::{ForeignChanges, apply_changes};
