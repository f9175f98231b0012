//! Metadata that clients store about threads.

use codex_dialects::ProtocolRelease;
use serde_json::{Value, json};

use crate::app_client::{AppClient, Hello};
use crate::app_threads::{start, turn};

/// A client with the experimental API and a scripted model.
async fn unsettled(script: &Value) -> AppClient {
    let hello = Hello { capabilities: Some(json!({"experimentalApi": true})), ..Hello::default() };
    let config = "model_provider = 'mine'\n[model_providers.mine]\nname = 'Mine'\nwire_api = 'scripted'\n\
                  script = 'script.json'\n";
    let client = AppClient::start_with(hello, config).await;
    std::fs::write(client.home("script.json"), script.to_string()).expect("a file can be written");
    client
}

fn answers(count: usize) -> Value {
    (0..count).map(|number| json!({"items": [{"text": format!("answer {number}")}]})).collect()
}

async fn listed(client: &mut AppClient, thread: &str) -> Value {
    client.ok("thread/list", json!({})).await["readStates"][thread].take()
}

#[tokio::test]
async fn a_completed_turn_is_unread_until_it_is_marked() {
    let mut client = unsettled(&answers(3)).await;
    let thread = start(&mut client).await;
    let read = client.ok("thread/read", json!({"threadId": thread})).await;
    assert_eq!(read["readState"]["firstUnread"], Value::Null);
    let first = turn(&mut client, &thread, "one").await;
    let changed = client.next_notification("thread/readState/changed").await;
    let unread = json!({"type": "turn", "turnId": first});
    assert_eq!((&changed["threadId"], &changed["readState"]["firstUnread"]), (&json!(thread), &unread));
    turn(&mut client, &thread, "two").await;
    let later = client.next_notification("thread/readState/changed").await;
    assert_eq!(later["readState"]["firstUnread"], unread);
    assert_ne!(later["readState"]["revision"], changed["readState"]["revision"]);
    let state = listed(&mut client, &thread).await;
    assert_eq!(state, later["readState"]);
    assert_eq!(client.ok("thread/read", json!({"threadId": thread})).await["readState"], state);

    let update = |revision: &Value, operation: &str| json!({"threadId": thread, "expectedRevision": revision, "operation": {"type": operation}});
    let outdated = update(&changed["readState"]["revision"], "read");
    let (code, message) = client.refused("thread/readState/update", outdated).await;
    assert!(code == -32600 && message.contains("the read state has changed: expected revision"), "{message}");
    let mut other = client.another().await;
    let read = client.ok("thread/readState/update", update(&state["revision"], "read")).await["readState"].take();
    assert_eq!(read["firstUnread"], Value::Null);
    for client in [&mut client, &mut other] {
        let told = client.next_notification("thread/readState/changed").await;
        assert_eq!(told, json!({"threadId": thread, "readState": read}));
    }
    let same = client.ok("thread/readState/update", update(&read["revision"], "read")).await;
    assert_eq!(same["readState"], read);
    let marked = client.ok("thread/readState/update", update(&read["revision"], "unread")).await["readState"].take();
    assert_eq!(marked["firstUnread"], json!({"type": "threadStart"}));
    other.end_unread().await;
    let mut client = client.start_again().await;
    assert_eq!(listed(&mut client, &thread).await, marked);
    client.ok("thread/delete", json!({"threadId": thread})).await;
    assert_eq!(std::fs::read_dir(client.home("thread-notes")).expect("a folder").count(), 0);
    client.end_unread().await;
}

#[tokio::test]
async fn turns_that_are_forgotten_need_not_be_read() {
    let mut client = unsettled(&answers(3)).await;
    let thread = start(&mut client).await;
    turn(&mut client, &thread, "one").await;
    let state = client.next_notification("thread/readState/changed").await["readState"].take();
    let read = json!({"threadId": thread, "expectedRevision": state["revision"], "operation": {"type": "read"}});
    client.ok("thread/readState/update", read).await;
    client.next_notification("thread/readState/changed").await;
    let second = turn(&mut client, &thread, "two").await;
    client.next_notification("thread/readState/changed").await;
    client.ok("thread/revert", json!({"threadId": thread, "beforeTurnId": second})).await;
    let left = client.next_notification("thread/readState/changed").await;
    assert_eq!(left["readState"]["firstUnread"], Value::Null);
    client.end_unread().await;
}

