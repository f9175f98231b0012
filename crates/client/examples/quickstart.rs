//! Asks about this folder and prints the answer: `cargo run -p codex-client --example quickstart`
#![expect(clippy::print_stdout, reason = "the answer goes there")]
use codex_client::{Event, Options, Supervisor, approvals::Approvals, supervisor::Launch};
use serde_json::json;
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut server = Supervisor::start(Launch::codex(), Options::new("quickstart", "1"), Approvals::deny_all(), |_| {});
    let (client, mut events) = server.connection().await.ok_or("the server cannot be started")?;
    let opened = client.raw("thread/start", json!({"sandbox": "read-only"})).await?;
    let input = json!([{"type": "text", "text": "Explain this folder in three bullets."}]);
    client.raw("turn/start", json!({"threadId": opened["thread"]["id"], "input": input})).await?;
    while let Some(event) = events.next().await {
        let Event::ItemCompleted { item, .. } = &event else { continue };
        let Some(text) = item.get("text").filter(|_| item["type"] == "agentMessage") else { continue };
        println!("{}", text.as_str().unwrap_or_default());
        break;
    }
    server.stop().await;
    Ok(())
}
