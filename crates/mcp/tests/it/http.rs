//! Servers at an address.

use codex_config::Env;
use codex_testkit::mcp_server::serve_http;
use codex_testkit::{TlsFront, tls_file};
use codex_tools::servers::ServerState;
use codex_wire::mcp::McpAuthStatus;
use serde_json::json;

use crate::world::World;

fn table(url: &str) -> String {
    format!("[mcp_servers.s]\nurl = '{url}'\nhttp_headers = {{ Authorization = 'Bearer secret' }}\n")
}

#[tokio::test]
async fn a_server_at_an_address_answers_in_json_and_in_streams() {
    let server = serve_http("good").await;
    let url = &server.url;
    let world = World::new(&table(url));
    let mut thread = world.thread();
    assert_eq!(thread.call("mcp__s__echo", &json!({"text": "hi"})).await.output, r#"{"text":"hi"}"#);
    let counted = thread.call("mcp__s__count", &json!({})).await;
    assert_eq!(counted.progress(), ["counted 1", "counted 2", "counted 3"]);
    assert!(counted.output.contains("1 2 3"), "{}", counted.output);
    let listed = thread.settled().await;
    assert_eq!((&listed[0].state, listed[0].resources.len()), (&ServerState::Connected, 1));
}

#[tokio::test]
async fn a_server_that_refuses_us_fails_with_its_words() {
    let server = serve_http("good").await;
    let url = &server.url;
    let world = World::new(&format!("[mcp_servers.s]\nurl = '{url}'\n"));
    let error = world.thread().until("failed").await.expect("it says why");
    assert!(
        error.contains("401")
            && error.contains("run `codex mcp login s`, or set its token")
            && error.contains("who are you?"),
        "{error}"
    );
    let world = World::new(&format!("[mcp_servers.s]\nurl = '{url}'\nbearer_token_env_var = 'NO_SUCH_VARIABLE'\n"));
    let thread = world.thread();
    let error = thread.until("failed").await.expect("it says why");
    assert!(error.ends_with("the variable NO_SUCH_VARIABLE with its token is not set"), "{error}");
    assert_eq!(thread.settled().await[0].auth, McpAuthStatus::BearerToken);
}

#[tokio::test]
async fn keys_follow_no_redirect_to_another_origin() {
    let server = serve_http("good").await;
    let url = &server.url;
    let world = World::new(&table(&format!("{url}/moved")));
    let error = world.thread().until("failed").await.expect("it says why");
    assert!(error.contains("307"), "{error}");
}

#[tokio::test]
async fn an_unreachable_url_is_reported() {
    let world = World::new(&table("http://127.0.0.1:1/mcp"));
    let error = world.thread().until("failed").await.expect("it says why");
    assert!(error.starts_with("MCP client for `s` failed to start: error sending request"), "{error}");
}

#[tokio::test]
async fn the_certificate_authority_of_the_user_is_trusted() {
    let server = serve_http("good").await;
    let front = TlsFront::of(&server.url);
    let table = table(&format!("{}/mcp", front.url()));
    let trusting = Env::from_iter([("CODEX_CA_CERTIFICATE", tls_file("ca.pem"))]);
    let mut thread = World::with(&table, trusting).thread();
    assert_eq!(thread.call("mcp__s__echo", &json!({"text": "hi"})).await.output, r#"{"text":"hi"}"#);
    let missing = Env::from_iter([("SSL_CERT_FILE", tls_file("missing.pem"))]);
    let error = World::with(&table, missing).thread().until("failed").await.expect("it says why");
    assert!(error.contains("missing.pem"), "{error}");
}

#[tokio::test]
async fn messages_outside_of_answers_come_on_a_stream_that_is_resumed() {
    let server = serve_http("good").await;
    let world = World::new(&table(&server.url));
    let mut thread = world.thread();
    thread.until("ready").await;
    thread.call("mcp__s__grow", &json!({})).await;
    thread.until("ready").await;
    assert!(thread.offered().contains(&"mcp__s__extra".to_owned()));
    assert_eq!(server.resumed(), ["own-1"], "the first stream broke off after this event");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_resumed() {
    let server = serve_http("good").await;
    let world = World::new(&table(&server.url));
    let mut thread = world.thread();
    let cut = thread.call("mcp__s__cut", &json!({})).await;
    assert!(cut.output.contains("the rest"), "{}", cut.output);
    assert!(server.resumed().contains(&"cut-1".to_owned()));
}

#[tokio::test]
async fn the_oldest_transport_is_spoken_only_where_it_is_allowed() {
    let server = serve_http("good").await;
    let address = table(&format!("{}/sse", server.url));
    let error = World::new(&address).thread().until("failed").await.expect("it says why");
    assert!(error.contains("405"), "{error}");
    let world = World::new(&format!("{address}legacy_sse = true\n"));
    let mut thread = world.thread();
    assert_eq!(thread.call("mcp__s__echo", &json!({"text": "old"})).await.output, r#"{"text":"old"}"#);
    thread.call("mcp__s__grow", &json!({})).await;
    thread.until("ready").await;
    thread.until("ready").await;
    assert!(thread.offered().contains(&"mcp__s__extra".to_owned()));
}

#[tokio::test]
async fn keys_are_not_sent_to_an_address_of_another_origin() {
    let server = serve_http("good").await;
    let address = table(&format!("{}/stranger", server.url));
    let error =
        World::new(&format!("{address}legacy_sse = true\n")).thread().until("failed").await.expect("it says why");
    assert!(error.contains("another origin: http://127.0.0.1:1"), "{error}");
}

#[tokio::test]
async fn a_server_without_sessions_is_asked_to_tell_of_changes() {
    let world = World::new(&codex_testkit::mcp_server::config("s", "stateless", ""));
    let mut thread = world.thread();
    thread.until("ready").await;
    thread.call("mcp__s__grow", &json!({})).await;
    thread.until("ready").await;
    assert!(thread.offered().contains(&"mcp__s__extra".to_owned()));
}
