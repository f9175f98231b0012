//! Output: exact where it fits, bounded where it does not.

use std::time::Duration;

use codex_sandbox::{Chunk, Exit, Limits, Stdio, Stream};
use codex_wire::policy::SandboxPolicy;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;

use crate::support::{World, run, run_with, runtime, workspace_write};

fn rss() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").expect("statm");
    text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).expect("a number") * 4096
}

#[test]
fn both_streams_are_kept_apart_and_together() {
    let world = World::new();
    let finished = world.shell(&workspace_write(), "echo out; echo err >&2");
    assert_eq!((finished.stdout.text().as_str(), finished.stderr.text().as_str()), ("out\n", "err\n"));
    assert_eq!(finished.aggregated.total_bytes, 8);
}

#[test]
fn invalid_utf8_is_marked_and_counted() {
    let world = World::new();
    let finished = world.shell(&workspace_write(), "printf 'a\\377\\376b\\303'");
    assert_eq!(finished.stdout.text(), "a\u{fffd}\u{fffd}b\u{fffd}");
    assert_eq!(finished.stdout.head, b"a\xff\xfeb\xc3");
}

#[test]
fn a_flood_is_counted_in_bounded_memory() {
    let world = World::new();
    world.shell(&workspace_write(), "true");
    let before = rss();
    let script = "echo first; head -c 100000000 /dev/zero | tr '\\0' x; echo; echo last";
    let finished = world.shell(&workspace_write(), script);
    let grown = rss().saturating_sub(before);
    assert_eq!((finished.exit, finished.stdout.total_bytes), (Exit::Code(0), 100_000_012));
    let text = finished.stdout.text();
    assert!(text.starts_with("first\nxxx") && text.ends_with("xxx\nlast\n") && text.contains("bytes left out"));
    assert!(grown < 4 << 20, "grew by {grown} bytes");
}

#[test]
fn a_receiver_that_does_not_read_holds_nothing_up() {
    let world = World::new();
    let launch = world.launch(&workspace_write(), &["/bin/sh", "-c", "head -c 3000000 /dev/zero"]);
    let limits = Limits { streamed_bytes: 100_000, timeout: Some(Duration::from_secs(30)), ..Limits::default() };
    let (finished, chunks) = runtime().block_on(async {
        let (sender, mut chunks) = mpsc::channel(1);
        let finished = codex_sandbox::run(launch, limits, sender).await.expect("it starts");
        let mut got: Vec<Chunk> = Vec::new();
        while let Ok(chunk) = chunks.try_recv() {
            got.push(chunk);
        }
        (finished, got)
    });
    assert_eq!((finished.exit, finished.stdout.total_bytes, finished.timed_out), (Exit::Code(0), 3_000_000, false));
    assert!(chunks.len() <= 1);
}

#[test]
fn chunks_end_with_a_marker_at_the_budget() {
    let world = World::new();
    let launch = world.launch(&SandboxPolicy::ReadOnly, &["/bin/sh", "-c", "head -c 3000000 /dev/zero; echo e >&2"]);
    let limits = Limits { streamed_bytes: 100_000, ..Limits::default() };
    let chunks = runtime().block_on(async {
        let (sender, mut chunks) = mpsc::channel(4);
        let mut got: Vec<Chunk> = Vec::new();
        let receive = async {
            while let Some(chunk) = chunks.recv().await {
                got.push(chunk);
            }
        };
        let (finished, ()) = tokio::join!(codex_sandbox::run(launch, limits, sender), receive);
        finished.expect("it starts");
        got
    });
    let zeros = chunks.iter().flat_map(|chunk| &chunk.bytes).filter(|byte| **byte == 0).count();
    assert_eq!(zeros, 100_000);
    let last = chunks.last().expect("some");
    assert_eq!(last.stream, Stream::Stdout);
    assert!(String::from_utf8_lossy(&last.bytes).ends_with("not shown while the command runs …\n"));
}

#[test]
fn a_child_that_keeps_the_pipe_open_does_not_hold_up_the_end() {
    let world = World::new();
    for policy in [SandboxPolicy::DangerFullAccess, SandboxPolicy::ReadOnly] {
        let finished = world.shell(&policy, "sleep 60 & setsid sleep 60 & echo done");
        assert_eq!(finished.stdout.text(), "done\n");
        assert!(finished.duration < Duration::from_secs(5), "{:?}", finished.duration);
    }
}

#[test]
fn a_terminal_is_a_terminal() {
    let world = World::new();
    for policy in [SandboxPolicy::DangerFullAccess, workspace_write()] {
        let mut launch =
            world.launch(&policy, &["/bin/sh", "-c", "test -t 0 && test -t 2 && stty size && echo x > /dev/tty"]);
        launch.stdio = Stdio::Pty { rows: 33, cols: 77, is_verbatim: false };
        let finished = run(launch).expect("it starts");
        assert_eq!((finished.stdout.text().as_str(), finished.exit), ("33 77\r\nx\r\n", Exit::Code(0)), "{policy:?}");
    }
}

#[test]
fn an_input_is_read_to_its_end() {
    let world = World::new();
    for policy in [SandboxPolicy::DangerFullAccess, workspace_write()] {
        let mut launch = world.launch(&policy, &["/bin/cat"]);
        launch.stdio = Stdio::PipesWithInput;
        let (said, exit) = runtime().block_on(async {
            let mut running = codex_sandbox::spawn(launch).expect("it starts");
            let (mut input, mut output) =
                (running.take_stdin().expect("a pipe"), running.take_stdout().expect("a pipe"));
            input.write_all(b"to and fro").await.expect("the command reads");
            drop(input);
            let mut said = String::new();
            output.read_to_string(&mut said).await.expect("the command writes text");
            (said, running.wait().await)
        });
        assert_eq!((said.as_str(), exit), ("to and fro", Exit::Code(0)), "{policy:?}");
    }
}

#[test]
fn output_before_a_timeout_is_kept() {
    let world = World::new();
    let limits = Limits { timeout: Some(Duration::from_millis(200)), ..Limits::default() };
    let launch = world.launch(&SandboxPolicy::ReadOnly, &["/bin/sh", "-c", "yes"]);
    let finished = run_with(launch, limits).expect("it starts");
    assert!(finished.timed_out && finished.stdout.total_bytes > 0 && finished.stdout.text().starts_with("y\ny\n"));
}
