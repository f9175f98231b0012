//! Threads of other programs, as lists and resumes of other releases show them.

use serde_json::{Value, json};

use crate::app_client::AppClient;
use crate::app_threads::{scripted, start, turn};

/// Writes a rollout as another program left it, and returns the thread's id. A higher number means a later time.
fn write_rollout(client: &AppClient, number: usize, provider: &str, more: &Value) -> String {
    let id = format!("01940000-0000-7000-8000-{number:012}");
    let (month, day) = (1 + number / 28, 1 + number % 28);
    let at = format!("2025-{month:02}-{day:02}T12:00:00Z");
    let mut meta = json!({"id": id, "timestamp": at, "cwd": "/", "originator": "codex", "cli_version": "0.0.0",
        "instructions": null, "source": "cli", "model_provider": provider});
    meta.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    let said = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Saved words"}]});
    let lines = [
        ("session_meta", meta),
        ("response_item", said),
        ("event_msg", json!({"type": "user_message", "message": "Saved words", "kind": "plain"})),
    ];
    let line = |(kind, payload)| json!({"timestamp": at, "type": kind, "payload": payload}).to_string() + "\n";
    let folder = client.home(format!("sessions/2025/{month:02}/{day:02}"));
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let text: String = lines.into_iter().map(line).collect();
    let name = format!("rollout-2025-{month:02}-{day:02}T12-00-00-{id}.jsonl");
    std::fs::write(folder.join(name), text).expect("a file can be written");
    id
}

fn names(list: &Value) -> Vec<&str> {
    let data = list["data"].as_array().into_iter().flatten();
    data.filter_map(|thread| thread["id"].as_str()).collect()
}

#[tokio::test]
async fn lists_come_in_pages_that_end_and_show_what_is_known() {
    let mut client = scripted("", &json!([])).await;
    let empty = client.ok("thread/list", json!({"limit": 10})).await;
    assert_eq!((&empty["data"], &empty["nextCursor"]), (&json!([]), &Value::Null));
    let git =
        json!({"git": {"commit_hash": "abc123", "branch": "main", "repository_url": "https://example.com/r.git"}});
    let ids: Vec<String> = (1..4).map(|number| write_rollout(&client, number, "mine", &git)).collect();
    let first = client.ok("thread/list", json!({"limit": 2})).await;
    assert_eq!(names(&first), [&ids[2], &ids[1]]);
    let thread = &first["data"][0];
    let shown = ["preview", "modelProvider", "cwd", "cliVersion", "source"].map(|name| thread[name].clone());
    assert_eq!(json!(shown), json!(["Saved words", "mine", "/", "0.0.0", "cli"]));
    assert_eq!(thread["gitInfo"], json!({"sha": "abc123", "branch": "main", "originUrl": "https://example.com/r.git"}));
    let second = client.ok("thread/list", json!({"limit": 2, "cursor": first["nextCursor"]})).await;
    assert_eq!((names(&second), &second["nextCursor"]), (vec![ids[0].as_str()], &Value::Null));
    let back = json!({"cursor": second["backwardsCursor"], "sortDirection": "asc"});
    assert_eq!(names(&client.ok("thread/list", back).await), [&ids[0], &ids[1], &ids[2]]);
    let (code, message) = client.refused("thread/list", json!({"cursor": "yesterday"})).await;
    assert_eq!((code, message.ends_with(": yesterday")), (-32600, true), "{message}");
    client.end().await;
}

#[tokio::test]
async fn a_filter_by_provider_continues_until_the_page_is_full_or_nothing_is_left() {
    let mut client = scripted("", &json!([])).await;
    for number in 0..24 {
        write_rollout(&client, number, if number < 8 { "target" } else { "other" }, &json!({}));
    }
    for limit in [8, 10] {
        let list = client.ok("thread/list", json!({"limit": limit, "modelProviders": ["target"]})).await;
        assert_eq!((names(&list).len(), &list["nextCursor"]), (8, &Value::Null));
        assert!(list["data"].as_array().into_iter().flatten().all(|thread| thread["modelProvider"] == "target"));
    }
    assert_eq!(names(&client.ok("thread/list", json!({"limit": 100})).await).len(), 0);
    let all = client.ok("thread/list", json!({"limit": 100, "modelProviders": []})).await;
    assert_eq!(names(&all).len(), 24);
    client.end().await;
}

