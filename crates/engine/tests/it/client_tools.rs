//! Tools that a client supplies: calls that end however the client behaves.

use std::sync::{Arc, Mutex};

use codex_engine::Setup;
use codex_log::client_tools::{Calling, ClientToolCall, ClientToolResult, ToolClient};
use codex_log::{Abort, Body, Outcome, Status};
use codex_thread::{ClientAdditions, ExplicitOverrides, InitialHistory};
use codex_wire::dynamic_tool::{DynamicToolCallOutputContentItem, DynamicToolSpec};
use codex_wire::ids::ThreadId;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::world::{Client, World, outcome};

/// A client that answers each call in the same way, or never.
#[derive(Debug, Default)]
struct Player {
    answer: Option<Result<ClientToolResult, String>>,
    is_gone: bool,
    calls: Mutex<Vec<ClientToolCall>>,
}

impl ToolClient for Player {
    fn is_present(&self) -> bool {
        !self.is_gone
    }

    fn call(&self, call: ClientToolCall) -> Calling {
        self.calls.lock().expect("it is unlocked").push(call);
        match self.answer.clone() {
            Some(answer) => Box::pin(async { answer }),
            None => Box::pin(std::future::pending()),
        }
    }
}

fn specs() -> Vec<DynamicToolSpec> {
    let tool = |name: &str| json!({"type": "function", "name": name, "description": "d", "inputSchema": {}});
    let group = json!({"type": "namespace", "name": "board", "description": "d", "tools": [tool("move")]});
    serde_json::from_value(json!([tool("lookup"), group])).expect("they are tools")
}

const SCRIPT: &str = r#"[{"items": [{"call": "lookup", "args": {"id": 7}}]}, {"items": [{"text": "Done."}]}]"#;

async fn start(player: &Arc<Player>, script: &str) -> Client {
    let world = World::new();
    let (setup, prompts) = world.setup(script);
    let (thread, feed) = with(player, setup).start().await.expect("the thread starts");
    Client { world, thread, feed, prompts }
}

fn with(player: &Arc<Player>, setup: Setup) -> Setup {
    let tool_client = Some(Arc::clone(player) as Arc<dyn ToolClient>);
    Setup { additions: ClientAdditions { dynamic_tools: specs(), tool_client, ..ClientAdditions::default() }, ..setup }
}

/// The output of the call in the last request to the model.
fn output(client: &Client) -> String {
    let last = client.prompts.all().pop().expect("the model was asked");
    let items = last.input.iter().map(|item| serde_json::from_str::<Value>(&item.json()).expect("an item is JSON"));
    let mut outputs = items.filter(|item| item["type"] == "function_call_output");
    outputs.next_back().expect("the call has an output")["output"].as_str().unwrap_or_default().to_owned()
}

fn text(text: &str) -> ClientToolResult {
    let content = vec![DynamicToolCallOutputContentItem::InputText { text: text.to_owned() }];
    ClientToolResult { content, success: true }
}

#[tokio::test(start_paused = true)]
async fn a_call_reaches_the_client_with_its_turn_and_its_arguments() {
    let player = Arc::new(Player { answer: Some(Ok(text("seven"))), ..Player::default() });
    let mut client = start(&player, SCRIPT).await;
    let tools = |client: &Client| client.prompts.all()[0].tools.responses_json().to_owned();
    client.turn("1", "hi").await;
    assert!(tools(&client).contains(r#""name":"lookup""#), "{}", tools(&client));
    assert_eq!(output(&client), "seven");
    let calls = player.calls.lock().expect("it is unlocked").clone();
    let call = &calls[0];
    assert_eq!((call.turn.as_str(), call.tool.as_str(), &call.arguments), ("1", "lookup", &json!({"id": 7})));
    assert_eq!((calls.len(), call.thread), (1, client.thread.id()));
}

#[tokio::test(start_paused = true)]
async fn a_call_without_an_answer_ends_with_an_error_for_the_model() {
    let refuses = Some(Err("the answer of the client is invalid".to_owned()));
    for (player, why, waits) in [
        (Player::default(), "the tool `lookup` of the client failed: the client did not answer within 600 s", 600),
        (Player { is_gone: true, ..Player::default() }, "no client is connected that supplies it", 0),
        (Player { answer: refuses, ..Player::default() }, "the answer of the client is invalid", 0),
        (
            Player { answer: Some(Ok(ClientToolResult { content: Vec::new(), success: false })), ..Player::default() },
            "the tool failed",
            0,
        ),
    ] {
        let began = Instant::now();
        let mut client = start(&Arc::new(player), SCRIPT).await;
        let events = client.turn("1", "hi").await;
        assert!(output(&client).ends_with(why), "{}", output(&client));
        assert!(matches!(outcome(&events), Outcome::Completed { .. }));
        assert_eq!(began.elapsed().as_secs(), waits);
        let failed = |body: &Body| matches!(body, Body::ItemCompleted(item) if item.status() == Some(Status::Failed));
        assert_eq!(events.iter().filter(|event| failed(&event.body)).count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_ends_a_call() {
    let mut client = start(&Arc::new(Player::default()), SCRIPT).await;
    client.say("1", "hi").await;
    client.until(|body| matches!(body, Body::ItemStarted(item) if item.status().is_some())).await;
    assert_eq!(client.thread.interrupt().await, Ok(true));
    let events = client.until_ended().await;
    assert_eq!(outcome(&events), Outcome::Aborted(Abort::Interrupted));
    assert!(events.iter().any(|event| matches!(&event.body, Body::ItemCompleted(item) if item.is_call())));
}

#[tokio::test(start_paused = true)]
async fn a_resumed_thread_has_its_tools_and_the_client_of_the_same_program_runs_them() {
    let script = SCRIPT.replace("\"lookup\"", "\"board__move\"");
    let player = Arc::new(Player { answer: Some(Ok(text("moved"))), ..Player::default() });
    let client = start(&player, "[]").await;
    let resumed = |player: Option<Arc<Player>>, originator: &'static str| {
        move |thread: ThreadId, setup: Setup| {
            let tool_client = player.map(|player| player as Arc<dyn ToolClient>);
            let additions = ClientAdditions { tool_client, ..ClientAdditions::default() };
            let initial_history = InitialHistory::Resumed { thread, explicit: ExplicitOverrides::default() };
            Setup { initial_history, additions, originator: originator.to_owned(), ..setup }
        }
    };
    let mut client = client.start_again(&script, resumed(Some(Arc::clone(&player)), "tests")).await;
    client.turn("1", "hi").await;
    assert_eq!(output(&client), "moved");
    let mut client = client.start_again(&script, resumed(Some(Arc::clone(&player)), "another program")).await;
    client.turn("2", "hi").await;
    assert!(output(&client).ends_with("no client is connected that supplies it"), "{}", output(&client));
    client.thread.offer_tool_client(Arc::clone(&player) as Arc<dyn ToolClient>).await.expect("the thread is open");
    let other = Arc::new(Player { answer: Some(Ok(text("another"))), ..Player::default() });
    client.thread.offer_tool_client(other).await.expect("the thread is open");
    let mut client = client.start_again(&script, resumed(Some(Arc::clone(&player)), "tests")).await;
    client.turn("3", "hi").await;
    assert_eq!(output(&client), "moved", "a client that is connected keeps its place");
}
