//! `request_permissions`: what a person grants, for how long, and what nobody can grant. Commands run in the real sandbox.

use std::path::{Path, PathBuf};

use codex_log::permissions::{GrantScope, Permissions};
use codex_log::{Answer, Body, QuestionKind};
use codex_wire::decision::ReviewDecision;
use serde_json::{Value, json};

use crate::world::{Client, World};

/// A world in which commands may write nothing, with a folder outside of the project.
fn world(approval: &str) -> World {
    let world = World::new().set(&format!("approval_policy={approval}")).set("sandbox_mode=read-only");
    let world = world.set("features.request_permissions_tool=true");
    std::fs::create_dir_all(world.path("outside/.codex")).expect("a folder can be made");
    world
}

fn asks(folder: &Path, network: bool) -> Value {
    let permissions = json!({"file_system": {"write": [folder]}, "network": {"enabled": network}});
    let arguments = json!({"reason": "to build", "permissions": permissions});
    json!({"items": [{"call": "request_permissions", "args": arguments}]})
}

fn runs(command: &str) -> Value {
    json!({"items": [{"call": "shell", "args": {"command": ["sh", "-c", command]}}]})
}

fn done() -> Value {
    json!({"items": [{"text": "done"}]})
}

fn real(world: &World, name: &str) -> PathBuf {
    world.path(name).canonicalize().expect("it exists")
}

/// The outputs of calls in the last request to the model.
fn outputs(client: &Client) -> Vec<String> {
    let last = client.prompts.all().pop().expect("the model was asked");
    let items = last.input.iter().map(|item| serde_json::from_str::<Value>(&item.json()).expect("an item is JSON"));
    let outputs = items.filter(|item| item["type"] == "function_call_output");
    outputs.map(|item| item["output"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Runs a turn, answers its question, and returns what was asked for.
async fn turn(client: &mut Client, turn: &str, answer: impl FnOnce(&Permissions) -> Answer) -> Permissions {
    client.say(turn, "hi").await;
    let events = client.until(|body| matches!(body, Body::Asked(_) | Body::TurnEnded(_))).await;
    let Some(Body::Asked(question)) = events.last().map(|event| &event.body) else { panic!("nobody was asked") };
    let QuestionKind::Permissions { asked, .. } = &question.kind else { panic!("asked about permissions") };
    assert_eq!(question.reason.as_deref(), Some("to build"));
    assert_eq!(client.thread.answer(question.id.clone(), answer(asked)).await, Ok(true));
    client.until_ended().await;
    asked.clone()
}

#[tokio::test]
async fn a_grant_for_a_turn_opens_the_folder_without_its_protected_names_until_the_turn_ends() {
    let world = world("on-request");
    let outside = real(&world, "outside");
    let touch = |name: &str| runs(&format!("touch {}", outside.join(name).display()));
    let first = [asks(&outside, false), touch("one"), touch(".codex/config.toml"), runs("touch here"), done()];
    let script: Vec<Value> = first.into_iter().chain([touch("two"), done()]).collect();
    let mut client = world.start(&json!(script).to_string()).await;
    let asked =
        turn(&mut client, "1", |asked| Answer::Granted { permissions: asked.clone(), scope: GrantScope::Turn }).await;
    assert_eq!(asked, Permissions { write: vec![outside.clone()], network: false });
    let granted = &outputs(&client)[0];
    assert!(granted.contains(r#""scope":"turn""#) && granted.contains(&outside.display().to_string()), "{granted}");
    assert!(outside.join("one").exists(), "{:?}", outputs(&client));
    assert!(!outside.join(".codex/config.toml").exists(), "a protected name stays closed");
    assert!(!client.world.path("project/here").exists(), "nothing else is open");
    client.turn("2", "again").await;
    assert!(!outside.join("two").exists(), "the grant ended with its turn");
}

#[tokio::test]
async fn a_grant_for_the_session_lasts_and_is_never_wider_than_the_question() {
    let world = world("on-request");
    let outside = real(&world, "outside");
    let script = [
        asks(&outside, false),
        runs(&format!("touch {}", outside.join("one").display())),
        done(),
        runs(&format!("touch {} here", outside.join("two").display())),
        done(),
    ];
    let mut client = world.start(&json!(script).to_string()).await;
    let project = real(&client.world, "project");
    turn(&mut client, "1", |asked| {
        let write = asked.write.iter().cloned().chain([project.clone(), PathBuf::from("/")]).collect();
        Answer::Granted { permissions: Permissions { write, network: true }, scope: GrantScope::Session }
    })
    .await;
    assert!(outputs(&client)[0].contains(r#""network":{"enabled":false}"#), "{:?}", outputs(&client));
    client.turn("2", "again").await;
    assert!(outside.join("one").exists() && outside.join("two").exists(), "{:?}", outputs(&client));
    assert!(!project.join("here").exists());
}

#[tokio::test]
async fn a_no_opens_nothing_and_a_plain_yes_is_for_the_turn() {
    for (answer, is_open) in [
        (Answer::Declined, false),
        (ReviewDecision::Denied.into(), false),
        (Answer::Granted { permissions: Permissions::default(), scope: GrantScope::Session }, false),
        (ReviewDecision::Approved.into(), true),
    ] {
        let world = world("on-request");
        let outside = real(&world, "outside");
        let script = [asks(&outside, true), runs(&format!("touch {}", outside.join("x").display())), done()];
        let mut client = world.start(&json!(script).to_string()).await;
        let asked = turn(&mut client, "1", |_| answer.clone()).await;
        assert!(asked.network);
        assert_eq!(outside.join("x").exists(), is_open, "{answer:?}");
    }
}

#[tokio::test]
async fn what_nobody_can_grant_is_not_asked() {
    let world = world("on-request");
    std::fs::create_dir_all(world.path("outside/.git/hooks")).expect("a folder can be made");
    std::os::unix::fs::symlink(world.path("home"), world.path("outside/link")).expect("a link can be made");
    let folders = ["outside/.git/hooks", "outside/.codex", "home", "outside/link", "", "outside/nowhere"];
    let folders = folders.map(|name| world.path(name));
    let script: Vec<Value> = folders.iter().map(|folder| asks(folder, false)).chain([done()]).collect();
    let mut client = world.start(&json!(script).to_string()).await;
    client.turn("1", "hi").await;
    let outputs = outputs(&client);
    assert_eq!(outputs.len(), folders.len());
    assert!(outputs.iter().all(|output| output.contains("cannot be granted")), "{outputs:?}");
}

#[tokio::test]
async fn the_tool_is_offered_only_where_somebody_may_be_asked() {
    let never = "the permissions were not granted: the approval policy is `never`";
    let nobody = "nobody can be asked for permissions in this thread";
    for (approval, feature, refusal) in
        [("on-request", true, None), ("never", true, Some(never)), ("on-request", false, Some(nobody))]
    {
        let world = world(approval).set(&format!("features.request_permissions_tool={feature}"));
        let script = json!([asks(&world.path("outside"), false), done()]).to_string();
        let mut client = world.start(&script).await;
        client.say("1", "hi").await;
        match refusal {
            None => drop(client.until(|body| matches!(body, Body::Asked(_))).await),
            Some(refusal) => {
                client.until_ended().await;
                assert_eq!(outputs(&client), [refusal]);
            }
        }
        let tools = client.prompts.all()[0].tools.responses_json().to_owned();
        assert_eq!(tools.contains("request_permissions"), refusal.is_none(), "{approval} {feature}");
    }
}
