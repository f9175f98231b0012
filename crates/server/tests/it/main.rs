//! The app-server as a client sees it, in process and on a paused clock.
//!
//! Every test checks all messages, so an extra message fails as well as a missing one.

#![expect(clippy::expect_used, reason = "a test may fail where it stands")]

mod app_account;
mod app_agent_questions;
mod app_agent_roles;
mod app_agent_worktrees;
mod app_agents;
mod app_agents_by_path;
mod app_backlog;
mod app_broken_off;
mod app_catalogue;
mod app_client;
mod app_commands;
mod app_config;
mod app_context;
mod app_dynamic_tools;
mod app_endless;
mod app_files;
mod app_goals;
mod app_granular;
mod app_handover;
mod app_known_items;
mod app_known_threads;
mod app_known_ways;
mod app_limits;
mod app_mcp;
mod app_mcp_login;
mod app_methods;
mod app_nothing_there;
mod app_order;
mod app_permission_requests;
mod app_permissions;
mod app_queue;
mod app_restarts;
mod app_revived;
mod app_search;
mod app_session_grants;
mod app_shapes;
mod app_skills;
mod app_subscribe;
mod app_terminals;
mod app_thread_metadata;
mod app_threads;
mod app_turn_list;
mod app_turns;
mod client_kinds;
mod shapes;
mod v1_approvals;
mod v1_conversations;
mod v1_dialects;
mod v1_server_methods;
mod v1_stored_threads;

#[test]
fn plays_an_mcp_server() {
    codex_testkit::mcp_server::play();
}
