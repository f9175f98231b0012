//! The table of attempts: the sandbox stops all of them, and most of them work without it.

use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use codex_sandbox::{Confinement, Exit, Stdio};
use codex_wire::policy::SandboxPolicy;

use crate::outside::{Listeners, Victim};
use crate::support::{ROLE, World, is_root, role, role_argv, run, workspace_write};

/// The place where an attempt has its effect.
#[derive(Debug, Clone)]
enum Effect {
    Exists(PathBuf),
    Gone(PathBuf),
    Written(PathBuf),
    Emptied(PathBuf),
    Opened(PathBuf),
    Aged(PathBuf),
    Labelled(PathBuf),
    Linked(PathBuf),
    Heard(&'static str),
    VictimWritten,
    VictimEnded,
    VictimLimited,
    VictimNiced,
    /// There is no effect outside, so the attacker's report counts.
    Said,
}

struct Attempt {
    name: &'static str,
    words: Vec<String>,
    effect: Effect,
}

struct Scene {
    world: World,
    listeners: Listeners,
    victim: Victim,
}

impl Scene {
    /// A fresh world; without a repository if the attempts target missing names.
    fn new(has_repository: bool) -> Self {
        let world = World::new();
        world.write("outside/file", "CLEAN");
        world.write("ws/mine", "mine");
        if has_repository {
            for (path, text) in [
                ("ws/.git/HEAD", "ref: refs/heads/main\n"),
                ("ws/.git/config", "[core]\n"),
                ("ws/.git/hooks/pre-push.sample", ""),
                ("ws/.git/modules/sub/HEAD", "ref: refs/heads/main\n"),
                ("ws/.git/modules/sub/config", "[core]\n"),
                ("ws/.codex/config.toml", "# clean\n"),
                ("ws/.mcp.json", "{}"),
                ("ws/sub/deep/.git/HEAD", "ref: refs/heads/main\n"),
                ("ws/sub/deep/.git/hooks/x.sample", ""),
                ("ws/sub/.claude/settings.json", "{}"),
            ] {
                world.write(path, text);
            }
        }
        let (listeners, victim) = (Listeners::new(&world), Victim::new(&world));
        Self { world, listeners, victim }
    }

