//! Threads with MCP servers that this test program plays itself.

#![expect(clippy::expect_used, reason = "a test may fail where it stands")]

mod calls;
mod http;
mod oauth;
mod real_servers;
mod sampling;
mod servers;
mod world;

#[test]
fn plays_an_mcp_server() {
    codex_testkit::mcp_server::play();
}
