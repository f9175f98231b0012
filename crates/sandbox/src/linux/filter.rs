//! The system call filter: what nothing in the sandbox may ask the kernel for.
//!
//! A list of refusals, compiled to the kernel's filter language. Paths cannot be seen here, so files are left to the
//! namespaces and to Landlock; numbers can: socket families, clone flags, terminal requests.
//!
//! Invariant: only the system calls of this machine's own architecture run at all.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the kernel's interface is made of such numbers"
)]

use std::collections::BTreeMap;

use libc::{c_long, sock_filter as Instruction};

use super::metadata;

/// When a refusal applies: all of its conditions hold. Only the lower half of an argument is looked at, and all
/// arguments named below are 32 bits wide to the kernel.
struct Refusal {
    call: c_long,
    conditions: Vec<Condition>,
    answer: u32,
}

struct Condition {
    argument: u32,
    mask: u32,
    values: Vec<u32>,
    /// Whether it holds for the values listed, or for all others.
    holds_for_listed: bool,
}

/// What the rest of the sandbox leaves to the filter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Needs {
    /// Whether the network may be used.
    pub(super) network: bool,
    /// Whether processes, System V objects and the modes of files outside are in reach, for lack of namespaces.
    pub(super) shared_with_outside: bool,
    /// Whether the supervisor answers the calls that change modes, owners and times; else nobody may make them.
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
    // Ways around this filter, and big attack surfaces.
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
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_acct,
    libc::SYS_quotactl,
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

/// Refused without network: no socket but a pair can exist, so this is a second line.
const NETWORK: &[c_long] = &[libc::SYS_connect, libc::SYS_bind, libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4];

/// System V objects have neither a path nor a namespace of their own on the Landlock rung.
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

const NEW_NAMESPACES: u32 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u32;
/// Shares its bit with the exit signal of `clone`, so only `unshare` takes it.
const NEW_TIME: u32 = 0x80;

/// Requests that put words into a terminal's mouth or change what it does: TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD.
const TERMINAL_REQUESTS: [u32; 4] = [0x5412, 0x541C, 0x541D, 0x5423];

/// The type of a socket without its flags.
const SOCKET_TYPE: u32 = 0xf;

/// The calls that set a file's mode, and where the mode is among their arguments.
const MODES: &[(c_long, u32)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (452, 2),
];
/// The bits that make a file run as somebody else: set-uid and set-gid.
const SET_ID: u32 = 0o6000;

const fn errno(errno: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno as u32
}

fn refusals(needs: Needs) -> Vec<Refusal> {
    let refused = errno(libc::EPERM);
    let always = |call: &c_long| Refusal { call: *call, conditions: Vec::new(), answer: refused };
    let when = |call, conditions| Refusal { call, conditions, answer: refused };
    let mut list: Vec<Refusal> = REFUSED.iter().map(always).collect();
    // Its flags are behind a pointer, so it does not exist: libc then uses `clone`.
    list.push(Refusal { call: libc::SYS_clone3, conditions: Vec::new(), answer: errno(libc::ENOSYS) });
    list.push(when(libc::SYS_clone, vec![unless(0, NEW_NAMESPACES, &[0])]));
    list.push(when(libc::SYS_unshare, vec![unless(0, NEW_NAMESPACES | NEW_TIME, &[0])]));
    list.push(when(libc::SYS_ioctl, vec![listed(1, u32::MAX, &TERMINAL_REQUESTS)]));
    // Any datagram socket of the Unix family, a pair too, can be sent on to a path: syslog, notify, agents.
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
        list.extend(SYSTEM_V.iter().map(always));
        list.push(when(libc::SYS_prlimit64, vec![unless(0, u32::MAX, &[0])]));
        list.push(when(libc::SYS_setpriority, vec![unless(1, u32::MAX, &[0])]));
        list.push(when(libc::SYS_ioprio_set, vec![unless(1, u32::MAX, &[0])]));
    }
    list
}

fn listed(argument: u32, mask: u32, values: &[u32]) -> Condition {
    Condition { argument, mask, values: values.to_vec(), holds_for_listed: true }
}

fn unless(argument: u32, mask: u32, values: &[u32]) -> Condition {
    Condition { argument, mask, values: values.to_vec(), holds_for_listed: false }
}

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

// Where `struct seccomp_data` keeps things.
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

const fn plain(code: u16, k: u32) -> Instruction {
    Instruction { code, jt: 0, jf: 0, k }
}

const fn jump(code: u16, k: u32, jt: u8, jf: u8) -> Instruction {
    Instruction { code, jt, jf, k }
}

