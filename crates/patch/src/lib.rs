//! `apply_patch`: parses a patch, computes its effect, applies it as a whole or not at all, and shows it as a diff.
//!
//! The steps are [`parse`] (or [`from_command`] first), then [`Patch::plan`], which reads files and writes none, then
//! [`Plan::apply`]. [`TurnDiff`] combines the patches of a turn.
//!
//! Invariants: nothing is written before everything is checked, and a failure leaves every file unchanged. Files are
//! lines of bytes: lines that a patch does not mention keep their bytes. The written content is what was approved,
//! where it was approved: links are followed once, when planning, and never again. Nothing is run.

mod apply;
mod command;
mod edit;
mod error;
mod files;
mod folders;
mod grammar;
mod guard;
mod ledger;
mod nearest;
mod parse;
mod place;
mod plan;
mod program;
mod seek;
mod snapshot;
mod swap;
mod text;
mod turn_diff;
mod unified;

pub use apply::{Applied, BeforeAfter};
pub use command::{Found, from_command};
pub use error::{ApplyCause, ApplyError, NoMatch, PlanError};
pub use files::FileEdit;
pub use grammar::{Chunk, Line, LineKind, Operation, Patch};
pub use guard::{Guard, Refused};
pub use nearest::{Mismatch, Nearest};
pub use parse::{ParseError, parse};
pub use plan::Plan;
pub use program::{PatchError, apply_patch};
pub use snapshot::{MAX_FILE_BYTES, ReadError, Snapshot};
pub use turn_diff::TurnDiff;
