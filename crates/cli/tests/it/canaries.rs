//! Keys and tokens appear in no output, log, error, rollout or diagnostics, even if the provider repeats them.

use codex_testkit::FakeModel;
use serde_json::{Value, json};

use crate::login::{app_server, call, everything_below, told};
use crate::program::{Place, Run};

const KEY: &str = "sk-canary-0123456789abcdef";
const TOKEN: &str = "canary-access-token-0123456789";
const REFRESH: &str = "canary-refresh-token-0123456789";

/// Names an issuer that cannot be reached, so renewing and revoking fail with their own errors.
const ID_TOKEN: &str = "e30.eyJpc3MiOiJodHRwOi8vMTI3LjAuMC4xOjEiLCJhdWQiOiJtaW5lIn0.s";

/// The provider refuses requests and repeats the secret, then has a command print all variables.
fn script(secret: &str) -> String {
    let message = format!("Incorrect API key provided: {secret}. It was Bearer {secret}");
    let refusal = |status: u16| json!({"status": status, "body": {"error": {"message": message}}});
    let env = json!({"call": "shell", "args": {"command": ["/bin/sh", "-c", "env; cat /proc/self/environ"]}});
    json!([refusal(401), refusal(400), refusal(500), refusal(429), {"items": [env]}, {"items": [{"text": "done"}]}])
        .to_string()
}

/// Runs everything that could show a secret, and returns all output.
fn everything(place: &Place, fails: usize) -> String {
    let exec = ["exec", "--skip-git-repo-check", "hello"];
    let forms: [&[&str]; 4] = [&[], &["--json"], &["-v"], &["--json"]];
    let mut runs: Vec<Run> = forms[..fails].iter().map(|form| place.run(&[&exec[..], form].concat(), "")).collect();
    assert!(runs.iter().all(|run| run.code == Some(1)), "each of them was refused");
    let mut server = app_server(place);
    let mut said = call(&mut server, "getAuthStatus", json!({})).to_string();
    said += &call(&mut server, "account/read", json!({})).to_string();
    let thread = call(&mut server, "thread/start", json!({}))["thread"]["id"].clone();
    let input = json!([{"type": "text", "text": "hello"}]);
    call(&mut server, "turn/start", json!({"threadId": thread, "input": input}));
    let ended = told(&mut server, "turn/completed");
    assert_eq!(ended["params"]["turn"]["status"], "completed", "{ended}");
    said += &call(&mut server, "thread/read", json!({"threadId": thread, "includeTurns": true})).to_string();
    runs.push(server.finish());
    let others: [&[&str]; 5] =
        [&["login", "status"], &["doctor"], &["doctor", "--json"], &["debug", "prompt", "hello"], &["logout"]];
    runs.extend(others.iter().map(|args| place.run(args, "")));
    said += &runs.iter().flat_map(|run| [run.stdout.as_str(), run.stderr.as_str()]).collect::<String>();
    said + &everything_below(&place.path("home"))
}

fn place(config: &str) -> Place {
    let place = Place::new();
    let log = place.path("home/diagnostics.log").display().to_string();
    let config = format!("approval_policy = 'never'\nsandbox_mode = 'danger-full-access'\n{config}");
    place.file("home/config.toml", &config).variable("RUST_LOG", "trace").variable("CODEX_LOG_FILE", &log)
}

#[track_caller]
fn check(place: &Place, model: &FakeModel, fails: usize, sent: &str, secrets: &[&str]) {
    let shown = everything(place, fails);
    let carries = |request: &codex_testkit::Request| request.header("authorization") == Some(&format!("Bearer {sent}"));
    assert!(model.requests().iter().all(carries), "the secret was sent");
    assert!(shown.contains("Incorrect API key provided: [key]"), "the refusal is shown without it: {shown}");
    assert!(shown.contains("CANARY_WAS_HERE=1"), "the command has printed its variables");
    assert!(place.path("home/diagnostics.log").exists(), "there were diagnostics");
    for secret in secrets {
        let at = shown.find(secret);
        assert!(at.is_none(), "{secret} in: {}", &shown[at.unwrap_or(0).saturating_sub(300)..][..400]);
    }
}

#[test]
fn a_key_is_shown_nowhere() {
    let model = FakeModel::start(&script(KEY));
    let config = format!(
        "model_provider = 'mine'\n[model_providers.mine]\nname = 'Mine'\nbase_url = '{}/v1'\nenv_key = 'MINE_KEY'\n\
         request_max_retries = 0\nstream_max_retries = 0\n",
        model.url()
    );
    let place = place(&config).variable("MINE_KEY", KEY).variable("CANARY_WAS_HERE", "1");
    check(&place, &model, 4, KEY, &[KEY]);
}

#[test]
fn a_token_is_shown_nowhere() {
    let model = FakeModel::start(&script(TOKEN));
    let config = format!(
        "model_provider = 'mine'\nchatgpt_base_url = '{0}'\n[model_providers.mine]\nname = 'Mine'\nbase_url = '{0}/v1'\n\
         requires_openai_auth = true\nrequest_max_retries = 0\nstream_max_retries = 0\n",
        model.url()
    );
    let tokens = json!({"id_token": ID_TOKEN, "access_token": TOKEN, "refresh_token": REFRESH, "account_id": "acct"});
    let auth: Value = json!({"OPENAI_API_KEY": null, "tokens": tokens, "last_refresh": "2030-01-01T00:00:00Z"});
    let place = place(&config).file("home/auth.json", &auth.to_string()).variable("CANARY_WAS_HERE", "1");
    check(&place, &model, 4, TOKEN, &[TOKEN, REFRESH]);
}
