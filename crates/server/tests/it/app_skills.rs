//! Skills that are enabled and disabled, and skills in folders that a client names.

use serde_json::{Value, json};

use crate::app_client::AppClient;

fn write_skill(folder: &std::path::Path, name: &str) -> std::path::PathBuf {
    let path = folder.join(name).join("SKILL.md");
    std::fs::create_dir_all(folder.join(name)).expect("a folder can be made");
    let text = format!("---\nname: {name}\ndescription: Knows how to {name}\n---\n");
    std::fs::write(&path, text).expect("a file can be written");
    path
}

/// The listed skills, and whether each is enabled.
async fn listed(client: &mut AppClient) -> Value {
    let list = client.ok("skills/list", json!({})).await;
    let skills = list["data"][0]["skills"].as_array().expect("a list").iter();
    skills.map(|skill| json!([skill["name"], skill["enabled"]])).collect()
}

/// The instructions that a new thread sends to its model.
async fn told(client: &mut AppClient) -> String {
    let started = client.ok("thread/start", json!({})).await;
    client.next_notification("thread/started").await;
    let path = started["thread"]["path"].as_str().expect("a path");
    std::fs::read_to_string(path).expect("a file can be read")
}

#[tokio::test]
async fn a_disabled_skill_is_listed_but_not_sent_to_the_model() {
    let mut client = AppClient::start_new("# mine\nmodel = 'm'\n").await;
    write_skill(&client.home("skills"), "sew");
    let cook = write_skill(&client.home("skills"), "cook");
    let mut other = client.another().await;
    assert!(told(&mut client).await.contains("Knows how to sew"));
    let off = json!({"name": "sew", "enabled": false});
    assert_eq!(client.ok("skills/config/write", off).await, json!({"effectiveEnabled": false}));
    for client in [&mut client, &mut other] {
        assert_eq!(client.next_notification("skills/changed").await, json!({}));
    }
    assert_eq!(listed(&mut client).await, json!([["cook", true], ["sew", false]]));
    let text = told(&mut client).await;
    assert!(!text.contains("Knows how to sew") && text.contains("Knows how to cook"));
    client.ok("skills/config/write", json!({"path": cook, "enabled": false})).await;
    assert_eq!(listed(&mut client).await, json!([["cook", false], ["sew", false]]));
    let config = std::fs::read_to_string(client.home("config.toml")).expect("a file can be read");
    assert!(config.starts_with("# mine\nmodel = 'm'\n"), "{config}");
    other.end_unread().await;
    let mut client = client.start_again().await;
    for on in [json!({"name": "sew", "enabled": true}), json!({"path": cook, "enabled": true})] {
        assert_eq!(client.ok("skills/config/write", on).await, json!({"effectiveEnabled": true}));
    }
    assert_eq!(listed(&mut client).await, json!([["cook", true], ["sew", true]]));
    client.end_unread().await;
}

#[tokio::test]
async fn skills_are_found_in_folders_that_a_client_names_until_the_server_ends() {
    let mut client = AppClient::start_new("").await;
    let extra = client.work("extra");
    write_skill(&extra, "bake");
    client.ok("skills/extraRoots/set", json!({"extraRoots": [extra, client.work("missing")]})).await;
    client.next_notification("skills/changed").await;
    assert_eq!(listed(&mut client).await, json!([["bake", true]]));
    assert!(told(&mut client).await.contains("Knows how to bake"));
    client.ok("skills/config/write", json!({"name": "bake", "enabled": false})).await;
    client.next_notification("skills/changed").await;
    assert_eq!(listed(&mut client).await, json!([["bake", false]]));
    client.ok("skills/extraRoots/set", json!({"extraRoots": []})).await;
    client.next_notification("skills/changed").await;
    client.ok("skills/extraRoots/set", json!({"extraRoots": []})).await;
    assert_eq!(listed(&mut client).await, json!([]));
    client.end().await;
}

#[tokio::test]
async fn invalid_skills_are_refused_with_a_reason() {
    let mut client = AppClient::start_new("").await;
    let many: Vec<String> = (0..33).map(|number| format!("/{number}")).collect();
    for (method, params, expected) in [
        ("skills/config/write", json!({"enabled": true}), "a skill is switched by its name or its path, one of them"),
        ("skills/config/write", json!({"enabled": true, "name": "a", "path": "/a"}), "a skill is switched by"),
        ("skills/config/write", json!({"enabled": true, "name": " "}), "name must not be empty"),
        ("skills/config/write", json!({"enabled": true, "name": "a".repeat(257)}), "name has 257 bytes"),
        ("skills/config/write", json!({"enabled": true, "path": "a"}), "path is not absolute: a"),
        ("skills/extraRoots/set", json!({"extraRoots": ["a"]}), "extraRoots: path is not absolute: a"),
        ("skills/extraRoots/set", json!({"extraRoots": many}), "extraRoots has 33 folders; at most 32"),
    ] {
        let (code, message) = client.refused(method, params).await;
        assert!(code == -32600 && message.starts_with(expected), "{method}: {message}");
    }
    client.end().await;
}
