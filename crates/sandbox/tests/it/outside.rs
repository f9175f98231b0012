//! The world outside: a victim, listeners, and programs that launch commands and then crash.

use std::fs::OpenOptions;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use codex_sandbox::{Confinement, Launch, Profile, SandboxContext, level};

use crate::support::{self, ROLE, role, role_argv, run, runtime, workspace_write};

/// The secret in the victim's memory.
static GUARDED: [AtomicU8; 5] =
    [AtomicU8::new(b'C'), AtomicU8::new(b'L'), AtomicU8::new(b'E'), AtomicU8::new(b'A'), AtomicU8::new(b'N')];

/// Plays one of the programs outside.
pub(crate) fn play(name: &str, arguments: &[&str]) -> io::Result<()> {
    match name {
        "victim" => {
            let file = OpenOptions::new().append(true).open(arguments[0])?;
            std::env::set_current_dir(arguments[1])?;
            let (pid, address, fd) = (std::process::id(), GUARDED.as_ptr().addr(), crate::attacker::raw_fd(&file));
            println!("\nvictim {pid} {address} {fd}");
            for _ in io::stdin().lines() {
                let now: Vec<u8> = GUARDED.iter().map(|byte| byte.load(Ordering::SeqCst)).collect();
                println!("{}", String::from_utf8_lossy(&now));
            }
            Ok(())
        }
        "launcher" => runtime().block_on(async {
            // Sandboxes after the first one share more with their parent process.
            for _ in 0..arguments[3].parse().expect("a number") {
                codex_sandbox::spawn(launch(arguments, &["/bin/true"])).expect("it starts").wait().await;
            }
            let mut running =
                codex_sandbox::spawn(launch(arguments, &["/bin/sh", "-c", arguments[2]])).expect("it starts");
            println!("\nlaunched");
            running.wait().await;
            Ok(())
        }),
        "hardened" => {
            codex_sandbox::harden();
            let mut limit = libc::rlimit { rlim_cur: 1, rlim_max: 1 };
            // SAFETY: the struct is valid for writing; the other call takes no pointers.
            let visible = unsafe {
                assert_eq!(libc::getrlimit(libc::RLIMIT_CORE, &raw mut limit), 0);
                libc::prctl(libc::PR_GET_DUMPABLE, 0, 0, 0, 0)
            };
            println!("\nvisible {visible}, core dumps up to {} of {}", limit.rlim_cur, limit.rlim_max);
            let status = Command::new("/bin/sh").args(["-c", "exit 7"]).status()?;
            println!("\nchild {:?}", status.code());
            Ok(())
        }
        "without" => {
            refuse_system_calls(arguments[3]);
            println!("\nlevel {:?}", level());
            let finished = run(launch(arguments, &["/bin/sh", "-c", arguments[2]])).map_err(io::Error::other)?;
            println!("\nexit {:?} {}", finished.exit, finished.aggregated.text());
            Ok(())
        }
        other => panic!("unknown role {other}"),
    }
}

fn launch(arguments: &[&str], argv: &[&str]) -> Launch {
    let sandbox_context = SandboxContext { codex_home: PathBuf::from(arguments[1]), ..SandboxContext::default() };
    let profile = Profile::new(&workspace_write(), Path::new(arguments[0]), &sandbox_context);
    Launch {
        argv: argv.iter().map(Into::into).collect(),
        cwd: arguments[0].into(),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        confinement: Confinement::from(profile),
        stdio: codex_sandbox::Stdio::Pipes,
        most_processes: None,
        most_memory: None,
    }
}

/// Simulates a kernel without user namespaces, without Landlock, or without both; or one where no process may join a
/// namespace.
fn refuse_system_calls(what: &str) {
    let plain = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let jump = |code: u32, k: u32, jt, jf| libc::sock_filter { code: code as u16, jt, jf, k };
    let (load, equal, at_least, has) = (0x20, 0x15, 0x35, 0x45);
    let errno = |errno: i32| plain(0x06, libc::SECCOMP_RET_ERRNO | errno as u32);
    let mut program = vec![plain(load, 0)];
    if what.contains("landlock") {
        let first = libc::SYS_landlock_create_ruleset as u32;
        program.extend([jump(at_least, first, 0, 2), jump(at_least, first + 3, 1, 0), errno(libc::ENOSYS)]);
    }
    if what.contains("userns") {
        program.extend([
            jump(equal, libc::SYS_clone as u32, 1, 0),
            jump(equal, libc::SYS_unshare as u32, 0, 3),
            plain(load, 16),
            jump(has, libc::CLONE_NEWUSER as u32, 0, 1),
            errno(libc::EPERM),
        ]);
    }
    if what.contains("setns") {
        program.extend([plain(load, 0), jump(equal, libc::SYS_setns as u32, 0, 1), errno(libc::EPERM)]);
    }
    program.push(plain(0x06, libc::SECCOMP_RET_ALLOW));
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the program is valid and outlives the call.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let flags = libc::SECCOMP_FILTER_FLAG_TSYNC;
        let set = libc::SECCOMP_SET_MODE_FILTER;
        assert_eq!(
            libc::syscall(libc::SYS_seccomp, set, flags, &raw const filter),
            0,
            "{}",
            io::Error::last_os_error()
        );
    }
}

/// Starts this binary in a role, outside of any sandbox.
pub(crate) fn start_role(words: &[String]) -> Child {
    let argv = role_argv();
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).env(ROLE, role(words)).env("VICTIM_SECRET", "env-secret");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts")
}

