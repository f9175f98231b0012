//! Hosts that cannot confine anything. The level is set once per process, so this test has its own.

#![cfg(target_os = "linux")]
#![allow(unsafe_code, clippy::expect_used, reason = "the fixture asks who it is, and fails by panicking")]

#[path = "it/support.rs"]
#[allow(dead_code, reason = "shared with the tests of the other levels")]
mod support;

use codex_sandbox::{SandboxLevel, force_level};
use codex_wire::policy::SandboxPolicy;

use crate::support::{World, run};

#[test]
fn without_any_level_confined_commands_are_refused() {
    assert!(force_level(SandboxLevel::Nothing { why: "for the test".to_owned() }));
    let world = World::new();
    let error = run(world.launch(&SandboxPolicy::ReadOnly, &["/bin/true"])).expect_err("refused");
    assert_eq!(error.to_string(), "commands cannot be confined here: for the test");
    assert!(error.hint().is_some());
    run(world.launch(&SandboxPolicy::DangerFullAccess, &["/bin/true"])).expect("full access needs no level");
}
