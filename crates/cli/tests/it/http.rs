//! A turn over real HTTP.

use codex_testkit::FakeModel;
use expect_test::expect;
use serde_json::Value;

use crate::program::{Place, say};

/// A home whose provider is the fake model.
fn place(model: &FakeModel) -> Place {
    let config = format!(
        r#"
        model = "qwen3-coder"
        model_provider = "local"

        [model_providers.local]
        name = "My server"
        base_url = "{}/v1"
        env_key = "MY_SERVER_KEY"
        http_headers = {{ "x-team" = "tools" }}
        env_http_headers = {{ "x-trace" = "TRACE_ID", "x-unset" = "NOT_SET" }}
        query_params = {{ "api-version" = "2026-01-01" }}
        "#,
        model.url()
    );
    Place::new().file("home/config.toml", &config).variable("TRACE_ID", "t-1")
}

#[test]
fn a_turn_over_http_sends_what_the_provider_asks_for() {
    let model = FakeModel::start(r#"[{"items": [{"text": "over the wire", "deltas": ["over ", "the wire"]}]}]"#);
    let place = place(&model).variable("MY_SERVER_KEY", "sk-secret");
    let run = place.run(&["proto"], &say("1", "hi"));
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    expect![[r#"
        "" session_configured
        "1" task_started
        "1" user_message
        "1" token_count
        "1" agent_message_delta
        "1" agent_message_delta
        "1" agent_message
        "1" token_count
        "1" task_complete
    "#]]
    .assert_eq(&run.kinds());
    assert_eq!(run.events().last().unwrap()["msg"]["last_agent_message"], "over the wire");

    let requests = model.requests();
    assert_eq!(requests.len(), 1);
    let request = &requests[0];
    assert_eq!(request.path, "/v1/responses?api-version=2026-01-01");
    let headers = [
        ("authorization", Some("Bearer sk-secret")),
        ("content-type", Some("application/json")),
        ("accept", Some("text/event-stream")),
        ("originator", Some("codex_cli_rs")),
        ("x-team", Some("tools")),
        ("x-trace", Some("t-1")),
        ("x-unset", None),
    ];
    for (name, value) in headers {
        assert_eq!(request.header(name), value, "{name}");
    }
    assert!(request.header("user-agent").unwrap().starts_with("codex_cli_rs/0.200.0 ("));

    let thread = &run.events()[0]["msg"]["session_id"];
    let body = request.json();
    assert_eq!(body["prompt_cache_key"], *thread);
    assert_eq!((&body["model"], &body["stream"], &body["store"]), (&"qwen3-coder".into(), &true.into(), &false.into()));
    assert!(body["instructions"].as_str().unwrap().starts_with("You are Codex"));
    let input = body["input"].as_array().unwrap();
    let said =
        serde_json::json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]});
    assert_eq!(input.last(), Some(&said));
    assert!(body["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "update_plan"));
}

#[test]
fn the_key_is_written_nowhere() {
    let model = FakeModel::start(r#"[{"items": [{"text": "ok"}]}]"#);
    let place = place(&model).variable("MY_SERVER_KEY", "sk-secret");
    let run = place.run(&["proto"], &say("1", "hi"));
    let rollout = run.events()[0]["msg"]["rollout_path"].as_str().unwrap().to_owned();
    let saved = std::fs::read_to_string(rollout).unwrap();
    assert!(!format!("{}{}{saved}", run.stdout, run.stderr).contains("sk-secret"));
}

#[test]
fn a_refused_key_ends_the_turn_with_an_error() {
    let model = FakeModel::start(r#"[{"status": 401, "body": {"error": {"message": "wrong key"}}}]"#);
    let run = place(&model).variable("MY_SERVER_KEY", "sk-secret").run(&["proto"], &say("1", "hi"));
    let events = run.events();
    let error: &Value = &events.iter().find(|event| event["msg"]["type"] == "error").unwrap()["msg"];
    expect![[r#"
        not authorized, status 401 Unauthorized: wrong key
        Check the API key, or log in again."#]]
    .assert_eq(error["message"].as_str().unwrap());
    assert_eq!(model.requests().len(), 1);
}

#[test]
fn a_key_that_is_not_set_is_named_and_nothing_is_sent() {
    let model = FakeModel::start("[]");
    let run = place(&model).run(&["proto"], &say("1", "hi"));
    let events = run.events();
    let error: &Value = &events.iter().find(|event| event["msg"]["type"] == "error").unwrap()["msg"];
    expect!["My server needs a key in the variable MY_SERVER_KEY, which is not set; set MY_SERVER_KEY to your key"]
        .assert_eq(error["message"].as_str().unwrap());
    assert_eq!(model.connections(), 0);
}

/// A new login during a turn is used by its next request.
#[test]
fn a_login_that_changes_is_used_by_the_next_request() {
    let call = r#"{"call": "shell", "args": {"command": ["sh", "-c", "mv ../home/next.json ../home/auth.json"]}}"#;
    let model = FakeModel::start(&format!(r#"[{{"items": [{call}]}}, {{"items": [{{"text": "Done."}}]}}]"#));
    let config = format!("openai_base_url = '{}/v1'\nsandbox_mode = 'danger-full-access'\n", model.url());
    let place = Place::new()
        .file("home/config.toml", &config)
        .file("home/auth.json", r#"{"OPENAI_API_KEY": "sk-before"}"#)
        .file("home/next.json", r#"{"OPENAI_API_KEY": "sk-later"}"#);
    let run = crate::exec::exec(&place, &["go"], "");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "Done.\n"), "{}", run.stderr);
    let keys: Vec<_> = model.requests().iter().map(|it| it.header("authorization").map(str::to_owned)).collect();
    assert_eq!(keys, [Some("Bearer sk-before".to_owned()), Some("Bearer sk-later".to_owned())]);
}

/// Diagnostics are for troubleshooting, so they include retries, and never keys.
#[test]
fn diagnostics_show_retries_on_request() {
    let script = r#"[{"status": 503}, {"items": [{"text": "ok"}]}]"#;
    let run = |log: Option<&str>, file: Option<&str>| {
        let model = FakeModel::start(script);
        let mut place = place(&model).variable("MY_SERVER_KEY", "sk-secret");
        if let Some(log) = log {
            place = place.variable("RUST_LOG", log);
        }
        let path = file.map(|file| place.path(file));
        if let Some(path) = &path {
            place = place.variable("CODEX_LOG_FILE", &path.display().to_string());
        }
        let run = place.run(&["proto"], &say("1", "hi"));
        (run.code, run.stderr, path.and_then(|path| std::fs::read_to_string(path).ok()))
    };
    assert_eq!(run(None, Some("tmp/log")), (Some(0), String::new(), None));
    let (code, stderr, _) = run(Some("trace"), None);
    assert_eq!(code, Some(0));
    assert!(stderr.contains("DEBUG codex_model::retry: the request is sent again retry=1 most=4"), "{stderr}");
    assert!(!stderr.contains("sk-secret") && stderr.lines().all(|line| line.contains(" codex_")), "{stderr}");
    let (_, stderr, written) = run(Some("codex_model=debug"), Some("tmp/log"));
    assert_eq!(stderr, "");
    assert!(written.is_some_and(|text| text.contains("the request is sent again")));
    let (code, stderr, _) = run(Some("codex=loud"), None);
    assert_eq!((code, stderr.contains("RUST_LOG cannot be understood")), (Some(1), true), "{stderr}");
}

/// A provider on a host that does not exist, so that only a proxy can answer for it.
fn far_away(scheme: &str) -> Place {
    let config = format!(
        "model_provider = 'far'\n[model_providers.far]\nbase_url = '{scheme}://model.invalid/v1'\n\
         request_max_retries = 0\nstream_max_retries = 0\n"
    );
    Place::new().file("home/config.toml", &config)
}

#[test]
fn requests_take_the_proxy_of_the_environment_unless_the_host_is_excepted() {
    let proxy = FakeModel::start(r#"[{"items": [{"text": "by proxy"}], "repeat": true}]"#);
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
        let run = far_away("http").variable(name, &proxy.url()).run(&["proto"], &say("1", "hi"));
        assert_eq!(run.events().last().unwrap()["msg"]["last_agent_message"], "by proxy", "{name}: {}", run.stdout);
    }
    let paths: Vec<String> = proxy.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["http://model.invalid/v1/responses"; 3]);
    let place = far_away("http").variable("HTTP_PROXY", &proxy.url()).variable("NO_PROXY", "model.invalid");
    let run = place.run(&["proto"], &say("1", "hi"));
    assert!(run.stdout.contains("could not get an answer from model.invalid:80"), "{}", run.stdout);
    assert_eq!(proxy.requests().len(), 3);
}

#[test]
fn tls_goes_through_a_tunnel_of_the_proxy() {
    use std::io::{BufRead, BufReader, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("its address"));
    let asked = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("a client comes");
        let mut line = String::new();
        BufReader::new(&client).read_line(&mut line).expect("it asks");
        client.write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n").expect("it listens");
        line
    });
    let run = far_away("https").variable("HTTPS_PROXY", &url).run(&["proto"], &say("1", "hi"));
    assert!(run.stdout.contains("could not get an answer from model.invalid:443"), "{}", run.stdout);
    assert_eq!(asked.join().expect("the proxy is asked"), "CONNECT model.invalid:443 HTTP/1.1\r\n");
}
