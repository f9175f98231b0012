//! The attacker inside the sandbox: makes one attempt and reports whether the kernel allowed it.
//!
//! The test binary runs itself with a role in its environment. The effect is checked from outside; the attacker's own
//! report counts only if an attempt has no visible effect.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd as _, FromRawFd as _, RawFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::path::Path;

use crate::support::{ROLE, SEPARATOR};

/// Not a real test: without a role there is nothing to do.
#[test]
fn plays_its_role() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let words: Vec<&str> = role.split(SEPARATOR).collect();
    let (name, arguments) = words.split_first().expect("a name");
    let code = match attempt(name, arguments) {
        Ok(()) => {
            println!("allowed: {name}");
            0
        }
        Err(error) => {
            println!("refused: {name}: {error}");
            1
        }
    };
    std::process::exit(code);
}

fn attempt(name: &str, arguments: &[&str]) -> io::Result<()> {
    let argument = |index: usize| *arguments.get(index).expect("enough arguments");
    let number = |index: usize| argument(index).parse::<i64>().expect("a number");
    match name {
        "victim" | "launcher" | "hardened" | "without" => crate::outside::play(name, arguments),
        "worm" => worm(&File::create(argument(0))?, number(1)),
        "lease" => {
            let file = File::open(argument(0))?;
            // SAFETY: numbers only.
            check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) }.into())
        }
        // Files.
        "create" => OpenOptions::new().write(true).create_new(true).open(argument(0))?.write_all(b"PWNED"),
        "append" => OpenOptions::new().append(true).open(argument(0))?.write_all(b"PWNED"),
        "open-trunc" => OpenOptions::new().write(true).truncate(true).open(argument(0)).map(drop),
        "truncate" => {
            let path = c(argument(0));
            // SAFETY: a valid path.
            check(unsafe { libc::truncate(path.as_ptr(), 0) }.into())
        }
        "mkdir" => fs::create_dir(argument(0)),
        "unlink" => fs::remove_file(argument(0)),
        "mkfifo" => {
            let path = c(argument(0));
            // SAFETY: a valid path.
            check(unsafe { libc::mkfifo(path.as_ptr(), 0o666) }.into())
        }
        "rename" => fs::rename(argument(0), argument(1)),
        "exchange" => {
            let (one, other) = (c(argument(0)), c(argument(1)));
            let at = libc::AT_FDCWD;
            let (call, flags) = (libc::SYS_renameat2, libc::RENAME_EXCHANGE);
            // SAFETY: valid paths.
            check(unsafe { libc::syscall(call, at, one.as_ptr(), at, other.as_ptr(), flags) })
        }
        "symlink-write" => {
            symlink(argument(0), argument(1))?;
            attempt("append", &[argument(1)])
        }
        "hardlink-write" => {
            fs::hard_link(argument(0), argument(1))?;
            attempt("append", &[argument(1)])
        }
        "link" => fs::hard_link(argument(0), argument(1)),
        "symlink" => symlink(argument(0), argument(1)),
        "chmod" => fs::set_permissions(argument(0), fs::Permissions::from_mode(0o777)),
        "fchmod" => File::open(argument(0))?.set_permissions(fs::Permissions::from_mode(0o777)),
        "utime" => File::open(argument(0))?.set_modified(std::time::UNIX_EPOCH),
        "setxattr" => {
            let path = c(argument(0));
            let name = c"user.pwned".as_ptr();
            // SAFETY: valid strings, one byte of value.
            check(unsafe { libc::setxattr(path.as_ptr(), name, c"1".as_ptr().cast(), 1, 0) }.into())
        }
        "swap-dir" => {
            fs::rename(argument(0), argument(1))?;
            fs::create_dir(argument(0))?;
            attempt("create", &[&format!("{}/pwned", argument(0))])
        }
        "swap-link" => {
            let _ = (fs::rename(argument(0), argument(1)), fs::remove_dir(argument(0)));
            symlink(argument(2), argument(0))
        }
        "write-device" => {
            OpenOptions::new().write(true).custom_flags(libc::O_NOCTTY).open(argument(0))?.write_all(b"PWNED")
        }
        "mknod-disk" => mknod_disk(argument(0)),
        "rewrite" => {
            fs::read(argument(0)).and_then(|same| OpenOptions::new().write(true).open(argument(0))?.write_all(&same))
        }
        "open-write" => OpenOptions::new().write(true).open(argument(0)).map(drop),
        // File descriptors.
        "fd-write" => borrowed(number(0) as RawFd, |file| file.write_all(b"PWNED")),
        "fd-openat" | "fd-reopen" => {
            let tail = arguments.get(1).map(|name| format!("/{name}")).unwrap_or_default();
            let path = format!("/proc/self/fd/{}{tail}", argument(0));
            OpenOptions::new().append(true).create(!tail.is_empty()).open(path)?.write_all(b"PWNED")
        }
        "fd-chdir" => {
            // SAFETY: takes no pointers.
            check(unsafe { libc::fchdir(number(0) as RawFd) }.into())?;
            attempt("create", &[argument(1)])
        }
        name => crate::attempts::others(name, arguments),
    }
}

