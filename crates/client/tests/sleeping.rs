//! A program that does not read its events. The only test of its program, because it measures the memory of the process.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

use codex_client::approvals::Approvals;
use codex_client::event::Event;
use codex_client::{Options, connect};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, duplex};

const DELTAS: usize = 200_000;
/// The memory that they may cost.
const MOST_KILOBYTES: u64 = 16 * 1024;

/// The memory of this process that is in use.
fn kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn a_program_that_sleeps_through_200_000_deltas_costs_16_mb_and_misses_no_end() {
    let (near, far) = duplex(64 * 1024);
    let (input, mut output) = tokio::io::split(far);
    let server = tokio::spawn(async move {
        let mut input = BufReader::new(input).lines();
        let _: Option<String> = input.next_line().await.unwrap();
        output.write_all(b"{\"id\":1,\"result\":{\"userAgent\":\"codex/0.200.0\"}}\n").await.unwrap();
        let _: Option<String> = input.next_line().await.unwrap();
        for place in 0..DELTAS {
            let item = format!("item-{}", place / 50_000);
            let params = json!({"threadId": "t", "turnId": "u", "itemId": item, "delta": "some forty bytes of an answer as it streams"});
            let line = json!({"method": "item/agentMessage/delta", "params": params});
            output.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        }
        let question = json!({"id": 7, "method": "item/commandExecution/requestApproval", "params": {"threadId": "t"}});
        let end = json!({"method": "turn/completed", "params": {"threadId": "t", "turn": {"id": "u", "status": "completed"}}});
        output.write_all(format!("{question}\n{end}\n").as_bytes()).await.unwrap();
        // The answer to the question: all before it was read by the library.
        let _: Option<String> = input.next_line().await.unwrap();
    });
    let (near_input, near_output) = tokio::io::split(near);
    let (client, mut events) =
        connect(near_input, near_output, Options::new("test", "1.0"), Approvals::deny_all()).await.unwrap();
    let before = kilobytes();
    server.await.unwrap();
    let cost = kilobytes().saturating_sub(before);
    eprintln!("{DELTAS} deltas that nobody has read cost {cost} kB");
    assert!(cost <= MOST_KILOBYTES, "{cost} kB");
    let (mut questions, mut ends) = (0, 0);
    while let Some(event) = events.next().await {
        questions += usize::from(matches!(event, Event::Asked { .. }));
        ends += usize::from(matches!(event, Event::TurnEnded { .. }));
    }
    assert_eq!((questions, ends), (1, 1));
    drop(client);
}
