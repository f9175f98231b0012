//! The mounts of the sandbox, made by its first process.
//!
//! Everything becomes read-only, the open folders are mounted again as they were, and inside them the closed places are
//! mounted over themselves. A mount point cannot be renamed, removed or replaced. `/dev` is a small private one,
//! because device files stay writable on read-only mounts.
//!
//! Invariant: only the folders that the plan opens are taken before everything becomes read-only, and no path is
//! followed through a symbolic link.

use std::ffi::CStr;
use std::os::fd::{AsFd as _, BorrowedFd, FromRawFd as _, IntoRawFd as _, OwnedFd, RawFd};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fstat, mkdirat, openat, openat2, symlinkat};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change, move_mount, open_tree,
};

use super::landlock::DEVICES;
use super::messages::Failure;
use super::plan::{FirstProcessMemory, MountPoint, NamespacePlan};
use super::sys::{self, NO_DEV, NO_SUID, READ_ONLY};
use crate::error::Step;
use crate::layout::Kind;

const DEV_LINKS: [(&CStr, &CStr); 5] = [
    (c"/proc/self/fd", c"/dev/fd"),
    (c"/proc/self/fd/0", c"/dev/stdin"),
    (c"/proc/self/fd/1", c"/dev/stdout"),
    (c"/proc/self/fd/2", c"/dev/stderr"),
    (c"pts/ptmx", c"/dev/ptmx"),
];

