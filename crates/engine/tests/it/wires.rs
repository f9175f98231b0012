//! The same scenarios over the three APIs: a thread publishes the same events with every provider.

use std::sync::Arc;

use codex_config::Env;
use codex_engine::{CredentialsSource, Setup, connect};
use codex_log::settings::SettingsChange;
use codex_log::{Body, CommandItem, Event, Item, Outcome, TurnId};
use codex_testkit::{FakeModel, Options};
use codex_thread::InitialHistory;
use codex_wire::decision::ReviewDecision;
use codex_wire::input::UserInput;
use codex_wire::reasoning::ReasoningEffort;
use codex_wire::tokens::TokenUsage;
use serde_json::{Value, json};

use crate::shown;
use crate::world::{Client, World, outcome, said};

pub(crate) const WIRES: [&str; 3] = ["responses", "chat", "anthropic"];

/// The Responses API over a WebSocket.
const WEBSOCKET: &str = "websocket";

const PATCH: &str = "*** Begin Patch\n*** Add File: new.txt\n+one\n*** End Patch";

/// A scenario: the actions of the user, and the answers of the model.
struct Scenario {
    name: &'static str,
    script: Value,
    settings: &'static [&'static str],
    /// The user's input in the one or two turns.
    turns: &'static [&'static str],
}

