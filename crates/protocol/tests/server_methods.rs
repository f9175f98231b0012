//! Messages about configuration, account, models, skills, files and commands: every recorded one decodes, and our
//! encoding contains all its members.
//!
//! `samples/server-*.jsonl` contains them, one per line: the method, and its `params`, `result` or `notification`.

#![expect(clippy::unwrap_used, reason = "the lint takes only the tests themselves for tests, not what they call")]

use codex_protocol::v1::{auth, git, saved_config, user};
use codex_protocol::v2::{
    account, command_exec, config, empty::Empty, features, feedback, fs, hidden::Hidden, mcp_status, model, search,
    skills,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// Members that only 0.166 writes and that these tests do not cover.
const NOT_KEPT: &[&str] = &["multiAgentVersion", "serverCapabilities"];

/// Decodes a message, encodes it and decodes it again.
#[track_caller]
fn again<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(message: &Value) -> Value {
    let decoded: T = serde_json::from_value(message.clone()).unwrap_or_else(|error| panic!("{error}: {message}"));
    let text = serde_json::to_string(&decoded).unwrap();
    assert_eq!(serde_json::from_str::<T>(&text).unwrap(), decoded, "{text}");
    serde_json::from_str(&text).unwrap()
}

fn respell(method: &str, kind: &str, message: &Value) -> Option<Value> {
    Some(match (method, kind) {
        ("config/read", "params") => again::<config::ConfigReadParams>(message),
        ("config/read", "result") => again::<config::ConfigReadResponse>(message),
        ("config/value/write", "params") => again::<config::ConfigValueWriteParams>(message),
        ("config/batchWrite", "params") => again::<config::ConfigBatchWriteParams>(message),
        ("config/value/write" | "config/batchWrite", "result") => again::<config::ConfigWriteResponse>(message),
        ("configRequirements/read", "result") => again::<config::ConfigRequirementsReadResponse>(message),
        ("account/read", "params") => again::<account::GetAccountParams>(message),
        ("account/read", "result") => again::<account::GetAccountResponse>(message),
        ("account/login/start", "params") => again::<account::LoginAccountParams>(message),
        ("account/login/start", "result") => again::<account::LoginAccountResponse>(message),
        ("account/login/completed", _) => again::<account::AccountLoginCompletedNotification>(message),
        ("account/updated", _) => again::<account::AccountUpdatedNotification>(message),
        ("account/rateLimits/updated", _) => again::<account::AccountRateLimitsUpdatedNotification>(message),
        ("account/logout" | "loginApiKey" | "setDefaultModel", "result") => again::<Empty>(message),
        ("collaborationMode/list", "params") => again::<Empty>(message),
        ("model/list", "params") => again::<model::ModelListParams>(message),
        ("model/list", "result") => again::<model::ModelListResponse>(message),
        ("skills/list", "params") => again::<skills::SkillsListParams>(message),
        ("skills/list", "result") => again::<skills::SkillsListResponse>(message),
        ("fuzzyFileSearch", "params") => again::<search::FuzzyFileSearchParams>(message),
        ("fuzzyFileSearch", "result") => again::<search::FuzzyFileSearchResponse>(message),
        ("command/exec", "params") => again::<command_exec::CommandExecParams>(message),
        ("command/exec", "result") => again::<command_exec::CommandExecResponse>(message),
        ("fs/readFile", "params") => again::<fs::FsReadFileParams>(message),
        ("fs/readFile", "result") => again::<fs::FsReadFileResponse>(message),
        ("fs/readDirectory", "params") => again::<fs::FsReadDirectoryParams>(message),
        ("fs/readDirectory", "result") => again::<fs::FsReadDirectoryResponse>(message),
        ("fs/getMetadata", "params") => again::<fs::FsGetMetadataParams>(message),
        ("fs/getMetadata", "result") => again::<fs::FsGetMetadataResponse>(message),
        ("experimentalFeature/list", "params") => again::<features::ExperimentalFeatureListParams>(message),
        ("experimentalFeature/list", "result") => again::<features::ExperimentalFeatureListResponse>(message),
        ("collaborationMode/list", "result") => again::<features::CollaborationModeListResponse>(message),
        ("mcpServerStatus/list", "params") => again::<mcp_status::ListMcpServerStatusParams>(message),
        ("mcpServerStatus/list", "result") => again::<mcp_status::ListMcpServerStatusResponse>(message),
        (method, kind) => return respell_v1(method, kind, message),
    })
}

fn respell_v1(method: &str, kind: &str, message: &Value) -> Option<Value> {
    Some(match (method, kind) {
        ("getAuthStatus", "params") => again::<auth::GetAuthStatusParams>(message),
        ("getAuthStatus", "result") => again::<auth::GetAuthStatusResponse>(message),
        ("loginApiKey", "params") => again::<auth::LoginApiKeyParams>(message),
        ("authStatusChange", _) => again::<auth::AuthStatusChangeNotification>(message),
        ("getUserSavedConfig", "result") => again::<saved_config::GetUserSavedConfigResponse>(message),
        ("setDefaultModel", "params") => again::<saved_config::SetDefaultModelParams>(message),
        ("gitDiffToRemote", "params") => again::<git::GitDiffToRemoteParams>(message),
        ("gitDiffToRemote", "result") => again::<git::GitDiffToRemoteResponse>(message),
        ("userInfo", "result") => again::<user::UserInfoResponse>(message),
        _ => return None,
    })
}

/// Checks that everything in the recording is encoded too, except `null`.
#[track_caller]
fn check_says_all(recorded: &Value, written: &Value, at: &str) {
    match (recorded, written) {
        (Value::Object(recorded), Value::Object(written)) => {
            for (name, value) in recorded.iter().filter(|(name, _)| !NOT_KEPT.contains(&name.as_str())) {
                let found = written.get(name).unwrap_or(&Value::Null);
                check_says_all(value, found, &format!("{at}.{name}"));
            }
        }
        (Value::Array(recorded), Value::Array(written)) if recorded.len() == written.len() => {
            recorded.iter().zip(written).for_each(|(recorded, written)| check_says_all(recorded, written, at));
        }
        _ => assert_eq!(recorded, written, "{at}"),
    }
}

#[test]
fn recorded_messages_are_read_and_written() {
    for sample in ["server-77.jsonl", "server-166.jsonl"] {
        let path = format!("{}/tests/samples/{sample}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.lines().count() > 40, "{sample} is too short");
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let method = line["method"].as_str().unwrap();
            let (kind, message) = line.as_object().unwrap().iter().find(|(name, _)| *name != "method").unwrap();
            let written = respell(method, kind, message).unwrap_or_else(|| panic!("{method} {kind} has no type"));
            check_says_all(message, &written, &format!("{sample} {method} {kind}"));
        }
    }
}

/// Decodes a text and shows our encoding.
#[track_caller]
fn check<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(message: Value, written: Value) {
    assert_eq!(again::<T>(&message), written);
}

#[test]
fn null_is_the_same_as_absent_and_unknown_members_are_ignored() {
    check::<config::ConfigReadParams>(
        json!({"includeLayers": null, "future": 1}),
        json!({"includeLayers": false, "cwd": null}),
    );
    check::<skills::SkillsListParams>(
        json!({"cwds": null, "forceReload": null}),
        json!({"cwds": [], "forceReload": false}),
    );
    check::<command_exec::CommandExecWriteParams>(
        json!({"processId": "p", "deltaBase64": null}),
        json!({"processId": "p", "deltaBase64": null, "closeStdin": false}),
    );
    check::<command_exec::CommandExecWriteParams>(
        json!({"processId": "p", "deltaBase64": "aGk=", "closeStdin": true}),
        json!({"processId": "p", "deltaBase64": "aGk=", "closeStdin": true}),
    );
    check::<feedback::FeedbackSaveParams>(
        json!({"classification": "bug", "savePath": "/x", "includeLogs": null}),
        json!({
            "savePath": "/x", "classification": "bug", "reason": null, "threadId": null, "includeLogs": false,
            "extraLogFiles": null, "tags": null,
        }),
    );
}

#[test]
fn policies_are_read_in_any_spelling_and_written_in_camel_case() {
    let params: command_exec::CommandExecParams = serde_json::from_value(json!({
        "command": ["ls"], "sandboxPolicy": {"mode": "workspace-write", "network_access": true},
    }))
    .unwrap();
    let written = serde_json::to_value(&params).unwrap();
    assert_eq!(
        written["sandboxPolicy"],
        json!({
            "type": "workspaceWrite", "writableRoots": [], "networkAccess": true, "excludeTmpdirEnvVar": false,
            "excludeSlashTmp": false,
        })
    );
}

#[test]
fn debug_text_shows_no_secret() {
    let login: account::LoginAccountParams =
        serde_json::from_value(json!({"type": "apiKey", "apiKey": "sk-1"})).unwrap();
    let edit: config::ConfigValueWriteParams =
        serde_json::from_value(json!({"keyPath": "model_providers.x.experimental_bearer_token", "value": "sk-2"}))
            .unwrap();
    let read: config::Config =
        serde_json::from_value(json!({"model": "m", "model_providers": {"x": {"http_headers": {"k": "sk-3"}}}}))
            .unwrap();
    let shown = format!("{login:?} {edit:?} {read:?} {:?}", Hidden("sk-4"));
    assert!(!shown.contains("sk-"), "{shown}");
}

#[test]
fn rate_limits_of_events_become_whole_percents() {
    let event: codex_wire::tokens::RateLimitSnapshot = serde_json::from_value(json!({
        "primary": {"used_percent": 12.5, "window_minutes": 300, "resets_at": 7},
        "credits": {"has_credits": true, "unlimited": false, "balance": "3"},
        "plan_type": "plus",
    }))
    .unwrap();
    let limits = serde_json::to_value(account::RateLimitSnapshot::from(event)).unwrap();
    assert_eq!(limits["primary"], json!({"usedPercent": 13, "windowDurationMins": 300, "resetsAt": 7}));
    assert_eq!(limits["credits"], json!({"hasCredits": true, "unlimited": false, "balance": "3"}));
    assert_eq!(limits["planType"], json!("plus"));
}
