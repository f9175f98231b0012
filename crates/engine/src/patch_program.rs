//! A patch that a script applies by itself, through the program `apply_patch`.

use std::path::Path;

use codex_patch::{ApplyError, Guard, ParseError, PlanError};

/// Why a patch was not applied. Every file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum PatchError {
    /// It is no patch.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// It does not fit the files.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The files could not be written.
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

/// Applies a patch in a folder and says what it has changed. It may write what this process may, which for commands of the
/// model is what their sandbox lets them.
pub fn apply_patch(text: &str, cwd: &Path) -> Result<String, PatchError> {
    Ok(codex_patch::parse(text)?.plan(cwd)?.apply(&Guard::anywhere())?.summary)
}
