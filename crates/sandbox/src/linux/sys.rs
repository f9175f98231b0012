//! The system calls that no safe crate offers, each behind a function that is safe to call.
//!
//! The processes of a command share memory with each other until the command is executed, including libc's errno. So
//! the system calls are made directly.
//!
//! Invariant: nothing here allocates, locks or uses thread-local memory, so all of it may run between `clone` and
//! `execve`.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "the kernel's interface is made of such numbers"
)]

use std::ffi::{CStr, c_int, c_long, c_void};
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::ptr;

use rustix::io::Errno;

use super::stack::Stack;

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

/// Makes a system call.
///
/// # Safety
///
/// The arguments must match the call with this number; pointers among them must be valid for what it does.
unsafe fn call<const N: usize>(number: c_long, arguments: [usize; N]) -> Result<usize, Errno> {
    const LAST_ERROR: usize = 4095;
    let mut all = [0; 6];
    for (slot, argument) in all.iter_mut().zip(arguments) {
        *slot = argument;
    }
    let [a0, a1, a2, a3, a4, a5] = all;
    // SAFETY: as the caller promises; unused arguments are ignored.
    let result = unsafe { syscalls::raw::syscall6(number as usize, a0, a1, a2, a3, a4, a5) };
    match result.wrapping_neg() {
        errno @ 1..=LAST_ERROR => Err(Errno::from_raw_os_error(errno as i32)),
        _ => Ok(result),
    }
}

/// The argument for a descriptor.
fn number(fd: BorrowedFd<'_>) -> usize {
    fd.as_raw_fd() as usize
}

/// The argument for an address.
fn address<T>(pointer: *const T) -> usize {
    pointer.expose_provenance()
}

/// The process that has returned from [`clone_process`].
pub(super) enum Side {
    Parent { pid: i32, pidfd: OwnedFd },
    Child,
}

/// Copies this process like `fork`, without libc's fork handlers, in new namespaces if requested. Its exit sends no
/// signal.
///
/// # Safety
///
/// The child may only do what is safe in a signal handler, because the other threads are gone and may have held locks;
/// it must not return from the calling function, but end with [`exit`].
pub(super) unsafe fn clone_process(namespaces: c_int) -> Result<Side, Errno> {
    let mut pidfd: RawFd = -1;
    let (flags, place) = (namespaces | libc::CLONE_PIDFD, address(&raw mut pidfd));
    // SAFETY: without CLONE_VM the child has a copy of this stack and memory; `pidfd` outlives the call.
    let pid = unsafe { call(libc::SYS_clone, [flags as usize, 0, place, 0, 0]) }?;
    if pid == 0 {
        // Only an accessible process can map its user or hand over a descriptor; this process becomes inaccessible
        // again.
        let _ = set_visible(true);
        return Ok(Side::Child);
    }
    // SAFETY: the kernel has just created this descriptor for us, and nobody else knows it.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(Side::Parent { pid: pid as i32, pidfd })
}

/// Starts `run` as a process that shares this one's memory, with the namespaces and the exit signal in `flags`. It
/// exits with the status that `run` returns.
///
/// A copy would take ten times as long, half of it for tearing down unused memory.
///
/// # Safety
///
/// The stack and everything that `run` borrows must stay valid and unused until the process has exited or executed a
/// program. `run` may only do what is safe while other threads are in an unknown state.
pub(super) unsafe fn clone_sharing<F: FnOnce() -> c_int>(
    stack: &mut Stack,
    flags: c_int,
    run: F,
) -> Result<(i32, OwnedFd), Errno> {
    extern "C" fn enter<F: FnOnce() -> c_int>(place: *mut c_void) -> c_int {
        // SAFETY: the parent has put it there for this process alone.
        let run = unsafe { place.cast::<F>().read() };
        run()
    }
    let flags = flags | libc::CLONE_VM | libc::CLONE_PIDFD;
    let place = stack.top::<F>().ok_or(Errno::NOMEM)?;
    let mut pidfd: RawFd = -1;
    // SAFETY: the place is inside the stack, above everything that the new process pushes, and aligned.
    let pid = unsafe {
        place.write(run);
        libc::clone(enter::<F>, place.cast(), flags, place.cast(), &raw mut pidfd)
    };
    if pid < 0 {
        // SAFETY: the address of `errno` is always valid, and no other process uses it yet.
        return Err(Errno::from_raw_os_error(unsafe { *libc::__errno_location() }));
    }
    // SAFETY: the kernel has just created this descriptor for us, and nobody else knows it.
    Ok((pid, unsafe { OwnedFd::from_raw_fd(pidfd) }))
}

