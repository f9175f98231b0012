//! Methods of 2025 that are not about conversations: login, configuration, searches, client commands.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use crate::app_client::AppClient;

const OPENAI: &str = "model_provider = 'openai'\n";

#[tokio::test]
async fn a_login_is_reported_with_its_key_only_to_those_who_ask_for_it() {
    let mut client = AppClient::start(OPENAI).await;
    let nobody = json!({"authMethod": null, "authToken": null, "requiresOpenaiAuth": true});
    assert_eq!(client.ok("getAuthStatus", json!({"includeToken": true, "refreshToken": false})).await, nobody);
    client.ok("loginApiKey", json!({"api_key": "sk-test-key"})).await;
    client.next_notification("authStatusChange").await;
    for (params, token) in [
        (json!({"includeToken": true}), json!("sk-test-key")),
        (json!({"include_token": true, "refresh_token": true}), json!("sk-test-key")),
        (json!({"includeToken": false}), json!(null)),
        (json!({}), json!(null)),
    ] {
        let status = client.ok("getAuthStatus", params).await;
        assert_eq!(status, json!({"authMethod": "apikey", "authToken": token, "requiresOpenaiAuth": true}));
    }
    client.ok("logoutChatGpt", json!(null)).await;
    assert!(!client.home("auth.json").exists());
    assert_eq!(client.next_notification("authStatusChange").await, json!({"authMethod": null}));
    client.end().await;
}

#[tokio::test]
async fn a_provider_that_needs_no_login_has_none_though_a_key_is_stored() {
    let config = "model_provider = 'mine'\n[model_providers.mine]\nname = 'Mine'\nwire_api = 'responses'\n\
                  base_url = 'http://127.0.0.1:1/v1'\nrequires_openai_auth = false\n";
    let mut client = AppClient::start(config).await;
    client.ok("loginApiKey", json!({"apiKey": "sk-test-key"})).await;
    client.next_notification("authStatusChange").await;
    let status = client.ok("getAuthStatus", json!({"includeToken": true})).await;
    assert_eq!(status, json!({"authMethod": null, "authToken": null, "requiresOpenaiAuth": false}));
    client.end().await;
}

#[tokio::test]
async fn a_login_that_is_not_allowed_is_refused() {
    let mut client = AppClient::start(&format!("{OPENAI}forced_login_method = 'chatgpt'\n")).await;
    let (code, message) = client.refused("loginApiKey", json!({"apiKey": "sk-test-key"})).await;
    assert!(code == -32600 && message.contains("Use ChatGPT login instead."), "{message}");
    assert!(!client.home("auth.json").exists());
    let (code, message) = client.refused("cancelLoginChatGpt", json!({"login_id": "x"})).await;
    assert_eq!((code, message.as_str()), (-32600, "login id not found: x"));
    client.end().await;
    let mut client = AppClient::start(&format!("{OPENAI}forced_login_method = 'api'\n")).await;
    let (code, message) = client.refused("loginChatGpt", json!(null)).await;
    assert!(code == -32600 && message.contains("Use API key login instead."), "{message}");
    client.end().await;
}