    fn seen(&mut self, effect: &Effect, said: bool) -> bool {
        let status = |path: &Path| std::fs::symlink_metadata(path).expect("it is there");
        match effect {
            Effect::Exists(path) => path.symlink_metadata().is_ok(),
            Effect::Gone(path) => path.symlink_metadata().is_err(),
            Effect::Written(path) => std::fs::read(path).is_ok_and(|text| text.windows(5).any(|it| it == b"PWNED")),
            Effect::Emptied(path) => status(path).len() == 0,
            Effect::Opened(path) => status(path).permissions().mode() & 0o777 == 0o777,
            Effect::Aged(path) => status(path).mtime() < 10,
            Effect::Labelled(path) => has_label(path),
            Effect::Linked(path) => path.is_symlink(),
            Effect::Heard(kind) => self.listeners.heard(kind),
            Effect::VictimWritten => self.victim.memory() == "PWNED",
            Effect::VictimEnded => self.victim.memory() == "dead",
            Effect::VictimLimited => {
                self.victim.limits().lines().any(|it| it.starts_with("Max open files") && it.contains(" 17 "))
            }
            Effect::VictimNiced => self.victim.niceness() == 19,
            Effect::Said => said,
        }
    }
}

fn has_label(path: &Path) -> bool {
    let path = crate::attacker::c(&path.display().to_string());
    // SAFETY: valid strings, and no room for a value is asked for.
    unsafe { libc::getxattr(path.as_ptr(), c"user.pwned".as_ptr(), std::ptr::null_mut(), 0) >= 0 }
}

fn files(world: &World) -> Vec<Attempt> {
    let file = world.path("outside/file");
    let out = |name: &str| world.path("outside").join(name);
    let attempt = |name, words: &[&Path], effect| Attempt {
        name,
        words: words.iter().map(|word| word.display().to_string()).collect(),
        effect,
    };
    let op = Path::new;
    let home = |name: &str| world.path("home").join(name);
    let codex = world.path("codex_home/pwned");
    let shm = PathBuf::from(format!("/dev/shm/pwned-{}", std::process::id()));
    let var = PathBuf::from(format!("/var/tmp/pwned-{}", std::process::id()));
    vec![
        attempt("create outside", &[op("create"), &out("new")], Effect::Exists(out("new"))),
        attempt("append outside", &[op("append"), &file], Effect::Written(file.clone())),
        attempt("create in home", &[op("create"), &home(".bashrc")], Effect::Exists(home(".bashrc"))),
        attempt("create in CODEX_HOME", &[op("create"), &codex], Effect::Exists(codex.clone())),
        attempt("create in /var/tmp", &[op("create"), &var], Effect::Exists(var.clone())),
        attempt("create in /dev/shm", &[op("create"), &shm], Effect::Exists(shm.clone())),
        attempt("open and truncate", &[op("open-trunc"), &file], Effect::Emptied(file.clone())),
        attempt("truncate", &[op("truncate"), &file], Effect::Emptied(file.clone())),
        attempt("mkdir outside", &[op("mkdir"), &out("d2")], Effect::Exists(out("d2"))),
        attempt("unlink outside", &[op("unlink"), &file], Effect::Gone(file.clone())),
        attempt("mkfifo outside", &[op("mkfifo"), &out("ff")], Effect::Exists(out("ff"))),
        attempt("rename out", &[op("rename"), &world.ws("mine"), &out("mine")], Effect::Exists(out("mine"))),
        attempt("rename in", &[op("rename"), &file, &world.ws("stolen")], Effect::Gone(file.clone())),
        attempt("exchange", &[op("exchange"), &world.ws("mine"), &file], Effect::Said),
        attempt("symlink out", &[op("symlink-write"), &file, &world.ws("ln")], Effect::Written(file.clone())),
        attempt("hard link in", &[op("hardlink-write"), &file, &world.ws("hl")], Effect::Written(file.clone())),
        attempt("hard link out", &[op("link"), &world.ws("mine"), &out("hl")], Effect::Exists(out("hl"))),
        attempt("chmod outside", &[op("chmod"), &file], Effect::Opened(file.clone())),
        attempt("fchmod outside", &[op("fchmod"), &file], Effect::Opened(file.clone())),
        attempt("utimes outside", &[op("utime"), &file], Effect::Aged(file.clone())),
        attempt("setxattr outside", &[op("setxattr"), &file], Effect::Labelled(file.clone())),
    ]
}

/// Files that cause code execution later, where they exist.
fn project(world: &World) -> Vec<Attempt> {
    let ws = |name: &str| world.ws(name).display().to_string();
    let attempt = |name, words: &[String], effect| Attempt { name, words: words.to_vec(), effect };
    let op = str::to_owned;
    let create = |name, path: &str| attempt(name, &[op("create"), ws(path)], Effect::Exists(world.ws(path)));
    let append = |name, path: &str| attempt(name, &[op("append"), ws(path)], Effect::Written(world.ws(path)));
    let swap = |name, path: &str| {
        let words = [op("swap-dir"), ws(path), ws("elsewhere")];
        attempt(name, &words, Effect::Exists(world.ws(path).join("pwned")))
    };
    vec![
        create("git hook", ".git/hooks/pre-commit"),
        append("git config", ".git/config"),
        create("git config.worktree", ".git/config.worktree"),
        create("git commondir", ".git/commondir"),
        attempt("git attributes", &[op("mkdir"), ws(".git/info")], Effect::Said),
        create("git submodule hook", ".git/modules/sub/hooks"),
        append("git submodule config", ".git/modules/sub/config"),
        attempt(
            "git new submodule",
            &[op("mkdir"), ws(".git/modules/new")],
            Effect::Exists(world.ws(".git/modules/new")),
        ),
        swap("git folder swapped", ".git"),
        swap("git hooks swapped", ".git/hooks"),
        swap("git modules swapped", ".git/modules/sub"),
        create("nested git hook", "sub/deep/.git/hooks/pre-commit"),
        create("nested git config", "sub/deep/.git/config"),
        swap("nested git swapped", "sub/deep/.git"),
        swap("folder of a nested repository swapped", "sub/deep"),
        append("nested settings", "sub/.claude/settings.json"),
        append("codex config", ".codex/config.toml"),
        swap("codex folder swapped", ".codex"),
        append("mcp servers", ".mcp.json"),
        attempt("mcp servers replaced", &[op("rename"), ws("mine"), ws(".mcp.json")], Effect::Gone(world.ws("mine"))),
        attempt(
            "workspace swapped",
            &[op("rename"), ws(""), world.path("ws2").display().to_string()],
            Effect::Gone(world.ws("")),
        ),
    ]
}

/// The same names where they do not exist yet.
fn missing(world: &World) -> Vec<Attempt> {
    let ws = |name: &str| world.ws(name).display().to_string();
    let mut list = Vec::new();
    for name in [".git", ".codex", ".agents", ".claude", ".cursor", ".gemini", ".vscode", ".mcp.json", ".envrc"] {
        for words in [
            vec!["mkdir".to_owned(), ws(name)],
            vec!["create".to_owned(), ws(name)],
            vec!["rename".to_owned(), ws("mine"), ws(name)],
            vec!["link".to_owned(), ws("mine"), ws(name)],
        ] {
            list.push(Attempt { name, words, effect: Effect::Exists(world.ws(name)) });
        }
        let words = ["swap-link".to_owned(), ws(name), ws("x"), world.path("outside").display().to_string()];
        list.push(Attempt { name, words: words.to_vec(), effect: Effect::Linked(world.ws(name)) });
    }
    list
}

fn processes(scene: &Scene) -> Vec<Attempt> {
    let (world, victim) = (&scene.world, &scene.victim);
    let attempt = |name, words: &[&str], effect| Attempt {
        name,
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        effect,
    };
    let via = world.path("outside/via-root");
    let file = world.path("outside/victimfile");
    let (pid, address, fd) = (victim.pid.as_str(), victim.address.as_str(), victim.fd.as_str());
    vec![
        attempt("/proc/PID/mem", &["proc-mem", pid, address], Effect::VictimWritten),
        attempt("/proc/PPID/mem", &["parent-mem"], Effect::Said),
        attempt("/proc/PID/fd", &["proc-fd", pid, fd], Effect::Written(file.clone())),
        attempt("/proc/PID/root", &["proc-root", pid, &via.display().to_string()], Effect::Exists(via)),
        attempt("/proc/PID/cwd", &["proc-cwd", pid, "via-cwd"], Effect::Exists(world.path("outside/via-cwd"))),
        attempt("/proc/PID/environ", &["environ", pid, "env-secret"], Effect::Said),
        attempt("ptrace", &["ptrace", pid], Effect::Said),
        attempt("ptrace of the parent", &["ptrace-parent"], Effect::Said),
        attempt("process_vm_writev", &["vm-write", pid, address], Effect::VictimWritten),
        attempt("process_vm_readv", &["vm-read", pid, address], Effect::Said),
        attempt("pidfd_getfd", &["pidfd-getfd", pid, fd], Effect::Written(file)),
        attempt("kill", &["kill", pid], Effect::VictimEnded),
        attempt("pidfd_send_signal", &["pidfd-signal", pid], Effect::VictimEnded),
        attempt("signal to the parent", &["kill-parent"], Effect::Said),
        attempt("prlimit", &["prlimit", pid], Effect::VictimLimited),
        attempt("renice", &["renice", pid], Effect::VictimNiced),
        attempt("setns", &["setns", pid], Effect::Said),
    ]
}

fn network(scene: &Scene) -> Vec<Attempt> {
    let mut list = Vec::new();
    for (name, op, kind) in [
        ("tcp", "tcp", "tcp"),
        ("tcp6", "tcp", "tcp6"),
        ("udp", "udp", "udp"),
        ("udp by sendmsg", "udp-unbound", "udp"),
        ("abstract stream", "unix-stream", "abstract stream"),
        ("path stream", "unix-stream", "path stream"),
        ("abstract datagram", "unix-datagram", "abstract datagram"),
        ("path datagram", "unix-datagram", "path datagram"),
        ("abstract datagram from a pair", "unix-datagram-pair", "abstract datagram"),
        ("path datagram from a pair", "unix-datagram-pair", "path datagram"),
    ] {
        if let Some(address) = scene.listeners.address(kind) {
            list.push(Attempt { name, words: vec![op.to_owned(), address], effect: Effect::Heard(kind) });
        }
    }
    for (name, words) in [
        ("listen", &["listen"][..]),
        ("vsock", &["socket", "40", "1", "0"]),
        ("netlink", &["socket", "16", "3", "0"]),
        ("alg", &["socket", "38", "5", "0"]),
        ("packet", &["socket", "17", "3", "0"]),
        ("32-bit socket", &["int80"]),
        ("x32 socket", &["x32"]),
        ("io_uring", &["io-uring"]),
    ] {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        list.push(Attempt { name, words, effect: Effect::Said });
    }
    list
}

fn privileges(world: &World) -> Vec<Attempt> {
    let ws = |name: &str| world.ws(name).display().to_string();
    let mut list = Vec::new();
    for (name, words) in [
        ("mount", vec!["mount".to_owned(), ws("")]),
        ("user namespace", vec!["userns".to_owned()]),
        ("user namespace by clone", vec!["clone-userns".to_owned()]),
        ("unmount in a user namespace", vec!["unshare-umount".to_owned(), ws(".git/hooks")]),
        ("keyring", vec!["keyctl".to_owned()]),
        ("bpf", vec!["bpf".to_owned()]),
        ("lease", vec!["lease".to_owned(), ws("mine")]),
    ] {
        list.push(Attempt { name, words, effect: Effect::Said });
    }
    if is_root() {
        for (name, words) in [
            ("device file", vec!["mknod-disk".to_owned(), ws("disk")]),
            ("kernel settings", vec!["rewrite".to_owned(), "/proc/sys/kernel/core_pattern".to_owned()]),
            ("sysrq", vec!["open-write".to_owned(), "/proc/sysrq-trigger".to_owned()]),
            ("disk", vec!["open-write".to_owned(), "/dev/vda".to_owned()]),
        ] {
            list.push(Attempt { name, words, effect: Effect::Said });
        }
    }
    list
}

fn inside(scene: &Scene, policy: &SandboxPolicy, attempt: &Attempt) -> bool {
    let mut launch = scene.world.launch(policy, &[]);
    launch.argv = role_argv();
    launch.env.push((ROLE.into(), role(&attempt.words)));
    let finished = run(launch).expect("the attacker starts");
    finished.exit == Exit::Code(0)
}

fn outside(scene: &Scene, attempt: &Attempt) -> bool {
    let argv = role_argv();
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).env(ROLE, role(&attempt.words)).current_dir(scene.world.ws(""));
    command.output().is_ok_and(|output| output.status.success())
}