#[tokio::test]
async fn a_turn_without_a_result_is_not_unread() {
    let script = json!([{"items": [{"text": "summary"}]}, {"items": [{"hang": true}]}]);
    let mut client = unsettled(&script).await;
    let thread = start(&mut client).await;
    client.ok("thread/compact/start", json!({"threadId": thread})).await;
    client.next_notification("turn/completed").await;
    client.ok("thread/shellCommand", json!({"threadId": thread, "command": "true"})).await;
    client.next_notification("turn/completed").await;
    let input = json!([{"type": "text", "text": "go"}]);
    let begun = client.ok("turn/start", json!({"threadId": thread, "input": input})).await;
    client.ok("turn/interrupt", json!({"threadId": thread, "turnId": begun["turn"]["id"]})).await;
    client.next_notification("turn/completed").await;
    let read = client.ok("thread/read", json!({"threadId": thread})).await;
    assert_eq!(read["readState"]["firstUnread"], Value::Null);
    let told = client.end_with_rest().await;
    assert!(told.iter().all(|message| message["method"] != "thread/readState/changed"), "{told:?}");
}

#[tokio::test]
async fn older_clients_and_those_without_the_experimental_api_are_not_notified() {
    for release in [ProtocolRelease::V077, ProtocolRelease::V0166] {
        let config = "model_provider = 'mine'\n[model_providers.mine]\nname = 'Mine'\nwire_api = 'scripted'\n\
                      script = 'script.json'\n";
        let mut client = AppClient::start_as(release, config).await;
        std::fs::write(client.home("script.json"), answers(1).to_string()).expect("a file can be written");
        let thread = start(&mut client).await;
        turn(&mut client, &thread, "one").await;
        let is_new = release == ProtocolRelease::V0166;
        assert_eq!(listed(&mut client, &thread).await.is_object(), is_new);
        let read = client.ok("thread/read", json!({"threadId": thread})).await;
        assert_eq!(read["readState"].is_object(), is_new);
        assert_eq!(client.home("thread-notes").exists(), is_new);
        let told = client.end_with_rest().await;
        assert!(told.iter().all(|message| message["method"] != "thread/readState/changed"), "{told:?}");
    }
}

#[tokio::test]
async fn repository_information_is_changed_in_part_or_removed() {
    let mut client = unsettled(&answers(1)).await;
    let thread = start(&mut client).await;
    let update = |git: Value| json!({"threadId": thread, "gitInfo": git});
    let git = json!({"sha": "abc", "branch": "main", "originUrl": "https://example.com/r.git"});
    let changed = client.ok("thread/metadata/update", update(git.clone())).await;
    assert_eq!((&changed["thread"]["id"], &changed["thread"]["gitInfo"]), (&json!(thread), &git));
    let changed = client.ok("thread/metadata/update", update(json!({"branch": null, "sha": "def"}))).await;
    let git = json!({"sha": "def", "branch": null, "originUrl": "https://example.com/r.git"});
    assert_eq!(changed["thread"]["gitInfo"], git);
    for nothing in [json!({}), Value::Null] {
        assert_eq!(client.ok("thread/metadata/update", update(nothing)).await["thread"]["gitInfo"], git);
    }
    let (code, message) = client.refused("thread/metadata/update", update(json!({"branch": " "}))).await;
    assert_eq!((code, message.as_str()), (-32600, "branch must not be empty"));
    let unknown = json!({"threadId": "01940000-0000-7000-8000-000000000000", "gitInfo": {"branch": "b"}});
    let (code, message) = client.refused("thread/metadata/update", unknown).await;
    assert!(code == -32600 && message.starts_with("no rollout found"), "{message}");
    turn(&mut client, &thread, "one").await;
    let mut client = client.start_again().await;
    let list = client.ok("thread/list", json!({})).await;
    assert_eq!(list["data"][0]["gitInfo"], git);
    assert_eq!(client.ok("thread/resume", json!({"threadId": thread})).await["thread"]["gitInfo"], git);
    client.end_unread().await;
}

