//! Transcripts of `codex proto`: lines in, lines out, in process and on a paused clock; and `codex mcp-server` as its
//! clients see it.
//!
//! Every test looks at all that came out, so a message too many fails as well as one too few.

#![expect(clippy::expect_used, reason = "a test may fail where it stands")]

mod approvals;
mod bad_lines;
mod bookmarks;
mod client;
mod ending;
mod http_client;
mod mcp;
mod mcp_client;
mod mcp_http;
mod mcp_stateless;
mod settings;
mod shapes;
mod turns;
