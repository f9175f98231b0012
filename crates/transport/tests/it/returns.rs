//! The messages to a client that reconnects in the middle of a turn, case by case.

use serde_json::{Value, json};

use crate::client::Client;
use crate::comings::{Gate, command, text};
use crate::world::{ASKS, RUNS, World};

/// A client subscribed by numbers, and the response it got.
async fn subscribed(world: &World, thread: &str, place: Option<(u64, &Value)>) -> (Client, Value) {
    let mut client = Client::within(world.server.connect()).await;
    let params = match place {
        Some((after, log)) => json!({"threadId": thread, "after": after, "logId": log}),
        None => json!({"threadId": thread}),
    };
    let answer = client.ok("thread/subscribe", params).await;
    (client, answer)
}

/// Every message up to a notification with this name.
async fn until(client: &mut Client, method: &str) -> Vec<Value> {
    let mut messages = Vec::new();
    loop {
        let message = client.next().await;
        let is_last = message["method"] == method;
        messages.push(message);
        if is_last {
            return messages;
        }
    }
}

#[tokio::test]
async fn a_split_character_is_complete_after_a_reconnect() {
    let world = World::new(RUNS, &json!([]));
    let gate = Gate::new(&world);
    let call = command("printf 'a\\342\\202'; cat gate > passed; printf '\\254b\\n'");
    std::fs::write(world.path("home/script.json"), json!([call, text("Done.")]).to_string()).expect("it is written");
    let mut first = Client::within(world.server.connect()).await;
    let thread = first.thread().await;
    let (mut client, answer) = subscribed(&world, &thread, None).await;
    first.say(&thread, "go").await;
    let seen = until(&mut client, "item/commandExecution/outputDelta").await;
    let delta = seen.last().expect("the piece");
    assert_eq!(delta["params"]["delta"], "a");
    let after = delta["seq"].as_u64().expect("a number");
    drop(client);
    let (mut client, again) = subscribed(&world, &thread, Some((after, &answer["logId"]))).await;
    assert_eq!(again["reset"], false);
    gate.open().await;
    let rest = until(&mut client, "turn/completed").await;
    let deltas = rest.iter().filter(|message| message["method"] == "item/commandExecution/outputDelta");
    let text: String = deltas.map(|message| message["params"]["delta"].as_str().expect("text")).collect();
    assert_eq!(text, "€b\n");
}

#[tokio::test]
async fn a_client_that_joins_a_turn_gets_its_duration_and_last_message() {
    for is_back in [true, false] {
        let world = World::new(RUNS, &json!([]));
        let gate = Gate::new(&world);
        let words = json!({"items": [{"text": "I wait."}, command("cat gate > passed")["items"][0]]});
        let script = json!([words, {"items": []}]);
        std::fs::write(world.path("home/script.json"), script.to_string()).expect("it is written");
        let mut first = Client::within(world.server.connect()).await;
        let thread = first.thread().await;
        let (mut client, answer) = subscribed(&world, &thread, None).await;
        first.say(&thread, "go").await;
        let seen = loop {
            let seen = until(&mut client, "item/started").await;
            if seen.last().expect("an item")["params"]["item"]["type"] == "commandExecution" {
                break seen;
            }
        };
        let after = seen.last().and_then(|message| message["seq"].as_u64()).expect("a number");
        drop(client);
        let place = is_back.then_some((after, &answer["logId"]));
        let (mut client, again) = subscribed(&world, &thread, place).await;
        assert_eq!(again["reset"], !is_back);
        gate.open().await;
        let ended = client.notification("turn/completed").await["turn"].take();
        assert_eq!(ended["items"][0]["text"], "I wait.", "{ended}");
        let (began, took) = (ended["startedAt"].as_i64(), ended["durationMs"].as_i64());
        assert!(began > Some(0) && took < Some(60_000), "{ended}");
    }
}

#[tokio::test]
async fn a_question_is_not_taken_back_by_the_end_of_an_earlier_turn() {
    let world = World::new(ASKS, &json!([text("One."), command("echo ran > out"), text("Two.")]));
    let mut first = Client::within(world.server.connect()).await;
    let thread = first.thread().await;
    let (client, answer) = subscribed(&world, &thread, None).await;
    drop(client);
    first.say(&thread, "one").await;
    first.notification("turn/completed").await;
    first.say(&thread, "two").await;
    first.request("item/commandExecution/requestApproval").await;
    drop(first);
    let place = (answer["seq"].as_u64().expect("a number"), &answer["logId"]);
    let (mut client, _) = subscribed(&world, &thread, Some(place)).await;
    let missed = until(&mut client, "thread/caughtUp").await;
    let methods: Vec<&str> = missed.iter().filter_map(|message| message["method"].as_str()).collect();
    assert!(!methods.contains(&"serverRequest/resolved"), "{methods:?}");
    let [.., question, _] = methods.as_slice() else { panic!("{methods:?}") };
    assert_eq!(*question, "item/commandExecution/requestApproval", "it comes after what led to it");
    let id = &missed[missed.len() - 2]["id"];
    client.send(&json!({"id": id, "result": {"decision": "accept"}})).await;
    client.notification("turn/completed").await;
    assert!(world.path("work/out").exists());
}

#[tokio::test]
async fn a_number_is_only_in_a_message_that_names_its_thread() {
    let world = World::new("", &json!([text("One.")]));
    let mut first = Client::within(world.server.connect()).await;
    let thread = first.thread().await;
    let (mut client, _) = subscribed(&world, &thread, None).await;
    first.say(&thread, "one").await;
    let told = until(&mut client, "turn/completed").await;
    assert!(told.iter().any(|message| message["method"] == "account/rateLimits/updated"), "{told:?}");
    for message in told.iter().filter(|message| message.get("seq").is_some()) {
        assert_eq!(message["params"]["threadId"], json!(thread), "{message}");
    }
}

/// A thousand clients come and go during a turn. Each costs a few tasks while it is connected, and none afterwards.
#[tokio::test]
async fn a_client_that_leaves_takes_its_subscribers_along() {
    let world = World::new("", &json!([{"items": [{"hang": true}]}]));
    let mut stayer = Client::within(world.server.connect()).await;
    let thread = stayer.thread().await;
    stayer.say(&thread, "go").await;
    stayer.notification("turn/started").await;
    let tasks = tokio::runtime::Handle::current().metrics();
    let before = tasks.num_alive_tasks();
    for number in 0..1000 {
        let mut client = Client::within(world.server.connect()).await;
        match number % 3 {
            0 => drop(client.resume(&thread).await),
            1 => drop(client.ok("thread/subscribe", json!({"threadId": thread})).await),
            // This one leaves before the response.
            _ => drop(client.ask("thread/subscribe", json!({"threadId": thread})).await),
        }
    }
    let all_gone = async {
        while tasks.num_alive_tasks() > before {
            tokio::task::yield_now().await;
        }
    };
    let gone = tokio::time::timeout(std::time::Duration::from_secs(30), all_gone).await;
    assert!(gone.is_ok(), "{} tasks are left of {before}", tasks.num_alive_tasks());
}
