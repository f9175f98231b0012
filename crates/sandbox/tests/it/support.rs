//! A workspace with surroundings, and launches in it.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use codex_sandbox::{Confinement, Finished, Launch, Limits, Profile, SandboxContext, SpawnError, Stdio};
use codex_wire::policy::{SandboxPolicy, WorkspaceWrite};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

/// The variable that makes the test binary play a role; see `attacker`.
pub(crate) const ROLE: &str = "CODEX_SANDBOX_TEST_ROLE";
/// Separates the words of a role.
pub(crate) const SEPARATOR: char = '\u{1f}';

/// A folder outside of `/tmp`, which is writable by policy, with a workspace in it.
pub(crate) struct World {
    base: TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let base = tempfile::Builder::new().prefix("sandbox.").tempdir_in("/var/tmp").expect("a folder in /var/tmp");
        std::fs::set_permissions(base.path(), std::fs::Permissions::from_mode(0o755)).expect("chmod");
        let world = Self { base };
        for folder in ["ws", "outside", "outside/dir", "home", "codex_home", "tmpdir"] {
            std::fs::create_dir(world.path(folder)).expect("mkdir");
        }
        world
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.base.path().canonicalize().expect("it exists").join(relative)
    }

    pub(crate) fn ws(&self, relative: &str) -> PathBuf {
        let ws = self.path("ws");
        if relative.is_empty() { ws } else { ws.join(relative) }
    }

    pub(crate) fn write(&self, relative: &str, text: &str) -> PathBuf {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
        std::fs::write(&path, text).expect("write");
        path
    }

    pub(crate) fn sandbox_context(&self) -> SandboxContext {
        SandboxContext {
            codex_home: self.path("codex_home"),
            tmpdir: Some(self.path("tmpdir")),
            ..SandboxContext::default()
        }
    }

    pub(crate) fn profile(&self, policy: &SandboxPolicy) -> Option<Profile> {
        Profile::new(policy, &self.ws(""), &self.sandbox_context())
    }

    pub(crate) fn launch(&self, policy: &SandboxPolicy, argv: &[&str]) -> Launch {
        Launch {
            argv: argv.iter().map(OsString::from).collect(),
            cwd: self.ws(""),
            env: self.env(),
            confinement: Confinement::from(self.profile(policy)),
            stdio: Stdio::Pipes,
            most_processes: None,
            most_memory: None,
        }
    }

    pub(crate) fn env(&self) -> Vec<(OsString, OsString)> {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
        vec![("PATH".into(), path), ("HOME".into(), self.path("home").into()), ("LANG".into(), "C.UTF-8".into())]
    }

    /// Runs a shell script and returns its result.
    pub(crate) fn shell(&self, policy: &SandboxPolicy, script: &str) -> Finished {
        run(self.launch(policy, &["/bin/sh", "-c", script])).expect("it starts")
    }
}

pub(crate) fn workspace_write() -> SandboxPolicy {
    SandboxPolicy::WorkspaceWrite(WorkspaceWrite::default())
}

pub(crate) fn run(launch: Launch) -> Result<Finished, SpawnError> {
    run_with(launch, Limits { timeout: Some(Duration::from_secs(30)), ..Limits::default() })
}

pub(crate) fn run_with(launch: Launch, limits: Limits) -> Result<Finished, SpawnError> {
    runtime().block_on(async {
        let (sender, mut chunks) = mpsc::channel(64);
        let drain = async { while chunks.recv().await.is_some() {} };
        let finished = tokio::join!(codex_sandbox::run(launch, limits, sender), drain).0;
        codex_sandbox::cleanup_done().await;
        finished
    })
}

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// The command line that makes this test binary play a role.
pub(crate) fn role_argv() -> Vec<OsString> {
    let exe = std::env::current_exe().expect("this binary");
    let words = ["--exact", "attacker::plays_its_role", "--nocapture", "--test-threads=1"];
    std::iter::once(exe.into_os_string()).chain(words.map(OsString::from)).collect()
}

pub(crate) fn role(words: &[String]) -> OsString {
    words.join(&SEPARATOR.to_string()).into()
}

/// Waits for a condition, for ten seconds at most.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < until, "waited in vain: {what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

pub(crate) fn is_root() -> bool {
    // SAFETY: takes no arguments and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

pub(crate) fn has_namespaces() -> bool {
    let found = matches!(codex_sandbox::level(), codex_sandbox::SandboxLevel::Namespaces { .. });
    if !found {
        eprintln!("this host offers no namespaces, only {:?}: the fallback is tested instead", codex_sandbox::level());
    }
    found
}

/// The sorted names in a folder.
pub(crate) fn entries(folder: &Path) -> Vec<String> {
    let found = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> = found.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Runs git outside of the sandbox.
#[track_caller]
pub(crate) fn git(folder: &Path, words: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"]);
    command.args(["-c", "protocol.file.allow=always"]).args(words).current_dir(folder);
    command.env("HOME", folder).env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.output().expect("git runs");
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
