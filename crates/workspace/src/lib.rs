//! The user's files around a thread: the repository they belong to ([`git`]), and finding files by a few letters of
//! their path ([`search`]).
//!
//! The workspace is assumed to be hostile. Neither module follows instructions in a file to run something or to read
//! elsewhere.

pub mod git;
pub mod search;
