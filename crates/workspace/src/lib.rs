//! The user's files around a thread: the repository they belong to ([`git`]), and finding one by a few letters of its path
//! ([`search`]).
//!
//! Assume that the workspace is hostile. Neither module follows what a file in it says to run or to read elsewhere.

pub mod git;
pub mod search;
