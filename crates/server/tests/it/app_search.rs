//! `thread/search` and `thread/searchOccurrences`.

use serde_json::{Value, json};

use crate::app_client::AppClient;
use crate::app_threads::{scripted, start, turn};

fn found(list: &Value) -> Vec<&str> {
    list["data"].as_array().into_iter().flatten().filter_map(|hit| hit["thread"]["id"].as_str()).collect()
}

async fn two_threads() -> (AppClient, [String; 2]) {
    let mut client = scripted("", &json!([{"items": [{"text": "A whale is no fish."}], "repeat": true}])).await;
    let mut threads = Vec::new();
    for said in ["Tell me of the sea", "Tell me of the sky"] {
        let thread = start(&mut client).await;
        turn(&mut client, &thread, said).await;
        threads.push(thread);
    }
    let [first, second] = threads.try_into().expect("there are two");
    (client, [first, second])
}

#[tokio::test]
async fn threads_are_found_by_their_words() {
    let (mut client, [sea, sky]) = two_threads().await;
    let hits = client.ok("thread/search", json!({"searchTerm": "sea"})).await;
    assert_eq!(found(&hits), [&sea]);
    assert!(hits["data"][0]["snippet"].as_str().is_some_and(|text| text.contains("sea")), "{hits}");
    let by_time = json!({"searchTerm": "whale", "sortKey": "created_at", "limit": 1});
    let first = client.ok("thread/search", by_time).await;
    assert_eq!(found(&first), [&sky], "the newest is first");
    let next = json!({"searchTerm": "whale", "sortKey": "created_at", "limit": 1, "cursor": first["nextCursor"]});
    let second = client.ok("thread/search", next).await;
    assert_eq!((found(&second), &second["nextCursor"]), (vec![sea.as_str()], &Value::Null));
    let oldest = json!({"searchTerm": "whale", "sortKey": "updated_at", "sortDirection": "asc"});
    assert_eq!(found(&client.ok("thread/search", oldest).await), [&sea, &sky]);
    for (params, expected) in [
        (json!({"searchTerm": "whale", "sourceKinds": ["exec"]}), 0),
        (json!({"searchTerm": "whale", "sourceKinds": ["vscode"]}), 2),
        (json!({"searchTerm": "whale", "archived": true}), 0),
        (json!({"searchTerm": "\" OR *"}), 0),
    ] {
        assert_eq!(found(&client.ok("thread/search", params.clone()).await).len(), expected, "{params}");
    }
    client.ok("thread/archive", json!({"threadId": sea})).await;
    let archived = client.ok("thread/search", json!({"searchTerm": "whale", "archived": true})).await;
    assert_eq!(found(&archived), [&sea]);
    for params in [json!({"searchTerm": " "}), json!({"searchTerm": "whale", "cursor": "odd"})] {
        assert_eq!(client.refused("thread/search", params).await.0, -32600);
    }
    client.end_unread().await;
}

/// The best matches are threads that the client does not want, more of them than one search returns at first.
#[tokio::test]
async fn a_wanted_thread_is_found_behind_many_others() {
    let (mut client, [sea, _]) = two_threads().await;
    let listed = client.ok("thread/read", json!({"threadId": sea})).await;
    let file = std::path::PathBuf::from(listed["thread"]["path"].as_str().expect("it has a file"));
    let lines = std::fs::read_to_string(&file).expect("it can be read");
    let (name, source) = (file.file_name().expect("it has a name").to_string_lossy(), "\"source\":\"vscode\"");
    assert!(lines.contains(source), "{lines}");
    // None of the copies has the id of the original.
    let (start, end) = sea.split_at(sea.len() - 5);
    let digit = u8::from(end.starts_with('0'));
    for number in 0..600 {
        let other = format!("{start}{digit}{number:04x}");
        let copy = lines.replace(&sea, &other).replace(source, "\"source\":\"exec\"").replace("sky", "sea sea sea");
        std::fs::write(file.with_file_name(name.replace(&sea, &other)), copy).expect("it can be written");
    }
    let mut client = client.start_again().await;
    // The threads are indexed while the server runs.
    let of_exec = json!({"searchTerm": "sea", "sourceKinds": ["exec"], "limit": 100, "cursor": "500"});
    let mut tries = 0;
    while client.call("thread/search", of_exec.clone()).await.map_or(0, |page| found(&page).len()) < 100 {
        tries += 1;
        assert!(tries < 10_000, "not all threads are found");
    }
    let wanted = client.ok("thread/search", json!({"searchTerm": "sea"})).await;
    assert_eq!(found(&wanted), [&sea]);
    client.end_unread().await;
}

#[tokio::test]
async fn the_places_of_a_text_name_their_items_and_turns() {
    let (mut client, [sea, _]) = two_threads().await;
    let later = turn(&mut client, &sea, "Really no FISH?").await;
    let places = client.ok("thread/searchOccurrences", json!({"threadId": sea, "searchTerm": "fish"})).await;
    let data = places["data"].as_array().expect("a list");
    assert_eq!(data.len(), 3, "the answer, the question and the answer again: {places}");
    assert_eq!((&data[1]["turnId"], &data[1]["snippet"]), (&json!(later), &json!("Really no FISH?")));
    assert_eq!(data[1]["snippetMatchRange"], json!({"start": 10, "end": 14}));
    let page = json!({"threadId": sea, "cursor": data[1]["turnCursor"], "sortDirection": "asc"});
    assert_eq!(client.ok("thread/turns/list", page).await["data"][0]["id"], json!(later));
    let items = client.ok("thread/items/list", json!({"threadId": sea, "turnId": later})).await;
    assert_eq!(items["data"][0]["item"]["id"], data[1]["itemId"]);
    client.ok("thread/unsubscribe", json!({"threadId": sea})).await;
    let again = client.ok("thread/searchOccurrences", json!({"threadId": sea, "searchTerm": "fish", "limit": 2})).await;
    assert_eq!((again["data"].as_array().map(Vec::len), &again["nextCursor"]), (Some(2), &json!("2")));
    let nobody = json!({"threadId": "01a1de25-2746-77a2-898a-88026f72a56b", "searchTerm": "fish"});
    client.refused("thread/searchOccurrences", nobody).await;
    client.end_unread().await;
}
