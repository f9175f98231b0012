//! Finds the cgroup of this process, and whether it may be subdivided.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Access, access};

/// The attributes by which managers mark a delegated cgroup; only root can read the second.
const MARKS: [&str; 2] = ["user.delegate", "trusted.delegate"];

/// The folder of this process's v2 cgroup, from `/proc/self/cgroup` and `/proc/self/mountinfo`.
pub(super) fn own_folder(cgroups: &str, mounts: &str) -> Result<PathBuf, String> {
    let path = cgroups.lines().find_map(|line| line.strip_prefix("0::"));
    let Some(path) = path else { return Err("this system has no cgroups of version 2".to_owned()) };
    let mounted = mounts.lines().filter_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut words = place.split(' ').skip(3);
        let (root, folder) = (words.next()?, words.next()?);
        (kind.split(' ').next()? == "cgroup2").then_some((root, folder))
    });
    // A file system may be mounted in part, and more than once.
    let below = |root: &str, folder: &str| Some(Path::new(folder).join(Path::new(path).strip_prefix(root).ok()?));
    let is_plain = |path: &PathBuf| !path.components().any(|part| part == Component::ParentDir);
    let mut folders = mounted.filter_map(|(root, folder)| below(root, folder));
    folders.find(is_plain).ok_or_else(|| format!("the cgroup {path} cannot be seen from here"))
}

/// Whether this cgroup was delegated to us: it has its creator's mark, or belongs to our user while its parent does
/// not, or is the outermost one of a container. Write access for root means nothing.
pub(super) fn is_delegated(folder: &Path) -> bool {
    let is_writable = ["", "cgroup.procs", "cgroup.subtree_control"]
        .iter()
        .all(|name| access(folder.join(name), Access::WRITE_OK).is_ok());
    is_writable && (is_marked(folder) || is_handed_to_user(folder) || is_outermost_of_container(folder))
}

fn is_marked(folder: &Path) -> bool {
    MARKS.iter().any(|mark| {
        let mut value = [0_u8; 8];
        let length = rustix::fs::getxattr(folder, *mark, &mut value).unwrap_or(0);
        value.get(..length) == Some(b"1")
    })
}

fn is_handed_to_user(folder: &Path) -> bool {
    let user = rustix::process::geteuid();
    let owner = |path: &Path| path.metadata().ok().map(|about: Metadata| about.uid());
    let around = folder.parent().and_then(owner);
    !user.is_root() && owner(folder) == Some(user.as_raw()) && around.is_some_and(|around| around != user.as_raw())
}

/// Whether the folder is the root of this process's cgroup namespace but not of the machine: only these have no events.
fn is_outermost_of_container(folder: &Path) -> bool {
    !folder.join("../cgroup.procs").exists() && folder.join("cgroup.events").exists()
}

/// The processes directly in a cgroup.
pub(super) fn processes(folder: &Path) -> Vec<u32> {
    words(&folder.join("cgroup.procs")).iter().filter_map(|word| word.parse().ok()).collect()
}

/// The words in a cgroup file; none if it cannot be read.
pub(super) fn words(path: &Path) -> Vec<String> {
    read(path).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// Reads a kernel file.
pub(super) fn read(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path)
}