/// Moves this process to a new, empty network namespace.
pub(super) fn leave_network() -> Result<(), Errno> {
    // SAFETY: takes no pointers.
    unsafe { call(libc::SYS_unshare, [libc::CLONE_NEWNET as usize]) }.map(drop)
}

/// Moves this process to another namespace.
pub(super) fn join(namespace: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: takes no pointers.
    unsafe { call(libc::SYS_setns, [number(namespace), 0]) }.map(drop)
}

/// Exits at once, without destructors or exit handlers.
pub(super) fn exit(code: i32) -> ! {
    // SAFETY: never returns and touches no memory.
    unsafe { libc::_exit(code) }
}

/// Kills every process that this one may signal, except itself: as process 1, all others of its namespace.
pub(super) fn kill_all() {
    // SAFETY: takes no pointers.
    let _ = unsafe { call(libc::SYS_kill, [usize::MAX, libc::SIGKILL as usize]) };
}

/// Reads from a descriptor of the plan. Processes that share memory have separate descriptor tables, so a plan holds
/// numbers; a closed one gives `EBADF`.
pub(super) fn read(fd: RawFd, bytes: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: the kernel writes at most as many bytes as the slice has.
    unsafe { call(libc::SYS_read, [fd as usize, address(bytes.as_mut_ptr()), bytes.len()]) }
}

/// Writes to a descriptor of the plan; see [`read`].
pub(super) fn write(fd: RawFd, bytes: &[u8]) -> Result<usize, Errno> {
    // SAFETY: the bytes are only read.
    unsafe { call(libc::SYS_write, [fd as usize, address(bytes.as_ptr()), bytes.len()]) }
}

/// Blocks every signal and returns the previous mask.
pub(super) fn block_signals() -> libc::sigset_t {
    // SAFETY: both sets are valid for writing; an all-zero set is a valid initial value.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut former: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut former);
        former
    }
}

/// Restores a mask.
pub(super) fn restore_signals(former: &libc::sigset_t) {
    // SAFETY: the set is valid for reading, and the old mask is not requested.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, former, ptr::null_mut());
    }
}

/// The size of the kernel's signal mask.
const MASK_SIZE: usize = 8;

/// Unblocks every signal.
pub(super) fn unblock_signals() {
    let none = 0_u64;
    let (mask, former) = (address(&raw const none), 0);
    // SAFETY: the mask has the given size, and the old one is not requested.
    let _ = unsafe { call(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as usize, mask, former, MASK_SIZE]) };
}