#[tokio::test]
async fn a_page_has_a_hundred_threads_at_most() {
    let mut client = scripted("", &json!([])).await;
    for number in 0..105 {
        write_rollout(&client, number, "mine", &json!({}));
    }
    let list = client.ok("thread/list", json!({"limit": 200})).await;
    assert_eq!((names(&list).len(), list["nextCursor"].is_string()), (100, true));
    client.end().await;
}

#[tokio::test]
async fn a_thread_of_another_program_continues_where_it_was() {
    let mut client = scripted("", &json!([])).await;
    let folder = client.work("elsewhere");
    std::fs::create_dir(&folder).expect("a folder can be made");
    let id = write_rollout(&client, 5, "mine", &json!({"cwd": folder}));
    let resumed = client.ok("thread/resume", json!({"threadId": id})).await;
    let thread = &resumed["thread"];
    assert_eq!(
        (&thread["id"], &thread["preview"], &thread["cwd"]),
        (&json!(id), &json!("Saved words"), &json!(folder))
    );
    assert_eq!(thread["turns"].as_array().map(Vec::len), Some(1));
    let turn = &thread["turns"][0];
    assert_eq!((&turn["status"], turn["items"].as_array().map(Vec::len)), (&json!("completed"), Some(1)));
    assert_eq!(turn["items"][0]["content"][0]["text"], "Saved words");
    let elsewhere = client.ok("thread/fork", json!({"threadId": id, "cwd": "/"})).await;
    assert_eq!(elsewhere["cwd"], "/");
    assert_eq!(elsewhere["thread"]["turns"].as_array().map(Vec::len), Some(1));
    client.end_unread().await;
}

#[tokio::test]
async fn a_path_takes_precedence_over_an_id_and_descriptions_agree() {
    let script: Value = ["one", "two"].iter().map(|text| json!({"items": [{"text": text}]})).collect();
    let mut client = scripted("", &script).await;
    let started = client.ok("thread/start", json!({})).await;
    let thread = &started["thread"];
    assert_eq!(client.next_notification("thread/started").await["thread"], *thread);
    assert_eq!((&thread["preview"], &thread["modelProvider"]), (&json!(""), &json!("mine")));
    let named = json!({"threadId": "no name at all", "path": thread["path"]});
    assert_eq!(client.ok("thread/resume", named).await["thread"]["id"], thread["id"]);
    let id = thread["id"].as_str().expect("it has a name");
    for text in ["First", "Second"] {
        turn(&mut client, id, text).await;
    }
    let rolled = client.ok("thread/rollback", json!({"threadId": id, "numTurns": 1})).await;
    let resumed = client.ok("thread/resume", json!({"threadId": id})).await;
    for left in [&rolled["thread"]["turns"], &resumed["thread"]["turns"]] {
        assert_eq!(left.as_array().map(Vec::len), Some(1));
        assert_eq!(left[0]["items"][0]["content"][0]["text"], "First");
    }
    client.end_unread().await;
}

#[tokio::test]
async fn threads_that_are_loaded_are_listed_in_pages() {
    let mut client = scripted("", &json!([])).await;
    let mut ids = vec![json!(start(&mut client).await), json!(start(&mut client).await)];
    let first = client.ok("thread/loaded/list", json!({"limit": 1})).await;
    let second = client.ok("thread/loaded/list", json!({"limit": 1, "cursor": first["nextCursor"]})).await;
    assert_eq!(second["nextCursor"], Value::Null);
    let mut listed = vec![first["data"][0].clone(), second["data"][0].clone()];
    ids.sort_by_key(Value::to_string);
    listed.sort_by_key(Value::to_string);
    assert_eq!(listed, ids);
    client.end().await;
}
