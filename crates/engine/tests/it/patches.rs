//! Patches of the model, on real files.

use std::sync::Arc;

use codex_log::{Body, Event, Item, PatchItem, PatchStatus};
use codex_wire::decision::ReviewDecision;
use serde_json::{Value, json};

use crate::commands::outputs;
use crate::world::World;

const PATCH: &str =
    "*** Begin Patch\n*** Add File: new.txt\n+one\n*** Update File: old.txt\n@@\n-before\n+after\n*** End Patch";

fn world(approval: &str, sandbox: &str) -> World {
    let world = World::new().set(&format!("approval_policy={approval}")).set(&format!("sandbox_mode={sandbox}"));
    world.set("sandbox_workspace_write.exclude_slash_tmp=true").file("project/old.txt", "before\n")
}

fn script(item: Value) -> String {
    json!([{"items": [item]}, {"items": [{"text": "done"}]}]).to_string()
}

fn custom(patch: &str) -> Value {
    json!({"custom": "apply_patch", "input": patch})
}

fn ended(events: &[Arc<Event>]) -> Vec<Arc<PatchItem>> {
    let patch = |event: &Arc<Event>| match &event.body {
        Body::ItemCompleted(Item::Patch(patch)) => Some(Arc::clone(patch)),
        _ => None,
    };
    events.iter().filter_map(patch).collect()
}

#[tokio::test]
async fn a_patch_is_a_custom_call_a_function_call_or_a_command() {
    let command = format!("apply_patch <<'EOF'\n{PATCH}\nEOF\n");
    for call in [
        custom(PATCH),
        json!({"call": "apply_patch", "args": {"input": PATCH}}),
        json!({"call": "shell", "args": {"command": ["bash", "-lc", command]}}),
    ] {
        let mut client = world("on-request", "workspace-write").start(&script(call)).await;
        let events = client.turn("1", "hi").await;
        let patches = ended(&events);
        assert_eq!((patches.len(), patches[0].status), (1, PatchStatus::Completed), "{patches:?}");
        assert!(patches[0].is_auto_approved);
        let read = |name: &str| std::fs::read_to_string(client.world.path(name)).expect("the file is there");
        assert_eq!((read("project/new.txt"), read("project/old.txt")), ("one\n".to_owned(), "after\n".to_owned()));
        let summary = "Success. Updated the following files:\\nA new.txt\\nM old.txt\\n".replace("\\n", "\n");
        assert!(outputs_of(&client).contains("A new.txt"), "{}", outputs_of(&client));
        assert_eq!(patches[0].end.as_ref().map(|end| end.stdout.as_str()), Some(summary.as_str()));
        let told = |event: &Arc<Event>| matches!(&event.body, Body::DiffChanged(diff) if diff.contains("+after"));
        assert!(events.iter().any(told));
    }
}

/// All outputs of the last request as one text.
fn outputs_of(client: &crate::world::Client) -> String {
    let last = client.prompts.all().pop().expect("the model was asked");
    last.input.iter().map(|item| item.json()).filter(|item| item.contains("_output")).collect()
}

#[tokio::test]
async fn a_denied_patch_changes_nothing() {
    let mut client = world("untrusted", "danger-full-access").start(&script(custom(PATCH))).await;
    client.say("1", "hi").await;
    client.until(|body| matches!(body, Body::Asked(_))).await;
    assert_eq!(client.thread.answer_named("1".to_owned(), ReviewDecision::Denied.into()).await, Ok(true));
    let events = client.until_ended().await;
    assert_eq!(ended(&events)[0].status, PatchStatus::Declined);
    assert!(!client.world.path("project/new.txt").exists());
    assert!(outputs_of(&client).contains("patch rejected by user"));
}

#[tokio::test]
async fn a_patch_outside_the_workspace_needs_approval_and_is_refused_without() {
    for (policy, asks) in [("on-request", true), ("never", false)] {
        let patch = "*** Begin Patch\n*** Add File: ../outside.txt\n+x\n*** End Patch";
        let mut client = world(policy, "workspace-write").start(&script(custom(patch))).await;
        client.say("1", "hi").await;
        if asks {
            client.until(|body| matches!(body, Body::Asked(_))).await;
            assert!(!client.world.path("outside.txt").exists());
            assert_eq!(client.thread.answer_named("1".to_owned(), ReviewDecision::Approved.into()).await, Ok(true));
        }
        client.until_ended().await;
        assert_eq!(client.world.path("outside.txt").exists(), asks, "{policy}");
    }
}

#[tokio::test]
async fn a_link_that_a_command_made_does_not_lead_a_patch_outside() {
    let world = world("never", "workspace-write");
    std::fs::create_dir(world.path("outside")).expect("a folder can be made");
    std::os::unix::fs::symlink("../outside", world.path("project/link")).expect("a link can be made");
    let patch = "*** Begin Patch\n*** Add File: link/x\n+x\n*** End Patch";
    let mut client = world.start(&script(custom(patch))).await;
    client.turn("1", "hi").await;
    assert!(!client.world.path("outside/x").exists());
}

#[tokio::test]
async fn names_that_run_later_are_out_of_reach_of_patches() {
    for name in [".git/hooks/pre-commit", ".codex/config.toml"] {
        let patch = format!("*** Begin Patch\n*** Add File: {name}\n+x\n*** End Patch");
        let world = world("never", "workspace-write");
        codex_files::testing::make_git_folder(&world.path("project/.git")).expect("a folder can be made");
        let mut client = world.start(&script(custom(&patch))).await;
        client.turn("1", "hi").await;
        assert!(!client.world.path("project").join(name).exists(), "{name}");
    }
}

#[tokio::test]
async fn a_patch_that_does_not_fit_is_reported_to_the_model() {
    let patch = "*** Begin Patch\n*** Update File: old.txt\n@@\n-no such line\n+x\n*** End Patch";
    let mut client = world("never", "danger-full-access")
        .start(&script(json!({
            "call": "apply_patch", "args": {"input": patch}
        })))
        .await;
    let events = client.turn("1", "hi").await;
    assert!(ended(&events).is_empty());
    let output = &outputs(&client)[0];
    assert!(output.starts_with("apply_patch verification failed: ") && output.contains("old.txt"), "{output}");
}

#[tokio::test]
async fn names_that_run_code_later_are_not_created_without_a_question() {
    for (name, is_asked) in [
        (".npmrc", true),
        ("sub/.IDEA/workspace.xml", true),
        ("sub/.cargo/config.toml", true),
        ("sub/.vscode/tasks.json", true),
        ("own.cfg", true),
        (".zed/settings.json", false),
        ("sub/.cargo/audit.toml", false),
        ("Makefile", false),
    ] {
        let patch = format!("*** Begin Patch\n*** Add File: {name}\n+x\n*** End Patch");
        let world = world("never", "workspace-write").set("sandbox_workspace_write.protected_names=['own.cfg']");
        let world = world.set("sandbox_workspace_write.unprotected_names=['.zed']");
        let mut client = world.start(&script(custom(&patch))).await;
        client.turn("1", "hi").await;
        assert_eq!(client.world.path("project").join(name).exists(), !is_asked, "{name}");
    }
}
