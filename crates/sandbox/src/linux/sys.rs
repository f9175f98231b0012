//! The system calls that no safe crate offers, each behind a function that is safe to call.
//!
//! Invariant: nothing here allocates or locks, so all of it may run between `clone` and `execve`. Every argument of
//! `syscall` has the width that the kernel reads, since a narrower one leaves the upper half to chance.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the kernel's interface is made of such numbers"
)]

use std::ffi::{CStr, c_long, c_void};
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::ptr;

use rustix::io::Errno;

/// `mount_setattr`'s argument.
#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    userns: u64,
}

/// `MOUNT_ATTR_RDONLY`.
pub(super) const READ_ONLY: u64 = 1;
/// `MOUNT_ATTR_NOSUID`.
pub(super) const NO_SUID: u64 = 2;
/// `MOUNT_ATTR_NODEV`.
pub(super) const NO_DEV: u64 = 4;
const AT_RECURSIVE: i32 = 0x8000;

/// `landlock_create_ruleset`'s argument.
#[repr(C)]
pub(super) struct Ruleset {
    pub(super) files: u64,
    pub(super) network: u64,
    pub(super) scopes: u64,
}

#[repr(C, packed)]
struct PathBeneath {
    access: u64,
    folder: i32,
}

/// One instruction of a seccomp filter.
pub(super) use libc::sock_filter as Instruction;

fn check(result: c_long) -> Result<c_long, Errno> {
    if result >= 0 {
        return Ok(result);
    }
    // SAFETY: the address of this thread's `errno` is always valid.
    Err(Errno::from_raw_os_error(unsafe { *libc::__errno_location() }))
}

/// Which of the two processes has come back from [`clone_process`].
pub(super) enum Side {
    Parent { pid: i32, pidfd: OwnedFd },
    Child,
}

/// Copies this process like `fork`, without the handlers that libc runs around it.
///
/// The child may only do what is safe in a signal handler, because the other threads are gone and may have held locks.
pub(super) fn clone_process(namespaces: u64, exit_signal: i32) -> Result<Side, Errno> {
    let flags = namespaces | libc::CLONE_PIDFD as u64 | u64::from(exit_signal.unsigned_abs());
    let mut pidfd: RawFd = -1;
    // SAFETY: without CLONE_VM the child has a copy of this stack and memory; `pidfd` outlives the call.
    let pid = check(unsafe { libc::syscall(libc::SYS_clone, flags, 0_usize, &raw mut pidfd, 0_usize, 0_usize) })?;
    if pid == 0 {
        return Ok(Side::Child);
    }
    // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(Side::Parent { pid: pid as i32, pidfd })
}

/// Moves this process to a network namespace of its own, in which there is nothing.
pub(super) fn leave_network() -> Result<(), Errno> {
    // SAFETY: takes no pointers.
    check(c_long::from(unsafe { libc::unshare(libc::CLONE_NEWNET) })).map(drop)
}

/// Ends this process at once, without destructors or exit handlers.
pub(super) fn exit(code: i32) -> ! {
    // SAFETY: never returns and touches no memory.
    unsafe { libc::_exit(code) }
}

/// Kills every process that this one may signal, except itself: as process 1, all others of its namespace.
pub(super) fn kill_all() {
    // SAFETY: takes no pointers.
    unsafe { libc::kill(-1, libc::SIGKILL) };
}

/// Names a descriptor by number. It must stay open for as long as the name is used.
pub(super) fn borrow(fd: RawFd) -> BorrowedFd<'static> {
    // SAFETY: callers pass descriptors of the plan, which stay open until exec or exit; a wrong number gives EBADF.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// Blocks every signal and returns the former mask.
pub(super) fn block_signals() -> libc::sigset_t {
    // SAFETY: both sets are valid for writing; an all-zero set is a valid value to be filled.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut former: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut former);
        former
    }
}

/// Puts a mask back.
pub(super) fn restore_signals(former: &libc::sigset_t) {
    // SAFETY: the set is valid for reading, and the old mask is not asked for.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, former, ptr::null_mut());
    }
}

/// Lets every signal through.
pub(super) fn unblock_signals() {
    // SAFETY: an all-zero set is the empty set once `sigemptyset` has seen it.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}

/// Gives every signal its default meaning again: handlers of the server must not run in its children.
pub(super) fn reset_signals() {
    // A `struct sigaction` of the kernel with the default handler, no flags and an empty mask is all zeroes. Libc's own
    // function would leave out the signals that it uses itself.
    let default = [0_u64; 4];
    for signal in 1..=64 {
        // SAFETY: the array is as big as the struct, and a mask has 8 bytes; those that cannot be set give an error.
        unsafe {
            libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), ptr::null_mut::<c_void>(), 8_usize);
        }
    }
}

