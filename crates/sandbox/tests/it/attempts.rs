//! Attempts on processes, the network and the kernel itself.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use crate::attacker::{c, check, contains, network};

pub(crate) fn others(name: &str, arguments: &[&str]) -> io::Result<()> {
    match name {
        "proc-mem" | "proc-fd" | "proc-root" | "proc-cwd" | "environ" | "ptrace" | "vm-write" | "vm-read"
        | "pidfd-getfd" | "kill" | "pidfd-signal" | "prlimit" | "renice" | "setns" | "parent-mem" | "kill-parent"
        | "ptrace-parent" => process(name, arguments),
        "socket" | "int80" | "x32" | "io-uring" | "shm" | "mq" | "mount" | "userns" | "unshare-umount" | "setuid"
        | "tiocsti" | "keyctl" | "bpf" | "daemon" | "clone-userns" => kernel(name, arguments),
        _ => network(name, arguments),
    }
}

fn process(name: &str, arguments: &[&str]) -> io::Result<()> {
    let pid: i32 = match name {
        "parent-mem" | "kill-parent" | "ptrace-parent" => std::os::unix::process::parent_id() as i32,
        _ => arguments[0].parse().expect("a process"),
    };
    let argument = |index: usize| *arguments.get(index).expect("enough arguments");
    let append = |path: String| OpenOptions::new().append(true).create(true).open(path)?.write_all(b"PWNED");
    match name {
        "proc-mem" => {
            let memory = OpenOptions::new().write(true).open(format!("/proc/{pid}/mem"))?;
            std::os::unix::fs::FileExt::write_all_at(&memory, b"PWNED", argument(1).parse().expect("an address"))
        }
        "parent-mem" => std::fs::File::open(format!("/proc/{pid}/mem")).map(drop),
        "proc-fd" => append(format!("/proc/{pid}/fd/{}", argument(1))),
        "proc-root" => append(format!("/proc/{pid}/root{}", argument(1))),
        "proc-cwd" => append(format!("/proc/{pid}/cwd/{}", argument(1))),
        "environ" => contains(Path::new(&format!("/proc/{pid}/environ")), argument(1)),
        "setns" => {
            let namespace = std::fs::File::open(format!("/proc/{pid}/ns/mnt"))?;
            // SAFETY: takes no pointers.
            check(unsafe { libc::setns(crate::attacker::raw_fd(&namespace), 0) }.into())
        }
        // SAFETY: numbers only.
        "kill" => check(unsafe { libc::kill(pid, libc::SIGTERM) }.into()),
        "kill-parent" if pid <= 1 => Err(io::Error::other("no parent outside is visible")),
        // SAFETY: numbers only; signal 0 asks for permission and does nothing.
        "kill-parent" => check(unsafe { libc::kill(pid, 0) }.into()),
        _ => process_call(name, pid, arguments),
    }
}

fn process_call(name: &str, pid: i32, arguments: &[&str]) -> io::Result<()> {
    let mut bytes = *b"PWNED";
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let address = || arguments[1].parse::<usize>().expect("an address") as *mut libc::c_void;
    // SAFETY: all pointers are to locals that outlive the calls; foreign addresses are for the kernel to judge.
    unsafe {
        match name {
            "ptrace" | "ptrace-parent" => check(libc::ptrace(libc::PTRACE_SEIZE, pid, 0, 0)),
            "vm-write" => {
                let remote = libc::iovec { iov_base: address(), iov_len: 5 };
                check(libc::process_vm_writev(pid, &raw const local, 1, &raw const remote, 1, 0) as i64)
            }
            "vm-read" => {
                let remote = libc::iovec { iov_base: address(), iov_len: 5 };
                check(libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) as i64)?;
                if bytes == *b"CLEAN" { Ok(()) } else { Err(io::Error::other("another process")) }
            }
            "pidfd-getfd" | "pidfd-signal" => {
                let pidfd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
                check(pidfd)?;
                if name == "pidfd-signal" {
                    return check(libc::syscall(libc::SYS_pidfd_send_signal, pidfd, libc::SIGTERM, 0, 0));
                }
                let fd = libc::syscall(libc::SYS_pidfd_getfd, pidfd, arguments[1].parse::<i32>().expect("fd"), 0);
                check(fd)?;
                check(libc::write(fd as i32, bytes.as_ptr().cast(), 5) as i64)
            }
            "prlimit" => {
                let limit = libc::rlimit { rlim_cur: 17, rlim_max: 17 };
                check(libc::prlimit(pid, libc::RLIMIT_NOFILE, &raw const limit, std::ptr::null_mut()).into())
            }
            "renice" => check(libc::setpriority(libc::PRIO_PROCESS, pid as u32, 19).into()),
            other => panic!("unknown attempt {other}"),
        }
    }
}

