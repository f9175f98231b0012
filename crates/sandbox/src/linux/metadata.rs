//! Modes, owners and times on the second level, where neither Landlock nor the filter can tell inside from outside.
//!
//! The filter hands these calls to the supervisor. It looks up the file itself, checks that the file is writable by
//! policy, and then makes the change on the very file that it checked. The calling process is never let through,
//! because it could change its arguments after the check.
//!
//! Invariant: plain system calls only, as everywhere in the supervisor; and never more than the process could do itself
//! without a sandbox and without privileges.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the kernel's interface is made of such numbers"
)]

use std::ffi::CStr;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;

use libc::c_long;
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, ResolveFlags, Timespec, Timestamps, fstat, openat, openat2, readlinkat_raw,
};
use rustix::io::Errno;

use super::sys::{self, Notification};

/// The calls that are handed over.
pub(super) const HANDED_OVER: &[c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
];

/// The same number on every architecture.
const FCHMODAT2: c_long = 452;

/// The calls that are refused instead: old forms of the above, and labels.
pub(super) const REFUSED: &[c_long] = &[
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    // setxattrat, removexattrat and file_setattr.
    463,
    466,
    469,
];

const PATH_SIZE: usize = 4096;

/// The file that a call is about.
struct Target {
    folder: RawFd,
    /// The address of the path; 0 for the folder descriptor itself.
    path: u64,
    follow: bool,
}

/// The requested change.
enum Change {
    Mode(u32),
    Owner(u32, u32),
    /// The address of two times; 0 for now.
    Times(u64),
}

/// Answers one call. `writable` lists the paths below which changes are allowed.
pub(super) fn answer(listener: BorrowedFd<'_>, writable: &[std::ffi::CString]) {
    let Ok(asked) = sys::receive_notification(listener) else { return };
    let result = decide(listener, &asked, writable);
    sys::answer_notification(listener, asked.id, result);
}

fn decide(listener: BorrowedFd<'_>, asked: &Notification, writable: &[std::ffi::CString]) -> Result<(), Errno> {
    let (target, change) = understand(asked).ok_or(Errno::PERM)?;
    let mut text = [0_u8; PATH_SIZE];
    let file = find(asked.pid, &target, &mut text)?;
    let times = match change {
        Change::Times(address) if address != 0 => Some(read_times(asked.pid, address)?),
        Change::Times(_) | Change::Mode(_) | Change::Owner(..) => None,
    };
    // The data that was read belongs to the caller only if it has not exited in the meantime.
    sys::is_notification_valid(listener, asked.id)?;
    if !is_writable(&file, writable, &mut text) || fstat(&file)?.st_uid != rustix::process::geteuid().as_raw() {
        return Err(Errno::PERM);
    }
    apply(&file, &change, times)
}