type List = fn(&Scene) -> Vec<Attempt>;

/// The groups of attempts, and whether each needs a repository to be there.
const GROUPS: [(&str, bool, List); 6] = [
    ("files", true, |scene| files(&scene.world)),
    ("project", true, |scene| project(&scene.world)),
    ("missing names", false, |scene| missing(&scene.world)),
    ("processes", true, processes),
    ("network", true, network),
    ("privileges", true, |scene| privileges(&scene.world)),
];

/// Makes every attempt in a fresh world and returns the successful ones, and the total number.
fn play(make: impl Fn(&Scene, &Attempt) -> bool) -> (Vec<String>, usize) {
    let (mut worked, mut count) = (Vec::new(), 0);
    for (group, has_repository, list) in GROUPS {
        let total = list(&Scene::new(has_repository)).len();
        for index in 0..total {
            let mut scene = Scene::new(has_repository);
            let attempt = list(&scene).swap_remove(index);
            let said = make(&scene, &attempt);
            count += 1;
            if scene.seen(&attempt.effect, said) {
                worked.push(format!("{group}: {} {:?}", attempt.name, attempt.words.first()));
            }
            clean_up(&scene, &attempt);
        }
    }
    (worked, count)
}

/// Removes what an attempt leaves outside of its world, or mounted on it, when nothing stops it.
fn clean_up(scene: &Scene, attempt: &Attempt) {
    if let Effect::Exists(path) = &attempt.effect
        && (path.starts_with("/dev/shm") || path.parent() == Some(Path::new("/var/tmp")))
    {
        let _ = std::fs::remove_file(path);
    }
    if attempt.name == "mount" {
        let ws = crate::attacker::c(&scene.world.ws("").display().to_string());
        // SAFETY: a valid path; without a mount there it fails, which does not matter.
        unsafe { libc::umount2(ws.as_ptr(), libc::MNT_DETACH) };
    }
}

