//! Logins to MCP servers, begun by a client.

use codex_testkit::{ProtectedOptions, ProtectedServer};
use serde_json::{Value, json};

use crate::app_client::AppClient;

fn config(server: &ProtectedServer) -> String {
    format!(
        "model_provider = 'openai'\nmcp_oauth_credentials_store = 'file'\n[mcp_servers.s]\nurl = '{}'\n[mcp_servers.p]\ncommand = 'none'\n",
        server.mcp_url()
    )
}

async fn status(client: &mut AppClient) -> (Value, Value) {
    let mut listed = client.ok("mcpServerStatus/list", json!({"serverName": "s"})).await;
    let mut server = listed["data"][0].take();
    (server["authStatus"].take(), server["runtimeStatus"].take())
}

#[tokio::test]
async fn a_client_begins_a_login_and_all_are_told_how_it_ends() {
    let server = ProtectedServer::serve(ProtectedOptions::default());
    let mut client = AppClient::start_new(&config(&server)).await;
    assert_eq!(status(&mut client).await, (json!("notLoggedIn"), json!("authenticationRequired")));
    let begun = client.ok("mcpServer/oauth/login", json!({"name": "s", "scopes": ["a", "b"]})).await;
    let page = begun["authorizationUrl"].as_str().expect("it has an address").to_owned();
    assert!(page.starts_with(&format!("{}/authorize?", server.url())), "{page}");
    let user = server.clone();
    let shown = tokio::task::spawn_blocking(move || user.visit(&page)).await.expect("the page opens");
    assert_eq!((shown.as_str(), server.asked()["scope"].as_str()), ("HTTP/1.1 200 OK", "a b"));
    let completed = client.next_notification("mcpServer/oauthLogin/completed").await;
    let expected = json!({"name": "s", "success": true, "error": null, "loginId": begun["loginId"], "threadId": null});
    assert_eq!(completed, expected);
    assert_eq!(status(&mut client).await, (json!("oAuth"), json!("connected")));
    assert!(client.home(".credentials.json").exists());
    client.end().await;
}

#[tokio::test]
async fn a_second_login_takes_the_place_of_the_first() {
    let server = ProtectedServer::serve(ProtectedOptions::default());
    let mut client = AppClient::start(&config(&server)).await;
    let first = client.ok("mcpServer/oauth/login", json!({"name": "s"})).await;
    let second = client.ok("mcpServer/oauth/login", json!({"name": "s", "timeoutSecs": 1})).await;
    let completed = client.next_notification("mcpServer/oauthLogin/completed").await;
    assert_eq!((&completed["loginId"], &completed["success"]), (&first["loginId"], &json!(false)));
    assert_eq!(completed["error"], "Login was not completed");
    let completed = client.next_notification("mcpServer/oauthLogin/completed").await;
    assert_eq!((&completed["loginId"], &completed["success"]), (&second["loginId"], &json!(false)));
    client.end().await;
}

#[tokio::test]
async fn servers_without_a_login_are_refused() {
    let options = ProtectedOptions { metadata: json!({"resource": "https://evil.example"}), ..Default::default() };
    let server = ProtectedServer::serve(options);
    let mut client = AppClient::start(&config(&server)).await;
    let (code, message) = client.refused("mcpServer/oauth/login", json!({"name": "x"})).await;
    assert_eq!((code, message.as_str()), (-32600, "No MCP server named 'x' found."));
    let (_, message) = client.refused("mcpServer/oauth/login", json!({"name": "p"})).await;
    assert_eq!(message, "OAuth login is only supported for streamable HTTP servers.");
    let (_, message) = client.refused("mcpServer/oauth/login", json!({"name": "s"})).await;
    assert!(message.starts_with("the metadata of the server is for https://evil.example, not for"), "{message}");
    client.end().await;
}
