//! The system call filter: the requests to the kernel that nothing in the sandbox may make.
//!
//! A list of refusals, compiled to the kernel's filter language. Paths are not visible here, so files are left to the
//! namespaces and to Landlock; numbers are: socket families, clone flags, terminal requests.
//!
//! Invariant: only system calls of this machine's own architecture run at all.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the kernel's interface is made of such numbers"
)]

mod code;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use libc::{c_long, sock_filter as Instruction};

use self::code::{Code, IF_EQUAL, Place};
use super::metadata;

/// A refusal applies if all of its conditions hold. Only the lower half of an argument is compared; the kernel treats
/// all arguments named below as 32 bits wide.
struct Refusal {
    call: c_long,
    conditions: Vec<Condition>,
    answer: u32,
}

struct Condition {
    argument: u32,
    mask: u32,
    values: Vec<u32>,
    /// Whether the condition holds for the listed values, or for all others.
    holds_for_listed: bool,
}

/// The parts of the sandbox that are left to the filter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Needs {
    pub(super) network: bool,
    /// Whether outside processes, System V objects and file modes are reachable, for lack of namespaces.
    pub(super) shared_with_outside: bool,
    /// Whether the supervisor handles the calls that change modes, owners and times; otherwise they are refused.
    pub(super) metadata_is_judged: bool,
}

/// System calls that are refused whatever their arguments.
const REFUSED: &[c_long] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    // Ways around this filter, and large attack surfaces.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_fanotify_init,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_open_by_handle_at,
    // The machine.
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    #[cfg(not(target_arch = "x86"))]
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// `open_tree_attr`, the same number on every architecture.
const OPEN_TREE_ATTR: c_long = 467;

/// Refused without network: no socket except a pair can exist, so this is a second line of defence.
const NETWORK: &[c_long] = &[libc::SYS_connect, libc::SYS_bind, libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4];

/// System V objects have neither a path nor a separate namespace on the Landlock level.
const SYSTEM_V: &[c_long] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
];

/// POSIX message queues have names that outlive their creators.
const QUEUES: &[c_long] = &[libc::SYS_mq_open, libc::SYS_mq_unlink];

/// Calls about a process, identified by their first argument, where 0 is the caller.
const ABOUT_PROCESSES: &[c_long] = &[
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
];

/// Calls that set a priority, with the kind of target that means all processes of a user.
const PRIORITIES: &[(c_long, u32)] = &[(libc::SYS_setpriority, 2), (libc::SYS_ioprio_set, 3)];

/// `F_SETLEASE`: the holder of a lease on a file delays everybody who opens it, by most of a minute.
const SET_LEASE: u32 = 1024;

/// File system ioctls, by the letter in their second byte: flags, keys and seals of files (`f`, `v`), attributes (`X`),
/// and those of Btrfs. They need no descriptor that is open for writing, and Landlock does not see them.
const FILE_REQUESTS: [u32; 4] = [0x6600, 0x7600, 0x5800, 0x9400];
/// The read-only ones among them, and those that write to a descriptor that is open for writing: `FS_IOC_GETFLAGS` (two
/// widths), `FIEMAP`, `FS_IOC_FSGETXATTR`, `FICLONE`, `FICLONERANGE`, `FIDEDUPERANGE`.
const HARMLESS_FILE_REQUESTS: [u32; 7] =
    [0x8008_6601, 0x8004_6601, 0xc020_660b, 0x801c_581f, 0x4004_9409, 0x4020_940d, 0xc018_9436];

const NEW_NAMESPACES: u32 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u32;
/// Shares its bit with the exit signal of `clone`, so only `unshare` accepts it.
const NEW_TIME: u32 = 0x80;

/// Requests that inject terminal input or change a terminal's behaviour: TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD.
const TERMINAL_REQUESTS: [u32; 4] = [0x5412, 0x541C, 0x541D, 0x5423];

/// The type of a socket without its flags.
const SOCKET_TYPE: u32 = 0xf;

/// The calls that set a file's mode, and the position of the mode among their arguments.
const MODES: &[(c_long, u32)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (452, 2),
];
/// The bits that make a file run as another user or group: set-uid and set-gid.
const SET_ID: u32 = 0o6000;

const fn errno(errno: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno as u32
}