fn mknod_disk(path: &str) -> io::Result<()> {
    let disk = std::os::unix::fs::MetadataExt::dev(&fs::metadata("/")?);
    let node = c(path);
    // SAFETY: a valid path.
    check(unsafe { libc::mknod(node.as_ptr(), libc::S_IFBLK | 0o600, disk) }.into())?;
    let opened = OpenOptions::new().read(true).write(true).open(path).map(drop);
    fs::remove_file(path)?;
    opened
}

/// Uses a descriptor that belongs to somebody else.
fn borrowed<T>(fd: RawFd, use_it: impl FnOnce(&mut File) -> io::Result<T>) -> io::Result<T> {
    // SAFETY: it is not closed, since the file is forgotten; a wrong number gives EBADF.
    let mut file = std::mem::ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
    use_it(&mut file)
}

pub(crate) fn c(text: &str) -> CString {
    CString::new(text).expect("no zero byte")
}

pub(crate) fn check(result: i64) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

pub(crate) fn network(name: &str, arguments: &[&str]) -> io::Result<()> {
    let argument = |index: usize| *arguments.get(index).expect("enough arguments");
    match name {
        "tcp" => TcpStream::connect(argument(0))?.write_all(b"PWNED"),
        "udp" => UdpSocket::bind("127.0.0.1:0")?.send_to(b"PWNED", argument(0)).map(drop),
        "udp-unbound" => send_unbound(argument(0)),
        "listen" => TcpListener::bind("127.0.0.1:0").map(drop),
        "unix-stream" => stream(argument(0))?.write_all(b"PWNED"),
        "unix-datagram" => datagram(&UnixDatagram::unbound()?, argument(0)),
        "unix-datagram-pair" => datagram(&UnixDatagram::pair()?.0, argument(0)),
        "dns" => std::net::ToSocketAddrs::to_socket_addrs(&("localhost.localdomain", 80)).map(drop),
        other => panic!("unknown attempt {other}"),
    }
}

fn address(name: &str) -> io::Result<SocketAddr> {
    match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(name),
    }
}

fn stream(name: &str) -> io::Result<UnixStream> {
    UnixStream::connect_addr(&address(name)?)
}

fn datagram(socket: &UnixDatagram, name: &str) -> io::Result<()> {
    socket.send_to_addr(b"PWNED", &address(name)?).map(drop)
}

/// Sends without binding first, through `sendmsg`.
fn send_unbound(address: &str) -> io::Result<()> {
    let port: u16 = address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    // SAFETY: plain numbers; the message and all it points to live until the call returns.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM, 0);
        check(socket.into())?;
        let mut to: libc::sockaddr_in = std::mem::zeroed();
        to.sin_family = libc::AF_INET as u16;
        to.sin_port = port.to_be();
        to.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
        let mut text = libc::iovec { iov_base: c"PWNED".as_ptr().cast_mut().cast(), iov_len: 5 };
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_name = (&raw mut to).cast();
        message.msg_namelen = size_of_val(&to) as u32;
        message.msg_iov = &raw mut text;
        message.msg_iovlen = 1;
        check(libc::sendmsg(socket, &raw const message, 0) as i64)
    }
}

/// Checks for a secret in a file, as proof that the file is readable.
pub(crate) fn contains(path: &Path, secret: &str) -> io::Result<()> {
    let mut bytes = Vec::new();
    File::open(path)?.take(1 << 20).read_to_end(&mut bytes)?;
    let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
    if found { Ok(()) } else { Err(io::Error::other("the secret is not there")) }
}

pub(crate) fn raw_fd(file: &File) -> RawFd {
    file.as_raw_fd()
}

/// Keeps forking and exiting for some seconds, with a lock that all of the processes hold.
fn worm(lock: &File, seconds: i64) -> io::Result<()> {
    // SAFETY: numbers only; the forked processes make plain system calls and exit.
    unsafe {
        check(libc::flock(lock.as_raw_fd(), libc::LOCK_EX).into())?;
        let until = libc::time(std::ptr::null_mut()) + seconds;
        for _ in 0..3 {
            if libc::fork() != 0 {
                continue;
            }
            while libc::time(std::ptr::null_mut()) < until {
                if libc::fork() != 0 {
                    libc::_exit(0);
                }
                libc::setsid();
            }
            libc::_exit(0);
        }
    }
    Ok(())
}