fn understand(asked: &Notification) -> Option<(Target, Change)> {
    let [a, b, c, d, ..] = asked.arguments;
    #[cfg(target_arch = "x86_64")]
    let here = |path, follow| Target { folder: libc::AT_FDCWD, path, follow };
    let at = |flags: u64| Target { folder: a as RawFd, path: b, follow: flags & libc::AT_SYMLINK_NOFOLLOW as u64 == 0 };
    let itself = Target { folder: a as RawFd, path: 0, follow: true };
    let known = match c_long::from(asked.call) {
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod => (here(a, true), Change::Mode(b as u32)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chown => (here(a, true), Change::Owner(b as u32, c as u32)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_lchown => (here(a, false), Change::Owner(b as u32, c as u32)),
        libc::SYS_fchmod => (itself, Change::Mode(b as u32)),
        libc::SYS_fchmodat => (at(0), Change::Mode(c as u32)),
        FCHMODAT2 => (at(d), Change::Mode(c as u32)),
        libc::SYS_fchown => (itself, Change::Owner(b as u32, c as u32)),
        libc::SYS_fchownat => (at(asked.arguments[4]), Change::Owner(c as u32, d as u32)),
        libc::SYS_utimensat if b == 0 => (itself, Change::Times(c)),
        libc::SYS_utimensat => (at(d), Change::Times(c)),
        _ => return None,
    };
    Some(known)
}

/// Opens the file that a process refers to, without being led to a descriptor of this process.
fn find(pid: u32, target: &Target, text: &mut [u8; PATH_SIZE]) -> Result<OwnedFd, Errno> {
    let mut name = [0_u8; 64];
    let folder = if target.folder == libc::AT_FDCWD {
        numbered(&mut name, &[b"/proc/", b"#", b"/cwd"], &[pid])?
    } else {
        numbered(&mut name, &[b"/proc/", b"#", b"/fd/", b"#"], &[pid, target.folder.cast_unsigned()])?
    };
    let folder = openat(CWD, folder, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    if target.path == 0 {
        return Ok(folder);
    }
    let length = sys::read_memory(pid, target.path, text)?;
    let path = CStr::from_bytes_until_nul(text.get(..length).unwrap_or_default()).map_err(|_| Errno::NAMETOOLONG)?;
    if path.is_empty() {
        return Ok(folder);
    }
    let flags = OFlags::PATH | OFlags::CLOEXEC | if target.follow { OFlags::empty() } else { OFlags::NOFOLLOW };
    openat2(&folder, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS)
}

/// Two times, as `utimensat` takes them.
fn read_times(pid: u32, address: u64) -> Result<Timestamps, Errno> {
    let mut bytes = [0_u8; 32];
    if sys::read_memory(pid, address, &mut bytes)? != bytes.len() {
        return Err(Errno::FAULT);
    }
    let mut numbers = bytes.chunks_exact(8).map(|it| it.try_into().map_or(0, i64::from_ne_bytes));
    let mut next = || Timespec { tv_sec: numbers.next().unwrap_or(0), tv_nsec: numbers.next().unwrap_or(0) as _ };
    Ok(Timestamps { last_access: next(), last_modification: next() })
}

/// Whether the file is in one of the writable places, by whole components.
fn is_writable(file: &OwnedFd, writable: &[std::ffi::CString], text: &mut [u8; PATH_SIZE]) -> bool {
    let mut name = [0_u8; 64];
    let Ok(link) = numbered(&mut name, &[b"/proc/self/fd/", b"#"], &[file.as_raw_fd().cast_unsigned()]) else {
        return false;
    };
    let length = readlinkat_raw(CWD, link, text.as_mut_slice()).unwrap_or(0);
    let path = text.get(..length).unwrap_or_default();
    writable.iter().any(|place| {
        let rest = path.strip_prefix(place.to_bytes());
        rest.is_some_and(|rest| rest.is_empty() || rest.first() == Some(&b'/'))
    })
}

fn apply(file: &OwnedFd, change: &Change, times: Option<Timestamps>) -> Result<(), Errno> {
    let mut name = [0_u8; 64];
    let path = numbered(&mut name, &[b"/proc/self/fd/", b"#"], &[file.as_raw_fd().cast_unsigned()])?;
    match change {
        Change::Mode(mode) => rustix::fs::chmod(path, Mode::from_raw_mode(mode & 0o1777)),
        Change::Owner(user, group) => {
            let is_ours = |id: u32, ours: u32| id == u32::MAX || id == ours;
            let user_ours = is_ours(*user, rustix::process::geteuid().as_raw());
            let ours = user_ours && is_ours(*group, rustix::process::getegid().as_raw());
            if ours { Ok(()) } else { Err(Errno::PERM) }
        }
        Change::Times(_) => {
            let now = Timespec { tv_sec: 0, tv_nsec: libc::UTIME_NOW as _ };
            let times = times.unwrap_or(Timestamps { last_access: now, last_modification: now });
            rustix::fs::utimensat(CWD, path, &times, AtFlags::empty())
        }
    }
}

/// Builds a path with a number in place of each `#`.
fn numbered<'a>(name: &'a mut [u8; 64], parts: &[&[u8]], numbers: &[u32]) -> Result<&'a CStr, Errno> {
    let mut numbers = numbers.iter();
    let mut length = 0;
    let mut put = |byte: u8| -> Result<(), Errno> {
        *name.get_mut(length).ok_or(Errno::NAMETOOLONG)? = byte;
        length += 1;
        Ok(())
    };
    for part in parts {
        if *part != b"#" {
            part.iter().try_for_each(|byte| put(*byte))?;
            continue;
        }
        let number = *numbers.next().ok_or(Errno::INVAL)?;
        let mut power = 1_000_000_000_u32;
        while power > 0 {
            if number >= power || power == 1 {
                put(b'0' + (number / power % 10) as u8)?;
            }
            power /= 10;
        }
    }
    put(0)?;
    CStr::from_bytes_until_nul(name).map_err(|_| Errno::INVAL)
}

/// The writable paths for the supervisor, from the Landlock grants.
pub(super) fn writable(granted: &[(std::path::PathBuf, bool)]) -> Vec<std::ffi::CString> {
    granted.iter().filter_map(|(path, _)| std::ffi::CString::new(path.as_os_str().as_bytes()).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_without_help() {
        let mut name = [0; 64];
        let path = numbered(&mut name, &[b"/proc/", b"#", b"/fd/", b"#"], &[4_294_967_295, 0]).expect("it fits");
        assert_eq!(path, c"/proc/4294967295/fd/0");
        let path = numbered(&mut name, &[b"/proc/self/fd/", b"#"], &[1203]).expect("it fits");
        assert_eq!(path, c"/proc/self/fd/1203");
    }

    #[test]
    fn paths_are_compared_by_whole_components() {
        let folder = tempfile::tempdir().expect("a folder");
        let inside = folder.path().join("ab");
        std::fs::write(&inside, "").expect("write");
        let check = |place: &std::path::Path| {
            let file = std::fs::File::open(&inside).expect("open").into();
            is_writable(&file, &writable(&[(place.to_owned(), true)]), &mut [0; PATH_SIZE])
        };
        let real = folder.path().canonicalize().expect("it exists");
        assert!(check(&real) && check(&real.join("ab")));
        assert!(!check(&real.join("a")) && !check(&real.join("abc")));
    }
}