/// Makes all mounts. Runs as the first process of the new namespaces.
///
/// Through `placeholders`, the supervisor reports which places exist, once it has created the placeholders.
pub(super) fn build(
    world: &NamespacePlan,
    workings: &mut FirstProcessMemory,
    placeholders: Option<RawFd>,
    ruleset: Option<BorrowedFd<'_>>,
) -> Result<(), Failure> {
    mount_change(c"/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(Failure::of(Step::Private))?;
    take_open(world, &mut workings.trees)?;
    let devices = DEVICES.map(|device| take_path(device).ok());
    let root = open_path(c"/").map_err(Failure::of(Step::ReadOnly))?;
    let closed = if world.everything_open { NO_SUID } else { NO_SUID | READ_ONLY };
    sys::set_mount_attributes(root.as_fd(), closed, true).map_err(Failure::of(Step::ReadOnly))?;
    make_dev(devices).map_err(Failure::of(Step::Devices))?;
    mount_processes().map_err(Failure::of(Step::Processes))?;
    if let Some(placeholders) = placeholders {
        let told = sys::read(placeholders, &mut workings.mountable);
        if told != Ok(workings.mountable.len()) {
            return Err(Failure::of(Step::Placeholder)(Errno::CANCELED));
        }
    }
    put_places(world, workings)?;
    world.overlay.put().map_err(Failure::of(Step::HomeOverlay))?;
    if let Some(ruleset) = ruleset {
        let dev = open_path(c"/dev").map_err(Failure::of(Step::Rules))?;
        sys::landlock_allow(ruleset, dev.as_fd(), world.dev_access).map_err(Failure::of(Step::Rules))?;
    }
    Ok(())
}

/// The user and group mapping of a new user namespace.
pub(super) struct Maps {
    user: String,
    group: String,
}

impl Maps {
    /// Maps this user and group, and nobody else.
    pub(super) fn of_this_process() -> Self {
        let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        Self { user: format!("{user} {user} 1"), group: format!("{group} {group} 1") }
    }

    /// Writes the mapping for the user namespace that this process has just entered.
    pub(super) fn apply(&self) -> Result<(), Errno> {
        write_file(c"/proc/self/setgroups", b"deny")?;
        write_file(c"/proc/self/uid_map", self.user.as_bytes())?;
        write_file(c"/proc/self/gid_map", self.group.as_bytes())
    }
}

fn write_file(path: &CStr, text: &[u8]) -> Result<(), Errno> {
    let file = openat(CWD, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, text).map(drop)
}

/// Takes detached copies of the open folders while they are writable, including the mounts below them.
fn take_open(world: &NamespacePlan, trees: &mut [Option<RawFd>]) -> Result<(), Failure> {
    for (index, (spot, slot)) in world.places.iter().zip(trees).enumerate() {
        if spot.kind == Kind::Open {
            let failed = Failure::at(Step::OpenFolder, index);
            let tree = open_spot(spot).and_then(|place| take(&place)).map_err(&failed)?;
            sys::set_mount_attributes(tree.as_fd(), NO_SUID | NO_DEV, true).map_err(&failed)?;
            *slot = Some(tree.into_raw_fd());
        }
    }
    Ok(())
}

/// Mounts every place, parents first. A pinned or closed place is a copy of its current state.
fn put_places(world: &NamespacePlan, workings: &mut FirstProcessMemory) -> Result<(), Failure> {
    for (index, (spot, slot)) in world.places.iter().zip(&mut workings.trees).enumerate() {
        if workings.mountable.get(index) == Some(&0) {
            continue;
        }
        let step = if spot.kind == Kind::Closed { Step::MountClosed } else { Step::MountOpen };
        let failed = Failure::at(step, index);
        let (place, tree) = if let Some(tree) = slot.take() {
            for folder in &spot.below_dev {
                make_folder(folder).map_err(&failed)?;
            }
            // The tree is the folder that the plan was made for. By now something else may be mounted at its place.
            // SAFETY: `take_open` has given up ownership, and its slot is empty now.
            (open_path(&spot.path).map_err(&failed)?, unsafe { OwnedFd::from_raw_fd(tree) })
        } else {
            let place = open_spot(spot).map_err(&failed)?;
            let tree = take(&place).map_err(&failed)?;
            (place, tree)
        };
        if spot.kind == Kind::Closed {
            sys::set_mount_attributes(tree.as_fd(), READ_ONLY, true).map_err(&failed)?;
        }
        put(&tree, &place).map_err(&failed)?;
    }
    Ok(())
}

/// A minimal `/dev`: the harmless devices, private terminals and private shared memory.
fn make_dev(devices: [Option<OwnedFd>; DEVICES.len()]) -> Result<(), Errno> {
    mount(c"tmpfs", c"/dev", c"tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(c"mode=0755"))?;
    for (path, tree) in DEVICES.iter().zip(devices) {
        let Some(tree) = tree else { continue };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        drop(openat(CWD, *path, flags, Mode::from_raw_mode(0o644))?);
        put(&tree, &open_path(path)?)?;
    }
    mkdirat(CWD, c"/dev/shm", Mode::from_raw_mode(0o1777))?;
    rustix::fs::chmod(c"/dev/shm", Mode::from_raw_mode(0o1777))?;
    mkdirat(CWD, c"/dev/pts", Mode::from_raw_mode(0o755))?;
    let options = c"newinstance,ptmxmode=0666,mode=0620";
    // The sandbox is not weaker without private terminals.
    let _ = mount(c"devpts", c"/dev/pts", c"devpts", MountFlags::NOSUID | MountFlags::NOEXEC, Some(options));
    for (target, path) in DEV_LINKS {
        symlinkat(target, CWD, path)?;
    }
    Ok(())
}

/// A `/proc` that shows only the processes inside.
///
/// In a container that masks parts of `/proc` the kernel refuses a new one. Then the old one stays, read-only; other
/// processes can be listed but not touched, because they belong to another user namespace.
fn mount_processes() -> Result<(), Errno> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY;
    match mount(c"proc", c"/proc", c"proc", flags, None::<&CStr>) {
        Ok(()) | Err(Errno::PERM) => Ok(()),
        Err(error) => Err(error),
    }
}

fn make_folder(path: &CStr) -> Result<(), Errno> {
    match mkdirat(CWD, path, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error),
    }
}

pub(super) fn open_path(path: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS)
}

/// Opens a place. A root has to be the folder that the plan was made for: a running command may move it in the
/// meantime.
fn open_spot(spot: &MountPoint) -> Result<OwnedFd, Errno> {
    let place = open_path(&spot.path)?;
    let Some(root) = spot.root else { return Ok(place) };
    let found = fstat(&place)?;
    if (found.st_dev, found.st_ino) == (root.device, root.inode) { Ok(place) } else { Err(Errno::STALE) }
}

pub(super) fn take_path(path: &CStr) -> Result<OwnedFd, Errno> {
    open_path(path).and_then(|place| take(&place))
}

/// A detached copy of the mount at `place`.
pub(super) fn take(place: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    open_tree(place, c"", flags)
}

pub(super) fn put(tree: &OwnedFd, place: &OwnedFd) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(tree, c"", place, c"", flags)
}