#[tokio::test]
async fn attachments_are_found_by_thread_and_by_key() {
    let mut client = unsettled(&answers(1)).await;
    let (one, two) = (start(&mut client).await, start(&mut client).await);
    let mut other = client.another().await;
    let named = |thread: &str, key: &str| json!({"threadId": thread, "attachmentType": "ticket", "identityKey": key});
    let with = |mut params: Value, payload: Value| {
        params["payload"] = payload;
        params
    };
    let added = client.ok("thread/attachment/add", with(named(&one, "7"), json!({"url": "u"}))).await;
    assert_eq!(added["outcome"], "created");
    let attachment = &added["attachment"];
    assert_eq!((&attachment["attachmentType"], &attachment["payload"]), (&json!("ticket"), &json!({"url": "u"})));
    assert!(attachment["createdAt"].as_i64().is_some_and(|at| at > 1_700_000_000), "{attachment}");
    let told = json!({"threadId": one, "attachmentId": attachment["id"], "attachmentType": "ticket",
        "identityKey": "7", "operation": "created"});
    for client in [&mut client, &mut other] {
        assert_eq!(client.next_notification("thread/attachment/updated").await, told);
    }
    let again = client.ok("thread/attachment/add", with(named(&one, "7"), json!("other"))).await;
    assert_eq!(again, json!({"attachment": attachment, "outcome": "existing"}));
    for key in ["8", "9"] {
        client.ok("thread/attachment/add", with(named(&one, key), Value::Null)).await;
    }
    client.ok("thread/attachment/add", with(named(&two, "7"), json!([1]))).await;

    let first = client.ok("thread/attachment/list", json!({"threadId": one, "limit": 2})).await;
    let keys =
        |page: &Value| page["data"].as_array().expect("a list").iter().map(|it| it["identityKey"].clone()).collect();
    assert_eq!((keys(&first), first["nextCursor"].is_string()), (vec![json!("7"), json!("8")], true));
    client.ok("thread/attachment/remove", named(&one, "8")).await;
    let rest = json!({"threadId": one, "limit": 2, "cursor": first["nextCursor"]});
    let rest = client.ok("thread/attachment/list", rest).await;
    assert_eq!((keys(&rest), &rest["nextCursor"]), (vec![json!("9")], &Value::Null));
    client.ok("thread/attachment/remove", named(&one, "8")).await;

    client.ok("thread/archive", json!({"threadId": two})).await;
    let owner = |thread: &str, archived: bool| json!({"threadId": thread, "archived": archived});
    let owners = |archived: Value| json!({"attachmentType": "ticket", "identityKey": "7", "archived": archived});
    let all = client.ok("thread/attachmentOwner/list", owners(Value::Null)).await;
    assert_eq!(all, json!({"data": [owner(&one, false), owner(&two, true)], "nextCursor": null}));
    let used = client.ok("thread/attachmentOwner/list", owners(json!(false))).await;
    assert_eq!(used["data"], json!([owner(&one, false)]));
    client.ok("thread/delete", json!({"threadId": two})).await;
    let left = client.ok("thread/attachmentOwner/list", owners(json!(true))).await;
    assert_eq!(left["data"], json!([]));
    other.end_unread().await;
    let told = client.end_with_rest().await;
    let deleted = |message: &&Value| message["params"]["operation"] == "deleted";
    assert_eq!(told.iter().filter(deleted).count(), 1);
}

#[tokio::test]
async fn invalid_attachments_are_refused_with_a_reason() {
    let mut client = unsettled(&answers(1)).await;
    let thread = start(&mut client).await;
    let add = |thread: &str, key: &str, payload: Value| json!({"threadId": thread, "attachmentType": "t", "identityKey": key, "payload": payload});
    let unknown = "01940000-0000-7000-8000-000000000000";
    for (params, expected) in [
        (add(unknown, "k", json!(1)), "no rollout found for thread id"),
        (add("x", "k", json!(1)), "invalid thread id"),
        (add(&thread, "", json!(1)), "identityKey must not be empty"),
        (add(&thread, "k", json!("x".repeat(70_000))), "payload has 70002 bytes; the limit is 65536"),
        (
            json!({"threadId": thread, "attachmentType": "t", "identityKey": "k"}),
            "Invalid request: missing field `payload`",
        ),
    ] {
        let (code, message) = client.refused("thread/attachment/add", params).await;
        assert!(code == -32600 && message.starts_with(expected), "{message}");
    }
    let odd = json!({"threadId": thread, "cursor": "odd"});
    assert_eq!(client.refused("thread/attachment/list", odd).await.1, "invalid cursor: odd");
    std::fs::create_dir_all(client.home("thread-notes")).expect("a folder can be made");
    let path = client.home(format!("thread-notes/{thread}.attachments.json"));
    std::fs::write(&path, "{").expect("a file can be written");
    let (code, message) = client.refused("thread/attachment/add", add(&thread, "k", json!(1))).await;
    assert!(code == -32603 && message.contains("has unexpected content"), "{message}");
    assert_eq!(std::fs::read_to_string(&path).expect("it is left alone"), "{");
    client.end().await;
}

fn names(list: &Value) -> Vec<&str> {
    list["data"].as_array().expect("a list").iter().filter_map(|thread| thread["id"].as_str()).collect()
}

