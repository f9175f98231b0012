//! How much of a command line is looked at. Whatever is larger counts as not understood.

use std::time::Duration;

/// The longest script, in bytes.
pub(crate) const SCRIPT_BYTES: usize = 64 * 1024;
/// The most commands in one script.
pub(crate) const COMMANDS: usize = 256;
/// The most words in one command line.
pub(crate) const WORDS: usize = 4096;
/// The deepest syntax tree.
pub(crate) const TREE_DEPTH: usize = 200;
/// How many scripts and wrappers may be inside each other.
pub(crate) const NESTING: usize = 8;
/// How many commands, wrapped ones included, are looked at in all.
pub(crate) const LOOKS: usize = 1024;
/// The most bars in a script that the grammar is given; the time it takes grows with their square.
pub(crate) const BARS: usize = 1000;
/// How long one script may be parsed.
pub(crate) const PARSE_TIME: Duration = Duration::from_millis(500);