#[test]
fn every_attempt_is_held() {
    if !crate::support::has_namespaces() {
        return crate::landlock::assert_fallback();
    }
    let (worked, count) = play(|scene, attempt| inside(scene, &workspace_write(), attempt));
    assert_eq!(worked, [""; 0], "of {count}");
    assert!(count >= 110, "{count}");
}

#[test]
fn attempts_work_without_a_sandbox() {
    let (worked, count) = play(outside);
    eprintln!("{} of {count} attempts have an effect without a sandbox", worked.len());
    assert!(worked.len() >= 95, "{} of {count}: {worked:#?}", worked.len());
}

/// Root has more to lose, so the suite runs as root where it can; this test runs as an ordinary user.
#[test]
fn every_attempt_of_an_ordinary_user_is_held() {
    if !is_root() {
        return eprintln!("not root: the other test has shown it");
    }
    let folder = tempfile::tempdir_in("/var/tmp").expect("a folder");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("chmod");
    let exe = folder.path().join("it");
    // A separate process copies the file: children that other tests start in the meantime would inherit a descriptor
    // open for writing, and such a file cannot be executed.
    let copied = Command::new("cp").arg(std::env::current_exe().expect("this binary")).arg(&exe).status();
    assert!(copied.is_ok_and(|status| status.success()), "copy");
    std::fs::set_permissions(&exe, std::fs::Permissions::from_mode(0o755)).expect("chmod");
    let mut command = Command::new(&exe);
    command.args(["--exact", "confinement::every_attempt_is_held", "--nocapture"]).current_dir("/").uid(4242).gid(4242);
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn read_only_means_no_writes_anywhere() {
    let world = World::new();
    world.write("ws/mine", "mine");
    let tmp = format!("/tmp/pwned-{}", std::process::id());
    let script = format!("echo x > new; echo x >> mine; chmod 777 mine; echo x > {tmp}; echo done");
    let finished = world.shell(&SandboxPolicy::ReadOnly, &script);
    assert_eq!(finished.stdout.text(), "done\n");
    assert!(!world.ws("new").exists() && !Path::new(&tmp).exists());
    assert_eq!(std::fs::read_to_string(world.ws("mine")).expect("there"), "mine");
}

#[test]
fn descriptors_of_the_server_do_not_reach_commands() {
    let world = World::new();
    let file = std::fs::File::options().create(true).append(true).open(world.path("outside/inherited")).expect("open");
    let folder = std::fs::File::open(world.path("outside")).expect("open");
    for fd in [file.as_raw_fd(), folder.as_raw_fd()] {
        // SAFETY: numbers only.
        assert_eq!(unsafe { libc::fcntl(fd, libc::F_SETFD, 0) }, 0);
    }
    for confinement in [Confinement::None, Confinement::from(world.profile(&workspace_write()))] {
        for words in [
            ["fd-write".to_owned(), file.as_raw_fd().to_string(), String::new()],
            ["fd-openat".to_owned(), folder.as_raw_fd().to_string(), "pw".to_owned()],
            ["fd-chdir".to_owned(), folder.as_raw_fd().to_string(), "pw".to_owned()],
        ] {
            let mut launch = world.launch(&workspace_write(), &[]);
            (launch.argv, launch.confinement) = (role_argv(), confinement.clone());
            launch.env.push((ROLE.into(), role(&words)));
            let finished = run(launch).expect("it starts");
            assert_eq!(finished.exit, Exit::Code(1), "{words:?} {}", finished.stdout.text());
        }
    }
    assert_eq!(crate::support::entries(&world.path("outside")), ["dir", "inherited"]);
    assert_eq!(std::fs::read(world.path("outside/inherited")).expect("there"), b"");
}

#[test]
fn nothing_is_typed_into_the_terminal() {
    let world = World::new();
    let mut launch = world.launch(&workspace_write(), &[]);
    (launch.argv, launch.stdio) = (role_argv(), Stdio::Pty { rows: 24, cols: 80, is_verbatim: false });
    launch.env.push((ROLE.into(), role(&["tiocsti".to_owned()])));
    let finished = run(launch).expect("it starts");
    assert!(finished.stdout.text().contains("refused: tiocsti"), "{}", finished.stdout.text());
}

#[test]
fn a_set_uid_program_gains_nothing() {
    if !is_root() {
        return eprintln!("not root: no set-uid program can be made");
    }
    let world = World::new();
    let program = world.path("outside/id");
    std::fs::copy("/usr/bin/id", &program).expect("copy");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).expect("chmod");
    let script = format!("grep -E 'CapEff|CapBnd|NoNewPrivs|Seccomp:' /proc/self/status; {}", program.display());
    let finished = world.shell(&workspace_write(), &script);
    let text = finished.stdout.text();
    for line in ["CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"] {
        assert!(text.contains(line), "{text}");
    }
}
