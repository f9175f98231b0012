//! Files, for clients that run elsewhere.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::app_client::AppClient;

fn names(list: &Value) -> Vec<String> {
    let entries = list["entries"].as_array().expect("a list");
    let name = |entry: &Value| entry["fileName"].as_str().expect("a name").to_owned();
    entries
        .iter()
        .map(|entry| format!("{}{}", name(entry), if entry["isDirectory"] == true { "/" } else { "" }))
        .collect()
}

#[tokio::test]
async fn files_are_written_read_listed_copied_and_removed() {
    let mut client = AppClient::start_new("").await;
    let at = |client: &AppClient, path: &str| json!(client.work(path));
    let path = at(&client, "a/b");
    client.ok("fs/createDirectory", json!({"path": path})).await;
    let bytes = STANDARD.encode([0, 159, 146, 150]);
    let path = at(&client, "a/b/c.bin");
    client.ok("fs/writeFile", json!({"path": path, "dataBase64": bytes})).await;
    assert_eq!(client.ok("fs/readFile", json!({"path": path})).await, json!({"dataBase64": bytes}));
    let metadata = client.ok("fs/getMetadata", json!({"path": path})).await;
    assert_eq!(
        (&metadata["isFile"], &metadata["isDirectory"], &metadata["isSymlink"]),
        (&json!(true), &json!(false), &json!(false))
    );
    assert!(metadata["modifiedAtMs"].as_i64().is_some_and(|time| time > 1_600_000_000_000), "{metadata}");
    let copy = json!({"sourcePath": at(&client, "a"), "destinationPath": at(&client, "z")});
    let (_, message) = client.refused("fs/copy", copy.clone()).await;
    assert!(message.ends_with("is a folder; copy it with recursive"), "{message}");
    let mut copy = copy;
    copy["recursive"] = json!(true);
    client.ok("fs/copy", copy).await;
    let list = client.ok("fs/readDirectory", json!({"path": at(&client, "z/b")})).await;
    assert_eq!(names(&list), ["c.bin"]);
    client.ok("fs/remove", json!({"path": at(&client, "a")})).await;
    let list = client.ok("fs/readDirectory", json!({"path": at(&client, "")})).await;
    assert_eq!(names(&list), ["z/"]);
    client.ok("fs/remove", json!({"path": at(&client, "a")})).await;
    client.end().await;
}

#[tokio::test]
async fn impossible_requests_are_refused_and_nothing_hangs() {
    let mut client = AppClient::start_new("").await;
    let root = client.work("");
    std::fs::create_dir_all(client.work("full/of")).expect("a folder can be made");
    let inside =
        json!({"sourcePath": client.work("full"), "destinationPath": client.work("full/of/it"), "recursive": true});
    for (method, params, part) in [
        ("fs/readFile", json!({"path": "relative"}), "must be absolute"),
        ("fs/readFile", json!({"path": root}), "is not a regular file"),
        ("fs/readFile", json!({"path": "/dev/zero"}), "is not a regular file"),
        ("fs/writeFile", json!({"path": "/dev/full", "dataBase64": ""}), "is not a regular file"),
        ("fs/readFile", json!({"path": client.work("none")}), "could not read"),
        ("fs/createDirectory", json!({"path": client.work("x/y"), "recursive": false}), "could not create"),
        ("fs/remove", json!({"path": client.work("full"), "recursive": false}), "could not remove"),
        ("fs/remove", json!({"path": client.work("none"), "force": false}), "could not remove"),
        ("fs/remove", json!({"path": "/"}), "does not end with a name"),
        ("fs/copy", inside, "into itself"),
        (
            "fs/copy",
            json!({"sourcePath": "/dev/zero", "destinationPath": client.work("z")}),
            "neither a file nor a folder",
        ),
        ("fs/getMetadata", json!({"path": client.work("none")}), "could not look at"),
        ("fs/watch", json!({"path": client.work("none/of/it"), "watchId": "w"}), "could not watch"),
    ] {
        let (code, message) = client.refused(method, params).await;
        assert!(code == -32600 && message.contains(part), "{method}: {message}");
    }
    client.end().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn changes_are_reported_while_something_is_watched() {
    let mut client = AppClient::start_new("").await;
    let (folder, file) = (client.work(""), client.work("watched.txt"));
    let folder = folder.canonicalize().expect("it is there");
    let watched = client.ok("fs/watch", json!({"path": folder, "watchId": "folder"})).await;
    assert_eq!(watched, json!({"path": folder}));
    // This file does not exist yet.
    client.ok("fs/watch", json!({"path": file, "watchId": "file"})).await;
    let (_, message) = client.refused("fs/watch", json!({"path": file, "watchId": "file"})).await;
    assert!(message.contains("already"), "{message}");
    std::fs::write(client.work("other.txt"), "").expect("a file can be written");
    let changed = client.next_notification("fs/changed").await;
    assert_eq!(changed, json!({"watchId": "folder", "changedPaths": [client.work("other.txt")]}));
    client.ok("fs/unwatch", json!({"watchId": "folder"})).await;
    std::fs::write(client.work("new.txt"), "x").expect("a file can be written");
    std::fs::rename(client.work("new.txt"), &file).expect("a file can be moved");
    let changed = client.next_notification("fs/changed").await;
    assert_eq!(changed, json!({"watchId": "file", "changedPaths": [file]}));
    client.ok("fs/unwatch", json!({"watchId": "file"})).await;
    std::fs::write(&file, "y").expect("a file can be written");
    client.end().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_watch_ends_with_its_folder_and_with_the_connection() {
    let mut client = AppClient::start_new("").await;
    let folder = client.work("short");
    std::fs::create_dir(&folder).expect("a folder can be made");
    client.ok("fs/watch", json!({"path": folder, "watchId": "w"})).await;
    std::fs::remove_dir(&folder).expect("a folder can be removed");
    assert_eq!(client.next_notification("fs/changed").await, json!({"watchId": "w", "changedPaths": [folder]}));
    let work = client.work("");
    client.ok("fs/watch", json!({"path": work, "watchId": "v"})).await;
    client.end().await;
}