/// A descriptor that reports exited children. The signal has to be blocked.
pub(super) fn ends_of_children() -> Result<OwnedFd, Errno> {
    let mask = 1_u64 << (libc::SIGCHLD - 1);
    let flags = libc::SFD_NONBLOCK | libc::SFD_CLOEXEC;
    let arguments = [usize::MAX, address(&raw const mask), MASK_SIZE, flags as usize];
    // SAFETY: the mask has the given size.
    let fd = unsafe { call(libc::SYS_signalfd4, arguments) }?;
    // SAFETY: the kernel has just created this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Resets every signal to its default action: the server's handlers must not run in its children.
pub(super) fn reset_signals() {
    // A kernel `struct sigaction` with the default handler, no flags and an empty mask is all zeroes.
    let default = [0_u64; 4];
    for signal in 1..=64 {
        // SAFETY: the array has the size of the struct; signals that cannot be set return an error.
        let _ = unsafe { call(libc::SYS_rt_sigaction, [signal, address(default.as_ptr()), 0, MASK_SIZE]) };
    }
}

/// Closes the descriptors from `first` to `last`, or marks them close-on-exec.
pub(super) fn close_range(first: u32, last: u32, on_exec_only: bool) -> Result<(), Errno> {
    let flags = if on_exec_only { libc::CLOSE_RANGE_CLOEXEC } else { 0 };
    // SAFETY: callers own no descriptor in the range that they use afterwards.
    unsafe { call(libc::SYS_close_range, [first as usize, last as usize, flags as usize]) }.map(drop)
}

/// Sets attributes of the mount whose root is `fd`, and of those below it if requested.
pub(super) fn set_mount_attributes(fd: BorrowedFd<'_>, set: u64, recursive: bool) -> Result<(), Errno> {
    let attributes = MountAttr { set, clear: 0, propagation: 0, userns: 0 };
    let flags = libc::AT_EMPTY_PATH | if recursive { AT_RECURSIVE } else { 0 };
    let (path, attributes) = (address(c"".as_ptr()), address(&raw const attributes));
    let size = size_of::<MountAttr>();
    // SAFETY: the path is a valid C string, and the size is that of the struct.
    unsafe { call(libc::SYS_mount_setattr, [number(fd), path, flags as usize, attributes, size]) }.map(drop)
}

/// The Landlock version of this kernel; 0 if it has none.
pub(super) fn landlock_abi() -> u32 {
    // SAFETY: with this flag the kernel takes no attributes.
    let abi = unsafe { call(libc::SYS_landlock_create_ruleset, [0, 0, 1]) };
    abi.map_or(0, |abi| abi as u32)
}

/// Creates a ruleset; `size` is the part of it that this kernel knows.
pub(super) fn landlock_create(ruleset: &Ruleset, size: usize) -> Result<OwnedFd, Errno> {
    let size = size.min(size_of::<Ruleset>());
    // SAFETY: `size` is at most the size of the struct.
    let fd = unsafe { call(libc::SYS_landlock_create_ruleset, [address(ptr::from_ref(ruleset)), size, 0]) }?;
    // SAFETY: the kernel has just created this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Allows `access` on `place` and everything below it.
pub(super) fn landlock_allow(ruleset: BorrowedFd<'_>, place: BorrowedFd<'_>, access: u64) -> Result<(), Errno> {
    let rule = PathBeneath { access, folder: place.as_raw_fd() };
    // SAFETY: 1 is LANDLOCK_RULE_PATH_BENEATH, whose argument is this struct.
    unsafe { call(libc::SYS_landlock_add_rule, [number(ruleset), 1, address(&raw const rule), 0]) }.map(drop)
}

/// Applies a Landlock ruleset to this process and its children.
pub(super) fn landlock_restrict(ruleset: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: takes no pointers.
    unsafe { call(libc::SYS_landlock_restrict_self, [number(ruleset), 0]) }.map(drop)
}

/// Applies a system call filter to this process and its children.
pub(super) fn seccomp(program: &[Instruction]) -> Result<(), Errno> {
    set_filter(program, 0).map(drop)
}

/// Like [`seccomp`], with a descriptor through which the calls that the filter hands over can be answered.
pub(super) fn seccomp_with_listener(program: &[Instruction]) -> Result<RawFd, Errno> {
    set_filter(program, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER as usize).map(|fd| fd as RawFd)
}

fn set_filter(program: &[Instruction], flags: usize) -> Result<usize, Errno> {
    let filter = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| Errno::TOOBIG)?,
        filter: program.as_ptr().cast_mut(),
    };
    let mode = libc::SECCOMP_SET_MODE_FILTER as usize;
    // SAFETY: the kernel copies the program, which is `len` instructions long, and does not write to it.
    unsafe { call(libc::SYS_seccomp, [mode, flags, address(&raw const filter)]) }
}

