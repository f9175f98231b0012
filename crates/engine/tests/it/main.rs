//! Threads driven from outside, with a scripted model and a temporary home, on a paused clock.

#![expect(clippy::expect_used, reason = "a test may fail where it stands")]
#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes its snapshots with them")]

mod agent_mail;
mod agent_trees;
mod asking;
mod bookmarks;
mod broken_off;
mod budgets;
mod client_tools;
mod commands;
mod compaction;
mod concurrent_calls;
mod copies;
mod goals;
mod grants;
mod hosting;
mod law;
mod limits;
mod patches;
mod permissions;
mod prompts;
mod queue;
mod real_model;
mod repeating;
mod retries;
mod reviews;
mod saving;
mod shown;
mod start;
mod stopping;
mod terminals;
mod tools;
mod trusted_git;
mod turns;
mod wires;
mod world;
