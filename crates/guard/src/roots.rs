//! The writable folders of a thread, as they were when the thread first named them.
//!
//! A name is not a folder: a command that may write around a root can move the root's parent away and put a link in its
//! place. So a root is resolved once, and afterwards only compared with the result. Identities are compared rather than
//! keeping descriptors open, because thousands of idle threads would need thousands of those; the birth time
//! distinguishes a folder from a later one with the same inode number.
//!
//! Invariant: a name leads to the same folder for as long as the thread is loaded, or to none.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// The resolved roots of one thread. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct ResolvedRoots {
    /// By the given name; `None` for a name that was not a folder.
    known: Arc<Mutex<BTreeMap<PathBuf, Option<Root>>>>,
}

/// A writable folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Its path without links.
    pub path: PathBuf,
    pub identity: Identity,
}

/// The identity of a folder, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    pub device: u64,
    pub inode: u64,
    /// The birth time, if the file system records it.
    born: Option<SystemTime>,
}

/// The result of resolving a name.
#[derive(Debug)]
pub enum Found {
    /// The folder that it resolved to before, or resolves to now.
    Folder(Root),
    /// Not a folder when it was first named, so it is left out, whatever is there now.
    Nothing,
    /// A different folder than before, or none any more.
    Moved(PathBuf),
}

impl ResolvedRoots {
    /// Resolves a name, or compares it with the earlier result.
    pub fn find(&self, name: PathBuf) -> Found {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(&name) {
            Some(Some(root)) if root.is_there() => Found::Folder(root.clone()),
            Some(Some(root)) => Found::Moved(root.path.clone()),
            Some(None) => Found::Nothing,
            None => {
                let root = Root::at(&name);
                known.insert(name, root.clone());
                root.map_or(Found::Nothing, Found::Folder)
            }
        }
    }
}

impl Root {
    fn at(name: &Path) -> Option<Self> {
        let path = name.canonicalize().ok()?;
        let about = path.symlink_metadata().ok().filter(Metadata::is_dir)?;
        Some(Self { path, identity: Identity::of(&about) })
    }

    /// Whether the path still leads to the folder without passing through a link.
    fn is_there(&self) -> bool {
        Self::at(&self.path).is_some_and(|now| now == *self)
    }
}

impl Identity {
    #[cfg(unix)]
    fn of(about: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;

        Self { device: about.dev(), inode: about.ino(), born: about.created().ok() }
    }

    #[cfg(not(unix))]
    fn of(about: &Metadata) -> Self {
        Self { device: 0, inode: 0, born: about.created().ok() }
    }
}
