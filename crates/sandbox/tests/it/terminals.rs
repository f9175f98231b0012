//! Terminals that outlive one call.

use std::time::Duration;

use codex_sandbox::Exit;
use codex_sandbox::terminal::{MAX_TERMINALS, Screen, TerminalError, Terminals};

use crate::support::{World, runtime, workspace_write};

const PATIENCE: Duration = Duration::from_secs(20);

/// Polls until the text so far contains `wanted`.
async fn until_shown(terminals: &Terminals, id: u64, wanted: &str) -> String {
    let mut text = String::new();
    tokio::time::timeout(PATIENCE, async {
        while !text.contains(wanted) {
            terminals.wait_for_output(id, PATIENCE).await.expect("known");
            text += &terminals.poll(id, Duration::ZERO, 10_000).await.expect("known").output.text();
        }
    })
    .await
    .unwrap_or_else(|_| panic!("never shown: {wanted}, only {text}"));
    text
}

const SCREEN: Screen = Screen { rows: 24, cols: 80, is_verbatim: false };

#[test]
fn a_conversation_with_a_shell() {
    let world = World::new();
    runtime().block_on(async {
        let terminals = Terminals::default();
        let launch = world
            .launch(&workspace_write(), &["/bin/sh", "-c", "while read x; do echo \"<$x>\"; done; echo bye; exit 7"]);
        let id = terminals.start(launch, SCREEN).expect("it starts");
        terminals.write(id, b"hello\n").expect("typed");
        until_shown(&terminals, id, "<hello>").await;
        terminals.resize(id, 50, 100).expect("resized");
        terminals.write(id, b"\x04").expect("typed");
        let glance = terminals.poll(id, PATIENCE, 10_000).await.expect("known");
        assert_eq!(glance.exit, Some(Exit::Code(7)));
        assert!(glance.output.text().contains("bye"), "{glance:?}");
        assert_eq!(terminals.list().len(), 1);
        assert!(matches!(terminals.write(99, b"x"), Err(TerminalError::Unknown { id: 99 })));
    });
}

#[test]
fn output_is_cut_to_the_limit_and_kills_are_reported() {
    let world = World::new();
    runtime().block_on(async {
        let terminals = Terminals::default();
        let launch = world.launch(&workspace_write(), &["/bin/sh", "-c", "seq 100000; echo end; sleep 60"]);
        let id = terminals.start(launch, SCREEN).expect("it starts");
        until_shown(&terminals, id, "end").await;
        terminals.kill(id).expect("known");
        let glance = terminals.poll(id, PATIENCE, 100).await.expect("known");
        assert_eq!(glance.exit, Some(Exit::Signal(9)));
        assert!(glance.output.head.len() + glance.output.tail.len() <= 100);
    });
}

#[test]
fn ended_terminals_make_room_and_running_ones_do_not() {
    let world = World::new();
    runtime().block_on(async {
        let terminals = Terminals::default();
        let ended = terminals.start(world.launch(&workspace_write(), &["/bin/true"]), SCREEN).expect("it starts");
        assert_eq!(terminals.poll(ended, PATIENCE, 10).await.expect("known").exit, Some(Exit::Code(0)));
        let policy = codex_wire::policy::SandboxPolicy::DangerFullAccess;
        for _ in 0..MAX_TERMINALS {
            terminals.start(world.launch(&policy, &["/bin/sleep", "60"]), SCREEN).expect("there is room");
        }
        assert!(matches!(terminals.poll(ended, Duration::ZERO, 1).await, Err(TerminalError::Unknown { .. })));
        let refused = terminals.start(world.launch(&policy, &["/bin/true"]), SCREEN);
        assert!(matches!(refused, Err(TerminalError::TooMany)));
    });
}
