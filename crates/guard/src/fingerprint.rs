//! Fingerprints: whether something is what it was, by its content and not by its times.
//!
//! Invariant: nobody outside of this process can know the key, so no content can be made to fit a fingerprint.

use std::ffi::OsStr;
use std::fs::File;
use std::hash::{BuildHasher as _, Hash, Hasher as _, RandomState};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use rustix::fs::{Mode, OFlags, openat, readlinkat};

use crate::walk::{EntryKind, Folder, Root, Stamp};

/// Longer files are compared by their state: reading them after every command would take too long.
const MAX_READ: u64 = 16 * 1024 * 1024;
/// The maximum number of entries in a folder that is compared as a whole.
const MAX_TREE: usize = 1000;

static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The fingerprint of a value.
pub fn of(value: impl Hash) -> u64 {
    KEY.hash_one(value)
}

/// The fingerprint of an entry of a folder: the content of a file and whether it can be executed, the target of a link;
/// for anything else, which one it is. `None` if there is no such entry.
#[must_use]
pub fn of_entry(folder: &Folder, name: impl AsRef<Path>) -> Option<u64> {
    let name = name.as_ref();
    let stamp = folder.stamp_of(name)?;
    Some(match stamp.kind() {
        EntryKind::Link => match readlinkat(&folder.handle, name, Vec::new()) {
            Ok(target) => of(("link", target.as_bytes())),
            Err(_) => of_state(&stamp),
        },
        EntryKind::File if stamp.size <= MAX_READ => match content(folder, name.as_os_str()) {
            Ok(content) => of(("file", content, stamp.mode & 0o111)),
            Err(_) => of_state(&stamp),
        },
        EntryKind::File => of_state(&stamp),
        EntryKind::Folder | EntryKind::Other => of(("entry", stamp.identity(), stamp.mode)),
    })
}

/// The fingerprint of a file, or of everything in a folder. `None` if that is too much, or cannot be read.
#[must_use]
pub fn of_tree(path: &Path) -> Option<u64> {
    let (Some(at), Some(name)) = (path.parent(), path.file_name()) else { return None };
    let root = Root::open(at)?;
    let (mut waiting, mut all) = (vec![PathBuf::from(name)], Vec::new());
    while let Some(below) = waiting.pop() {
        let folder = root.folder(below.parent().unwrap_or(Path::new("")))?;
        let name = below.file_name()?;
        let Some(stamp) = folder.stamp_of(name) else {
            all.push((below, 0));
            continue;
        };
        if all.len() + waiting.len() > MAX_TREE {
            return None;
        }
        if stamp.kind() == EntryKind::Folder {
            root.folder(&below)?.each(&mut |name, _| {
                waiting.push(below.join(name));
                waiting.len() <= MAX_TREE
            });
            all.push((below, of(stamp.mode)));
        } else {
            let fingerprint = of_entry(&folder, name)?;
            all.push((below, fingerprint));
        }
    }
    all.sort();
    Some(of(all))
}

/// The fingerprint of a file that has only one name, by which file it is. If the name was closed, nobody can have written
/// the file. `None` for one with other names, and for anything but a file.
#[must_use]
pub fn of_only_name(stamp: &Stamp) -> Option<u64> {
    (stamp.kind() == EntryKind::File && stamp.names == 1).then(|| of(("only", stamp.identity())))
}

fn of_state(stamp: &Stamp) -> u64 {
    of(("state", stamp.identity(), stamp.mode, stamp.size, stamp.changed))
}

fn content(folder: &Folder, name: &OsStr) -> io::Result<u64> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = File::from(openat(&folder.handle, name, flags, Mode::empty())?).take(MAX_READ + 1);
    let mut hasher = KEY.build_hasher();
    let mut buffer = [0; 8 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            length => hasher.write(buffer.get(..length).unwrap_or_default()),
        }
    }
}
