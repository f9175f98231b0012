//! The folders that a thread may write below, as they were when the thread first named them.
//!
//! A name is not a folder: a command that may write around a root can move the root's parent away and put a link in its
//! place. So a root is resolved once, and afterwards only compared with what was found then. Identities are compared
//! instead of descriptors that are kept open, because thousands of idle threads would need thousands of those; the time
//! of birth tells a folder from another one that got its inode number.
//!
//! Invariant: a name leads to the same folder for as long as the thread is loaded, or to none.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// What the roots of one thread were when they were first named. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct HeldRoots {
    /// By the name that was given; nothing for a name that led to no folder.
    known: Arc<Mutex<BTreeMap<PathBuf, Option<Root>>>>,
}

/// A folder that may be written below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Its path without links.
    pub path: PathBuf,
    pub identity: Identity,
}

/// Which folder it is, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    pub device: u64,
    pub inode: u64,
    /// When it was made, where the file system knows.
    born: Option<SystemTime>,
}

/// What a name leads to.
#[derive(Debug)]
pub enum Found {
    /// The folder it led to before, or leads to now.
    Folder(Root),
    /// No folder when it was first named, so it is left out, whatever is there now.
    Nothing,
    /// Another folder than it was, or none any more.
    Moved(PathBuf),
}

impl HeldRoots {
    /// Resolves a name, or compares what it leads to with what it led to before.
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

    /// Whether the path still leads to the folder without passing a link.
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