/// Closes, or marks to be closed by exec, the descriptors from `first` to `last`.
pub(super) fn close_range(first: u32, last: u32, on_exec_only: bool) -> Result<(), Errno> {
    let flags = if on_exec_only { libc::CLOSE_RANGE_CLOEXEC } else { 0 };
    // SAFETY: callers own no descriptor in the range that they use afterwards.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) }).map(drop)
}

/// Sets attributes of the mount that `fd` is the root of, and of those below it if asked to.
pub(super) fn set_mount_attributes(fd: BorrowedFd<'_>, set: u64, recursive: bool) -> Result<(), Errno> {
    let attributes = MountAttr { set, clear: 0, propagation: 0, userns: 0 };
    let flags = libc::AT_EMPTY_PATH | if recursive { AT_RECURSIVE } else { 0 };
    // SAFETY: the path is a valid C string, and the size is that of the struct.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            fd.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<MountAttr>(),
        )
    })
    .map(drop)
}

/// The version of Landlock in this kernel; 0 when there is none.
pub(super) fn landlock_abi() -> u32 {
    // SAFETY: with this flag the kernel takes no attributes.
    let abi = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, ptr::null::<c_void>(), 0_usize, 1) };
    u32::try_from(abi).unwrap_or(0)
}

/// Makes a ruleset; `size` is how much of it this kernel knows.
pub(super) fn landlock_create(ruleset: &Ruleset, size: usize) -> Result<OwnedFd, Errno> {
    // SAFETY: `size` is at most the size of the struct.
    let fd = check(unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, ptr::from_ref(ruleset), size.min(size_of::<Ruleset>()), 0)
    })?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Allows `access` on what `place` names and below it.
pub(super) fn landlock_allow(ruleset: BorrowedFd<'_>, place: BorrowedFd<'_>, access: u64) -> Result<(), Errno> {
    let rule = PathBeneath { access, folder: place.as_raw_fd() };
    // SAFETY: 1 is LANDLOCK_RULE_PATH_BENEATH, whose argument is this struct.
    check(unsafe { libc::syscall(libc::SYS_landlock_add_rule, ruleset.as_raw_fd(), 1, &raw const rule, 0) }).map(drop)
}

/// Confines this process and its children by a ruleset.
pub(super) fn landlock_restrict(ruleset: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: takes no pointers.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) }).map(drop)
}

/// Confines this process and its children by a system call filter.
pub(super) fn seccomp(program: &[Instruction]) -> Result<(), Errno> {
    let filter = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| Errno::TOOBIG)?,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel copies the program, which is `len` instructions long, and does not write to it.
    check(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const filter) }).map(drop)
}

/// Like [`seccomp`], with a descriptor through which the calls that the filter hands over can be answered.
pub(super) fn seccomp_with_listener(program: &[Instruction]) -> Result<RawFd, Errno> {
    let filter = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| Errno::TOOBIG)?,
        filter: program.as_ptr().cast_mut(),
    };
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // SAFETY: as above.
    check(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const filter) })
        .map(|fd| fd as RawFd)
}

/// A system call that waits for an answer: `struct seccomp_notif`.
#[repr(C)]
#[derive(Default)]
pub(super) struct Notification {
    pub(super) id: u64,
    pub(super) pid: u32,
    flags: u32,
    pub(super) call: i32,
    architecture: u32,
    instruction: u64,
    pub(super) arguments: [u64; 6],
}

/// `struct seccomp_notif_resp`.
#[repr(C)]
struct Answer {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

const NOTIFICATION_RECEIVE: u64 = 0xc050_2100;
const NOTIFICATION_ANSWER: u64 = 0xc018_2101;
const NOTIFICATION_IS_VALID: u64 = 0x4008_2102;

/// Takes the next call that waits.
pub(super) fn receive_notification(listener: BorrowedFd<'_>) -> Result<Notification, Errno> {
    let mut asked = Notification::default();
    // SAFETY: the struct has the size that is part of the request, and is all zeroes as the kernel demands.
    check(unsafe { libc::syscall(libc::SYS_ioctl, listener.as_raw_fd(), NOTIFICATION_RECEIVE, &raw mut asked) })?;
    Ok(asked)
}

/// Makes a call return.
pub(super) fn answer_notification(listener: BorrowedFd<'_>, id: u64, result: Result<(), Errno>) {
    let error = result.err().map_or(0, |errno| -errno.raw_os_error());
    let mut answer = Answer { id, value: 0, error, flags: 0 };
    // SAFETY: the struct has the size that is part of the request. Whoever asked may be gone, which does not matter.
    unsafe { libc::syscall(libc::SYS_ioctl, listener.as_raw_fd(), NOTIFICATION_ANSWER, &raw mut answer) };
}

/// Whether the call still waits.
pub(super) fn is_notification_valid(listener: BorrowedFd<'_>, id: u64) -> Result<(), Errno> {
    // SAFETY: a valid pointer to the id.
    check(unsafe { libc::syscall(libc::SYS_ioctl, listener.as_raw_fd(), NOTIFICATION_IS_VALID, &raw const id) })
        .map(drop)
}

/// Copies memory of another process, as much as is there.
pub(super) fn read_memory(pid: u32, address: u64, into: &mut [u8]) -> Result<usize, Errno> {
    let mut done = 0;
    // Page by page: a string may end right before memory that is not there.
    while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let from = address.wrapping_add(done as u64);
        let length = rest.len().min(4096 - (from % 4096) as usize);
        let local = libc::iovec { iov_base: rest.as_mut_ptr().cast(), iov_len: length };
        let remote = libc::iovec { iov_base: from as *mut c_void, iov_len: length };
        // SAFETY: the local part is within `into`; the kernel judges the remote one.
        let copied = check(unsafe {
            libc::syscall(
                libc::SYS_process_vm_readv,
                pid,
                &raw const local,
                1_usize,
                &raw const remote,
                1_usize,
                0_usize,
            )
        });
        match copied {
            Ok(copied) if copied > 0 => done += copied as usize,
            Ok(_) => break,
            Err(errno) if done == 0 => return Err(errno),
            Err(_) => break,
        }
    }
    Ok(done)
}

