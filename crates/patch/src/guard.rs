//! The paths that a patch may write.
//!
//! Invariant: paths are compared by whole components. Forbidden names are compared as leniently as any file system
//! would, so that no spelling of them gets through.

use std::path::{Path, PathBuf};

/// The paths that a patch may write.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    /// The writable folders, resolved by the session: without links. `None` allows every path.
    pub roots: Option<Vec<PathBuf>>,
    /// Absolute paths, whether they exist or not, that may not be written, replaced or written below.
    pub forbidden: Vec<PathBuf>,
    /// Names of one or more components that may not occur between a root and a file; without roots, anywhere in the
    /// path.
    pub names: Vec<String>,
}

impl Guard {
    /// A guard that allows everything.
    #[must_use]
    pub fn anywhere() -> Self {
        Self::default()
    }

    pub(crate) fn checker(&self) -> Checker<'_> {
        let forbidden = self.forbidden.iter().map(|path| folded(path)).collect();
        let names = self.names.iter().map(|name| folded(Path::new(name))).collect();
        Checker { roots: self.roots.as_deref(), forbidden, names }
    }

    /// Whether a file may be written, given its path without any links.
    #[must_use]
    pub fn allows(&self, real: &Path) -> bool {
        self.checker().check(real, real).is_ok()
    }
}

/// A file that a guard refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is not below a writable root.
    #[error("{real} is outside of the folders that may be written", real = .real.display())]
    Outside {
        /// The absolute path in the patch.
        path: PathBuf,
        /// Its target.
        real: PathBuf,
    },
    #[error("{real} is protected", real = .real.display())]
    Forbidden {
        /// The absolute path in the patch.
        path: PathBuf,
        /// Its target.
        real: PathBuf,
    },
}

/// A guard prepared for checking many paths.
pub(crate) struct Checker<'a> {
    roots: Option<&'a [PathBuf]>,
    forbidden: Vec<PathBuf>,
    names: Vec<PathBuf>,
}

impl Checker<'_> {
    /// Checks a path that resolves to `real`.
    pub(crate) fn check(&self, path: &Path, real: &Path) -> Result<(), Refused> {
        let (path, real) = (path.to_owned(), real.to_owned());
        let folded = folded(&real);
        let root = self.roots.unwrap_or_default().iter().filter(|root| real.starts_with(root));
        let root = root.max_by_key(|root| root.components().count()).map(|root| self::folded(root));
        let above = root.as_ref().map_or(0, |root| root.components().count());
        // A root that the session names inside a forbidden folder is open, as it is for commands.
        let is_around = |closed: &PathBuf| root.as_ref().is_some_and(|root| root != closed && root.starts_with(closed));
        let is_closed =
            |closed: &PathBuf| (folded.starts_with(closed) && !is_around(closed)) || closed.starts_with(&folded);
        let below: Vec<_> = folded.iter().skip(above).collect();
        let has_name = |name: &PathBuf| {
            let name: Vec<_> = name.iter().collect();
            below.windows(name.len().max(1)).any(|part| part == name)
        };
        if self.forbidden.iter().any(is_closed) || self.names.iter().any(has_name) {
            Err(Refused::Forbidden { path, real })
        } else if self.roots.is_none_or(|roots| roots.iter().any(|root| real.starts_with(root) && real != *root)) {
            Ok(())
        } else {
            Err(Refused::Outside { path, real })
        }
    }
}

/// A path as seen by a file system that ignores case and zero-width characters.
fn folded(path: &Path) -> PathBuf {
    let ignored = |c: &char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let fold = |text: &str| text.chars().filter(|c| !ignored(c)).flat_map(char::to_lowercase).collect::<String>();
    path.components().map(|component| fold(&component.as_os_str().to_string_lossy())).collect()
}
