//! Finds out which rung of the ladder this host offers.
//!
//! Invariant: found out by doing it, with the very code that confines commands, in a process that executes nothing.

use std::path::Path;
use std::sync::OnceLock;

use codex_wire::policy::SandboxPolicy;

use super::{landlock, spawn, sys};
use crate::error::SpawnError;
use crate::launch::Rung;
use crate::profile::{Profile, Surroundings};

static RUNG: OnceLock<Rung> = OnceLock::new();

/// What this host offers, found out once per process.
pub fn rung() -> &'static Rung {
    RUNG.get_or_init(find)
}

/// Settles the rung before anything is run, for tests of the lower ones. Says whether it was not settled yet.
///
/// A rung that this host does not offer makes every confined launch fail, nothing worse.
pub fn force_rung(rung: Rung) -> bool {
    RUNG.set(rung).is_ok()
}

/// The rung, if it is known already.
pub(super) fn known() -> Option<Rung> {
    RUNG.get().cloned()
}

/// The best rung there could be.
pub(super) fn hoped_for() -> Rung {
    Rung::Namespaces { landlock_abi: sys::landlock_abi() }
}

/// Landlock without namespaces, as this kernel has it, for [`force_rung`]; `Nothing` if it is too old.
#[must_use]
pub fn landlock_rung() -> Rung {
    let abi = sys::landlock_abi();
    if abi >= landlock::OLDEST {
        return Rung::Landlock { abi };
    }
    let oldest = landlock::OLDEST;
    Rung::Nothing { why: format!("Landlock is at version {abi} here, and at least {oldest} is needed") }
}

fn find() -> Rung {
    let best = hoped_for();
    let Some(profile) = Profile::new(&SandboxPolicy::ReadOnly, Path::new("/"), &Surroundings::default()) else {
        return best;
    };
    let Err(no_namespaces) = spawn::rehearse(&profile, &best) else { return best };
    let second = landlock_rung();
    let no_landlock = match &second {
        Rung::Landlock { .. } => match spawn::rehearse(&profile, &second) {
            Ok(()) => return second,
            Err(error) => describe(&error),
        },
        Rung::Nothing { why } => why.clone(),
        Rung::Namespaces { .. } => String::new(),
    };
    Rung::Nothing { why: format!("namespaces: {}; Landlock: {no_landlock}", describe(&no_namespaces)) }
}

fn describe(error: &SpawnError) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(" ({cause})")).unwrap_or_default();
    format!("{error}{cause}")
}