#[tokio::test]
async fn the_user_comes_from_the_login() {
    let mut client = AppClient::start(OPENAI).await;
    let token = format!("e30.{}.sig", URL_SAFE_NO_PAD.encode(r#"{"email":"user@example.com"}"#));
    let login = json!({"tokens": {"id_token": token, "access_token": "a", "refresh_token": "r"}});
    std::fs::write(client.home("auth.json"), login.to_string()).expect("a file can be written");
    assert_eq!(client.ok("userInfo", json!(null)).await, json!({"allegedUserEmail": "user@example.com"}));
    let agent = client.ok("getUserAgent", json!(null)).await;
    let agent = agent["userAgent"].as_str().expect("a text");
    let version = env!("CARGO_PKG_VERSION");
    let begins = agent.starts_with(&format!("codex_cli_rs/{version} ("));
    let ends = agent.ends_with(&format!("; {}) dumb (test; 1)", std::env::consts::ARCH));
    assert!(begins && ends, "{agent}");
    client.end().await;
}

#[tokio::test]
async fn the_saved_configuration_is_reported_in_full() {
    let file = r#"
        model = "m"
        approval_policy = "on-request"
        sandbox_mode = "workspace-write"
        model_reasoning_summary = "detailed"
        model_reasoning_effort = "high"
        model_verbosity = "medium"
        profile = "test"
        forced_chatgpt_workspace_id = "12345678-0000-0000-0000-000000000000"
        forced_login_method = "chatgpt"
        model_provider = "openai"
        [sandbox_workspace_write]
        writable_roots = ["/tmp"]
        network_access = true
        exclude_tmpdir_env_var = true
        exclude_slash_tmp = true
        [tools]
        web_search = false
        view_image = true
        [profiles.test]
        model = "n"
        approval_policy = "on-request"
        model_reasoning_effort = "high"
        model_reasoning_summary = "detailed"
        model_verbosity = "medium"
        model_provider = "openai"
        chatgpt_base_url = "https://example.com"
    "#;
    let mut client = AppClient::start(file).await;
    let expected = json!({
        "approvalPolicy": "on-request", "sandboxMode": "workspace-write",
        "sandboxSettings": {
            "writableRoots": ["/tmp"], "networkAccess": true, "excludeTmpdirEnvVar": true, "excludeSlashTmp": true,
        },
        "forcedChatgptWorkspaceId": "12345678-0000-0000-0000-000000000000", "forcedLoginMethod": "chatgpt",
        "model": "m", "modelReasoningEffort": "high", "modelReasoningSummary": "detailed", "modelVerbosity": "medium",
        "tools": {"webSearch": false, "viewImage": true}, "profile": "test",
        "profiles": {"test": {
            "model": "n", "modelProvider": "openai", "approvalPolicy": "on-request", "modelReasoningEffort": "high",
            "modelReasoningSummary": "detailed", "modelVerbosity": "medium", "chatgptBaseUrl": "https://example.com",
        }},
    });
    assert_eq!(client.ok("getUserSavedConfig", json!(null)).await["config"], expected);
    std::fs::write(client.home("config.toml"), "").expect("a file can be written");
    let empty = client.ok("getUserSavedConfig", json!(null)).await["config"].take();
    for (name, value) in empty.as_object().expect("an object") {
        assert!(value.is_null() || (name == "profiles" && *value == json!({})), "{name}: {value}");
    }
    // The client is warned about settings that have no effect.
    client.end_unread().await;
}

#[tokio::test]
async fn the_default_model_is_written_to_the_file() {
    let mut client = AppClient::start(OPENAI).await;
    client.ok("setDefaultModel", json!({"model": "m", "reasoning_effort": "low"})).await;
    let file = std::fs::read_to_string(client.home("config.toml")).expect("it is there");
    assert!(file.contains("model = \"m\"") && file.contains("model_reasoning_effort = \"low\""), "{file}");
    client.end().await;
}

#[tokio::test]
async fn files_are_found_the_best_first() {
    let mut client = AppClient::start("").await;
    std::fs::create_dir(client.work("sub")).expect("a folder can be made");
    for name in ["abc", "abcde", "sub/abce", "abexy", "zzz.txt"] {
        std::fs::write(client.work(name), "x").expect("a file can be written");
    }
    let root = client.work(".").canonicalize().expect("it exists");
    for token in [json!(null), json!("t")] {
        let params = json!({"query": "abe", "roots": [root], "cancellation_token": token});
        let found = client.ok("fuzzyFileSearch", params).await["files"].take();
        let found = found.as_array().expect("a list");
        let paths: Vec<_> = found.iter().map(|file| file["path"].as_str().expect("a path")).collect();
        assert_eq!(paths, ["abexy", "abcde", "sub/abce"]);
        assert_eq!((&found[0]["file_name"], &found[0]["root"]), (&json!("abexy"), &json!(root)));
        assert_eq!((&found[0]["indices"], &found[2]["indices"]), (&json!([0, 1, 2]), &json!([4, 5, 7])));
        let scores: Vec<_> = found.iter().map(|file| file["score"].as_u64().expect("a number")).collect();
        assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    }
    client.end().await;
}

#[tokio::test]
async fn a_command_of_the_clients_own_is_understood_in_both_spellings() {
    let mut client = AppClient::start("sandbox_mode = 'read-only'\n").await;
    for (policy, timeout) in [("sandboxPolicy", "timeoutMs"), ("sandbox_policy", "timeout_ms")] {
        let params = json!({
            "command": ["sh", "-c", "echo out; echo err >&2; exit 3"], "cwd": client.work(""), timeout: 30_000,
            policy: {"mode": "workspace-write", "network_access": false},
        });
        let answer = client.ok("execOneOffCommand", params).await;
        assert_eq!(answer, json!({"exitCode": 3, "stdout": "out\n", "stderr": "err\n"}));
    }
    client.end().await;
}