/// A pending system call: `struct seccomp_notif`.
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

const NOTIFICATION_RECEIVE: usize = 0xc050_2100;
const NOTIFICATION_ANSWER: usize = 0xc018_2101;
const NOTIFICATION_IS_VALID: usize = 0x4008_2102;

/// Takes the next pending call.
pub(super) fn receive_notification(listener: BorrowedFd<'_>) -> Result<Notification, Errno> {
    let mut asked = Notification::default();
    // SAFETY: the struct has the size that is encoded in the request, and is all zeroes as the kernel requires.
    unsafe { call(libc::SYS_ioctl, [number(listener), NOTIFICATION_RECEIVE, address(&raw mut asked)]) }?;
    Ok(asked)
}

/// Makes a call return.
pub(super) fn answer_notification(listener: BorrowedFd<'_>, id: u64, result: Result<(), Errno>) {
    let error = result.err().map_or(0, |errno| -errno.raw_os_error());
    let mut answer = Answer { id, value: 0, error, flags: 0 };
    // SAFETY: the struct has the size that is encoded in the request. The caller may be gone, which does not matter.
    let _ = unsafe { call(libc::SYS_ioctl, [number(listener), NOTIFICATION_ANSWER, address(&raw mut answer)]) };
}

/// Whether the call is still pending.
pub(super) fn is_notification_valid(listener: BorrowedFd<'_>, id: u64) -> Result<(), Errno> {
    // SAFETY: a valid pointer to the id.
    unsafe { call(libc::SYS_ioctl, [number(listener), NOTIFICATION_IS_VALID, address(&raw const id)]) }.map(drop)
}

/// Copies memory of another process, up to the first unmapped page.
pub(super) fn read_memory(pid: u32, start: u64, into: &mut [u8]) -> Result<usize, Errno> {
    let mut done = 0;
    // Page by page: a string may end right before unmapped memory.
    while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let from = start.wrapping_add(done as u64);
        let length = rest.len().min(4096 - (from % 4096) as usize);
        let local = libc::iovec { iov_base: rest.as_mut_ptr().cast(), iov_len: length };
        let remote = libc::iovec { iov_base: from as *mut c_void, iov_len: length };
        let (local, remote) = (address(&raw const local), address(&raw const remote));
        // SAFETY: the local part is within `into`; the kernel checks the remote one.
        match unsafe { call(libc::SYS_process_vm_readv, [pid as usize, local, 1, remote, 1, 0]) } {
            Ok(copied) if copied > 0 => done += copied,
            Ok(_) => break,
            Err(errno) if done == 0 => return Err(errno),
            Err(_) => break,
        }
    }
    Ok(done)
}

/// Duplicates a descriptor of another process.
pub(super) fn take_descriptor(process: BorrowedFd<'_>, fd: RawFd) -> Result<OwnedFd, Errno> {
    // SAFETY: takes no pointers.
    let fd = unsafe { call(libc::SYS_pidfd_getfd, [number(process), fd as usize, 0]) }?;
    // SAFETY: the kernel has just created this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Drops every capability, also for programs that are executed later.
pub(super) fn drop_capabilities() -> Result<(), Errno> {
    for capability in 0..64 {
        // It fails after the last capability, and without CAP_SETPCAP; but then `no_new_privs` keeps exec from adding
        // any.
        if prctl(libc::PR_CAPBSET_DROP, capability).is_err() {
            break;
        }
    }
    let _ = prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as u64);
    use_no_capabilities()
}

/// Drops every capability, in a process that executes nothing.
pub(super) fn use_no_capabilities() -> Result<(), Errno> {
    // _LINUX_CAPABILITY_VERSION_3 and the calling process; then two sets of three words, all empty.
    let header: [u32; 2] = [0x2008_0522, 0];
    let none = [0_u32; 6];
    // SAFETY: both arrays have the layout of version 3.
    unsafe { call(libc::SYS_capset, [address(header.as_ptr()), address(none.as_ptr())]) }.map(drop)
}

