//! Servers that want a login.

use codex_testkit::{ProtectedOptions, ProtectedServer};
use codex_tools::servers::{ServerLoginRequest, ServerState, ToolServers as _};
use codex_wire::mcp::McpAuthStatus;
use serde_json::json;

use crate::world::{ThreadOf, World, soon};

fn table(server: &ProtectedServer) -> String {
    let approved = "default_tools_approval_mode = 'approve'";
    format!("mcp_oauth_credentials_store = 'file'\n[mcp_servers.s]\nurl = '{}'\n{approved}\n", server.mcp_url())
}

/// Logs in as a user does: opens the page and follows where it leads.
async fn log_in(world: &World, server: &ProtectedServer) -> Result<(), String> {
    let request = ServerLoginRequest { name: "s".to_owned(), ..ServerLoginRequest::default() };
    let begun = soon(world.all.log_in(world.scope(), request)).await.map_err(|error| error.message)?;
    let (server, page) = (server.clone(), begun.url.clone());
    let shown = tokio::task::spawn_blocking(move || server.visit(&page)).await;
    assert_eq!(shown.expect("the page opens"), "HTTP/1.1 200 OK");
    soon(begun.end).await.map_err(|error| error.message)
}

async fn auth(thread: &ThreadOf) -> (ServerState, McpAuthStatus) {
    let mut listed = thread.settled().await;
    let server = listed.remove(0);
    (server.state, server.auth)
}

#[tokio::test]
async fn a_server_without_a_login_says_so_and_starts_after_it() {
    let server = ProtectedServer::serve(ProtectedOptions::default());
    let world = World::new(&table(&server));
    let mut thread = world.thread();
    let error = thread.until("failed").await.expect("it says why");
    assert!(error.contains("401") && error.contains("run `codex mcp login s`"), "{error}");
    let (state, status) = auth(&thread).await;
    assert!(matches!(state, ServerState::Failed(_)) && status == McpAuthStatus::NotLoggedIn, "{state:?} {status:?}");
    log_in(&world, &server).await.expect("the login works");
    thread.until("ready").await;
    assert_eq!(auth(&thread).await, (ServerState::Connected, McpAuthStatus::OAuth));
    assert_eq!(thread.call("mcp__s__echo", &json!({"text": "hi"})).await.output, r#"{"text":"hi"}"#);
}

#[tokio::test]
async fn a_refused_token_is_renewed_within_the_call() {
    let server = ProtectedServer::serve(ProtectedOptions::default());
    let world = World::new(&table(&server));
    log_in(&world, &server).await.expect("the login works");
    let mut thread = world.thread();
    thread.until("ready").await;
    server.void_tokens();
    assert_eq!(thread.call("mcp__s__echo", &json!({"text": "hi"})).await.output, r#"{"text":"hi"}"#);
    assert_eq!(server.renewals(), 1);
    server.void_tokens();
    server.void_refresh_tokens();
    let output = thread.call("mcp__s__echo", &json!({"text": "hi"})).await.output;
    assert!(output.contains("the login has ended (invalid_grant); run `codex mcp login s`"), "{output}");
    assert_eq!(auth(&thread).await.1, McpAuthStatus::NotLoggedIn);
}

#[tokio::test]
async fn a_call_that_needs_more_scopes_works_after_another_login() {
    let options = ProtectedOptions { scope: Some("read".to_owned()), ..ProtectedOptions::default() };
    let server = ProtectedServer::serve(options);
    let world = World::new(&table(&server));
    log_in(&world, &server).await.expect("the login works");
    let mut thread = world.thread();
    thread.until("ready").await;
    let output = thread.call("mcp__s__write", &json!({})).await.output;
    assert!(output.contains("run `codex mcp login s --scopes read,write`"), "{output}");
    log_in(&world, &server).await.expect("the login works");
    assert_eq!(server.asked()["scope"], "read write");
    assert!(thread.call("mcp__s__write", &json!({})).await.output.contains("written"));
}

#[tokio::test]
async fn a_token_of_the_configuration_is_not_replaced_by_a_login() {
    let server = ProtectedServer::serve(ProtectedOptions::default());
    let world = World::new(&format!(
        "[mcp_servers.s]\nurl = '{}'\nhttp_headers = {{ authorization = 'x' }}\n",
        server.mcp_url()
    ));
    let thread = world.thread();
    thread.until("failed").await;
    assert_eq!(auth(&thread).await.1, McpAuthStatus::BearerToken);
    let error = log_in(&world, &server).await.expect_err("it needs none");
    assert_eq!(error, "OAuth login is only supported for streamable HTTP servers.");
    assert!(server.requests().iter().all(|request| request == "POST /mcp"), "{:?}", server.requests());
}