fn scenario(name: &'static str, script: Value, turns: &'static [&'static str]) -> Scenario {
    Scenario { name, script, settings: &[], turns }
}

fn scenarios() -> Vec<Scenario> {
    let done = || json!({"items": [{"text": "Done."}]});
    let run = |id: &str, line: &str| json!({"call": "shell", "id": id, "args": {"command": ["sh", "-c", line]}});
    let never = &["approval_policy=never", "sandbox_mode=danger-full-access"];
    vec![
        scenario("text", json!([{"items": [{"text": "Hello", "deltas": ["Hel", "lo"]}]}, done()]), &["hi", "more"]),
        scenario(
            "reasoning",
            json!([{"items": [{"reasoning": ["Let me think."]}, {"text": "Yes."}], "usage": {"input": 50, "cached": 20}},
                   done()]),
            &["hi", "more"],
        ),
        Scenario {
            settings: never,
            ..scenario("command", json!([{"items": [{"text": "Look."}, run("c1", "echo out")]}, done()]), &["hi"])
        },
        Scenario {
            settings: &["approval_policy=untrusted", "sandbox_mode=danger-full-access"],
            ..scenario("approval", json!([{"items": [run("c1", "touch made")]}, done()]), &["approve"])
        },
        Scenario {
            settings: never,
            ..scenario(
                "patch",
                json!([{"items": [{"call": "apply_patch", "id": "p1", "args": {"input": PATCH}}]}, done()]),
                &["hi"],
            )
        },
        Scenario {
            settings: &["models.mock-model.parallel_tool_calls=true"],
            ..scenario(
                "parallel calls",
                json!([{"items": [{"call": "update_plan", "id": "a", "args": {"plan": [{"step": "x", "status": "pending"}]}},
                                  {"call": "update_plan", "id": "b", "args": {"plan": []}}]},
                       done()]),
                &["hi"],
            )
        },
        scenario("image", json!([done()]), &["image"]),
        scenario("schema", json!([{"items": [{"text": "{\"a\":1}"}]}]), &["schema"]),
        scenario(
            "429",
            json!([{"status": 429, "headers": {"retry-after": "0"}, "body": {"error": {"message": "slow down"}}}, done()]),
            &["hi"],
        ),
        scenario("cut stream", json!([{"items": [{"text": "Hal", "done": false}], "end": "cut"}, done()]), &["hi"]),
        scenario(
            "compaction",
            json!([{"items": [{"text": "Noted."}, {"call": "update_plan", "id": "a", "args": {"plan": []}}]}, done(),
                   {"items": [{"text": "A fern."}]}, done()]),
            &["Remember the fern.", "compact", "more"],
        ),
        scenario(
            "change of provider",
            json!([{"items": [{"reasoning": ["Let me think."]}, {"text": "Yes."}]}, done(), done()]),
            &["hi", "other", "more"],
        ),
    ]
}

/// A thread whose provider uses one API, with another provider that uses the next one.
async fn start(fake: &FakeModel, scenario: &Scenario, wire: &str) -> Client {
    let (wire, sockets) = if wire == WEBSOCKET { ("responses", true) } else { (wire, false) };
    let next = WIRES[(WIRES.iter().position(|known| *known == wire).expect("it is one") + 1) % WIRES.len()];
    let mut world = World::new();
    for (id, wire) in [("mock", wire), ("other", next)] {
        let table = format!(
            "model_providers.{id}={{base_url=\"{}/v1\",wire_api=\"{wire}\",stream_usage=true,thoughts=\"summary\",\
             supports_websockets={sockets},request_max_retries=1,stream_max_retries=1}}",
            fake.url()
        );
        world = world.set(&table);
    }
    let settings = ["model_provider=mock", "model=mock-model"].into_iter().chain(scenario.settings.iter().copied());
    let world = settings.fold(world, World::set);
    let (setup, prompts) = world.setup("[]");
    let (thread, feed) = over_http(setup).start().await.expect("the thread starts");
    Client { world, thread, feed, prompts }
}

pub(crate) fn over_http(setup: Setup) -> Setup {
    let env = Env::from_iter::<[(&str, &str); 0]>([]);
    let model = connect(&setup.config, &CredentialsSource::none(), &env, "tests").expect("the provider is right");
    Setup { model, ..setup }
}

/// Runs the turns of a scenario, and returns all events of the thread.
async fn play(client: &mut Client, number: usize, doing: &str) -> Vec<Arc<Event>> {
    let turn = format!("t{number}");
    let (content, change) = match doing {
        "image" => {
            let image = UserInput::Image { image_url: "data:image/png;base64,AA==".to_owned() };
            (vec![said("What is this?"), image], SettingsChange::default())
        }
        "schema" => {
            let output_schema = Some(json!({"type": "object"}));
            (vec![said("hi")], SettingsChange { output_schema, ..SettingsChange::default() })
        }
        "other" => {
            let (model, effort) = (Some("other:mock-model".to_owned()), Some(Some(ReasoningEffort::Low)));
            (vec![said("hi")], SettingsChange { model, effort, ..SettingsChange::default() })
        }
        text => (vec![said(text)], SettingsChange::default()),
    };
    if doing == "compact" {
        client.thread.compact(TurnId::new(turn)).await.expect("the thread is open");
    } else {
        client.say_with(&turn, content, change).await;
    }
    let mut events = Vec::new();
    loop {
        events.extend(client.until(|body| matches!(body, Body::Asked(_) | Body::TurnEnded(_))).await);
        let Some(Body::Asked(question)) = events.last().map(|event| &event.body) else { return events };
        let answered = client.thread.answer(question.id.clone(), ReviewDecision::Approved.into()).await;
        assert_eq!(answered, Ok(true));
    }
}

/// The events as text, with items numbered in order instead of the ids of an API.
fn told(client: &Client, events: &[Arc<Event>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut lines = Vec::new();
    for event in events {
        if let Body::ItemStarted(item) | Body::ItemCompleted(item) = &event.body {
            let name = item.id().as_str().to_owned();
            names.extend((!names.contains(&name)).then_some(name));
        }
        lines.push(match &event.body {
            Body::Compacted(compacted) => {
                let left = compacted.replacement.iter().flatten().map(|item| item.json().into_owned());
                format!("compacted {} {:?}", compacted.summary, left.collect::<Vec<_>>())
            }
            Body::ItemStarted(Item::Command(command)) | Body::ItemCompleted(Item::Command(command)) => {
                let CommandItem { argv, status, end, .. } = &**command;
                let end = end.as_ref().map(|end| (end.exit_code, &end.aggregated));
                format!("{} {argv:?} {status:?} {end:?}", shown::event(event))
            }
            _ => shown::event(event),
        });
    }
    let plain = |line: String| {
        let rename = |line: String, (place, name): (usize, &String)| line.replace(name, &format!("item {place}"));
        without_durations(&names.iter().enumerate().fold(line, rename))
    };
    lines.into_iter().map(|line| plain(client.world.without_path(&line))).collect()
}

/// A line without durations, which differ from run to run.
fn without_durations(line: &str) -> String {
    let mut parts = line.split("duration");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find([',', '}']).unwrap_or(part.len());
        plain.push_str("duration");
        plain.push_str(&part[end..]);
    }
    plain
}

#[tokio::test]
async fn every_scenario_gives_the_same_events_over_every_api() {
    let scenarios = scenarios();
    assert_eq!(scenarios.len(), 12);
    for scenario in &scenarios {
        let mut first: Option<Vec<String>> = None;
        for wire in WIRES.into_iter().chain([WEBSOCKET]) {
            let options = Options { websockets: wire == WEBSOCKET, ..Options::default() };
            let fake = FakeModel::with(options, &scenario.script.to_string());
            let mut client = start(&fake, scenario, wire).await;
            let mut lines = Vec::new();
            for (number, doing) in scenario.turns.iter().enumerate() {
                let events = play(&mut client, number, doing).await;
                lines.extend(told(&client, &events));
            }
            assert!(lines.iter().all(|line| !line.contains("Failed")), "{} over {wire}: {lines:#?}", scenario.name);
            let bodies: Vec<Value> = fake.requests().iter().map(codex_testkit::Request::json).collect();
            if wire == WEBSOCKET {
                let first = fake.requests().swap_remove(0);
                assert_eq!(first.header("upgrade"), Some("websocket"), "{}", scenario.name);
            } else {
                check_requests(scenario.name, wire, &bodies);
            }
            match &first {
                None => first = Some(lines),
                Some(first) => assert_eq!(&lines, first, "{} over {wire}", scenario.name),
            }
        }
    }
}

/// Checks the requests that the provider received.
#[track_caller]
fn check_requests(name: &str, wire: &str, bodies: &[Value]) {
    let last = bodies.last().map(Value::to_string).unwrap_or_default();
    let wanted = match (name, wire) {
        ("image", "anthropic") => r#""data":"AA==""#,
        ("image", _) => "data:image/png;base64,AA==",
        ("schema", "responses") => r#""format":{"type":"json_schema""#,
        ("schema", "chat") => r#""response_format":{"type":"json_schema""#,
        ("schema", _) => "follows this schema",
        ("reasoning", "responses") => "encrypted_content",
        ("reasoning", "anthropic") => r#""signature":"c2ln""#,
        ("command" | "approval", "anthropic") => r#""type":"tool_result","tool_use_id":"c1""#,
        ("command" | "approval", "chat") => r#""role":"tool","tool_call_id":"c1""#,
        ("compaction", _) => "A fern.",
        _ => "",
    };
    assert!(last.contains(wanted), "{name} over {wire}: {last}");
    if name == "change of provider" {
        let other = bodies.get(1).map(Value::to_string).unwrap_or_default();
        assert!(!other.contains("c2VjcmV0") && !other.contains("c2ln"), "{name} after {wire}: {other}");
    }
}

#[tokio::test]
async fn provider_specific_data_is_stored_and_sent_only_to_its_provider() {
    let script = r#"[{"items": [{"reasoning": ["Let me think."]}, {"text": "Yes."}]}, {"items": [{"text": "Two."}]},
                     {"items": [{"text": "Three."}]}, {"items": [{"text": "Four."}]}]"#;
    for (wire, secret) in [("responses", "c2VjcmV0"), ("anthropic", "c2ln")] {
        let fake = FakeModel::start(script);
        let scenario = scenario("kept", Value::Null, &[]);
        let mut client = start(&fake, &scenario, wire).await;
        play(&mut client, 0, "hi").await;
        play(&mut client, 1, "other").await;
        let lines = client.lines();
        let thought = lines.iter().find(|line| line["payload"]["type"] == "reasoning").expect("it is kept");
        assert_eq!(thought["origin"]["provider"], "mock", "{thought}");
        assert!(thought["payload"].get("origin").is_none() && thought.to_string().contains(secret), "{thought}");
        let change = SettingsChange { model: Some("mock-model".to_owned()), ..SettingsChange::default() };
        client.say_with("t2", vec![said("back")], change).await;
        client.until_ended().await;
        let mut client = client
            .start_again("[]", |thread, setup| {
                let initial_history =
                    InitialHistory::Resumed { thread, explicit: codex_thread::ExplicitOverrides::default() };
                over_http(Setup { initial_history, ..setup })
            })
            .await;
        play(&mut client, 3, "more").await;
        let sent: Vec<bool> =
            fake.requests().iter().map(|request| String::from_utf8_lossy(&request.body).contains(secret)).collect();
        assert_eq!(sent, [false, false, true, true], "{wire}");
    }
}

