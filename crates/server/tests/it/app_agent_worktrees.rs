//! Isolated agents over the app-server: their worktrees, what their parents are told, and what is left of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use codex_dialects::ProtocolRelease;
use serde_json::{Value, json};

use crate::app_agents::{call, client, items, say, until_end};
use crate::app_client::AppClient;
use crate::app_threads::start;

const NINE: &str = "approval_policy = 'never'\nsandbox_mode = 'danger-full-access'\nfeatures.subagent_tools = true\n";

fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(arguments).current_dir(folder);
    let output = command.output().expect("git runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A repository with a commit of `a.txt` and an uncommitted change of it.
fn repository(client: &AppClient) -> PathBuf {
    let root = client.work("").canonicalize().expect("it is there");
    git(&root, &["init", "-q", "-b", "main"]);
    std::fs::write(root.join("a.txt"), "one\n").expect("a file");
    git(&root, &["add", "-A"]);
    git(&root, &["commit", "-q", "-m", "first"]);
    std::fs::write(root.join("a.txt"), "one\ntwo\n").expect("a file");
    root
}

fn shell(id: &str, script: &str) -> Value {
    call(id, "shell", json!({"command": ["sh", "-c", script]}))
}

fn spawn(prompt: &str) -> Value {
    let args = json!({"prompt": prompt, "label": "Fix it", "isolation": "worktree"});
    call("id-spawn", "subagent_spawn", args)
}

fn text_of<'a>(messages: &'a [Value], thread: &str) -> Option<&'a str> {
    let said = items(messages, "item/completed", "agentMessage");
    said.iter().rfind(|said| said["threadId"] == thread).and_then(|said| said["item"]["text"].as_str())
}

/// The message of the agent in the result of the last wait.
fn awaited(messages: &[Value]) -> String {
    let calls = items(messages, "item/completed", "collabAgentToolCall");
    let wait = calls.iter().rfind(|call| call["item"]["tool"] == "wait").expect("a wait");
    wait["item"]["agentsStates"].to_string()
}

/// Nothing of a worktree but the record of an agent that may work again.
fn has_checkouts(client: &AppClient) -> bool {
    let folders = std::fs::read_dir(client.home("worktrees")).into_iter().flatten().flatten();
    folders
        .flat_map(|folder| std::fs::read_dir(folder.path()).into_iter().flatten().flatten())
        .any(|entry| entry.path().is_dir())
}

