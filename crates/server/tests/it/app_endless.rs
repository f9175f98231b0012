//! Files that never end, and requests that they must not delay.

use std::path::PathBuf;

use codex_files::testing::Endless;
use serde_json::json;

use crate::app_client::AppClient;

/// A file that never ends. Its readers are released when the test is over, so that a failure does not hang.
struct Trap(PathBuf);

impl Trap {
    fn set(kind: Endless, path: PathBuf) -> Self {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
        kind.make(&path).expect("a file can be made");
        Self(path)
    }
}

impl Drop for Trap {
    fn drop(&mut self) {
        drop(std::fs::OpenOptions::new().read(true).write(true).open(&self.0));
    }
}

#[tokio::test]
async fn searches_of_a_folder_whose_rules_never_end_are_answered_and_so_is_everything_else() {
    for kind in Endless::ALL {
        let mut client = AppClient::start_new("").await;
        let _trap = Trap::set(kind, client.work(".gitignore"));
        std::fs::write(client.work("alpha.txt"), "").expect("a file can be written");
        let params = json!({"query": "alp", "roots": [client.work("")]});
        let mut asked = Vec::new();
        for _ in 0..100 {
            asked.push(client.ask("fuzzyFileSearch", params.clone()).await);
        }
        client.ok("thread/list", json!({})).await;
        for id in asked {
            let found = client.answer(id).await.expect("an answer");
            assert_eq!(found["files"][0]["path"], json!("alpha.txt"), "{kind:?}");
        }
        client.end().await;
    }
}

#[tokio::test]
async fn a_thread_starts_among_files_that_never_end() {
    for kind in Endless::ALL {
        let mut client = AppClient::start_new("").await;
        let traps = ["AGENTS.md", ".git", ".codex/skills/x/SKILL.md"].map(|name| Trap::set(kind, client.work(name)));
        let home = ["AGENTS.md", "rules/default.rules", "history.jsonl", "prompts/x.md", "skills/x/SKILL.md"];
        let home = home.map(|name| Trap::set(kind, client.home(name)));
        let started = client.ok("thread/start", json!({})).await;
        assert!(started["thread"]["id"].is_string(), "{kind:?}");
        client.ok("skills/list", json!({})).await;
        drop((traps, home));
        client.end_unread().await;
    }
}

#[tokio::test]
async fn reading_a_special_file_is_refused_and_the_file_is_named() {
    for kind in Endless::ALL {
        let mut client = AppClient::start_new("").await;
        let path = client.work("endless");
        let _trap = Trap::set(kind, path.clone());
        let (_, message) = client.refused("fs/readFile", json!({"path": path})).await;
        assert!(message.starts_with(path.to_str().expect("a text")), "{message}");
        let _config = Trap::set(kind, client.home("auth.json"));
        let (_, message) = client.refused("account/read", json!({})).await;
        assert!(message.contains("auth.json") && message.contains("it is "), "{message}");
        client.end().await;
    }
}

#[tokio::test]
async fn pictures_that_are_too_large_together_are_refused_before_the_turn() {
    let mut client = AppClient::start_new("").await;
    let path = client.work("large.png");
    std::fs::File::create(&path).expect("a file can be made").set_len(19 << 20).expect("it can grow");
    let started = client.ok("thread/start", json!({})).await;
    let pictures = vec![json!({"type": "localImage", "path": path}); 40];
    let params = json!({"threadId": started["thread"]["id"], "input": pictures});
    let (code, message) = client.refused("turn/start", params).await;
    assert_eq!((code, message.as_str()), (-32600, "the pictures of one message may have 64 MiB together"));
    client.end_unread().await;
}