/// Compiles the filter.
///
/// The kernel runs a new filter once for every system call number, to remember which are always allowed, so the numbers
/// are searched as a tree.
pub(super) fn program(needs: Needs) -> Vec<Instruction> {
    let mut calls: BTreeMap<u32, Vec<Instruction>> = BTreeMap::new();
    for refusal in refusals(needs) {
        calls.entry(refusal.call as u32).or_default().extend(refuse(&refusal));
    }
    let calls: Vec<(u32, Vec<Instruction>)> = calls.into_iter().collect();
    let kill = plain(RETURN, libc::SECCOMP_RET_KILL_PROCESS);
    let mut code = vec![plain(LOAD, ARCHITECTURE), jump(IF_EQUAL, NATIVE, 1, 0), kill, plain(LOAD, CALL)];
    code.extend([jump(IF_AT_LEAST, X32, 0, 1), kill]);
    code.extend(search(&calls));
    code
}

/// Finds the number among `calls`, which are in order, and ends with a verdict.
fn search(calls: &[(u32, Vec<Instruction>)]) -> Vec<Instruction> {
    let allow = plain(RETURN, libc::SECCOMP_RET_ALLOW);
    match calls {
        [] => vec![allow],
        [(call, body)] => {
            // Bodies are a dozen instructions at most.
            let mut code = vec![jump(IF_EQUAL, *call, 0, body.len() as u8)];
            code.extend_from_slice(body);
            code.push(allow);
            code
        }
        _ => {
            let (below, above) = calls.split_at(calls.len() / 2);
            let middle = above.first().map_or(0, |(call, _)| *call);
            let below = search(below);
            let mut code = vec![jump(IF_AT_LEAST, middle, 0, 1), plain(JUMP, below.len() as u32)];
            code.extend(below);
            code.extend(search(above));
            code
        }
    }
}

