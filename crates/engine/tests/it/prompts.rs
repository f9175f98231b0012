//! Requests to the model.

use codex_log::Body;
use codex_log::settings::SettingsChange;
use codex_model::{Prompt, ReasoningRequest};
use codex_wire::input::UserInput;
use codex_wire::policy::{AskForApproval, SandboxPolicy};
use codex_wire::reasoning::{ReasoningEffort, ReasoningSummary};
use codex_wire::tool_spec::ToolSpec;
use expect_test::{Expect, expect};
use serde_json::json;

use crate::shown;
use crate::world::{Client, World, check_lines, one_turn, said, start};

/// A script that answers every request.
const ANSWERS: &str = r#"[{"repeat": true, "items": [{"text": "ok"}]}]"#;

/// Runs a turn under changed settings.
async fn turn_with(client: &mut Client, turn: &str, change: SettingsChange) {
    client.say_with(turn, vec![said("go on")], change).await;
    client.until_ended().await;
}

/// The conversation as the bytes that are sent.
fn bytes(prompt: &Prompt) -> Vec<std::borrow::Cow<'_, str>> {
    prompt.input.iter().map(|item| item.json()).collect()
}

/// The last text of the conversation before the user's message.
fn environment(prompt: &Prompt) -> String {
    let json = prompt.input[prompt.input.len() - 2].json();
    let item: serde_json::Value = serde_json::from_str(&json).expect("an item is JSON");
    item["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

#[track_caller]
fn check_input(prompt: &Prompt, world: &World, expected: Expect) {
    let lines: Vec<String> = shown::input(prompt).iter().map(|line| world.without_path(line)).collect();
    check_lines(&lines, expected);
}

#[tokio::test(start_paused = true)]
async fn instructions_then_environment_then_user_message() {
    let world = World::new().file("home/AGENTS.md", "Speak plainly.").file("project/AGENTS.md", "Use tabs.");
    let mut client = world.start(ANSWERS).await;
    client.turn("1", "hi").await;
    check_input(
        &client.prompts.all()[0],
        &client.world,
        expect![[r##"
        user: "# AGENTS.md instructions for TEMP/project\n\n<INSTRUCTIONS>\nSpeak plainly.\n\n--- project-doc ---\n\nUse tabs.\n</INSTRUCTIONS>"
        user: (environment)
        user: "hi"
    "##]],
    );
}

#[tokio::test(start_paused = true)]
async fn the_first_request_has_all_it_needs() {
    let client = one_turn(ANSWERS).await;
    let prompt = &client.prompts.all()[0];
    check_input(
        prompt,
        &client.world,
        expect![[r#"
        user: (environment)
        user: "hi"
    "#]],
    );
    expect![[r#"
        <environment_context>
          <cwd>TEMP/project</cwd>
          <approval_policy>on-request</approval_policy>
          <sandbox_mode>read-only</sandbox_mode>
          <network_access>restricted</network_access>
          <shell>zsh</shell>
        </environment_context>"#]]
    .assert_eq(&client.world.without_path(&environment(prompt)));
    assert_eq!(prompt.thread, client.thread.id());
    assert_eq!(prompt.model, "gpt-5.1-codex");
    assert!(prompt.instructions.starts_with("You are Codex"), "{}", prompt.instructions);
    let names: Vec<_> = prompt.tools.specs().iter().map(ToolSpec::name).collect();
    assert!(names.contains(&"update_plan"), "{names:?}");
    let reasoning = ReasoningRequest { summary: Some(ReasoningSummary::Auto), ..ReasoningRequest::default() };
    assert_eq!(prompt.reasoning, Some(reasoning));
    assert_eq!((prompt.verbosity.clone(), prompt.output_schema.clone()), (None, None));
}

#[tokio::test(start_paused = true)]
async fn a_file_of_instructions_takes_the_place_of_the_built_in_ones() {
    let world = World::new().file("home/base.md", "Only this.");
    let path = world.path("home/base.md").display().to_string();
    let mut client = world.set(&format!("experimental_instructions_file={path}")).start(ANSWERS).await;
    client.turn("1", "hi").await;
    assert_eq!(&*client.prompts.all()[0].instructions, "Only this.");
    let keys = "model_instructions_file = 'how/new.md'\nexperimental_instructions_file = 'base.md'\n";
    let world = World::new().file("home/base.md", "Only this.").file("home/config.toml", keys);
    std::fs::create_dir(world.path("home/how")).unwrap();
    let mut client = world.file("home/how/new.md", "Or this.").start(ANSWERS).await;
    client.turn("1", "hi").await;
    assert_eq!(&*client.prompts.all()[0].instructions, "Or this.", "a path in a file begins where the file is");
}

#[tokio::test(start_paused = true)]
async fn hidden_reasoning_is_not_sent_to_clients() {
    let script =
        r#"[{"items": [{"reasoning": ["ponder"], "raw": "deep"}, {"text": "a"}]}, {"items": [{"text": "b"}]}]"#;
    for (hides, shown) in [(false, true), (true, false)] {
        let mut client = World::new().set(&format!("hide_agent_reasoning={hides}")).start(script).await;
        let events = client.turn("1", "hi").await;
        let tells = |body: &Body| format!("{body:?}").contains("ponder") && !matches!(body, Body::Recorded(_));
        assert_eq!(events.iter().any(|event| tells(&event.body)), shown);
        let kinds = client.line_kinds();
        assert_eq!(kinds.iter().any(|kind| kind.starts_with("event_msg agent_reasoning")), shown, "{kinds:?}");
        client.turn("2", "hi").await;
        let sent = bytes(&client.prompts.all()[1]).concat();
        assert!(sent.contains("ponder"), "the model itself goes on from what it thought: {sent}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_request_starts_with_the_bytes_of_the_one_before() {
    let script = r#"[{"items": [{"reasoning": ["r"], "raw": "deep"}, {"text": "ä\u0000\n"}, {"call": "update_plan", "args": {"plan": []}}]},
                     {"items": [{"custom": "odd", "input": "x"}]}, {"items": [{"web_search": "q"}, {"text": "b"}]},
                     {"items": [{"text": "c"}]}, {"items": [{"text": "d"}]}]"#;
    let mut client = one_turn(script).await;
    turn_with(&mut client, "2", SettingsChange { model: Some("gpt-5.2".to_owned()), ..SettingsChange::default() })
        .await;
    turn_with(&mut client, "3", SettingsChange { cwd: Some("..".into()), ..SettingsChange::default() }).await;
    let prompts = client.prompts.all();
    assert_eq!(prompts.len(), 5);
    for pair in prompts.windows(2) {
        let (earlier, later) = (bytes(&pair[0]), bytes(&pair[1]));
        assert!(later.len() > earlier.len(), "nothing was added to {earlier:?}");
        assert_eq!(later[..earlier.len()], earlier[..]);
        assert_eq!(pair[0].tools.responses_json(), pair[1].tools.responses_json());
        assert_eq!(pair[0].instructions, pair[1].instructions);
    }
}

#[tokio::test(start_paused = true)]
async fn a_changed_environment_is_sent_once() {
    let mut client = one_turn(ANSWERS).await;
    let change = SettingsChange {
        approval_policy: Some(AskForApproval::Never),
        sandbox_policy: Some(SandboxPolicy::DangerFullAccess),
        model: Some("o3".to_owned()),
        effort: Some(Some(ReasoningEffort::High)),
        summary: Some(ReasoningSummary::None),
        ..SettingsChange::default()
    };
    let settings = client.thread.configure(change).await.unwrap();
    assert_eq!(settings.model, "o3");
    client.turn("2", "more").await;
    client.turn("3", "and more").await;
    let prompts = client.prompts.all();
    check_input(
        &prompts[2],
        &client.world,
        expect![[r#"
        user: (environment)
        user: "hi"
        assistant: "ok"
        user: (environment)
        user: "more"
        assistant: "ok"
        user: "and more"
    "#]],
    );
    expect![[r#"
        <environment_context>
          <cwd>TEMP/project</cwd>
          <approval_policy>never</approval_policy>
          <sandbox_mode>danger-full-access</sandbox_mode>
          <network_access>enabled</network_access>
          <shell>zsh</shell>
        </environment_context>"#]]
    .assert_eq(&client.world.without_path(&environment(&prompts[1])));
    assert_eq!(prompts[1].model, "o3");
    assert_eq!(
        prompts[1].reasoning,
        Some(ReasoningRequest { effort: Some(ReasoningEffort::High), ..ReasoningRequest::default() })
    );
}

#[tokio::test(start_paused = true)]
async fn a_model_alone_is_no_change_of_environment() {
    let mut client = one_turn(ANSWERS).await;
    turn_with(&mut client, "2", SettingsChange { model: Some("gpt-5.2".to_owned()), ..SettingsChange::default() })
        .await;
    check_input(
        &client.prompts.all()[1],
        &client.world,
        expect![[r#"
        user: (environment)
        user: "hi"
        assistant: "ok"
        user: "go on"
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn settings_of_a_turn_last() {
    let mut client = start(ANSWERS).await;
    let effort = |effort| SettingsChange { effort: Some(effort), ..SettingsChange::default() };
    turn_with(&mut client, "1", effort(Some(ReasoningEffort::Low))).await;
    turn_with(&mut client, "2", SettingsChange::default()).await;
    turn_with(&mut client, "3", effort(None)).await;
    let efforts: Vec<_> = client.prompts.all().into_iter().map(|prompt| prompt.reasoning.unwrap().effort).collect();
    assert_eq!(efforts, [Some(ReasoningEffort::Low), Some(ReasoningEffort::Low), None]);
}

#[tokio::test(start_paused = true)]
async fn settings_changed_during_a_turn_wait_for_the_next_one() {
    let script = r#"[{"items": [{"call": "update_plan", "args": {"plan": []}}, {"pause_ms": 1000}]}, {"items": [{"text": "a"}]},
                     {"items": [{"text": "b"}]}]"#;
    let mut client = start(script).await;
    client.say("1", "hi").await;
    client.until(|body| matches!(body, Body::TokensCounted { .. })).await;
    let change = SettingsChange { model: Some("gpt-5.2".to_owned()), ..SettingsChange::default() };
    client.thread.configure(change).await.unwrap();
    client.until_ended().await;
    client.turn("2", "more").await;
    let models: Vec<_> = client.prompts.all().into_iter().map(|prompt| prompt.model).collect();
    assert_eq!(models, ["gpt-5.1-codex", "gpt-5.1-codex", "gpt-5.2"]);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_does_not_reason_is_not_asked_to() {
    let mut client = World::new().set("model=gpt-4.1").start(ANSWERS).await;
    client.turn("1", "hi").await;
    assert_eq!(client.prompts.all()[0].reasoning, None);
}

#[tokio::test(start_paused = true)]
async fn a_schema_holds_for_all_requests_of_its_turn_and_no_longer() {
    let script = r#"[{"items": [{"call": "update_plan", "args": {"plan": []}}]}, {"items": [{"text": "{}"}]},
                     {"items": [{"text": "b"}]}]"#;
    let mut client = start(script).await;
    let schema = json!({"type": "object"});
    turn_with(&mut client, "1", SettingsChange { output_schema: Some(schema.clone()), ..SettingsChange::default() })
        .await;
    client.turn("2", "more").await;
    let schemas: Vec<_> = client.prompts.all().into_iter().map(|prompt| prompt.output_schema).collect();
    assert_eq!(schemas, [Some(schema.clone()), Some(schema), None]);
}

#[tokio::test(start_paused = true)]
async fn pictures_on_disk_are_sent_and_missing_ones_are_noted() {
    let mut client = World::new().file("project/a.png", b"\x89PNG\r\n\x1a\nrest").start(ANSWERS).await;
    let picture = |path: &str| UserInput::LocalImage { path: path.into() };
    let url = UserInput::Image { image_url: "https://example.org/b.png".to_owned() };
    let content = vec![said("look"), picture("a.png"), picture("gone.png"), url];
    client.say_with("1", content, SettingsChange::default()).await;
    client.until_ended().await;
    check_input(
        &client.prompts.all()[0],
        &client.world,
        expect![[r#"
        user: (environment)
        user: "look" + InputImage { image_url: "data:image/png;base64,iVBORw0KGgpyZXN0" } + "The picture TEMP/project/gone.png could not be attached: No such file or directory (os error 2)" + InputImage { image_url: "https://example.org/b.png" }
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn the_model_gets_the_users_skills_and_those_of_trusted_projects() {
    let skill = |name: &str| format!("---\nname: {name}\ndescription: Does {name}\n---\nSecret of {name}.\n");
    for trusted in [false, true] {
        let mut world = World::new();
        for (folder, name) in [("home/skills/sew", "sew"), ("project/.codex/skills/cook", "cook")] {
            std::fs::create_dir_all(world.path(folder)).expect("a folder can be made");
            world = world.file(&format!("{folder}/SKILL.md"), skill(name));
        }
        if trusted {
            let project = world.path("project").display().to_string();
            world = world.set(&format!("projects.\"{project}\".trust_level=trusted"));
        }
        let path = world.path("home/skills/sew/SKILL.md");
        let mut client = world.start(r#"[{"items": [{"text": "ok"}]}]"#).await;
        let named = UserInput::Skill { name: "sew".to_owned(), path };
        client.say_with("1", vec![named], SettingsChange::default()).await;
        client.until_ended().await;
        let input: String = client.prompts.all()[0].input.iter().map(|item| item.json()).collect();
        assert!(input.contains("- sew: Does sew"), "{input}");
        assert_eq!(input.contains("- cook: Does cook"), trusted, "{input}");
        assert!(input.contains("Secret of sew."), "{input}");
    }
}
