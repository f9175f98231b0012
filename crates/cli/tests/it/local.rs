//! Model servers on this machine: `--oss`, `--local-provider`, `oss_provider`, and the list of models.

use std::net::TcpListener;

use codex_testkit::FakeModel;
use serde_json::{Value, json};

use crate::program::{Place, Run};

const HELLO: &str = r#"[{"items": [{"text": "hello"}], "repeat": true}]"#;

/// A place where local servers are at this address.
fn place(model: &FakeModel) -> Place {
    Place::new().variable("CODEX_OSS_BASE_URL", &format!("{}/v1", model.url()))
}

fn exec(place: &Place, options: &[&str]) -> Run {
    let words: Vec<&str> = ["exec", "--skip-git-repo-check"].iter().chain(options).copied().chain(["hi"]).collect();
    place.run(&words, "")
}

/// The path and the model of each request.
fn asked(model: &FakeModel) -> Vec<(String, Value)> {
    model.requests().into_iter().map(|request| (request.path.clone(), request.json()["model"].clone())).collect()
}

#[test]
fn a_server_that_answers_is_used_with_a_model_that_it_has() {
    let model = FakeModel::start(HELLO).listing(&["nomic-embed-text", "tiny:1b", "other:2b"]);
    let run = exec(&place(&model), &["--oss"]);
    assert_eq!((run.code, run.stdout.trim()), (Some(0), "hello"), "{}", run.stderr);
    assert_eq!(asked(&model), [("/v1/models".into(), Value::Null), ("/v1/responses".into(), json!("tiny:1b"))]);
    let usual = FakeModel::start(HELLO).listing(&["tiny:1b", "gpt-oss:20b"]);
    assert_eq!(exec(&place(&usual), &["--oss"]).code, Some(0));
    assert_eq!(asked(&usual)[1].1, "gpt-oss:20b");
}

#[test]
fn servers_are_named_on_the_command_line_or_in_the_file() {
    for (options, file, path) in [
        (&["--local-provider", "llamacpp"][..], "", "/v1/chat/completions"),
        (&["--local-provider", "vllm"], "oss_provider = 'ollama'", "/v1/chat/completions"),
        (&["--oss"], "oss_provider = 'vllm'", "/v1/chat/completions"),
        (&["--oss"], "oss_provider = 'lmstudio'", "/v1/responses"),
    ] {
        let model = FakeModel::start(HELLO).listing(&["tiny"]);
        let run = exec(&place(&model).file("home/config.toml", file), options);
        assert_eq!((run.code, run.stderr.contains("warning")), (Some(0), false), "{options:?}: {}", run.stderr);
        assert_eq!(asked(&model)[1], (path.into(), json!("tiny")), "{options:?} {file}");
    }
}

#[test]
fn ollama_downloads_a_model_that_it_lacks() {
    let model = FakeModel::start(HELLO).listing(&["tiny:latest"]);
    let run = exec(&place(&model), &["--oss", "-m", "new:1b"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("downloading new:1b: 50 % of 4.0 kB\ndownloading new:1b: 100 %"), "{}", run.stderr);
    let paths: Vec<String> = asked(&model).into_iter().map(|(path, name)| format!("{path} {name}")).collect();
    assert_eq!(paths, ["/v1/models null", "/api/pull \"new:1b\"", "/v1/responses \"new:1b\""]);

    let run = exec(&place(&model), &["--oss", "-m", "tiny"]);
    assert_eq!((run.code, run.stderr.contains("downloading")), (Some(0), false), "{}", run.stderr);

    let run = exec(&place(&model), &["--oss", "-m", "missing"]);
    let error =
        "error: missing is not installed: Ollama could not get missing: pull model manifest: file does not exist";
    assert!(run.code == Some(1) && run.stderr.contains(error), "{}", run.stderr);
}

#[test]
fn without_a_server_one_line_shows_how_to_start_one() {
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its number").port();
    let place = Place::new().variable("CODEX_OSS_PORT", &port.to_string());
    let run = exec(&place, &["--oss"]);
    let expected = "error: no local model server answers; start one, for example with `ollama serve`\n";
    assert_eq!((run.code, run.stderr.as_str()), (Some(1), expected));
    for (server, name, command) in [
        ("ollama", "Ollama", "ollama serve"),
        ("lmstudio", "LM Studio", "lms server start"),
        ("llamacpp", "llama.cpp", "llama-server --jinja -m MODEL.gguf"),
        ("vllm", "vLLM", "vllm serve MODEL"),
    ] {
        let run = exec(&place, &["--local-provider", server]);
        let expected =
            format!("error: {name} does not answer at http://localhost:{port}/v1; start it with `{command}`\n");
        assert_eq!((run.code, run.stderr), (Some(1), expected));
    }
}

#[test]
fn a_server_without_models_is_reported() {
    let model = FakeModel::start(HELLO).listing(&[]);
    let run = exec(&place(&model), &["--local-provider", "lmstudio"]);
    assert_eq!(run.stderr, "error: LM Studio has no model; load one there, or name it with --model\n");
}

#[test]
fn the_list_of_models_includes_those_of_the_provider_and_asks_it_once() {
    let model = FakeModel::start("[]").listing(&["tiny:1b", "gpt-5.1-codex"]);
    let config = format!(
        "model = 'mine'\nmodel_provider = 'local'\n[model_providers.local]\nname = 'Local'\nbase_url = '{}/v1'\n",
        model.url()
    );
    let place = Place::new().file("home/config.toml", &config);
    let lines = [
        json!({"id": 0, "method": "initialize", "params": {"clientInfo": {"name": "t", "version": "1"}}}),
        json!({"method": "initialized"}),
        json!({"id": 1, "method": "model/list", "params": {}}),
        json!({"id": 2, "method": "model/list", "params": {}}),
    ];
    let run = place.run(&["app-server"], &lines.map(|line| format!("{line}\n")).concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    for id in [1, 2] {
        let answers = run.stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line is JSON"));
        let answer = answers.into_iter().find(|line| line["id"] == id).expect("it is answered");
        let models = answer["result"]["data"].as_array().expect("there is a list").clone();
        let names: Vec<&str> = models.iter().filter_map(|model| model["id"].as_str()).collect();
        assert_eq!(names, ["mine", "gpt-5.1-codex", "gpt-5.1-codex-mini", "tiny:1b"]);
        assert_eq!(models[3]["description"], "Listed by Local.");
    }
    assert_eq!(asked(&model), [("/v1/models".into(), Value::Null)]);
}
