//! Predicts what git would do with the files of a repository.
//!
//! Invariant: git is not run, and nothing is read except what the caller passes in.

pub mod allowed;
pub mod config;
pub mod index;
#[cfg(target_os = "linux")]
pub mod sequencer;

use std::path::{Component, Path, PathBuf};

/// Removes `.` and `..` from a path.
#[must_use]
pub fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}
