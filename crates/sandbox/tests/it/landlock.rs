//! The lower levels: Landlock without namespaces, namespaces without Landlock, and neither.

use std::time::{Duration, Instant};

use codex_sandbox::{SandboxLevel, SpawnError, explain, landlock_level, level};
use codex_wire::policy::SandboxPolicy;

use crate::lifetime::is_held;
use crate::outside::{output_of, start_role};
use crate::support::{ROLE, World, role, role_argv, run, workspace_write};

/// On a host without namespaces, confined commands must run with Landlock or not at all.
pub(crate) fn assert_fallback() {
    let world = World::new();
    let launch = world.launch(&SandboxPolicy::ReadOnly, &["/bin/sh", "-c", "echo x > new"]);
    match level() {
        SandboxLevel::Nothing { .. } => assert!(matches!(run(launch), Err(SpawnError::CannotConfine { .. }))),
        _ => drop(run(launch).expect("it starts")),
    }
    assert!(!world.ws("new").exists());
}

#[test]
fn landlock_explains_what_it_cannot_do() {
    let world = World::new();
    world.write("ws/src/main.rs", "");
    world.write("ws/.codex/config.toml", "");
    let profile = world.profile(&workspace_write()).expect("a profile");
    let text = explain(&profile, &SandboxLevel::Landlock { abi: 5 }).to_string();
    for line in ["Landlock 5", "git cannot commit here", "signals to other processes", "modes, owners and times"] {
        assert!(text.contains(line), "{text}");
    }
    let text = explain(&profile, &SandboxLevel::Namespaces { landlock_abi: 7 }).to_string();
    assert!(text.contains("namespaces (user, mount, pid, ipc, uts, net)"), "{text}");
    assert!(text.contains(&world.ws(".codex").display().to_string()), "{text}");
    let text = explain(&profile, &SandboxLevel::Nothing { why: "no luck".to_owned() }).to_string();
    assert!(text.contains("no sandbox: no luck") && text.contains("writable: nothing"), "{text}");
}

/// Runs a write inside and outside of the workspace on a host that lacks a feature.
#[track_caller]
fn on_a_host_without(what: &str, expected_level: &str, expected_writes: [bool; 2]) {
    let world = World::new();
    world.write("ws/src/a", "");
    let script = "echo x > src/new; echo x > ../outside/new; echo x > ../codex_home/new";
    let words =
        ["without", &world.ws("").display().to_string(), &world.path("codex_home").display().to_string(), script, what]
            .map(str::to_owned);
    let text = output_of(start_role(&words));
    assert!(text.contains(&format!("level {expected_level}")), "{text}");
    let written = [world.ws("src/new").exists(), world.path("outside/new").exists()];
    assert_eq!(written, expected_writes, "{text}");
    assert!(!world.path("codex_home/new").exists());
}

#[test]
fn namespaces_hold_without_landlock() {
    if crate::support::has_namespaces() {
        on_a_host_without("landlock", "Namespaces { landlock_abi: 0 }", [true, false]);
    }
}

#[test]
fn sandboxes_have_namespaces_of_their_own_where_none_can_be_joined() {
    if crate::support::has_namespaces() {
        on_a_host_without("setns", "Namespaces", [true, false]);
    }
}

#[test]
fn landlock_holds_without_namespaces() {
    if matches!(landlock_level(), SandboxLevel::Landlock { .. }) {
        on_a_host_without("userns", "Landlock", [true, false]);
    }
}

#[test]
fn nothing_runs_without_either() {
    on_a_host_without("userns and landlock", "Nothing", [false, false]);
}

#[test]
fn processes_that_change_their_number_all_the_time_end_with_the_command() {
    let SandboxLevel::Landlock { abi: 6.. } = landlock_level() else { return };
    let world = World::new();
    let lock = world.write("ws/src/lock", "");
    let worm = role(&["worm".to_owned(), lock.display().to_string(), "10".to_owned()]);
    let words: Vec<String> = role_argv().iter().map(|word| word.to_string_lossy().into_owned()).collect();
    world.write("ws/src/worm.sh", &format!("{ROLE}='{}' {}", worm.to_string_lossy(), words.join(" ")));
    let (ws, home) = (world.ws("").display().to_string(), world.path("codex_home").display().to_string());
    let started = Instant::now();
    let text = output_of(start_role(&["without", &ws, &home, "sh src/worm.sh", "userns"].map(str::to_owned)));
    assert!(text.contains("level Landlock") && text.contains("exit Code(0)"), "{text}");
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
    assert!(!is_held(&lock), "somebody lives");
}
