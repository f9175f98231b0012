//! Detects the sandbox level that this host offers.
//!
//! Invariant: detection runs the same code that confines commands, in a process that executes nothing.

use std::path::Path;
use std::sync::OnceLock;

use codex_wire::policy::SandboxPolicy;

use super::{landlock, spawn, sys};
use crate::error::SpawnError;
use crate::launch::SandboxLevel;
use crate::profile::{Profile, SandboxContext};

static LEVEL: OnceLock<SandboxLevel> = OnceLock::new();

/// The level of this host, detected once per process.
pub fn level() -> &'static SandboxLevel {
    LEVEL.get_or_init(|| {
        let level = find();
        tracing::debug!(?level, "commands are confined by what this host offers");
        level
    })
}

/// Sets the level before anything runs, for tests of the lower ones. Returns whether it was still unset.
///
/// A level that this host does not offer makes every confined launch fail, nothing worse.
pub fn force_level(level: SandboxLevel) -> bool {
    LEVEL.set(level).is_ok()
}

/// The level, if it was already detected.
pub(super) fn known() -> Option<SandboxLevel> {
    LEVEL.get().cloned()
}

/// The best possible level.
pub(super) fn hoped_for() -> SandboxLevel {
    SandboxLevel::Namespaces { landlock_abi: sys::landlock_abi() }
}

/// Landlock without namespaces, as this kernel supports it, for [`force_level`]; `Nothing` if it is too old.
#[must_use]
pub fn landlock_level() -> SandboxLevel {
    let abi = sys::landlock_abi();
    if abi >= landlock::OLDEST {
        return SandboxLevel::Landlock { abi };
    }
    let oldest = landlock::OLDEST;
    SandboxLevel::Nothing { why: format!("Landlock is at version {abi} here, and at least {oldest} is needed") }
}

fn find() -> SandboxLevel {
    let best = hoped_for();
    let Some(profile) = Profile::new(&SandboxPolicy::ReadOnly, Path::new("/"), &SandboxContext::default()) else {
        return best;
    };
    let Err(no_namespaces) = spawn::rehearse(&profile, &best) else { return best };
    let second = landlock_level();
    let no_landlock = match &second {
        SandboxLevel::Landlock { .. } => match spawn::rehearse(&profile, &second) {
            Ok(()) => return second,
            Err(error) => describe(&error),
        },
        SandboxLevel::Nothing { why } => why.clone(),
        SandboxLevel::Namespaces { .. } => String::new(),
    };
    SandboxLevel::Nothing { why: format!("namespaces: {}; Landlock: {no_landlock}", describe(&no_namespaces)) }
}

fn describe(error: &SpawnError) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(" ({cause})")).unwrap_or_default();
    format!("{error}{cause}")
}
