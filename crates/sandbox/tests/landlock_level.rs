//! Landlock without namespaces. The level is set once per process, so these tests have their own.

#![cfg(target_os = "linux")]
#![allow(unsafe_code, clippy::expect_used, reason = "the fixture asks who it is, and fails by panicking")]

#[path = "it/support.rs"]
#[allow(dead_code, reason = "shared with the tests of the other levels")]
mod support;

#[path = "it/secrets.rs"]
mod secrets;

#[path = "it/inspection.rs"]
mod inspection;

#[path = "it/layouts.rs"]
mod layouts;

use codex_sandbox::{SandboxLevel, force_level, landlock_level, level};
use codex_wire::policy::SandboxPolicy;

use crate::support::{World, workspace_write};

/// Without Landlock, tests that need no particular level run on whatever level the host offers.
fn settle_level() {
    has_landlock();
}

fn has_landlock() -> bool {
    let has = matches!(landlock_level(), SandboxLevel::Landlock { .. });
    if !has {
        eprintln!("this kernel has no usable Landlock: {:?}", landlock_level());
    }
    if has {
        force_level(landlock_level());
        assert_eq!(*level(), landlock_level(), "every test of this program is on the same level");
    }
    has
}

#[test]
fn landlock_grants_less_instead_of_leaking() {
    if !has_landlock() {
        return;
    }
    let world = World::new();
    world.write("ws/src/main.rs", "fn main() {}\n");
    world.write("ws/notes", "old\n");
    world.write("ws/.git/HEAD", "ref: refs/heads/main\n");
    world.write("ws/.git/config", "[core]\n");
    world.write("ws/.codex/config.toml", "# clean\n");
    world.write("ws/sub/.git/config", "[core]\n");
    world.write("ws/sub/src/lib.rs", "");
    let shell = |script: &str| world.shell(&workspace_write(), script).aggregated.text();
    assert_eq!(
        shell("echo new > notes && echo x > src/new && mkdir src/dir && mv src/new src/dir/ && cat notes"),
        "new\n"
    );
    assert_eq!(shell("echo x > sub/src/new && cat sub/src/new"), "x\n");
    for attack in [
        "echo x >> .git/config",
        "mkdir .git/hooks",
        "echo x >> .codex/config.toml",
        "mv .codex src/codex",
        "mkdir .claude",
        "echo x > .mcp.json",
        "mkdir sub/.git/hooks",
        "ln -s /tmp .agents",
        "mv src .vscode",
        "echo x > ../outside/new",
        "echo x > /dev/shm/pwned-landlock",
        "kill -TERM $PPID",
        "cat /proc/$PPID/environ",
        "python3 -c 'import socket; socket.socket()'",
    ] {
        let finished = world.shell(&workspace_write(), &format!("{attack} 2>/dev/null"));
        assert_ne!(finished.exit, codex_sandbox::Exit::Code(0), "{attack}");
    }
    assert_eq!(crate::support::entries(&world.ws("")), [".codex", ".git", "notes", "src", "sub"]);
}

#[test]
fn modes_and_times_change_inside_only() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    if !has_landlock() {
        return;
    }
    let world = World::new();
    world.write("ws/src/a", "");
    let outside = world.write("outside/file", "");
    let status = || std::fs::metadata(&outside).map(|it| (it.permissions().mode(), it.mtime())).expect("there");
    let before = status();
    symlink(&outside, world.ws("src/link")).expect("symlink");
    let inside = world.shell(
        &workspace_write(),
        "cd src; chmod 701 a; touch -d @7 a; cp -p a b; cc=$(stat -c '%a %Y' a b); echo $cc",
    );
    assert_eq!(inside.aggregated.text(), "701 7 701 7\n");
    for attack in [
        "chmod 777 ../outside/file",
        "chmod 777 src/link",
        "touch -d @7 ../outside/file",
        "python3 -c 'import os; os.fchmod(os.open(\"../outside/file\", 0), 0o777)'",
        "python3 -c 'import os; os.chmod(\"/proc/self/fd/%d\" % os.open(\"../outside/file\", 0), 0o777)'",
        "python3 -c 'import os; os.chmod(\"file\", 0o777, dir_fd=os.open(\"../outside\", 0))'",
        "python3 -c 'import os; os.setxattr(\"../outside/file\", \"user.x\", b\"1\")'",
        "chmod u+s src/a",
        "chown 12345 src/a",
    ] {
        let finished = world.shell(&workspace_write(), &format!("{attack} 2>/dev/null"));
        assert_ne!(finished.exit, codex_sandbox::Exit::Code(0), "{attack}");
    }
    assert_eq!(status(), before);
    assert_ne!(world.shell(&SandboxPolicy::ReadOnly, "chmod 777 src/a").exit, codex_sandbox::Exit::Code(0));
}

#[test]
fn secrets_of_the_home_are_not_read() {
    if !has_landlock() {
        return;
    }
    secrets::are_not_read();
}

#[test]
fn secrets_that_come_later_are_not_read() {
    if !has_landlock() {
        return;
    }
    secrets::are_not_read_when_they_come_later();
}

#[test]
fn secrets_behind_links_are_not_read() {
    if !has_landlock() {
        return;
    }
    secrets::are_not_read_behind_links();
}

#[test]
fn a_workspace_near_the_home_works_as_ever() {
    if !has_landlock() {
        return;
    }
    secrets::leave_the_workspace_as_it_is();
}

/// Root may inspect every process, an ordinary user may not: what works for one need not work for the other.
#[test]
fn an_ordinary_user_works_on_this_level_too() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;

    const NOBODY: u32 = 65_534;
    // SAFETY: takes no arguments and cannot fail.
    if unsafe { libc::geteuid() } != 0 || !has_landlock() {
        // In that case an ordinary user runs the other tests of this file.
        return;
    }
    let folder = tempfile::tempdir().expect("a folder can be made");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let program = folder.path().join("tests");
    // A separate process copies the file: children that other tests start in the meantime would inherit a descriptor
    // open for writing, and such a file cannot be executed.
    let current = std::env::current_exe().expect("it has a file");
    let copied = std::process::Command::new("cp").arg(current).arg(&program).status();
    assert!(copied.is_ok_and(|status| status.success()), "a file can be copied");
    let run = std::process::Command::new(&program)
        .args(["--exact", "landlock_grants_less_instead_of_leaking"])
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .expect("the tests can be started");
    let told = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && told.contains("1 passed"), "{told}{}", String::from_utf8_lossy(&run.stderr));
}
