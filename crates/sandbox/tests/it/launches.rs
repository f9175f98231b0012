//! The inputs of a command, its outputs, and the reasons why it may not start.

use std::os::unix::fs::PermissionsExt as _;

use codex_sandbox::{Confinement, Exit, Launch, Profile, SandboxContext, SpawnError};
use codex_wire::policy::{NetworkAccess, SandboxPolicy, WorkspaceWrite};

use crate::support::{World, has_namespaces, run, workspace_write};

fn policies() -> [SandboxPolicy; 3] {
    [SandboxPolicy::DangerFullAccess, SandboxPolicy::ReadOnly, workspace_write()]
}

#[test]
fn exit_codes_and_signals_are_exact() {
    let world = World::new();
    for policy in policies() {
        for (script, expected) in [
            ("exit 0", Exit::Code(0)),
            ("exit 1", Exit::Code(1)),
            ("exit 255", Exit::Code(255)),
            ("kill -TERM $$", Exit::Signal(15)),
            ("kill -SEGV $$", Exit::Signal(11)),
            ("kill -KILL $$", Exit::Signal(9)),
        ] {
            assert_eq!(world.shell(&policy, script).exit, expected, "{script} {policy:?}");
        }
    }
}

#[test]
fn the_environment_is_exactly_what_was_given() {
    let world = World::new();
    for policy in policies() {
        let mut launch = world.launch(&policy, &["/usr/bin/env"]);
        launch.env = vec![("ONE".into(), "1".into()), ("EMPTY".into(), "".into()), ("SPACE".into(), "a b\nc".into())];
        assert_eq!(run(launch).expect("it starts").stdout.text(), "ONE=1\nEMPTY=\nSPACE=a b\nc\n", "{policy:?}");
    }
}

#[test]
fn signals_and_descriptors_are_those_of_a_fresh_process() {
    let world = World::new();
    for policy in policies() {
        let script = "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status; ls /proc/self/fd | tr '\\n' ' '; cat; umask";
        let text = world.shell(&policy, script).stdout.text();
        assert!(text.contains("SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000"), "{text}");
        assert!(text.contains("0 1 2 3 "), "{text}");
    }
}

#[test]
fn programs_are_found_on_the_commands_own_path() {
    let world = World::new();
    let script = world.write("ws/bin/greet", "echo hello from $0\n");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("chmod");
    world.write("ws/bin/plain", "no program");
    for policy in policies() {
        let mut launch = world.launch(&policy, &["greet"]);
        launch.env = vec![("PATH".into(), format!("/nowhere:{}", world.ws("bin").display()).into())];
        let text = run(launch.clone()).expect("it starts").stdout.text();
        assert_eq!(text, format!("hello from {}\n", script.display()), "a script without a first line is the shell's");
        launch.argv = vec!["bin/greet".into()];
        assert_eq!(run(launch.clone()).expect("it starts").stdout.text(), "hello from bin/greet\n");
        launch.argv = vec!["sh".into()];
        let error = run(launch.clone()).expect_err("not on this PATH");
        assert!(matches!(error, SpawnError::NoSuchProgram { .. }), "{error:?}");
        launch.argv = vec!["plain".into()];
        let error = run(launch).expect_err("not executable");
        assert!(matches!(error, SpawnError::Execute { .. }), "{error:?}");
    }
}

#[test]
fn a_failed_start_gives_a_reason() {
    let world = World::new();
    for policy in policies() {
        let mut launch = world.launch(&policy, &["/no/such/program"]);
        assert_eq!(run(launch.clone()).expect_err("missing").to_string(), "no such program: /no/such/program");
        launch.argv = vec!["/bin/true".into()];
        launch.cwd = world.path("nowhere");
        assert!(matches!(run(launch.clone()), Err(SpawnError::Cwd { .. })));
        launch.cwd = world.ws("");
        launch.argv = Vec::new();
        assert!(matches!(run(launch.clone()), Err(SpawnError::Empty)));
        launch.argv = vec!["a\0b".into()];
        assert!(matches!(run(launch), Err(SpawnError::ZeroByte { .. })));
    }
    assert_eq!(crate::support::entries(&world.ws("")), [""; 0], "a failed launch leaves nothing behind");
}

#[test]
fn roots_come_from_the_policy_alone() {
    let world = World::new();
    std::fs::create_dir_all(world.path("extra/deep")).expect("mkdir");
    let limits = WorkspaceWrite {
        writable_roots: vec![world.path("extra"), world.path("nowhere"), world.path("codex_home")],
        exclude_slash_tmp: true,
        exclude_tmpdir_env_var: true,
        ..WorkspaceWrite::default()
    };
    let policy = SandboxPolicy::WorkspaceWrite(limits);
    let profile = world.profile(&policy).expect("a profile");
    assert_eq!(profile.writable_roots(), [world.ws(""), world.path("extra")]);
    // A command gains nothing by starting elsewhere.
    let mut launch =
        world.launch(&policy, &["/bin/sh", "-c", "echo x > new; echo x > ../extra/deep/new; mkdir ../extra/.codex"]);
    launch.cwd = world.path("outside");
    run(launch).expect("it starts");
    assert!(!world.path("outside/new").exists() && world.path("extra/deep/new").exists());
    assert!(!world.path("extra/.codex").exists());
}