#[tokio::test]
async fn threads_are_sorted_into_sections() {
    let mut client = unsettled(&answers(3)).await;
    let mut threads = Vec::new();
    for _ in 0..3 {
        let thread = start(&mut client).await;
        turn(&mut client, &thread, "hello").await;
        threads.push(thread);
    }
    let create = json!({"name": "Later", "appearance": {"color": "blue"}});
    let later = client.ok("threadSection/create", create).await["section"].take();
    assert_eq!((&later["name"], &later["appearance"]), (&json!("Later"), &json!({"color": "blue", "icon": null})));
    let done = client.ok("threadSection/create", json!({"name": "Done"})).await["section"].take();
    assert_eq!(done["appearance"], Value::Null);
    let first = client.ok("threadSection/list", json!({"limit": 1})).await;
    assert_eq!(first["data"], json!([later]));
    let rest = client.ok("threadSection/list", json!({"limit": 1, "cursor": first["nextCursor"]})).await;
    assert_eq!(rest, json!({"data": [done], "nextCursor": null}));

    let to = |thread: usize, section: &Value, before: Value| json!({"threadId": threads[thread], "sectionId": section, "beforeThreadId": before});
    client.ok("thread/section/move", to(0, &later["id"], Value::Null)).await;
    client.ok("thread/section/move", to(2, &later["id"], json!(threads[0]))).await;
    let sorted = json!({"sectionId": later["id"], "sortKey": "section_position"});
    let list = client.ok("thread/list", sorted.clone()).await;
    assert_eq!(names(&list), [threads[2].as_str(), threads[0].as_str()]);
    assert_eq!(list["data"][0]["section"], later);
    assert!(list["data"][0]["sectionEnteredAt"].as_i64().is_some_and(|at| at > 1_700_000_000));
    let unsorted = client.ok("thread/list", json!({"sectionId": null})).await;
    assert_eq!(names(&unsorted), [threads[1].as_str()]);
    assert_eq!(unsorted["data"][0]["section"], Value::Null);
    assert_eq!(names(&client.ok("thread/list", json!({})).await).len(), 3);
    let read = client.ok("thread/read", json!({"threadId": threads[0]})).await;
    assert_eq!(read["thread"]["section"], later);

    let update = json!({"sectionId": later["id"], "name": "Soon"});
    let soon = client.ok("threadSection/update", update).await["section"].take();
    assert_eq!((&soon["name"], &soon["appearance"]), (&json!("Soon"), &later["appearance"]));
    let plain = json!({"sectionId": later["id"], "name": "Soon", "appearance": null});
    assert_eq!(client.ok("threadSection/update", plain).await["section"]["appearance"], Value::Null);
    client.ok("thread/section/move", json!({"threadId": threads[2], "sectionId": null})).await;
    let mut client = client.start_again().await;
    let list = client.ok("thread/list", sorted.clone()).await;
    assert_eq!((names(&list), &list["data"][0]["section"]["name"]), (vec![threads[0].as_str()], &json!("Soon")));
    client.ok("threadSection/delete", json!({"sectionId": later["id"]})).await;
    let read = client.ok("thread/read", json!({"threadId": threads[0]})).await;
    assert_eq!(read["thread"]["section"], Value::Null);
    assert!(client.refused("thread/list", sorted).await.1.starts_with("section not found"));
    client.end_unread().await;
}

#[tokio::test]
async fn invalid_section_moves_are_refused_with_a_reason() {
    let mut client = unsettled(&answers(1)).await;
    let thread = start(&mut client).await;
    let section = client.ok("threadSection/create", json!({"name": "s"})).await["section"]["id"].take();
    let unknown = "01940000-0000-7000-8000-000000000000";
    for (method, params, expected) in [
        ("threadSection/create", json!({"name": " "}), "name must not be empty"),
        ("threadSection/create", json!({"name": "x".repeat(300)}), "name has 300 bytes"),
        ("threadSection/update", json!({"sectionId": unknown, "name": "n"}), "section not found"),
        ("threadSection/delete", json!({"sectionId": unknown}), "section not found"),
        ("thread/section/move", json!({"threadId": thread}), "Invalid request: missing field `sectionId`"),
        ("thread/section/move", json!({"threadId": unknown, "sectionId": section}), "no rollout found"),
        ("thread/section/move", json!({"threadId": thread, "sectionId": "x"}), "section not found: x"),
        (
            "thread/section/move",
            json!({"threadId": thread, "sectionId": null, "beforeThreadId": thread}),
            "beforeThreadId needs a sectionId",
        ),
        ("thread/section/move", json!({"threadId": thread, "sectionId": section, "beforeThreadId": thread}), "thread "),
        ("thread/list", json!({"sortKey": "section_position"}), "sortKey section_position needs"),
    ] {
        let (code, message) = client.refused(method, params).await;
        assert!(code == -32600 && message.starts_with(expected), "{method}: {message}");
    }
    client.end().await;
}