/// Reads lines until one starts with `word`, and returns the rest of it.
pub(crate) fn line_after(reader: &mut impl io::BufRead, word: &str) -> String {
    let mut lines = reader.lines().map_while(Result::ok);
    let found = lines.find_map(|line| line.strip_prefix(word).map(|rest| rest.trim().to_owned()));
    found.unwrap_or_else(|| panic!("it never said {word}"))
}

/// A process of the same user outside the sandbox.
pub(crate) struct Victim {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    pub(crate) pid: String,
    pub(crate) address: String,
    pub(crate) fd: String,
}

impl Victim {
    pub(crate) fn new(world: &support::World) -> Self {
        let file = world.write("outside/victimfile", "");
        let words = ["victim".to_owned(), file.display().to_string(), world.path("outside").display().to_string()];
        let mut child = start_role(&words);
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        let line = line_after(&mut stdout, "victim ");
        let mut words = line.split(' ').map(str::to_owned);
        let mut next = || words.next().expect("three words");
        let (pid, address, fd) = (next(), next(), next());
        Self { stdin: child.stdin.take().expect("piped"), child, stdout, pid, address, fd }
    }

    /// Reads its secret; it must be alive.
    pub(crate) fn memory(&mut self) -> String {
        let mut line = String::new();
        let asked = self.stdin.write_all(b"\n").and_then(|()| self.stdout.read_line(&mut line));
        if asked.is_ok_and(|length| length > 0) { line.trim().to_owned() } else { "dead".to_owned() }
    }

    pub(crate) fn limits(&self) -> String {
        std::fs::read_to_string(format!("/proc/{}/limits", self.pid)).unwrap_or_default()
    }

    pub(crate) fn niceness(&self) -> i32 {
        // SAFETY: numbers only.
        unsafe { libc::getpriority(libc::PRIO_PROCESS, self.child.id()) }
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sockets of every kind that a command might connect to.
pub(crate) struct Listeners {
    tcp: TcpListener,
    tcp6: Option<TcpListener>,
    udp: UdpSocket,
    streams: Vec<(String, UnixListener)>,
    datagrams: Vec<(String, UnixDatagram)>,
}

impl Listeners {
    pub(crate) fn new(world: &support::World) -> Self {
        let unique = world.path("").display().to_string().replace('/', "-");
        let hidden = |kind: &str| format!("@{kind}{unique}");
        let shown = |kind: &str| world.path(kind).display().to_string();
        let address = |name: &str| match name.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name).expect("short enough"),
            None => SocketAddr::from_pathname(name).expect("short enough"),
        };
        let stream = |name: String| {
            let socket = UnixListener::bind_addr(&address(&name)).expect("bind");
            socket.set_nonblocking(true).expect("non-blocking");
            (name, socket)
        };
        let datagram = |name: String| {
            let socket = UnixDatagram::bind_addr(&address(&name)).expect("bind");
            socket.set_nonblocking(true).expect("non-blocking");
            (name, socket)
        };
        let listeners = Self {
            tcp: TcpListener::bind("127.0.0.1:0").expect("bind"),
            tcp6: TcpListener::bind("[::1]:0").ok(),
            udp: UdpSocket::bind("127.0.0.1:0").expect("bind"),
            streams: vec![stream(hidden("s")), stream(shown("s.sock"))],
            datagrams: vec![datagram(hidden("d")), datagram(shown("d.sock"))],
        };
        listeners.tcp.set_nonblocking(true).expect("non-blocking");
        listeners.tcp6.iter().for_each(|socket| socket.set_nonblocking(true).expect("non-blocking"));
        listeners.udp.set_nonblocking(true).expect("non-blocking");
        listeners
    }

    /// The address of the listener of a kind.
    pub(crate) fn address(&self, kind: &str) -> Option<String> {
        Some(match kind {
            "tcp" => self.tcp.local_addr().ok()?.to_string(),
            "tcp6" => self.tcp6.as_ref()?.local_addr().ok()?.to_string(),
            "udp" => self.udp.local_addr().ok()?.to_string(),
            "abstract stream" => self.streams[0].0.clone(),
            "path stream" => self.streams[1].0.clone(),
            "abstract datagram" => self.datagrams[0].0.clone(),
            "path datagram" => self.datagrams[1].0.clone(),
            other => panic!("no such listener: {other}"),
        })
    }

    /// Whether anybody has connected. The client has exited by now, so nothing is in flight.
    pub(crate) fn heard(&self, kind: &str) -> bool {
        let mut buffer = [0; 16];
        match kind {
            "tcp" => self.tcp.accept().is_ok(),
            "tcp6" => self.tcp6.as_ref().is_some_and(|socket| socket.accept().is_ok()),
            "udp" => self.udp.recv(&mut buffer).is_ok(),
            "abstract stream" => self.streams[0].1.accept().is_ok(),
            "path stream" => self.streams[1].1.accept().is_ok(),
            "abstract datagram" => self.datagrams[0].1.recv(&mut buffer).is_ok(),
            "path datagram" => self.datagrams[1].1.recv(&mut buffer).is_ok(),
            other => panic!("no such listener: {other}"),
        }
    }
}

/// Reads all output of a role until it exits, for twenty seconds at most.
pub(crate) fn output_of(mut child: Child) -> String {
    drop(child.stdin.take());
    let watchdog = child.id() as i32;
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let guard = std::thread::spawn(move || {
        if receiver.recv_timeout(Duration::from_secs(20)) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            // SAFETY: numbers only; the child has not been waited for yet.
            unsafe { libc::kill(watchdog, libc::SIGKILL) };
        }
    });
    let mut text = String::new();
    let _ = child.stdout.take().expect("piped").read_to_string(&mut text);
    drop(sender);
    let _ = (guard.join(), child.wait());
    text
}
