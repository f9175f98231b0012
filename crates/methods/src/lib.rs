//! The work of methods of the app-server apart from connections and threads: functions from parameters to responses.
//!
//! Invariant: no connection, no thread, no async code. Functions that read or write files block, and say so.

pub mod catalogue;
pub mod config;
pub mod file_search;
pub mod files;
pub mod occurrences;
pub mod pages;
pub mod pagination;
pub mod schema_files;

pub use codex_workspace::watch;
