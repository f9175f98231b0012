//! The current login, and its changes.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::json;

use crate::app_client::AppClient;

/// The configuration of a user of the default provider.
const OPENAI: &str = "model_provider = 'openai'\n";

#[tokio::test]
async fn a_login_with_a_key_is_stored_reported_and_removed() {
    let mut client = AppClient::start(OPENAI).await;
    let nobody = json!({"account": null, "requiresOpenaiAuth": true});
    assert_eq!(client.ok("account/read", json!({})).await, nobody);
    let (code, message) = client.refused("account/rateLimits/read", json!(null)).await;
    assert_eq!((code, message.as_str()), (-32600, "codex account authentication required to read rate limits"));
    let login = json!({"type": "apiKey", "apiKey": "sk-test-123"});
    assert_eq!(client.ok("account/login/start", login).await, json!({"type": "apiKey"}));
    let completed = client.next_notification("account/login/completed").await;
    assert_eq!(completed, json!({"loginId": null, "success": true, "error": null}));
    assert_eq!(client.next_notification("account/updated").await["authMode"], "apikey");
    assert_eq!(client.ok("account/read", json!({})).await["account"], json!({"type": "apiKey"}));
    let (code, message) = client.refused("account/rateLimits/read", json!(null)).await;
    assert_eq!((code, message.as_str()), (-32600, "chatgpt authentication required to read rate limits"));
    client.ok("account/logout", json!(null)).await;
    assert_eq!(client.next_notification("account/updated").await["authMode"], json!(null));
    assert_eq!(client.ok("account/read", json!({})).await, nobody);
    assert!(!client.home("auth.json").exists());
    client.end().await;
}

#[tokio::test]
async fn older_clients_receive_their_own_login_notifications() {
    let mut client = AppClient::start(OPENAI).await;
    client.ok("loginApiKey", json!({"apiKey": "sk-test-123"})).await;
    assert_eq!(client.next_notification("authStatusChange").await, json!({"authMethod": "apikey"}));
    let status = client.ok("getAuthStatus", json!({"includeToken": true})).await;
    assert_eq!(status, json!({"authMethod": "apikey", "authToken": "sk-test-123", "requiresOpenaiAuth": true}));
    assert_eq!(client.ok("getAuthStatus", json!({})).await["authToken"], json!(null));
    client.ok("logoutChatGpt", json!(null)).await;
    assert_eq!(client.next_notification("authStatusChange").await, json!({"authMethod": null}));
    assert_eq!(client.ok("userInfo", json!(null)).await, json!({"allegedUserEmail": null}));
    let agent = client.ok("getUserAgent", json!(null)).await;
    assert!(agent["userAgent"].as_str().is_some_and(|agent| agent.ends_with("(test; 1)")), "{agent}");
    client.end().await;
}

#[tokio::test]
async fn a_browser_login_starts_and_is_cancelled_in_both_versions() {
    let _ports = codex_testkit::LoginPorts::hold();
    let mut client = AppClient::start(&format!("{OPENAI}forced_chatgpt_workspace_id = 'ws-1'\n")).await;
    let begun = client.ok("account/login/start", json!({"type": "chatgpt"})).await;
    let url = begun["authUrl"].as_str().expect("it has an address");
    assert!(url.starts_with("https://auth.openai.com/oauth/authorize?response_type=code&client_id=app_"), "{url}");
    assert!(url.contains("&allowed_workspace_id=ws-1") && url.contains("code_challenge_method=S256"), "{url}");
    let id = begun["loginId"].clone();
    let cancelled = client.ok("account/login/cancel", json!({"loginId": id})).await;
    assert_eq!(cancelled, json!({"status": "canceled"}));
    let error = "Login server error: Login was not completed";
    let completed = client.next_notification("account/login/completed").await;
    assert_eq!(completed, json!({"loginId": id, "success": false, "error": error}));
    let cancelled = client.ok("account/login/cancel", json!({"loginId": id})).await;
    assert_eq!(cancelled, json!({"status": "notFound"}));

    let first = client.ok("loginChatGpt", json!(null)).await["loginId"].clone();
    // A second login replaces the first, and uses its port.
    let second = client.ok("loginChatGpt", json!(null)).await["loginId"].clone();
    let completed = client.next_notification("loginChatGptComplete").await;
    assert_eq!(completed, json!({"loginId": first, "success": false, "error": error}));
    client.ok("cancelLoginChatGpt", json!({"loginId": second})).await;
    let completed = client.next_notification("loginChatGptComplete").await;
    assert_eq!(completed, json!({"loginId": second, "success": false, "error": error}));
    let (code, message) = client.refused("cancelLoginChatGpt", json!({"loginId": "x"})).await;
    assert_eq!((code, message.as_str()), (-32600, "login id not found: x"));
    client.end().await;
}

