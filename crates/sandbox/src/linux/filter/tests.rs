mod comparison;

use std::collections::BTreeSet;

use super::code::tests::run;
use super::*;

const OFFLINE: Needs = Needs { network: false, shared_with_outside: false, metadata_is_judged: false };
const ONLINE: Needs = Needs { network: true, shared_with_outside: false, metadata_is_judged: false };
const LANDLOCK: Needs = Needs { network: false, shared_with_outside: true, metadata_is_judged: true };

/// The answer of the filter.
fn verdict(needs: Needs, architecture: u32, call: u32, arguments: [u64; 3]) -> String {
    let load = |offset: u32| match offset {
        CALL => call,
        ARCHITECTURE => architecture,
        offset => {
            let argument = arguments.get(((offset - ARGUMENTS) / 8) as usize).copied().unwrap_or(0);
            (argument >> (8 * (offset % 8))) as u32
        }
    };
    match run(&program(needs), load, 0) {
        libc::SECCOMP_RET_ALLOW => "allow".to_owned(),
        libc::SECCOMP_RET_USER_NOTIF => "judged".to_owned(),
        libc::SECCOMP_RET_KILL_PROCESS => "kill".to_owned(),
        other => format!("errno {}", other & 0xffff),
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
fn unlisted_system_calls_pass_and_the_filter_is_short() {
    for (network, shared_with_outside, metadata_is_judged) in
        (0..8).map(|bits| (bits & 1 != 0, bits & 2 != 0, bits & 4 != 0))
    {
        let needs = Needs { network, shared_with_outside, metadata_is_judged };
        let listed: BTreeSet<c_long> = refusals(needs).into_iter().map(|refusal| refusal.call).collect();
        let unconditional: BTreeSet<c_long> = refusals(needs)
            .into_iter()
            .filter_map(|refusal| refusal.conditions.is_empty().then_some(refusal.call))
            .collect();
        for call in (0..700).chain([c_long::from(X32) - 1]) {
            let answer = verdict(needs, NATIVE, call as u32, [0; 3]);
            if !listed.contains(&call) {
                assert_eq!(answer, "allow", "call {call} {needs:?}");
            } else if unconditional.contains(&call) {
                assert_ne!(answer, "allow", "call {call} {needs:?}");
            }
        }
        let length = program(needs).len();
        assert!(length < if shared_with_outside { 260 } else { 140 }, "{length} instructions {needs:?}");
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
fn terminal_injection_is_refused_for_any_upper_half() {
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
fn nobody_takes_a_lease() {
    for needs in [OFFLINE, ONLINE, LANDLOCK] {
        check(needs, libc::SYS_fcntl, [3, u64::from(SET_LEASE), 0], "errno 1");
        check(needs, libc::SYS_fcntl, [3, libc::F_SETFD as u64, 0], "allow");
    }
}

#[test]
fn flags_of_files_are_out_of_reach_without_mounts() {
    // FS_IOC_SETFLAGS in two widths, FS_IOC_FSSETXATTR, FS_IOC_ENABLE_VERITY, BTRFS_IOC_SNAP_CREATE_V2.
    for request in [0x4008_6602, 0x4004_6602, 0x401c_5820, 0x4080_6685, 0x5000_9417] {
        check(LANDLOCK, libc::SYS_ioctl, [3, request, 0], "errno 95");
        check(OFFLINE, libc::SYS_ioctl, [3, request, 0], "allow");
    }
    for request in HARMLESS_FILE_REQUESTS.into_iter().chain([0x5401, 0x5413]) {
        check(LANDLOCK, libc::SYS_ioctl, [3, u64::from(request), 0], "allow");
    }
    check(LANDLOCK, libc::SYS_ioctl, [0, 0x5412, 0], "errno 1");
}

#[test]
fn queues_and_scheduling_of_others_are_out_of_reach_without_namespaces() {
    for call in QUEUES {
        check(LANDLOCK, *call, [0; 3], "errno 1");
        check(OFFLINE, *call, [0; 3], "allow");
    }
    for call in ABOUT_PROCESSES {
        check(LANDLOCK, *call, [4711, 0, 0], "errno 1");
        check(LANDLOCK, *call, [0; 3], "allow");
    }
    for (call, user) in PRIORITIES {
        // All processes of a user, the caller's own if the number is 0.
        check(LANDLOCK, *call, [u64::from(*user), 0, 0], "errno 1");
        check(LANDLOCK, *call, [0; 3], "allow");
    }
}

#[test]
fn limits_of_others_are_out_of_reach_without_a_pid_namespace() {
    check(LANDLOCK, libc::SYS_prlimit64, [0, 7, 0], "allow");
    check(LANDLOCK, libc::SYS_prlimit64, [4711, 7, 0], "errno 1");
    check(LANDLOCK, libc::SYS_setpriority, [0, 4711, 19], "errno 1");
    check(OFFLINE, libc::SYS_prlimit64, [4711, 7, 0], "allow");
}
