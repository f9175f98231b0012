//! Threads driven from outside, with a scripted model and a home in a temporary folder, on a paused clock.

#![expect(clippy::expect_used, reason = "a test may fail where it stands")]
#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes its snapshots with them")]

mod asking;
mod bookmarks;
mod broken_off;
mod commands;
mod goals;
mod grants;
mod hosting;
mod law;
mod limits;
mod own_git;
mod patches;
mod prompts;
mod real_model;
mod retries;
mod reviews;
mod saving;
mod shown;
mod side_by_side;
mod start;
mod stopping;
mod summing_up;
mod terminals;
mod tools;
mod turns;
mod wires;
mod world;
