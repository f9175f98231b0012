//! A patch that a script applies itself, through the program `apply_patch`.

use std::path::{Path, PathBuf};

use crate::{ApplyError, Guard, Operation, ParseError, Patch, PlanError};

/// The reason why a patch was not applied. Every file is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum PatchError {
    /// The text is not a patch.
    #[error("{}", in_words(.0))]
    Parse(ParseError),
    /// It does not match the files. The message uses the wording that scripts and models know from this program, with
    /// paths relative to the folder.
    #[error("{0}")]
    Mismatch(String),
    /// It cannot be applied for another reason.
    #[error(transparent)]
    Plan(PlanError),
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

/// Applies a patch in a folder and returns a summary. It may write whatever this process may, which for the model's
/// commands is whatever their sandbox allows.
pub fn apply_patch(text: &str, cwd: &Path) -> Result<String, PatchError> {
    let patch = crate::parse(text).map_err(PatchError::Parse)?;
    let plan = patch.plan(cwd).map_err(|error| misfit(&patch, error, cwd))?;
    Ok(plan.apply(&Guard::anywhere())?.summary)
}

/// The message for a text that is not a patch.
fn in_words(error: &ParseError) -> String {
    match error {
        ParseError::NothingToDo { .. } => "No files were modified.".to_owned(),
        ParseError::NoOperation { line, found } => format!(
            "Invalid patch hunk on line {line}: '{found}' is not a valid hunk header. Valid hunk headers: \
             '*** Add File: {{path}}', '*** Delete File: {{path}}', '*** Update File: {{path}}'"
        ),
        ParseError::EmptyUpdate { line, path } => {
            format!("Invalid patch hunk on line {line}: Update file hunk for path '{}' is empty", path.display())
        }
        ParseError::NoBegin | ParseError::NoEnd | ParseError::Unexpected { .. } => {
            error.to_string().replacen("invalid patch", "Invalid patch", 1)
        }
    }
}

/// The message for a patch that does not match.
fn misfit(patch: &Patch, error: PlanError, cwd: &Path) -> PatchError {
    let seen = |path: &PathBuf| path.strip_prefix(cwd).unwrap_or(path).to_owned();
    let deletes = |operation: &Operation, path: &Path| matches!(operation, Operation::Delete { path: named } if cwd.join(named) == path);
    let is_deleted = |path: &Path| patch.operations.iter().any(|operation| deletes(operation, path));
    let words = match &error {
        PlanError::NoMatch(no_match) => {
            let mut no_match = no_match.clone();
            no_match.path = seen(&no_match.path);
            no_match.to_string()
        }
        PlanError::NoSuchFile { path } | PlanError::IsDirectory { path } if is_deleted(path) => {
            format!("Failed to delete file {}", seen(path).display())
        }
        PlanError::NoSuchFile { path } => {
            let missing = seen(path);
            format!("Failed to read file to update {}: No such file or directory (os error 2)", missing.display())
        }
        _ => return PatchError::Plan(error),
    };
    PatchError::Mismatch(words)
}