/// The headers in which providers of each API report the remaining allowance.
fn limits_of(wire: &str) -> Value {
    match wire {
        "anthropic" => json!({
            "anthropic-ratelimit-requests-limit": "50", "anthropic-ratelimit-requests-remaining": "25",
            "anthropic-ratelimit-requests-reset": "2033-05-18T03:33:20Z",
        }),
        "chat" => json!({
            "x-ratelimit-limit-requests": "50", "x-ratelimit-remaining-requests": "25",
            "x-ratelimit-reset-requests": "6m0s",
        }),
        _ => json!({"x-codex-primary-used-percent": "50", "x-codex-primary-reset-at": "2000000000"}),
    }
}

#[tokio::test]
async fn only_the_responses_api_reports_limits_that_were_not_sent() {
    for wire in WIRES {
        let fake = FakeModel::start(r#"[{"items": [{"text": "Yes."}]}]"#);
        let mut client = start(&fake, &scenario("limits", json!([]), &["hi"]), wire).await;
        let events = client.turn("1", "hi").await;
        let told: Vec<bool> = events
            .iter()
            .filter_map(|event| match &event.body {
                Body::TokensCounted { rate_limits, .. } => Some(rate_limits.is_some()),
                _ => None,
            })
            .collect();
        assert_eq!(told, [wire == "responses"; 2], "{wire}");
    }
}

#[tokio::test]
async fn limits_and_token_counts_are_reported_over_each_api() {
    for wire in WIRES {
        let usage = json!({"input": 50, "cached": 20, "written": 10, "output": 10, "reasoning": 4});
        let script = json!([{"items": [{"text": "Yes."}], "headers": limits_of(wire), "usage": usage}]);
        let fake = FakeModel::start(&script.to_string());
        let priced = Scenario {
            settings: &["prices.mock-model={input=2,cached=0.5,cache_write=4,output=10}"],
            ..scenario("limits", json!([]), &["hi"])
        };
        let mut client = start(&fake, &priced, wire).await;
        let events = client.turn("1", "hi").await;
        let counted = events.iter().rev().find_map(|event| match &event.body {
            Body::TokensCounted { info: Some(info), rate_limits } => Some((info.clone(), rate_limits.clone())),
            _ => None,
        });
        let (info, limits) = counted.expect("tokens were counted");
        let expected = TokenUsage {
            input_tokens: 50,
            cached_input_tokens: 20,
            cache_write_input_tokens: 10,
            output_tokens: 10,
            reasoning_output_tokens: 4,
            total_tokens: 60,
        };
        assert_eq!(info.total_token_usage, expected, "{wire}");
        // 20 tokens of input for 2, 20 cached ones for 0.5, 10 written ones for 4, and 10 of output for 10, each a million.
        let cost = info.turn_cost.expect("the model has a price");
        assert!((cost - 0.000_19).abs() < 1e-12, "{wire}: {cost}");
        let primary = limits.and_then(|limits| limits.primary).expect("the limit is told");
        assert!((primary.used_percent - 50.0).abs() < 1e-9, "{wire}: {primary:?}");
        assert!(primary.resets_at.is_some_and(|at| at > 1_700_000_000), "{wire}: {primary:?}");
    }
}

#[tokio::test]
async fn an_exhausted_allowance_has_a_reset_time_over_each_api() {
    for wire in WIRES {
        let error = json!({"type": "error", "error": {"type": "rate_limit_error", "message": "too much"}});
        let script = json!([{"status": 429, "headers": {"retry-after": "7200"}, "body": error}]);
        let fake = FakeModel::start(&script.to_string());
        let mut client = start(&fake, &scenario("limits", json!([]), &["hi"]), wire).await;
        let Outcome::Failed(failure) = outcome(&client.turn("1", "hi").await) else { panic!("the turn has failed") };
        assert_eq!(failure.message, "usage limit reached: too much; it resets in 2 h", "{wire}");
        assert_eq!(fake.requests().len(), 1, "{wire}: asking again helps nobody");
    }
}
