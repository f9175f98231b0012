//! Nothing outlives its owner, and nothing is left behind.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::time::Duration;

use codex_sandbox::{Exit, Limits, spawn};
use codex_wire::policy::SandboxPolicy;

use crate::outside::{line_after, start_role};
use crate::support::{ROLE, World, entries, eventually, role, role_argv, run, run_with, runtime, workspace_write};

/// Whether a process still holds a lock on the file.
pub(crate) fn is_held(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    // SAFETY: numbers only.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) != 0 }
}

/// Takes a lock in a process of every kind, all of which ignore SIGTERM and outlive their parents.
const TREE: &str = "trap '' TERM HUP INT; exec 9> lock; flock 9; \
    (sleep 60 &) ; setsid sh -c 'trap \"\" TERM HUP; sleep 60' & (setsid sh -c '(sleep 60 &) &' &); echo ready; ";

#[test]
fn processes_left_by_a_command_end_with_it() {
    for policy in [SandboxPolicy::DangerFullAccess, workspace_write()] {
        let world = World::new();
        let lock = world.ws("lock");
        let mut launch = world.launch(&policy, &[]);
        launch.argv = role_argv();
        launch.env.push((ROLE.into(), role(&["daemon".to_owned(), lock.display().to_string()])));
        assert_eq!(run(launch).expect("it starts").exit, Exit::Code(0));
        assert!(!is_held(&lock), "the daemon lives: {policy:?}");
        assert_eq!(world.shell(&policy, &format!("{TREE} exit 3")).exit, Exit::Code(3));
        assert!(!is_held(&lock), "{policy:?}");
    }
}

#[test]
fn time_limits_end_the_whole_tree() {
    for policy in [SandboxPolicy::DangerFullAccess, workspace_write()] {
        let world = World::new();
        let limits = Limits { timeout: Some(Duration::from_millis(300)), ..Limits::default() };
        let finished = run_with(world.launch(&policy, &["/bin/sh", "-c", &format!("{TREE} sleep 60")]), limits);
        let finished = finished.expect("it starts");
        assert_eq!((finished.exit, finished.timed_out), (Exit::Signal(9), true));
        assert_eq!(finished.stdout.text(), "ready\n");
        assert!(!is_held(&world.ws("lock")) && finished.duration < Duration::from_secs(10));
        assert_eq!(entries(&world.ws("")), ["lock"]);
    }
}

#[test]
fn dropping_ends_the_whole_tree() {
    for policy in [SandboxPolicy::DangerFullAccess, workspace_write()] {
        let world = World::new();
        let launch = world.launch(&policy, &["/bin/sh", "-c", &format!("{TREE} sleep 60")]);
        runtime().block_on(async {
            let mut running = spawn(launch).expect("it starts");
            let mut line = [0; 6];
            let mut out = running.take_stdout().expect("a pipe");
            tokio::io::AsyncReadExt::read_exact(&mut out, &mut line).await.expect("it gets ready");
        });
        eventually("the tree ends and its placeholders go", || {
            !is_held(&world.ws("lock")) && entries(&world.ws("")) == ["lock"]
        });
    }
}

#[test]
fn a_kill_is_reported_and_leaves_no_process() {
    let world = World::new();
    let launch = world.launch(&workspace_write(), &["/bin/sleep", "60"]);
    runtime().block_on(async {
        let mut running = spawn(launch).expect("it starts");
        running.kill();
        assert_eq!(running.wait().await, Exit::Signal(9));
        assert_eq!(running.wait().await, Exit::Signal(9), "it says the same again");
        assert_eq!(entries(&world.ws("")), [""; 0]);
    });
}

#[test]
fn a_killed_server_leaves_nothing() {
    for earlier in ["0", "1", "2"] {
        let world = World::new();
        let script = format!("{TREE} touch /tmp/x; sleep 60");
        let (ws, home) = (world.ws("").display().to_string(), world.path("codex_home").display().to_string());
        let mut server = start_role(&["launcher", &ws, &home, &script, earlier].map(str::to_owned));
        let mut out = std::io::BufReader::new(server.stdout.take().expect("piped"));
        line_after(&mut out, "launched");
        eventually("the tree is up", || is_held(&world.ws("lock")));
        server.kill().expect("SIGKILL");
        server.wait().expect("it ends");
        eventually("the tree ends", || !is_held(&world.ws("lock")));
        eventually("its placeholders go", || entries(&world.ws("")) == ["lock"]);
    }
}

#[test]
fn a_hardened_process_is_closed_to_onlookers() {
    let mut process = start_role(&["hardened".to_owned()]);
    let mut out = std::io::BufReader::new(process.stdout.take().expect("piped"));
    assert_eq!(line_after(&mut out, "visible"), "0, core dumps up to 0 of 0");
    assert_eq!(line_after(&mut out, "child"), "Some(7)");
    process.wait().expect("it ends");
}