#[test]
fn policies_without_confinement_have_no_profile() {
    let cwd = std::path::Path::new("/");
    let external = SandboxPolicy::ExternalSandbox { network_access: NetworkAccess::Restricted };
    for policy in [SandboxPolicy::DangerFullAccess, external] {
        assert!(Profile::new(&policy, cwd, &SandboxContext::default()).is_none());
    }
}

#[test]
fn codex_home_is_closed_wherever_it_is() {
    if !has_namespaces() {
        return;
    }
    let world = World::new();
    let tmp = tempfile::tempdir_in("/tmp").expect("a folder");
    for home in [world.ws("a/b/home"), world.path("tmpdir/home"), tmp.path().join("home")] {
        for exists in [false, true] {
            if exists {
                std::fs::create_dir_all(&home).expect("mkdir");
                std::fs::write(home.join("auth.json"), "secret").expect("write");
            }
            let sandbox_context = SandboxContext { codex_home: home.clone(), ..world.sandbox_context() };
            let profile = Profile::new(&workspace_write(), &world.ws(""), &sandbox_context);
            let parent = home.parent().expect("a parent").display().to_string();
            let script = format!(
                "mkdir -p {parent}; mkdir {0}; echo x > {0}/config.toml; rm {0}/auth.json; mv {0} {0}2; mv {parent} {parent}2; echo x > {parent}/sibling; true",
                home.display()
            );
            let mut launch = world.launch(&workspace_write(), &["/bin/sh", "-c", &script]);
            launch.confinement = Confinement::from(profile);
            run(launch).expect("it starts");
            assert_eq!(home.join("auth.json").exists(), exists, "{}", home.display());
            assert!(!home.join("config.toml").exists());
        }
    }
}

#[test]
fn the_network_can_be_allowed() {
    let world = World::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
    let port = listener.local_addr().expect("bound").port();
    let script =
        format!("python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 5).send(b\"x\")'");
    let policy = SandboxPolicy::WorkspaceWrite(WorkspaceWrite { network_access: true, ..WorkspaceWrite::default() });
    assert_eq!(world.shell(&policy, &script).exit, Exit::Code(0));
    assert_ne!(world.shell(&workspace_write(), &script).exit, Exit::Code(0));
    let unix = "python3 -c 'import socket; socket.socket(socket.AF_UNIX)'";
    assert_ne!(world.shell(&policy, unix).exit, Exit::Code(0), "sockets of agents and daemons stay out of reach");
}

#[test]
fn every_sandbox_has_an_empty_network_and_processes_of_its_own() {
    if !has_namespaces() {
        return;
    }
    let world = World::new();
    let outside = |kind: &str| std::fs::read_link(format!("/proc/self/ns/{kind}")).expect("a namespace");
    // The first sandbox of a process creates its own network namespace, later ones share one.
    for _ in 0..3 {
        let script = "cd /proc/self/ns; readlink net user pid mnt ipc; sed 1,2d /proc/net/dev";
        let finished = world.shell(&SandboxPolicy::ReadOnly, script);
        let text = finished.stdout.text();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let [network, user, processes, mounts, objects, device] = lines.as_slice() else { panic!("{text}") };
        for (kind, inside) in [("net", network), ("user", user), ("pid", processes), ("mnt", mounts), ("ipc", objects)]
        {
            assert_ne!(Some(inside.as_str()), outside(kind).to_str(), "{kind}");
        }
        assert!(device.trim().starts_with("lo:"), "{device}");
    }
}

#[test]
fn ordinary_programs_work() {
    if !has_namespaces() {
        return;
    }
    let world = World::new();
    let script = "set -e; python3 -c 'import asyncio, subprocess, tempfile, multiprocessing.pool
asyncio.run(asyncio.sleep(0))
print(subprocess.check_output([\"echo\", \"hi\"]), tempfile.mkdtemp() != \"\")
print(multiprocessing.pool.ThreadPool(2).map(abs, [-1]))'
echo err > /dev/stderr; head -c 4 /dev/urandom > r; ls /proc/self/fd > /dev/null
echo x > /tmp/$$; mv /tmp/$$ moved; ln moved linked; mkdir -p d/e; mv d/e e; chmod 700 e; touch -d @0 moved; script -qc true /dev/null";
    let finished = world.shell(&workspace_write(), script);
    assert_eq!(finished.exit, Exit::Code(0), "{}", finished.aggregated.text());
    assert_eq!(crate::support::entries(&world.ws("")), ["d", "e", "linked", "moved", "r"]);
}

#[test]
fn a_command_has_a_limit_on_its_processes() {
    let limit_of = |most_processes: Option<u32>| {
        let world = World::new();
        let launch = world.launch(&workspace_write(), &["/bin/cat", "/proc/self/limits"]);
        let said = run(Launch { most_processes, ..launch }).expect("it starts").stdout.text();
        let line = said.lines().find_map(|line| line.strip_prefix("Max processes")).expect("a line").to_owned();
        let [soft, hard] = line.split_whitespace().take(2).collect::<Vec<_>>()[..] else { panic!("{line}") };
        assert_eq!(soft, hard);
        soft.parse::<u64>().unwrap_or(u64::MAX)
    };
    let (few, more) = (limit_of(Some(100)), limit_of(Some(1000)));
    // Every process and thread of the machine may be the user's, and counts on top.
    assert!((100..100_000).contains(&few) && more > few, "{few} {more}");
}