/// Makes this process accessible to others of the same user, or inaccessible: no tracing, no core dumps.
pub(super) fn set_visible(is_visible: bool) -> Result<(), Errno> {
    prctl(libc::PR_SET_DUMPABLE, u64::from(is_visible))
}

/// Sets the process name.
pub(super) fn set_name(name: &CStr) {
    // SAFETY: the kernel reads at most 16 bytes, up to the end of the string.
    let _ = unsafe { call(libc::SYS_prctl, [libc::PR_SET_NAME as usize, address(name.as_ptr()), 0, 0, 0]) };
}

/// A `prctl` that takes one number.
pub(super) fn prctl(option: i32, value: u64) -> Result<(), Errno> {
    // SAFETY: only called with options whose arguments are numbers.
    unsafe { call(libc::SYS_prctl, [option as usize, value as usize, 0, 0, 0]) }.map(drop)
}

/// Makes the terminal `fd` the controlling terminal of this session.
pub(super) fn set_controlling_terminal(fd: RawFd) -> Result<(), Errno> {
    // SAFETY: takes no pointers.
    unsafe { call(libc::SYS_ioctl, [fd as usize, libc::TIOCSCTTY as usize, 0]) }.map(drop)
}

/// Duplicates `from` as `to`, a different number, without close-on-exec.
pub(super) fn dup_to(from: RawFd, to: RawFd) -> Result<(), Errno> {
    // SAFETY: takes no pointers; `to` is one of the standard streams, which this process owns.
    unsafe { call(libc::SYS_dup3, [from as usize, to as usize, 0]) }.map(drop)
}

/// A list of C strings in the form that `execve` takes: pointers, terminated by a null.
pub(super) struct Strings {
    /// They point into `_strings`, whose text does not move when this value is moved.
    pointers: Vec<*const libc::c_char>,
    _strings: Vec<std::ffi::CString>,
}

impl Strings {
    /// Lists `strings`, with `spare` empty slots in front.
    pub(super) fn new(strings: Vec<std::ffi::CString>, spare: usize) -> Self {
        let mut pointers = vec![ptr::null(); spare];
        pointers.extend(strings.iter().map(|text| text.as_ptr()));
        pointers.push(ptr::null());
        Self { pointers, _strings: strings }
    }
}

/// Becomes `program`. Returns only if that fails.
///
/// `arguments` has one spare slot in front, for the shell that runs a script without a shebang line.
pub(super) fn execute(program: &CStr, arguments: &mut Strings, environment: &Strings) -> Errno {
    let Some((_, plain)) = arguments.pointers.split_first() else { return Errno::INVAL };
    // SAFETY: both lists end with a null, and their strings live as long as they do.
    let errno = unsafe { become_program(program, plain, &environment.pointers) };
    let [first, second, ..] = arguments.pointers.as_mut_slice() else { return errno };
    if errno != Errno::NOEXEC {
        return errno;
    }
    let shell = c"/bin/sh";
    *first = shell.as_ptr();
    *second = program.as_ptr();
    // SAFETY: as above; the two strings put in front outlive the call.
    unsafe { become_program(shell, &arguments.pointers, &environment.pointers) }
}

/// # Safety
///
/// Both lists must end with a null and have valid C strings before it.
unsafe fn become_program(
    program: &CStr,
    arguments: &[*const libc::c_char],
    environment: &[*const libc::c_char],
) -> Errno {
    let lists = [address(program.as_ptr()), address(arguments.as_ptr()), address(environment.as_ptr())];
    // SAFETY: as the caller promises. It returns only on error.
    unsafe { call(libc::SYS_execve, lists) }.err().unwrap_or(Errno::NOEXEC)
}