#[test]
fn placeholders_stay_until_the_last_of_several_commands_ends() {
    if !crate::support::has_namespaces() {
        return;
    }
    let world = World::new();
    // Inside of a git folder, names that do not exist are still held.
    codex_files::testing::make_git_folder(&world.ws(".git")).expect("mkdir");
    runtime().block_on(async {
        let long =
            |_: usize| spawn(world.launch(&workspace_write(), &["/bin/sh", "-c", "read x < fifo; mkdir .git/hooks"]));
        crate::attacker::check({
            let path = crate::attacker::c(&world.ws("fifo").display().to_string());
            // SAFETY: a valid path.
            unsafe { libc::mkfifo(path.as_ptr(), 0o600) }.into()
        })
        .expect("mkfifo");
        let mut running: Vec<_> = (0..3).map(|index| long(index).expect("it starts")).collect();
        for _ in 0..5 {
            let mut short =
                spawn(world.launch(&workspace_write(), &["/bin/sh", "-c", "! mkdir .git/hooks"])).expect("it starts");
            assert_eq!(short.wait().await, Exit::Code(0));
            assert!(world.ws(".git/hooks").exists(), "another command still needs it");
        }
        let mut last = running.pop().expect("three");
        for mut one in running {
            one.kill();
            one.wait().await;
            assert!(world.ws(".git/hooks").exists(), "another command still needs it");
        }
        std::fs::write(world.ws("fifo"), "go\n").expect("it reads");
        assert_eq!(last.wait().await, Exit::Code(1), "the name was still closed for the last");
        assert!(!world.ws(".git/hooks").exists());
    });
}

#[test]
fn placeholders_that_a_crash_left_are_removed_by_the_next_command() {
    if !crate::support::has_namespaces() {
        return;
    }
    let world = World::new();
    std::fs::create_dir(world.ws(".codex")).expect("mkdir");
    std::fs::create_dir(world.ws(".claude")).expect("mkdir");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o1555);
    std::fs::set_permissions(world.ws(".codex"), mode).expect("chmod");
    world.shell(&workspace_write(), "true");
    assert_eq!(entries(&world.ws("")), [".claude"], "a folder of the user's own stays");
}

#[test]
fn placeholders_that_a_crash_left_are_removed_without_a_command_too() {
    if !crate::support::has_namespaces() {
        return;
    }
    let world = World::new();
    let names = codex_sandbox::Names::default();
    let mode = |path, mode| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(world.ws(path), mode).expect("chmod");
    };
    for (name, left) in [(".codex", 0o1555), (".git", 0o1555), (".vscode", 0o755), (".claude", 0o1555)] {
        std::fs::create_dir(world.ws(name)).expect("mkdir");
        if name == ".claude" {
            std::fs::write(world.ws(".claude/x"), "").expect("write");
        }
        mode(name, left);
    }
    codex_sandbox::remove_left_placeholders(&world.ws(""), &names);
    assert_eq!(entries(&world.ws("")), [".claude", ".vscode"], "a folder of the user's own stays");
    runtime().block_on(async {
        let mut running = spawn(world.launch(&workspace_write(), &["/bin/sleep", "60"])).expect("it starts");
        let during = entries(&world.ws(""));
        codex_sandbox::remove_left_placeholders(&world.ws(""), &names);
        assert_eq!(entries(&world.ws("")), during, "what a command needs stays");
        running.kill();
        running.wait().await;
    });
    assert_eq!(entries(&world.ws("")), [".claude", ".vscode"]);
}

#[test]
fn a_command_that_may_write_nothing_has_no_placeholders() {
    let world = World::new();
    runtime().block_on(async {
        let mut running = spawn(world.launch(&SandboxPolicy::ReadOnly, &["/bin/sleep", "60"])).expect("it starts");
        assert_eq!(entries(&world.ws("")), [""; 0], "other programs see nothing of it");
        running.kill();
        running.wait().await;
    });
}

#[test]
fn no_process_is_left_on_the_table() {
    let world = World::new();
    let children = || std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    runtime().block_on(async {
        for _ in 0..3 {
            let mut running = spawn(world.launch(&workspace_write(), &["/bin/true"])).expect("it starts");
            running.wait().await;
            drop(spawn(world.launch(&SandboxPolicy::ReadOnly, &["/bin/sleep", "60"])).expect("it starts"));
        }
        tokio::time::timeout(Duration::from_secs(10), async {
            while !children().trim().is_empty() {
                tokio::task::yield_now().await;
            }
        })
        .await
        .expect("all are waited for");
    });
}
