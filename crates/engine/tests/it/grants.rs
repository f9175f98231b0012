//! Folders to which a person grants the patches of a thread access.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use codex_log::settings::SettingsChange;
use codex_log::{Body, QuestionKind};
use codex_wire::decision::ReviewDecision;
use codex_wire::policy::SandboxPolicy;
use serde_json::{Value, json};

use crate::world::{Client, World, said};

/// A world whose folder `outside/in` is not in the workspace.
fn world(approval: &str, sandbox: &str) -> World {
    let world = World::new().set(&format!("approval_policy={approval}")).set(&format!("sandbox_mode={sandbox}"));
    let world = world.set("sandbox_workspace_write.exclude_slash_tmp=true");
    for name in ["outside/in", "elsewhere"] {
        std::fs::create_dir_all(world.path(name)).expect("a folder can be made");
    }
    world
}

/// A script whose model adds a file in each turn.
fn script(files: &[&str]) -> String {
    let patch = |file: &str| format!("*** Begin Patch\n*** Add File: {file}\n+x\n*** End Patch");
    let answers = files.iter().flat_map(|file| {
        [json!({"items": [{"custom": "apply_patch", "input": patch(file)}]}), json!({"items": [{"text": "done"}]})]
    });
    Value::Array(answers.collect()).to_string()
}

/// Runs one turn. Answers its question, and returns the requested grant.
async fn turn(client: &mut Client, turn: &str, decision: ReviewDecision) -> Option<Option<PathBuf>> {
    client.say(turn, "hi").await;
    let events = client.until(|body| matches!(body, Body::Asked(_) | Body::TurnEnded(_))).await;
    let Some(Body::Asked(question)) = events.last().map(|event| &event.body) else { return None };
    let QuestionKind::Patch { grant_root, .. } = &question.kind else { panic!("asked about a patch") };
    assert_eq!(client.thread.answer_named(turn.to_owned(), decision.into()).await, Ok(true));
    client.until_ended().await;
    Some(grant_root.clone())
}

/// Plays a first patch whose root is granted for the session, and returns the thread with the root.
async fn granted(world: World, files: &[&str]) -> (Client, PathBuf) {
    let mut client = world.start(&script(files)).await;
    let root = turn(&mut client, "first", ReviewDecision::ApprovedForSession).await;
    (client, root.expect("the first patch is asked about").expect("a root is told"))
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().expect("it exists")
}

#[tokio::test]
async fn an_approval_for_the_session_grants_the_folder_that_was_shown() {
    for (approval, sandbox) in
        [("on-request", "workspace-write"), ("untrusted", "workspace-write"), ("on-failure", "read-only")]
    {
        let files = ["../outside/in/one", "../outside/in/two", "../outside/in/deep/three", "../outside/four"];
        let (mut client, root) = granted(world(approval, sandbox), &files).await;
        assert_eq!(root, real(&client.world.path("outside/in")));
        for name in ["second", "third"] {
            assert_eq!(turn(&mut client, name, ReviewDecision::Denied).await, None, "{approval} {name}");
        }
        let asked = turn(&mut client, "fourth", ReviewDecision::Denied).await;
        assert_eq!(asked, Some(Some(real(&client.world.path("outside")))), "the folder above was not granted");
        let there = |name: &str| client.world.path("project").join(name).exists();
        assert_eq!(files.map(there), [true, true, true, false], "{approval}");
    }
}

#[tokio::test]
async fn a_yes_for_once_opens_nothing() {
    let mut client =
        world("on-request", "workspace-write").start(&script(&["../outside/in/a", "../outside/in/b"])).await;
    for name in ["first", "second"] {
        assert!(turn(&mut client, name, ReviewDecision::Approved).await.is_some(), "{name}");
    }
}

#[tokio::test]
async fn a_grant_does_not_reach_protected_names_in_any_spelling() {
    let names = [
        ".git/hooks/pre-commit",
        ".git/config",
        ".codex/config.toml",
        "sub/deep/er/than/any/search/.Git/HOOKS/x",
        "sub/.CODEX/x",
        ".vscode/tasks.json",
    ];
    let files: Vec<String> = ["a"].iter().chain(&names).map(|name| format!("../outside/in/{name}")).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let (mut client, _) = granted(world("on-request", "workspace-write"), &files).await;
    for name in names {
        let asked = turn(&mut client, name, ReviewDecision::ApprovedForSession).await;
        assert_eq!(asked, Some(None), "{name} is asked about, and no folder is offered");
    }
}

#[tokio::test]
async fn a_grant_goes_where_the_folder_is_and_not_where_a_link_leads() {
    let files = ["../outside/in/a", "../outside/in/link/x", "../outside/in-evil/x", "../outside/in/y"];
    let (mut client, _) = granted(world("on-request", "workspace-write"), &files).await;
    let [inside, elsewhere] = ["outside/in", "elsewhere"].map(|name| client.world.path(name));
    symlink(&elsewhere, inside.join("link")).expect("a link can be made");
    let asked = turn(&mut client, "a link in the folder", ReviewDecision::Denied).await;
    assert_eq!(asked, Some(Some(real(&elsewhere))));
    assert!(turn(&mut client, "another folder", ReviewDecision::Denied).await.is_some());
    std::fs::rename(&inside, client.world.path("outside/moved")).expect("a folder can be moved");
    symlink(&elsewhere, &inside).expect("a link can be made");
    assert!(turn(&mut client, "a link instead of the folder", ReviewDecision::Denied).await.is_some());
    assert_eq!(std::fs::read_dir(&elsewhere).expect("it is a folder").count(), 0);
}

#[tokio::test]
async fn a_grant_holds_under_the_policy_it_was_given_under() {
    let (mut client, _) =
        granted(world("on-request", "workspace-write"), &["../outside/in/a", "../outside/in/b"]).await;
    let change = SettingsChange { sandbox_policy: Some(SandboxPolicy::ReadOnly), ..SettingsChange::default() };
    client.thread.configure(change).await.expect("the thread is open");
    assert!(turn(&mut client, "second", ReviewDecision::Denied).await.is_some());
}

#[tokio::test]
async fn no_folder_is_offered_that_holds_a_home_or_too_much() {
    // The folder of the world contains the home of the program.
    for file in ["../x", "../home/prompts/x", "/codex-test-x", "/etc/codex-test-x"] {
        let mut client = world("on-request", "workspace-write").start(&script(&[file])).await;
        assert_eq!(turn(&mut client, "1", ReviewDecision::Denied).await, Some(None), "{file}");
    }
}

#[tokio::test]
async fn a_patch_in_two_folders_is_offered_the_one_that_holds_both() {
    let patch = "*** Begin Patch\n*** Add File: ../outside/in/a\n+x\n*** Add File: ../outside/b\n+x\n*** Add File: c\n+x\n*** End Patch";
    let script = json!([{"items": [{"custom": "apply_patch", "input": patch}]}, {"items": [{"text": "done"}]}]);
    let mut client = world("on-request", "workspace-write").start(&script.to_string()).await;
    client.say_with("1", vec![said("hi")], SettingsChange::default()).await;
    let events = client.until(|body| matches!(body, Body::Asked(_))).await;
    let Some(Body::Asked(question)) = events.last().map(|event| &event.body) else { panic!("asked") };
    let QuestionKind::Patch { grant_root, .. } = &question.kind else { panic!("asked about a patch") };
    assert_eq!(*grant_root, Some(real(&client.world.path("outside"))));
}
