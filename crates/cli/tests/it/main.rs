//! Runs of the real program, each with its own home.

#![expect(clippy::expect_used, reason = "a test may fail where it stands")]
#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes its snapshots with them")]

mod agent_dialects;
mod agent_forks;
mod agent_resume;
mod agent_settings;
mod agent_tools;
mod agent_worktrees;
mod agents;
mod apply_patch;
mod canaries;
mod chat;
mod chat_full;
mod chat_keys;
mod chat_reconnect;
mod chat_trust;
mod client_library;
mod commands;
mod config_warnings;
mod crashes;
mod demo;
mod docs;
mod escapes;
mod exec;
mod exec_ends;
mod exec_file;
mod first_run;
mod handover;
mod hostile_input;
mod http;
mod kills;
mod known;
mod local;
mod login;
mod mcp;
mod mcp_sdk;
mod mistakes;
mod names;
mod never_break;
mod program;
mod proto;
mod pty;
mod refusals;
mod releases;
mod servers;
mod servers_database;
mod servers_mcp;
mod servers_moved;
mod shapes;
mod sockets;
mod threads;
mod tmux;
