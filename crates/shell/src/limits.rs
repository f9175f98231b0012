//! Limits of the analysis. Anything larger counts as not understood.

use std::time::Duration;

/// The maximum length of a script, in bytes.
pub(crate) const SCRIPT_BYTES: usize = 64 * 1024;
/// The maximum number of commands in one script.
pub(crate) const COMMANDS: usize = 256;
/// The maximum number of words in one command line.
pub(crate) const WORDS: usize = 4096;
/// The maximum depth of a syntax tree.
pub(crate) const TREE_DEPTH: usize = 200;
/// The maximum nesting of scripts and wrappers.
pub(crate) const NESTING: usize = 8;
/// The maximum number of commands analysed in total, wrapped ones included.
pub(crate) const LOOKS: usize = 1024;
/// The maximum number of bars in a script for the grammar, whose run time grows with their square.
pub(crate) const BARS: usize = 1000;
/// The time limit for parsing one script.
pub(crate) const PARSE_TIME: Duration = Duration::from_millis(500);
