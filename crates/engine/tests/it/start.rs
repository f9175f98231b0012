//! The start of a thread.

use std::os::unix::fs::PermissionsExt;

use codex_log::Body;
use codex_thread::Fault;
use expect_test::expect;

use crate::shown;
use crate::world::{World, check, check_lines, start};

#[tokio::test(start_paused = true)]
async fn a_thread_is_on_disk_when_start_returns() {
    let client = World::new().file("project/AGENTS.md", "Be kind.").start("[]").await;
    check_lines(
        &client.line_kinds(),
        expect![[r#"
        session_meta
        response_item
        response_item
    "#]],
    );
    let lines = client.lines();
    let meta = &lines[0]["payload"];
    assert_eq!(meta["id"], client.thread.id().to_string());
    assert_eq!(meta["cwd"], client.world.path("project").display().to_string());
    assert_eq!(meta["originator"], "tests");
    assert_eq!(meta["source"], "exec");
    assert_eq!(meta["model_provider"], "scripted");
    assert_eq!(meta["instructions"], "Be kind.");
    let context = lines[2]["payload"]["content"][0]["text"].as_str().unwrap();
    assert!(context.starts_with("<environment_context>") && context.contains("<shell>zsh</shell>"), "{context}");
}

#[tokio::test(start_paused = true)]
async fn the_file_is_in_the_folder_of_its_day_and_private() {
    let client = start("[]").await;
    let below = client.rollout().strip_prefix(client.world.path("home")).unwrap().display().to_string();
    let parts: Vec<&str> = below.split('/').collect();
    let ["sessions", year, month, day, name] = parts[..] else { panic!("{below}") };
    assert!(name.starts_with(&format!("rollout-{year}-{month}-{day}T")), "{below}");
    assert!(name.ends_with(&format!("-{}.jsonl", client.thread.id())), "{below}");
    assert!([year.len(), month.len(), day.len()] == [4, 2, 2], "{below}");
    assert_eq!(client.rollout().metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test(start_paused = true)]
async fn the_first_event_is_the_start_of_the_thread() {
    let mut client = start("[]").await;
    let events = client.close().await;
    check(
        &events,
        expect![[r#"
        - thread started
        - recorded user: (environment)
    "#]],
    );
    let Body::ThreadStarted(started) = &events[0].body else { panic!("{}", shown::event(&events[0])) };
    assert_eq!(started.rollout, client.rollout());
    assert_eq!(started.meta.id, client.thread.id());
}

#[tokio::test(start_paused = true)]
async fn numbers_of_events_grow_and_name_the_ends_of_lines() {
    let mut client = start(r#"[{"items": [{"reasoning": ["r"]}, {"text": "a"}]}, {"items": [{"text": "b"}]}]"#).await;
    let mut events = client.turn("1", "hi").await;
    events.extend(client.turn("2", "ho").await);
    events.extend(client.close().await);
    assert!(events.windows(2).all(|pair| pair[0].seq < pair[1].seq), "numbers grow");
    let file = std::fs::read(client.rollout()).unwrap();
    for position in events.iter().map(|event| usize::try_from(event.seq.position()).unwrap()) {
        assert_eq!(file[..position].last(), Some(&b'\n'), "{position} of {}", file.len());
    }
    assert!(events.iter().all(|event| event.thread == client.thread.id()));
}

#[tokio::test(start_paused = true)]
async fn a_working_directory_that_does_not_exist_is_refused() {
    let world = World::new();
    std::fs::remove_dir(world.path("project")).unwrap();
    let error = world.start_error().await;
    assert_eq!(error.fault(), Fault::Request);
    expect!["the working directory TEMP/project does not exist"].assert_eq(&world.without_path(&error.to_string()));
}

#[tokio::test(start_paused = true)]
async fn a_file_of_instructions_that_does_not_exist_is_refused() {
    let world = World::new().set("experimental_instructions_file=/nowhere/base.md");
    let error = world.start_error().await;
    expect!["experimental_instructions_file: could not read /nowhere/base.md"].assert_eq(&error.to_string());
    let error = World::new().set("model_instructions_file=/nowhere/base.md").start_error().await;
    expect!["model_instructions_file: could not read /nowhere/base.md"].assert_eq(&error.to_string());
    let world =
        World::new().file("home/base.md", " \n").file("home/config.toml", "model_instructions_file = 'base.md'");
    let error = std::error::Error::source(&world.start_error().await).map(ToString::to_string);
    assert_eq!(error.as_deref(), Some("it is empty"));
}

#[tokio::test(start_paused = true)]
async fn two_threads_in_one_home_do_not_share_a_file() {
    let world = World::new();
    let (first, second) = (world.setup("[]").0, world.setup("[]").0);
    let (first, _feed) = first.start().await.unwrap();
    let (second, _feed) = second.start().await.unwrap();
    assert_ne!(first.id(), second.id());
    assert_ne!(first.started().rollout, second.started().rollout);
}

#[tokio::test]
async fn a_limit_on_memory_that_does_not_hold_is_reported_once() {
    let mut client = World::new().set("limits.memory='1GiB'").start("[]").await;
    let events = client.close().await;
    let told: Vec<&str> = events
        .iter()
        .filter_map(|event| match &event.body {
            Body::Warning { message } => Some(message.as_str()),
            _ => None,
        })
        .collect();
    let why = codex_sandbox::unenforced_memory_limit(Some(1 << 30));
    let expected = why.map(|why| format!("`limits.memory` is not enforced: {why}"));
    assert_eq!(told, expected.iter().map(String::as_str).collect::<Vec<_>>());
}

#[tokio::test]
async fn leftovers_of_a_crash_are_removed_when_a_thread_starts() {
    let world = World::new();
    let left = world.path("project/.codex");
    std::fs::create_dir(&left).unwrap();
    std::fs::set_permissions(&left, std::fs::Permissions::from_mode(0o1555)).unwrap();
    let client = world.start("[]").await;
    assert!(!client.world.path("project/.codex").exists());
}
