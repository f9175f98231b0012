//! A model that runs on this machine, over the three APIs. The same checks run with a scripted model, so that they are
//! known to work.

use codex_engine::Setup;
use codex_log::{Body, Item, Outcome};
use codex_testkit::FakeModel;

use crate::wires::{WIRES, over_http};
use crate::world::{Client, World, outcome};

/// The variable that names a server with all three APIs, such as `http://127.0.0.1:18080/v1`.
const REAL_SERVER: &str = "CODEX_TEST_LLM";

const NOTE: &str = "hello from a real file";

/// Runs a turn of text and one with a command, and returns the results.
async fn converse(url: &str, wire: &str) -> Vec<String> {
    let table = format!("model_providers.real={{base_url=\"{url}\",wire_api=\"{wire}\",stream_usage=true}}");
    let settings = [&*table, "model_provider=real", "model=real", "approval_policy=never"];
    let world = settings.into_iter().fold(World::new(), World::set).set("sandbox_mode=danger-full-access");
    let world = world.file("project/note.txt", NOTE);
    let (setup, prompts) = world.setup("[]");
    let instructions = "You are a helpful agent. Use the tool `shell` to run commands.";
    let setup = Setup { base_instructions: Some(instructions.into()), ..over_http(setup) };
    let (thread, feed) = setup.start().await.expect("the thread starts");
    let mut client = Client { world, thread, feed, prompts };
    let mut transcript = Vec::new();
    for (turn, said) in [("1", "Say hello in one short sentence."), ("2", "Run the command: cat note.txt")] {
        transcript.push(format!("{wire} user: {said}"));
        let events = client.turn(turn, said).await;
        for event in &events {
            if let Body::ItemCompleted(Item::Command(command)) = &event.body {
                let end = command.end.as_ref().map(|end| (end.exit_code, end.aggregated.as_str()));
                transcript.push(format!("{wire} command: {:?} {end:?}", command.argv));
            }
        }
        let Outcome::Completed { last_message, .. } = outcome(&events) else {
            panic!("{wire}: {:?}, after {transcript:#?}", outcome(&events))
        };
        transcript.push(format!("{wire} model: {}", last_message.as_deref().unwrap_or_default().trim()));
    }
    transcript
}

/// The first turn returned text, and the second ran the command.
#[track_caller]
fn check(transcript: &[String]) {
    assert!(transcript.get(1).is_some_and(|line| !line.ends_with("model: ")), "nothing was said: {transcript:#?}");
    let commands: Vec<&String> = transcript.iter().filter(|line| line.contains(" command: ")).collect();
    assert!(
        commands.iter().any(|line| line.contains(NOTE) && line.contains("Some((0,")),
        "no command: {transcript:#?}"
    );
}

#[tokio::test]
async fn a_real_model_answers_and_runs_a_command_over_every_wire() {
    let Ok(url) = std::env::var(REAL_SERVER) else {
        eprintln!("skipped: {REAL_SERVER} does not name a model server");
        return;
    };
    for wire in WIRES {
        let transcript = converse(&url, wire).await;
        eprintln!("{}", transcript.join("\n"));
        check(&transcript);
    }
}

#[tokio::test]
async fn the_same_checks_hold_for_a_scripted_model() {
    let script = r#"[{"items": [{"text": "Hello."}]},
                     {"items": [{"call": "shell", "id": "c1", "args": {"command": ["cat", "note.txt"]}}]},
                     {"items": [{"text": "It says hello."}]}]"#;
    for wire in WIRES {
        let fake = FakeModel::start(script);
        check(&converse(&format!("{}/v1", fake.url()), wire).await);
    }
}