/// Refuses if every condition holds, else runs off its own end.
fn refuse(refusal: &Refusal) -> Vec<Instruction> {
    let mut body = vec![plain(RETURN, refusal.answer)];
    for condition in refusal.conditions.iter().rev() {
        let otherwise = body.len() as u8;
        let mut test = vec![plain(LOAD, ARGUMENTS + 8 * condition.argument), plain(AND, condition.mask)];
        let count = condition.values.len() as u8;
        for (index, value) in (0_u8..).zip(&condition.values) {
            let after = count - index - 1;
            let equal = if condition.holds_for_listed { after } else { after + otherwise };
            let last_of_listed = condition.holds_for_listed && after == 0;
            test.push(jump(IF_EQUAL, *value, equal, if last_of_listed { otherwise } else { 0 }));
        }
        test.append(&mut body);
        body = test;
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFLINE: Needs = Needs { network: false, shared_with_outside: false, metadata_is_judged: false };
    const ONLINE: Needs = Needs { network: true, shared_with_outside: false, metadata_is_judged: false };
    const LANDLOCK: Needs = Needs { network: false, shared_with_outside: true, metadata_is_judged: true };

    /// Runs the filter as the kernel does and says what it would answer.
    fn verdict(needs: Needs, architecture: u32, call: u32, arguments: [u64; 3]) -> String {
        let program = program(needs);
        let load = |offset: u32| match offset {
            CALL => call,
            ARCHITECTURE => architecture,
            offset => {
                let argument = arguments.get(((offset - ARGUMENTS) / 8) as usize).copied().unwrap_or(0);
                (argument >> (8 * (offset % 8))) as u32
            }
        };
        let (mut at, mut held) = (0, 0);
        loop {
            let Instruction { code, jt, jf, k } = program[at];
            at += 1;
            let branch = |holds| usize::from(if holds { jt } else { jf });
            match code {
                LOAD => held = load(k),
                AND => held &= k,
                JUMP => at += k as usize,
                IF_EQUAL => at += branch(held == k),
                IF_AT_LEAST => at += branch(held >= k),
                RETURN if k == libc::SECCOMP_RET_ALLOW => return "allow".to_owned(),
                RETURN if k == libc::SECCOMP_RET_USER_NOTIF => return "judged".to_owned(),
                RETURN if k == libc::SECCOMP_RET_KILL_PROCESS => return "kill".to_owned(),
                RETURN => return format!("errno {}", k & 0xffff),
                other => panic!("unknown instruction {other}"),
            }
        }
    }

    #[track_caller]
    fn check(needs: Needs, call: c_long, arguments: [u64; 3], expected: &str) {
        assert_eq!(verdict(needs, NATIVE, call as u32, arguments), expected, "call {call} {arguments:?} {needs:?}");
    }

    #[test]
    fn every_refused_call_is_refused_and_ordinary_ones_pass() {
        for call in REFUSED {
            check(OFFLINE, *call, [0; 3], "errno 1");
            check(ONLINE, *call, [0; 3], "errno 1");
        }
        for call in [libc::SYS_read, libc::SYS_openat, libc::SYS_execve, libc::SYS_utimensat, libc::SYS_kill, 462] {
            check(OFFLINE, call, [u64::MAX; 3], "allow");
        }
        check(OFFLINE, libc::SYS_clone3, [0; 3], "errno 38");
        for call in SYSTEM_V {
            check(LANDLOCK, *call, [0; 3], "errno 1");
            check(OFFLINE, *call, [0; 3], "allow");
        }
    }

    #[test]
    fn other_interfaces_to_the_kernel_end_the_process() {
        assert_eq!(verdict(OFFLINE, 0x4000_0003, 359, [0; 3]), "kill");
        assert_eq!(verdict(OFFLINE, NATIVE, X32 + 41, [0; 3]), "kill");
    }

    #[test]
    fn processes_are_cloned_but_not_into_namespaces() {
        let fork = (libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID | libc::SIGCHLD) as u64;
        check(OFFLINE, libc::SYS_clone, [fork, 0, 0], "allow");
        check(OFFLINE, libc::SYS_clone, [fork | libc::CLONE_NEWUSER as u64, 0, 0], "errno 1");
        check(OFFLINE, libc::SYS_unshare, [libc::CLONE_FILES as u64, 0, 0], "allow");
        check(OFFLINE, libc::SYS_unshare, [u64::from(NEW_TIME), 0, 0], "errno 1");
    }

    #[test]
    fn terminal_injection_is_refused_whatever_the_upper_half_says() {
        check(OFFLINE, libc::SYS_ioctl, [0, 0x5412, 0], "errno 1");
        check(OFFLINE, libc::SYS_ioctl, [0, 0x1_0000_5412, 0], "errno 1");
        check(OFFLINE, libc::SYS_ioctl, [0, 0x541C, 0], "errno 1");
        check(OFFLINE, libc::SYS_ioctl, [0, 0x5413, 0], "allow");
    }

    #[test]
    fn sockets_follow_the_network_policy() {
        let cloexec = libc::SOCK_CLOEXEC as u64;
        for (family, kind, protocol, online) in [
            (libc::AF_INET, libc::SOCK_STREAM, 0, "allow"),
            (libc::AF_INET6, libc::SOCK_DGRAM, 0, "allow"),
            (libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE, "allow"),
            (libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_SOCK_DIAG, "errno 1"),
            (libc::AF_UNIX, libc::SOCK_STREAM, 0, "errno 1"),
            (libc::AF_VSOCK, libc::SOCK_STREAM, 0, "errno 1"),
            (libc::AF_PACKET, libc::SOCK_RAW, 0, "errno 1"),
            (libc::AF_ALG, libc::SOCK_SEQPACKET, 0, "errno 1"),
        ] {
            let arguments = [family as u64, kind as u64 | cloexec, protocol as u64];
            check(ONLINE, libc::SYS_socket, arguments, online);
            check(OFFLINE, libc::SYS_socket, arguments, "errno 1");
        }
    }

    #[test]
    fn only_socket_pairs_that_cannot_be_readdressed_exist() {
        let unix = libc::AF_UNIX as u64;
        for (kind, expected) in [
            (libc::SOCK_STREAM, "allow"),
            (libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, "allow"),
            (libc::SOCK_DGRAM, "errno 1"),
            (libc::SOCK_RAW, "errno 1"),
        ] {
            check(OFFLINE, libc::SYS_socketpair, [unix, kind as u64, 0], expected);
            check(ONLINE, libc::SYS_socketpair, [unix, kind as u64, 0], expected);
        }
    }

    #[test]
    fn modes_are_judged_without_mounts_and_never_set_an_id() {
        check(OFFLINE, libc::SYS_fchmod, [3, 0o755, 0], "allow");
        check(OFFLINE, libc::SYS_fchmod, [3, 0o4755, 0], "errno 1");
        check(OFFLINE, libc::SYS_fchmodat, [3, 0, 0o2755], "errno 1");
        check(LANDLOCK, libc::SYS_fchmod, [3, 0o755, 0], "judged");
        check(LANDLOCK, libc::SYS_fchmod, [3, 0o4755, 0], "errno 1");
        check(LANDLOCK, libc::SYS_setxattr, [0; 3], "errno 95");
        check(Needs { metadata_is_judged: false, ..LANDLOCK }, libc::SYS_fchmod, [3, 0o755, 0], "errno 1");
    }

    #[test]
    fn limits_of_others_are_out_of_reach_without_a_pid_namespace() {
        check(LANDLOCK, libc::SYS_prlimit64, [0, 7, 0], "allow");
        check(LANDLOCK, libc::SYS_prlimit64, [4711, 7, 0], "errno 1");
        check(LANDLOCK, libc::SYS_setpriority, [0, 4711, 19], "errno 1");
        check(OFFLINE, libc::SYS_prlimit64, [4711, 7, 0], "allow");
    }
}
