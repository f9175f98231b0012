//! Confines and runs processes: policies as kernel rules, spawning, terminals, bounded output, and killing whole
//! process trees.
//!
//! A [`Profile`] describes what a policy allows in a folder. [`spawn`] runs one command under it; [`run`] waits for its
//! end and keeps a bounded amount of its output. Everything is planned in this process and applied by plain system
//! calls between clone and exec: there is no helper program. [`level`] returns what this host can enforce, [`explain`]
//! what that means for a profile.
//!
//! Invariant: a command with a policy runs under everything that its level promises or not at all, and none of its
//! processes outlives its [`Running`] handle or this process. Nothing here knows threads, turns or approvals.

#![allow(unsafe_code, reason = "clone, exec, mounts, Landlock and seccomp have no safe interface; see linux/sys.rs")]

#[cfg(not(target_os = "linux"))]
mod elsewhere;
mod error;
mod explain;
mod git;
mod inspect;
mod launch;
mod layout;
#[cfg(target_os = "linux")]
mod linux;
mod profile;
mod run;
mod search;
mod seatbelt;
pub mod terminal;

#[cfg(not(target_os = "linux"))]
use elsewhere as platform;
#[cfg(target_os = "linux")]
use linux as platform;

pub use codex_guard::findings::{Finding, Findings, Report};
pub use codex_guard::names::{Names, ProtectedName, Protection, protected_names};
pub use codex_guard::roots::ResolvedRoots;
pub use codex_lines::Captured;
pub use error::{SpawnError, Step};
pub use explain::{Explanation, explain};
#[cfg(target_os = "linux")]
pub use inspect::names_programs;
pub use launch::{Confinement, Exit, Launch, SandboxLevel, Stdio};
#[cfg(not(target_os = "linux"))]
pub use platform::names_programs;
pub use platform::{
    Input, Output, OwnChanges, Pty, Running, cleanup_done, force_level, harden, landlock_level, level,
    raise_descriptor_limit, remove_left_placeholders, set_command_deadline, spawn, unenforced_memory_limit,
    with_first_descriptor_limit,
};
pub use profile::{Profile, SandboxContext};
pub use run::{Chunk, Finished, Limits, Stream, run, why_ended};
pub use seatbelt::seatbelt;
