//! Threads over the app-server: start, list, read, resume, fork, archive.

use serde_json::{Value, json};

use crate::app_client::AppClient;

/// A client whose model plays a script from its start for each thread.
pub(crate) async fn scripted(config: &str, script: &Value) -> AppClient {
    let provider = "model_provider = 'mine'\n[model_providers.mine]\nname = 'Mine'\nwire_api = 'scripted'\n\
                    script = 'script.json'\n";
    let client = AppClient::start_new(&format!("{config}\n{provider}")).await;
    std::fs::write(client.home("script.json"), script.to_string()).expect("a file can be written");
    client
}

/// Starts a thread and returns its id.
pub(crate) async fn start(client: &mut AppClient) -> String {
    let started = client.ok("thread/start", json!({})).await;
    let name = started["thread"]["id"].as_str().expect("a name").to_owned();
    let notification = client.next_notification("thread/started").await;
    assert_eq!(notification["thread"]["id"], json!(name));
    name
}

/// Runs a turn to its end, and returns its id.
pub(crate) async fn turn(client: &mut AppClient, thread: &str, text: &str) -> String {
    let input = json!([{"type": "text", "text": text}]);
    let answer = client.ok("turn/start", json!({"threadId": thread, "input": input})).await;
    let turn = answer["turn"]["id"].as_str().expect("a name").to_owned();
    loop {
        let completed = client.next_notification("turn/completed").await;
        if completed["turn"]["id"] == json!(turn) {
            return turn;
        }
    }
}

/// The lines of a thread's file, all of which have to be whole.
pub(crate) async fn lines(client: &mut AppClient, thread: &str) -> Vec<Value> {
    let path = client.ok("thread/read", json!({"threadId": thread})).await["thread"]["path"].clone();
    let text = std::fs::read_to_string(path.as_str().expect("it has a file")).expect("it can be read");
    assert!(text.ends_with('\n'), "the last line is whole");
    text.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect()
}

fn answers(texts: &[&str]) -> Value {
    texts.iter().map(|text| json!({"items": [{"text": text}]})).collect()
}

fn texts(thread: &Value) -> Vec<Vec<String>> {
    let item = |item: &Value| match item["type"].as_str() {
        Some("userMessage") => format!("> {}", item["content"][0]["text"].as_str().unwrap_or_default()),
        _ => item["text"].as_str().unwrap_or_default().to_owned(),
    };
    let turn = |turn: &Value| turn["items"].as_array().into_iter().flatten().map(item).collect();
    thread["turns"].as_array().into_iter().flatten().map(turn).collect()
}

#[tokio::test]
async fn a_thread_is_listed_read_named_and_archived() {
    let mut client = scripted("", &answers(&["one"])).await;
    let thread = start(&mut client).await;
    assert_eq!(client.ok("thread/list", json!({})).await["data"], json!([]), "nothing was said in it yet");
    turn(&mut client, &thread, "Hello there").await;
    let list = client.ok("thread/list", json!({})).await;
    assert_eq!((&list["data"][0]["id"], &list["data"][0]["preview"]), (&json!(thread), &json!("Hello there")));
    client.ok("thread/name/set", json!({"threadId": thread, "name": "Greeting"})).await;
    assert_eq!(client.next_notification("thread/name/updated").await["threadName"], "Greeting");
    let read = client.ok("thread/read", json!({"threadId": thread, "includeTurns": true})).await;
    assert_eq!(read["thread"]["name"], "Greeting");
    assert_eq!(texts(&read["thread"]), [["> Hello there", "one"]]);
    client.ok("thread/archive", json!({"threadId": thread})).await;
    assert_eq!(client.ok("thread/list", json!({})).await["data"], json!([]));
    assert_eq!(client.ok("thread/list", json!({"archived": true})).await["data"][0]["id"], json!(thread));
    let (code, message) = client.refused("turn/start", json!({"threadId": thread, "input": []})).await;
    assert_eq!((code, message), (-32600, format!("thread not found: {thread}")));
    client.ok("thread/unarchive", json!({"threadId": thread})).await;
    client.ok("thread/delete", json!({"threadId": thread})).await;
    let (_, message) = client.refused("thread/read", json!({"threadId": thread})).await;
    assert!(message.contains("not found"), "{message}");
    client.end_unread().await;
}

#[tokio::test]
async fn a_thread_without_subscribers_is_unloaded_and_continues_when_it_is_resumed() {
    let mut client = scripted("", &answers(&["one", "two"])).await;
    let thread = start(&mut client).await;
    let first = turn(&mut client, &thread, "first").await;
    let left = client.ok("thread/unsubscribe", json!({"threadId": thread})).await;
    assert_eq!(left["status"], "unsubscribed");
    client.next_notification("thread/closed").await;
    assert_eq!(client.ok("thread/loaded/list", json!({})).await["data"], json!([]));
    let resumed = client.ok("thread/resume", json!({"threadId": thread})).await;
    assert_eq!(texts(&resumed["thread"]), [["> first", "one"]]);
    assert_eq!(resumed["thread"]["turns"][0]["id"], json!(first), "a turn keeps its name");
    turn(&mut client, &thread, "second").await;
    let read = client.ok("thread/read", json!({"threadId": thread, "includeTurns": true})).await;
    assert_eq!(texts(&read["thread"]), [["> first", "one"], ["> second", "one"]], "the script began anew");
    client.end_unread().await;
}