#[tokio::test]
async fn impossible_requests_are_refused_with_a_reason() {
    let mut client = AppClient::start(OPENAI).await;
    let (code, message) = client.refused("account/login/start", json!({"type": "carrierPigeon"})).await;
    assert_eq!((code, message.as_str()), (-32600, "there is no login of this kind"));
    let bedrock = json!({"type": "amazonBedrock", "apiKey": "k", "region": "r"});
    let (code, message) = client.refused("account/login/start", bedrock).await;
    assert_eq!((code, message.as_str()), (-32600, "this program keeps no keys of Amazon Bedrock"));
    let cancelled = client.ok("account/login/cancel", json!({"loginId": "x"})).await;
    assert_eq!(cancelled, json!({"status": "notFound"}));
    client.end().await;
}

#[tokio::test]
async fn a_client_brings_tokens_of_its_own() {
    let mut client = AppClient::start_new(OPENAI).await;
    let login = json!({
        "type": "chatgptAuthTokens", "accessToken": "canary", "chatgptAccountId": "acct-1", "chatgptPlanType": "team",
    });
    assert_eq!(client.ok("account/login/start", login).await, json!({"type": "chatgptAuthTokens"}));
    let completed = client.next_notification("account/login/completed").await;
    assert_eq!(completed, json!({"loginId": null, "success": true, "error": null}));
    let updated = client.next_notification("account/updated").await;
    assert_eq!(updated, json!({"authMode": "chatgptAuthTokens", "planType": "team"}));
    let account = client.ok("account/read", json!({})).await["account"].clone();
    assert_eq!(account, json!({"type": "chatgpt", "email": null, "planType": "team"}));
    assert!(!client.home("auth.json").exists(), "they are kept in memory alone");
    client.ok("account/logout", json!(null)).await;
    let updated = client.next_notification("account/updated").await;
    assert_eq!(updated, json!({"authMode": null, "planType": null}));
    assert_eq!(client.ok("account/read", json!({})).await["account"], json!(null));
    client.end().await;
    let mut client = AppClient::start_new(&format!("{OPENAI}forced_chatgpt_workspace_id = 'ws-1'\n")).await;
    let login = json!({"type": "chatgptAuthTokens", "accessToken": "canary", "chatgptAccountId": "acct-1"});
    let (code, message) = client.refused("account/login/start", login).await;
    assert_eq!((code, message.as_str()), (-32600, "forced_chatgpt_workspace_id does not allow this workspace"));
    client.end().await;
}

#[tokio::test]
async fn a_bad_key_is_refused_and_shown_nowhere() {
    let mut client = AppClient::start(OPENAI).await;
    let login = json!({"type": "apiKey", "apiKey": "sk-secret\r\nX-Evil: 1"});
    let (code, message) = client.refused("account/login/start", login).await;
    assert!(code == -32600 && !message.contains("sk-secret"), "{message}");
    assert!(!client.home("auth.json").exists());
    client.end().await;
    let mut client = AppClient::start(&format!("{OPENAI}forced_login_method = 'chatgpt'\n")).await;
    let (_, message) = client.refused("loginApiKey", json!({"apiKey": "sk-secret"})).await;
    assert_eq!(message, "API key login is disabled. Use ChatGPT login instead.");
    client.end().await;
}

#[tokio::test]
async fn every_kind_of_login_is_reported() {
    let mut client = AppClient::start(OPENAI).await;
    let claims = json!({"email": "user@example.com", "https://api.openai.com/auth": {"chatgpt_plan_type": "pro"}});
    let token = format!("e30.{}.sig", BASE64_URL_SAFE_NO_PAD.encode(claims.to_string()));
    let login = json!({"tokens": {"id_token": token, "access_token": "a", "refresh_token": "r"}});
    std::fs::write(client.home("auth.json"), login.to_string()).expect("a file can be written");
    let account = json!({"type": "chatgpt", "email": "user@example.com", "planType": "pro"});
    let read = client.ok("account/read", json!({"refreshToken": false})).await;
    assert_eq!(read, json!({"account": account, "requiresOpenaiAuth": true}));
    client.end().await;
    let mut client = AppClient::start("").await;
    let read = client.ok("account/read", json!({})).await;
    assert_eq!(read, json!({"account": null, "requiresOpenaiAuth": false}));
    client.end().await;
}

#[tokio::test]
async fn a_login_that_the_configuration_does_not_allow_is_refused() {
    let key = "API key login is disabled. Use ChatGPT login instead.";
    let chatgpt = "ChatGPT login is disabled. Use API key login instead.";
    for (method, login, expected) in
        [("chatgpt", json!({"type": "apiKey", "apiKey": "sk-1"}), key), ("api", json!({"type": "chatgpt"}), chatgpt)]
    {
        let mut client = AppClient::start(&format!("{OPENAI}forced_login_method = '{method}'\n")).await;
        let (code, message) = client.refused("account/login/start", login).await;
        assert_eq!((code, message.as_str()), (-32600, expected));
        assert!(!client.home("auth.json").exists());
        client.end().await;
    }
}