fn kernel(name: &str, arguments: &[&str]) -> io::Result<()> {
    let number = |index: usize| arguments.get(index).and_then(|word| word.parse::<i32>().ok()).expect("a number");
    // SAFETY: numbers, or pointers to locals that outlive the calls.
    unsafe {
        match name {
            "socket" => check(libc::socket(number(0), number(1), number(2)).into()),
            "int80" => int80_socket(),
            "x32" => check(libc::syscall(0x4000_0000 + 41, libc::AF_INET, libc::SOCK_STREAM, 0)),
            "io-uring" => {
                let mut parameters = [0_u8; 120];
                check(libc::syscall(libc::SYS_io_uring_setup, 8, parameters.as_mut_ptr()))
            }
            "shm" => {
                let id = libc::shmget(number(0), 4096, 0);
                check(id.into())?;
                let memory = libc::shmat(id, std::ptr::null(), 0);
                check(memory as i64)?;
                std::ptr::copy_nonoverlapping(b"PWNED".as_ptr(), memory.cast(), 5);
                Ok(())
            }
            "mq" => {
                let name = c(arguments[0]);
                let queue = libc::mq_open(name.as_ptr(), libc::O_WRONLY);
                check(queue.into())?;
                check(libc::mq_send(queue, c"PWNED".as_ptr(), 5, 0).into())
            }
            "mount" => {
                let target = c(arguments[0]);
                let none = c"none".as_ptr();
                check(libc::mount(none, target.as_ptr(), c"tmpfs".as_ptr(), 0, std::ptr::null()).into())
            }
            "userns" => check(libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS).into()),
            "clone-userns" => {
                let pid = libc::syscall(libc::SYS_clone, libc::CLONE_NEWUSER | libc::SIGCHLD, 0, 0, 0, 0);
                if pid == 0 {
                    libc::_exit(0);
                }
                check(pid)
            }
            "unshare-umount" => {
                kernel("userns", &[])?;
                let target = c(arguments[0]);
                check(libc::umount2(target.as_ptr(), libc::MNT_DETACH).into())
            }
            "setuid" => {
                use std::os::unix::process::CommandExt as _;
                Err(std::process::Command::new(arguments[0]).arg("-u").exec())
            }
            "tiocsti" => check(libc::ioctl(0, libc::TIOCSTI, c"x".as_ptr()).into()),
            "keyctl" => check(libc::syscall(libc::SYS_keyctl, 0, -3, 0)),
            "bpf" => {
                let mut attributes = [0_u32; 32];
                (attributes[0], attributes[1], attributes[2], attributes[3]) = (2, 4, 4, 1);
                check(libc::syscall(libc::SYS_bpf, 0, attributes.as_mut_ptr(), 128))
            }
            "daemon" => daemon(arguments[0]),
            other => panic!("unknown attempt {other}"),
        }
    }
}

/// Leaves a grandchild in a new session, which keeps a file locked for as long as it lives.
fn daemon(path: &str) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    // SAFETY: the children only make system calls.
    unsafe {
        check(libc::flock(crate::attacker::raw_fd(&file), libc::LOCK_EX).into())?;
        if libc::fork() == 0 {
            libc::setsid();
            if libc::fork() == 0 {
                libc::signal(libc::SIGTERM, libc::SIG_IGN);
                libc::signal(libc::SIGHUP, libc::SIG_IGN);
                for fd in 0..3 {
                    libc::close(fd);
                }
                libc::sleep(60);
            }
            libc::_exit(0);
        }
    }
    Ok(())
}

#[cfg(target_arch = "x86_64")]
unsafe fn int80_socket() -> io::Result<()> {
    let result: i64;
    // SAFETY: the 32-bit `socket` call takes three numbers; rbx is saved by hand, as the compiler reserves it.
    unsafe {
        std::arch::asm!("push rbx", "mov ebx, 2", "int 0x80", "pop rbx", inlateout("rax") 359_i64 => result,
            in("rcx") 1_i64, in("rdx") 0_i64, lateout("r8") _, lateout("r9") _, lateout("r10") _, lateout("r11") _);
    }
    if result < 0 { Err(io::Error::from_raw_os_error(-result as i32)) } else { Ok(()) }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn int80_socket() -> io::Result<()> {
    Err(io::Error::other("there is no such interface here"))
}
