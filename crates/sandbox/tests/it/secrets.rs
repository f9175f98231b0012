//! The secrets of the home, on the current level.

use std::path::{Path, PathBuf};

use codex_sandbox::{Confinement, Launch, Profile, SandboxContext};
use codex_wire::policy::{SandboxPolicy, WorkspaceWrite};

use crate::support::{World, git, run, workspace_write};

/// A home with a login, a token, and files that commands need.
fn furnish(world: &World, home: &str) {
    for (name, text) in [
        ("auth.json", "SECRET"),
        (".credentials.json", "SECRET"),
        ("run/app-server.token", "SECRET"),
        ("config.toml", "# settings\n"),
        ("skills/mine/run.sh", "echo skilled\n"),
    ] {
        world.write(&format!("{home}/{name}"), text);
    }
    std::os::unix::fs::symlink("config.toml", world.path(home).join("link")).expect("symlink");
}

/// The output of a script in a folder, with a home.
fn printed(world: &World, policy: &SandboxPolicy, cwd: &Path, home: &Path, script: &str) -> String {
    let sandbox_context = SandboxContext { codex_home: home.to_owned(), ..SandboxContext::default() };
    let launch = Launch {
        cwd: cwd.to_owned(),
        confinement: Confinement::from(Profile::new(policy, cwd, &sandbox_context)),
        ..world.launch(policy, &["/bin/sh", "-c", script])
    };
    run(launch).expect("it starts").aggregated.text()
}

fn with_network() -> SandboxPolicy {
    SandboxPolicy::WorkspaceWrite(WorkspaceWrite { network_access: true, ..WorkspaceWrite::default() })
}

/// Tries every path to a secret.
pub(crate) fn are_not_read() {
    let world = World::new();
    furnish(&world, "codex_home");
    let (ws, home) = (world.ws(""), world.path("codex_home"));
    std::os::unix::fs::symlink("../codex_home/auth.json", ws.join("link")).expect("symlink");
    let shown = home.display();
    for policy in [SandboxPolicy::ReadOnly, workspace_write(), with_network()] {
        let seen = |script: &str| printed(&world, &policy, &ws, &home, script);
        for attempt in [
            format!("cat {shown}/auth.json {shown}/.credentials.json {shown}/run/*"),
            format!("cat {shown}/run/app-server.token"),
            "cat ../codex_home/auth.json".to_owned(),
            "cat link".to_owned(),
            format!("cd {shown} && cat auth.json; cd {shown}/run && cat app-server.token"),
            format!("cat /proc/self/root{shown}/auth.json"),
            "ln ../codex_home/auth.json mine; cat mine".to_owned(),
            "mv ../codex_home/auth.json mine; cat mine".to_owned(),
            "cp -r ../codex_home copy; cat copy/auth.json copy/run/*".to_owned(),
            "chmod 644 ../codex_home/auth.json; umount ../codex_home; cat ../codex_home/auth.json".to_owned(),
            "head -c 100 ../codex_home/run/../auth.json".to_owned(),
        ] {
            let text = seen(&format!("({attempt}) 2>&1"));
            assert!(!text.contains("SECRET"), "{attempt}: {text}");
        }
        let needed = seen("cat ../codex_home/config.toml ../codex_home/link; sh ../codex_home/skills/mine/run.sh");
        assert_eq!(needed, "# settings\n# settings\nskilled\n");
        assert!(seen("ls ../codex_home").contains("config.toml"));
        assert_eq!(seen("(echo x > ../codex_home/new) 2> /dev/null; test -e ../codex_home/new || echo none"), "none\n");
    }
    let open = printed(&world, &SandboxPolicy::DangerFullAccess, &ws, &home, "cat ../codex_home/auth.json");
    assert_eq!(open, "SECRET");
    assert_eq!(std::fs::read_to_string(home.join("auth.json")).expect("it is there"), "SECRET");
}

/// Runs a script that reads `gate` first, and makes a change once it does.
fn printed_after(world: &World, home: &Path, change: impl FnOnce(), script: &str) -> String {
    let gate = world.ws("gate");
    let made = std::process::Command::new("mkfifo").arg(&gate).status().expect("mkfifo runs");
    assert!(made.success());
    let script = format!("cat gate; ({script}) 2>&1");
    let printed = std::thread::scope(|scope| {
        let (ws, policy) = (world.ws(""), workspace_write());
        let running = scope.spawn(move || printed(world, &policy, &ws, home, &script));
        // Opening it waits for the command.
        let opened = std::fs::OpenOptions::new().write(true).open(&gate).expect("the command reads");
        change();
        drop(opened);
        running.join().expect("it does not panic")
    });
    std::fs::remove_file(gate).expect("it is there");
    printed
}

/// Secrets that are rewritten, or created, while a command runs.
pub(crate) fn are_not_read_when_they_come_later() {
    let world = World::new();
    let home = world.path("codex_home");
    let write_anew = || {
        world.write("codex_home/auth.json.new", "SECRET");
        std::fs::rename(home.join("auth.json.new"), home.join("auth.json")).expect("rename");
        world.write("codex_home/run/app-server.token", "SECRET");
    };
    let script = "cat ../codex_home/auth.json ../codex_home/run/app-server.token";
    for is_there in [false, true] {
        if is_there {
            furnish(&world, "codex_home");
        }
        let text = printed_after(&world, &home, write_anew, script);
        assert!(!text.contains("SECRET"), "{is_there}: {text}");
    }
    assert_eq!(std::fs::read_to_string(home.join("auth.json")).expect("it is there"), "SECRET");
}

/// A home above the workspace, and a workspace above the home.
pub(crate) fn leave_the_workspace_as_it_is() {
    let world = World::new();
    furnish(&world, "codex_home");
    let (home, inside) = (world.path("codex_home"), world.path("codex_home/worktrees/one"));
    world.write("codex_home/worktrees/one/src/file", "old\n");
    git(&inside, &["init", "-q"]);
    git(&inside, &["add", "."]);
    git(&inside, &["commit", "-qm", "one"]);
    let seen = |cwd: &PathBuf, home: &PathBuf, script: &str| printed(&world, &workspace_write(), cwd, home, script);
    let script = "echo new > src/file; cat src/file; git status --short; cat ../../auth.json 2> /dev/null";
    assert_eq!(seen(&inside, &home, script), "new\n M src/file\n");
    assert_eq!(std::fs::read_to_string(inside.join("src/file")).expect("it is there"), "new\n");
    furnish(&world, "ws/home");
    world.write("ws/src/file", "old\n");
    let script = "echo new > src/file; cat src/file home/config.toml; cat home/auth.json home/run/* 2> /dev/null";
    assert_eq!(seen(&world.ws(""), &world.ws("home"), script), "new\n# settings\n");
}

/// A login that is a link to somewhere else.
pub(crate) fn are_not_read_behind_links() {
    let world = World::new();
    let home = world.path("codex_home");
    world.write("outside/login", "SECRET");
    world.write("outside/running/app-server.token", "SECRET");
    for (to, name) in [("../outside/login", "auth.json"), ("../outside/running", "run")] {
        std::os::unix::fs::symlink(to, home.join(name)).expect("symlink");
    }
    let script =
        "cat ../codex_home/auth.json ../outside/login ../outside/running/* ../codex_home/run/app-server.token 2>&1";
    let text = printed(&world, &workspace_write(), &world.ws(""), &home, script);
    assert!(!text.contains("SECRET"), "{text}");
}