/// A copy of a descriptor of another process.
pub(super) fn take_descriptor(process: BorrowedFd<'_>, fd: RawFd) -> Result<OwnedFd, Errno> {
    // SAFETY: takes no pointers.
    let fd = check(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), fd, 0) })?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Gives up every capability, now and for what is executed later.
pub(super) fn drop_capabilities() -> Result<(), Errno> {
    for capability in 0..64_u64 {
        // SAFETY: takes no pointers. It fails after the last capability, and without CAP_SETPCAP; but then
        // `no_new_privs` keeps exec from adding any.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0_u64, 0_u64, 0_u64) } != 0 {
            break;
        }
    }
    // SAFETY: takes no pointers.
    unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as u64, 0_u64, 0_u64, 0_u64) };
    // _LINUX_CAPABILITY_VERSION_3 and the calling process; then two sets of three words, all empty.
    let header: [u32; 2] = [0x2008_0522, 0];
    let none = [0_u32; 6];
    // SAFETY: both arrays have the layout that version 3 asks for.
    check(unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) }).map(drop)
}

/// A `prctl` that takes one number.
pub(super) fn prctl(option: i32, value: u64) -> Result<(), Errno> {
    // SAFETY: only called with options whose arguments are numbers.
    check(c_long::from(unsafe { libc::prctl(option, value, 0_u64, 0_u64, 0_u64) })).map(drop)
}

/// Makes the terminal `fd` the controlling one of this session.
pub(super) fn set_controlling_terminal(fd: RawFd) -> Result<(), Errno> {
    // SAFETY: takes no pointers.
    check(c_long::from(unsafe { libc::ioctl(fd, libc::TIOCSCTTY, 0) })).map(drop)
}

/// Puts a copy of `from` at the number `to`, which stays open over exec.
pub(super) fn dup_to(from: RawFd, to: RawFd) -> Result<(), Errno> {
    // SAFETY: takes no pointers; `to` is one of the standard streams, which this process owns.
    check(c_long::from(unsafe { libc::dup2(from, to) })).map(drop)
}

/// A list of C strings in the form that `execve` takes: pointers, ended by a null.
pub(super) struct Strings<'a> {
    pointers: Vec<*const libc::c_char>,
    _strings: &'a [std::ffi::CString],
}

impl<'a> Strings<'a> {
    /// Lists `strings`, with `spare` empty places in front.
    pub(super) fn new(strings: &'a [std::ffi::CString], spare: usize) -> Self {
        let mut pointers = vec![ptr::null(); spare];
        pointers.extend(strings.iter().map(|text| text.as_ptr()));
        pointers.push(ptr::null());
        Self { pointers, _strings: strings }
    }
}

/// Becomes `program`. Comes back only if that fails.
///
/// `arguments` has one spare place in front, for the shell that runs a script without a first line.
pub(super) fn execute(program: &CStr, arguments: &mut Strings<'_>, environment: &Strings<'_>) -> Errno {
    let failed = |result: i32| check(c_long::from(result)).err().unwrap_or(Errno::NOEXEC);
    let Some((_, plain)) = arguments.pointers.split_first() else { return Errno::INVAL };
    // SAFETY: both lists end with a null, and their strings live as long as they do.
    let errno = failed(unsafe { libc::execve(program.as_ptr(), plain.as_ptr(), environment.pointers.as_ptr()) });
    let [first, second, ..] = arguments.pointers.as_mut_slice() else { return errno };
    if errno != Errno::NOEXEC {
        return errno;
    }
    let shell = c"/bin/sh";
    *first = shell.as_ptr();
    *second = program.as_ptr();
    // SAFETY: as above; the two strings put in front outlive the call.
    failed(unsafe { libc::execve(shell.as_ptr(), arguments.pointers.as_ptr(), environment.pointers.as_ptr()) })
}