#[tokio::test]
async fn an_isolated_agent_changes_its_own_files_and_its_parent_takes_them_over() {
    let script = json!([
        {"when": "id-prune", "items": [{"text": "All done."}]},
        {"when": "id-apply", "items": [call("id-prune", "subagent_prune", json!({"all": true}))]},
        {"when": "id-await", "items": [call("id-apply", "subagent_apply", json!({"agent_id": 1}))]},
        {"when": "id-spawn", "items": [call("id-await", "subagent_await", json!({}))]},
        {"when": "id-edit", "items": [{"text": "Edited."}]},
        {"when": "Edit the file", "items": [shell("id-edit", "pwd > place; echo three >> a.txt; git add -A; \
            git -c user.name=c -c user.email=c@d commit -q -m mine; echo new > b.txt")]},
        {"items": [spawn("Edit the file")]},
    ]);
    let mut client = client(ProtocolRelease::V0166, NINE, &script).await;
    let root = repository(&client);
    let thread = start(&mut client).await;
    say(&mut client, &thread, "Have it edited.").await;
    let messages = until_end(&mut client, &thread).await;
    assert_eq!(text_of(&messages, &thread), Some("All done."), "{messages:#?}");
    let told = awaited(&messages);
    for part in ["Edited.", "changed 3 files", "branch codex/fix-it", "apply cleanly", "+three", "subagent_apply"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let patches = items(&messages, "item/completed", "fileChange");
    assert_eq!((patches.len(), &patches[0]["item"]["status"]), (1, &json!("completed")), "{patches:#?}");
    let text = |name: &str| std::fs::read_to_string(root.join(name)).expect("it is there");
    assert_eq!((text("a.txt").as_str(), text("b.txt").as_str()), ("one\ntwo\nthree\n", "new\n"));
    assert!(text("place").contains("/worktrees/"), "{}", text("place"));
    assert_eq!(git(&root, &["log", "--format=%s"]), "first", "nothing is committed for the parent");
    let client = client.start_again().await;
    assert_eq!(git(&root, &["branch", "--format=%(refname:short)"]), "main");
    assert!(!root.join(".git/worktrees").exists() && !client.home("worktrees").exists());
    client.end_unread().await;
}

#[tokio::test]
async fn changes_that_nobody_applies_stay_on_the_branch_and_the_agent_finds_them_again() {
    let send = call("id-send", "subagent_send_message", json!({"agent_id": 1, "prompt": "Look again"}));
    let script = json!([
        {"when": "id-apply", "items": [{"text": "Applied."}]},
        {"when": "id-await-2", "items": [call("id-apply", "subagent_apply", json!({"agent_id": 1}))]},
        {"when": "id-send", "items": [call("id-await-2", "subagent_await", json!({}))]},
        {"when": "Ask again", "items": [send]},
        {"when": "id-look", "items": [{"text": "Looked."}]},
        {"when": "Look again", "items": [shell("id-look", "cat b.txt > seen")]},
        {"when": "id-await", "items": [{"text": "All done."}]},
        {"when": "id-spawn", "items": [call("id-await", "subagent_await", json!({}))]},
        {"when": "id-edit", "items": [{"text": "Edited."}]},
        {"when": "Edit the file", "items": [shell("id-edit", "echo new > b.txt")]},
        {"items": [spawn("Edit the file")]},
    ]);
    let mut first = client(ProtocolRelease::V0166, NINE, &script).await;
    let root = repository(&first);
    let thread = start(&mut first).await;
    say(&mut first, &thread, "Have it edited.").await;
    until_end(&mut first, &thread).await;
    assert!(has_checkouts(&first));
    let mut client = first.start_again().await;
    assert!(!has_checkouts(&client), "the folder goes with the program");
    assert!(!root.join(".git/worktrees").exists() && !root.join("b.txt").exists());
    assert_eq!(git(&root, &["show", "codex/fix-it:b.txt"]), "new");
    client.ok("thread/resume", json!({"threadId": thread})).await;
    say(&mut client, &thread, "Ask again").await;
    let messages = until_end(&mut client, &thread).await;
    assert_eq!(text_of(&messages, &thread), Some("Applied."), "{messages:#?}");
    assert_eq!(std::fs::read_to_string(root.join("seen")).expect("it is there"), "new\n");
    assert_eq!(std::fs::read_to_string(root.join("b.txt")).expect("it is there"), "new\n");
    let client = client.start_again().await;
    assert_eq!(git(&root, &["branch", "--format=%(refname:short)"]), "main", "everything was applied");
    client.end_unread().await;
}

/// The same question as for a patch, and a refusal changes nothing.
#[tokio::test]
async fn taking_changes_over_needs_the_approval_that_a_patch_needs() {
    let config = "approval_policy = 'untrusted'\nsandbox_mode = 'danger-full-access'\nfeatures.subagent_tools = true\n";
    let script = json!([
        {"when": "rejected by user", "items": [{"text": "Refused."}]},
        {"when": "id-await", "items": [call("id-apply", "subagent_apply", json!({"agent_id": 1}))]},
        {"when": "id-spawn", "items": [call("id-await", "subagent_await", json!({}))]},
        {"when": "id-edit", "items": [{"text": "Edited."}]},
        {"when": "Edit the file", "items": [shell("id-edit", "echo new > b.txt")]},
        {"items": [spawn("Edit the file")]},
    ]);
    let mut client = client(ProtocolRelease::V0166, config, &script).await;
    let root = repository(&client);
    let thread = start(&mut client).await;
    say(&mut client, &thread, "Have it edited.").await;
    let (id, asked) = client.next_request("item/commandExecution/requestApproval").await;
    assert_ne!(asked["threadId"], json!(thread));
    client.respond(id, json!({"result": {"decision": "accept"}})).await;
    let (id, asked) = client.next_request("item/fileChange/requestApproval").await;
    assert_eq!((&asked["threadId"], &asked["itemId"]), (&json!(thread), &json!("id-apply")));
    client.respond(id, json!({"result": {"decision": "decline"}})).await;
    let messages = until_end(&mut client, &thread).await;
    assert_eq!(text_of(&messages, &thread), Some("Refused."), "{messages:#?}");
    assert!(!root.join("b.txt").exists());
    let client = client.start_again().await;
    assert_eq!(git(&root, &["show", "codex/fix-it:b.txt"]), "new");
    client.end_unread().await;
}

#[tokio::test]
async fn discarded_changes_are_gone_with_the_agent() {
    let script = json!([
        {"when": "id-list", "items": [{"text": "Gone."}]},
        {"when": "id-drop", "items": [call("id-list", "subagent_list", json!({"all": true}))]},
        {"when": "id-await", "items": [call("id-drop", "subagent_apply", json!({"agent_id": 1, "discard": true}))]},
        {"when": "id-spawn", "items": [call("id-await", "subagent_await", json!({}))]},
        {"when": "id-edit", "items": [{"text": "Edited."}]},
        {"when": "Edit the file", "items": [shell("id-edit", "echo new > b.txt")]},
        {"items": [spawn("Edit the file")]},
    ]);
    let mut client = client(ProtocolRelease::V0166, NINE, &script).await;
    let root = repository(&client);
    let thread = start(&mut client).await;
    say(&mut client, &thread, "Have it edited.").await;
    let messages = until_end(&mut client, &thread).await;
    assert_eq!(text_of(&messages, &thread), Some("Gone."), "{messages:#?}");
    let calls = items(&messages, "item/completed", "collabAgentToolCall");
    let last = calls.last().expect("the list");
    assert_eq!(last["item"]["receiverThreadIds"], json!([]), "no agent is left: {calls:#?}");
    assert_eq!(git(&root, &["branch", "--format=%(refname:short)"]), "main");
    assert!(!client.home("worktrees").exists() && !root.join("b.txt").exists());
    client.end_unread().await;
}

/// The model is told what is wrong, and nothing else changes.
#[tokio::test]
async fn an_agent_cannot_be_isolated_without_a_repository() {
    let script = json!([
        {"when": ["no worktree could be made", "is not in a git repository"], "items": [{"text": "Refused."}]},
        {"items": [spawn("Edit the file")]},
    ]);
    let mut client = client(ProtocolRelease::V0166, NINE, &script).await;
    let thread = start(&mut client).await;
    say(&mut client, &thread, "Have it edited.").await;
    let messages = until_end(&mut client, &thread).await;
    assert_eq!(text_of(&messages, &thread), Some("Refused."), "{messages:#?}");
    assert!(!client.home("worktrees").exists());
    client.end_unread().await;
}