fn refusals(needs: Needs) -> Vec<Refusal> {
    let refused = errno(libc::EPERM);
    let always = |call: &c_long| Refusal { call: *call, conditions: Vec::new(), answer: refused };
    let when = |call, conditions| Refusal { call, conditions, answer: refused };
    let mut list: Vec<Refusal> = REFUSED.iter().map(always).collect();
    // Its flags are behind a pointer, so it is reported as missing: libc then uses `clone`.
    list.push(Refusal { call: libc::SYS_clone3, conditions: Vec::new(), answer: errno(libc::ENOSYS) });
    list.push(when(libc::SYS_clone, vec![unless(0, NEW_NAMESPACES, &[0])]));
    list.push(when(libc::SYS_unshare, vec![unless(0, NEW_NAMESPACES | NEW_TIME, &[0])]));
    list.push(when(libc::SYS_ioctl, vec![listed(1, u32::MAX, &TERMINAL_REQUESTS)]));
    list.push(when(libc::SYS_fcntl, vec![listed(1, u32::MAX, &[SET_LEASE])]));
    // Any Unix datagram socket, even a pair, can send to a path: syslog, notify, agents.
    let pairs = [libc::SOCK_STREAM as u32, libc::SOCK_SEQPACKET as u32];
    list.push(when(libc::SYS_socketpair, vec![unless(1, SOCKET_TYPE, &pairs)]));
    if needs.network {
        let (inet, inet6, netlink) = (libc::AF_INET as u32, libc::AF_INET6 as u32, libc::AF_NETLINK as u32);
        list.push(when(libc::SYS_socket, vec![unless(0, u32::MAX, &[inet, inet6, netlink])]));
        let route = libc::NETLINK_ROUTE as u32;
        list.push(when(libc::SYS_socket, vec![listed(0, u32::MAX, &[netlink]), unless(2, u32::MAX, &[route])]));
    } else {
        list.push(always(&libc::SYS_socket));
        list.extend(NETWORK.iter().map(always));
    }
    list.extend(MODES.iter().map(|(call, argument)| when(*call, vec![unless(*argument, SET_ID, &[0])])));
    if needs.shared_with_outside {
        let answer = if needs.metadata_is_judged { libc::SECCOMP_RET_USER_NOTIF } else { refused };
        let judged = |call: &c_long| Refusal { call: *call, conditions: Vec::new(), answer };
        list.extend(metadata::HANDED_OVER.iter().map(judged));
        let unsupported = errno(libc::ENOTSUP);
        let missing = |call: &c_long| Refusal { call: *call, conditions: Vec::new(), answer: unsupported };
        list.extend(metadata::REFUSED.iter().map(missing));
        list.extend(SYSTEM_V.iter().chain(QUEUES).map(always));
        list.extend(ABOUT_PROCESSES.iter().map(|call| when(*call, vec![unless(0, u32::MAX, &[0])])));
        for (call, user) in PRIORITIES {
            list.push(when(*call, vec![listed(0, u32::MAX, &[*user])]));
            list.push(when(*call, vec![unless(1, u32::MAX, &[0])]));
        }
        let about_files = vec![listed(1, 0xff00, &FILE_REQUESTS), unless(1, u32::MAX, &HARMLESS_FILE_REQUESTS)];
        list.push(Refusal { call: libc::SYS_ioctl, conditions: about_files, answer: unsupported });
    }
    list
}

fn listed(argument: u32, mask: u32, values: &[u32]) -> Condition {
    Condition { argument, mask, values: values.to_vec(), holds_for_listed: true }
}

fn unless(argument: u32, mask: u32, values: &[u32]) -> Condition {
    Condition { argument, mask, values: values.to_vec(), holds_for_listed: false }
}

// Offsets in `struct seccomp_data`.
const CALL: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

#[cfg(target_arch = "x86_64")]
const NATIVE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const NATIVE: u32 = 0xc000_00b7;
#[cfg(target_arch = "riscv64")]
const NATIVE: u32 = 0xc000_00f3;

/// The first number of the x32 interface, which would bypass the list.
const X32: u32 = 0x4000_0000;

/// Compiles the filter.
///
/// The kernel takes half a microsecond per instruction whenever a command starts, and then runs the program once for
/// every system call number. So the program is short, and the numbers are searched as a tree.
pub(super) fn program(needs: Needs) -> Vec<Instruction> {
    let mut code = Code::default();
    let allow = code.answer(libc::SECCOMP_RET_ALLOW);
    let kill = code.answer(libc::SECCOMP_RET_KILL_PROCESS);
    let mut calls: BTreeMap<u32, Place> = BTreeMap::new();
    // If a call has several refusals, the first that applies wins.
    for refusal in refusals(needs).into_iter().rev() {
        let otherwise = calls.get(&(refusal.call as u32)).copied().unwrap_or(allow);
        let refused = refuse(&mut code, &refusal, otherwise);
        calls.insert(refusal.call as u32, refused);
    }
    let mut ranges = vec![(0, allow)];
    for (call, place) in calls {
        ranges.extend([(call, place), (call + 1, allow)]);
    }
    ranges.push((X32, kill));
    let tree = code.search(&joined(ranges));
    let loaded = code.load(CALL, tree);
    let native = code.branch(IF_EQUAL, NATIVE, loaded, kill);
    code.load(ARCHITECTURE, native);
    code.finish()
}

/// Returns the refusal's answer if every condition holds.
fn refuse(code: &mut Code, refusal: &Refusal, otherwise: Place) -> Place {
    let mut next = code.answer(refusal.answer);
    for condition in refusal.conditions.iter().rev() {
        let (found, missed) = if condition.holds_for_listed { (next, otherwise) } else { (otherwise, next) };
        next = condition.values.iter().rev().fold(missed, |no, value| code.branch(IF_EQUAL, *value, found, no));
        if condition.mask != u32::MAX {
            next = code.mask(condition.mask, next);
        }
        next = code.load(ARGUMENTS + 8 * condition.argument, next);
    }
    next
}

/// Drops empty ranges, and ranges that lead to the same place as the one before.
fn joined(ranges: Vec<(u32, Place)>) -> Vec<(u32, Place)> {
    let mut joined: Vec<(u32, Place)> = Vec::new();
    for (first, place) in ranges {
        joined.pop_if(|last| last.0 == first);
        if joined.last().is_none_or(|last| last.1 != place) {
            joined.push((first, place));
        }
    }
    joined
}