#[tokio::test]
async fn a_thread_is_copied_up_to_a_turn() {
    let mut client = scripted("", &answers(&["one", "two", "three"])).await;
    let thread = start(&mut client).await;
    let first = turn(&mut client, &thread, "a").await;
    turn(&mut client, &thread, "b").await;
    let copy = client.ok("thread/fork", json!({"threadId": thread, "lastTurnId": first})).await;
    assert_eq!(texts(&copy["thread"]), [["> a", "one"]]);
    assert_eq!(copy["thread"]["forkedFromId"], json!(thread));
    assert_ne!(copy["thread"]["id"], json!(thread));
    let whole = client.ok("thread/read", json!({"threadId": thread, "includeTurns": true})).await;
    assert_eq!(texts(&whole["thread"]).len(), 2, "the original is as it was");
    let (_, message) = client.refused("thread/fork", json!({"threadId": thread, "lastTurnId": "none"})).await;
    assert_eq!(message, "turn not found: none");
    client.end_unread().await;
}

#[tokio::test]
async fn the_last_turns_can_be_forgotten() {
    let mut client = scripted("", &answers(&["one", "two", "three"])).await;
    let thread = start(&mut client).await;
    turn(&mut client, &thread, "a").await;
    let second = turn(&mut client, &thread, "b").await;
    let back = client.ok("thread/rollback", json!({"threadId": thread, "numTurns": 1})).await;
    assert_eq!(texts(&back["thread"]), [["> a", "one"]]);
    client.next_notification("thread/reverted").await;
    let (_, message) = client.refused("thread/rollback", json!({"threadId": thread, "numTurns": 5})).await;
    assert!(message.starts_with("cannot roll back"), "{message}");
    let gone = json!({"threadId": thread, "beforeTurnId": second});
    let (_, message) = client.refused("thread/revert", gone).await;
    assert!(message.starts_with("turn not found"), "{message}");
    turn(&mut client, &thread, "c").await;
    let read = client.ok("thread/read", json!({"threadId": thread, "includeTurns": true})).await;
    assert_eq!(texts(&read["thread"]), [["> a", "one"], ["> c", "three"]]);
    client.end_unread().await;
}

#[tokio::test]
async fn a_conversation_can_be_handed_over() {
    let mut client = scripted("", &answers(&["three"])).await;
    let said = |role: &str, kind: &str, text: &str| json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]});
    let history = json!([said("user", "input_text", "one"), said("assistant", "output_text", "two")]);
    let opened = client.ok("thread/resume", json!({"threadId": "", "history": history})).await;
    let thread = opened["thread"]["id"].as_str().expect("a name").to_owned();
    turn(&mut client, &thread, "and?").await;
    let (_, message) = client.refused("thread/resume", json!({"threadId": "", "history": []})).await;
    assert_eq!(message, "history must not be empty");
    client.end_unread().await;
}

#[tokio::test]
async fn names_and_files_that_are_none_are_refused() {
    let mut client = scripted("", &answers(&[])).await;
    let unknown = "01a1dfc6-d922-76b3-b0fb-076d278fa1cb";
    for (params, expected) in [
        (json!({"threadId": "nonsense"}), "invalid thread id"),
        (json!({"threadId": unknown}), "no rollout found for thread id"),
        (json!({"threadId": unknown, "path": "/etc/passwd"}), "is not below"),
        (json!({"threadId": unknown, "path": client.home("config.toml")}), "is not below"),
    ] {
        let (code, message) = client.refused("thread/resume", params).await;
        assert_eq!(code, -32600);
        assert!(message.contains(expected), "{message}");
    }
    client.end().await;
}

#[tokio::test]
async fn a_client_that_resumes_again_gets_everything_once() {
    let mut client = scripted("", &answers(&["one"])).await;
    let thread = start(&mut client).await;
    for _ in 0..3 {
        client.ok("thread/resume", json!({"threadId": thread})).await;
    }
    // The requests are sent together, so that each arrives while the others are being served.
    let mut asked = Vec::new();
    for _ in 0..3 {
        asked.push(client.ask("thread/resume", json!({"threadId": thread})).await);
    }
    let input = json!([{"type": "text", "text": "hi"}]);
    asked.push(client.ask("turn/start", json!({"threadId": thread, "input": input})).await);
    for id in asked {
        client.answer(id).await.expect("it is answered");
    }
    client.next_notification("turn/completed").await;
    let left = client.end_with_rest().await;
    let again = left.iter().filter(|message| message["method"] == "turn/completed").count();
    assert_eq!(again, 0, "{left:#?}");
}

#[tokio::test]
async fn the_source_of_a_thread_is_the_word_of_its_client() {
    let mut client = scripted("", &answers(&["one"])).await;
    let started = client.ok("thread/start", json!({"threadSource": "nightly"})).await;
    assert_eq!(started["thread"]["threadSource"], "nightly");
    let thread = started["thread"]["id"].as_str().expect("a name").to_owned();
    turn(&mut client, &thread, "hi").await;
    let fork = client.ok("thread/fork", json!({"threadId": thread, "threadSource": "copy"})).await;
    assert_eq!(fork["thread"]["threadSource"], "copy", "a copy has its own");
    let plain = client.ok("thread/fork", json!({"threadId": thread})).await;
    assert_eq!(plain["thread"]["threadSource"], Value::Null);
    let mut client = client.start_again().await;
    let listed = client.ok("thread/list", json!({})).await;
    let named = |thread: &Value| (thread["id"].clone(), thread["threadSource"].clone());
    let listed: Vec<_> = listed["data"].as_array().into_iter().flatten().map(named).collect();
    assert!(listed.contains(&(json!(thread), json!("nightly"))), "{listed:?}");
    let resumed = client.ok("thread/resume", json!({"threadId": thread, "threadSource": "other"})).await;
    assert_eq!(resumed["thread"]["threadSource"], "nightly", "a thread keeps its source");
    client.end_unread().await;
}
