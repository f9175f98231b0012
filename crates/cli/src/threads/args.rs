//! The command line of `codex threads`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

/// Options of `threads`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ThreadsArgs {
    #[command(subcommand)]
    pub(crate) command: ThreadsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ThreadsCommand {
    /// List threads, most recently updated first
    #[command(visible_alias = "ls")]
    List(ListArgs),
    /// Search threads by messages and commands
    Search(SearchArgs),
    /// Show a thread's transcript
    Show(ShowArgs),
    /// Export a thread as Markdown, or as a bundle for another machine
    Export(ExportArgs),
    /// Import a bundle
    Import(ImportArgs),
    /// Repair a thread's file, or the index
    Repair(RepairArgs),
    /// Archive a thread, so that it is no longer listed
    Archive(ThreadArg),
    /// Restore an archived thread
    Unarchive(ThreadArg),
    /// Delete a thread permanently
    #[command(visible_alias = "rm")]
    Delete(DeleteArgs),
    /// Rename a thread; an empty name clears it
    Rename(RenameArgs),
}

/// A thread.
#[derive(Debug, ClapArgs)]
pub(crate) struct ThreadArg {
    /// Thread id (or its beginning) or name
    pub(crate) thread: String,
}

/// The filter of a list.
#[derive(Debug, ClapArgs)]
pub(crate) struct ListArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// List only threads of this folder
    #[arg(long)]
    pub(crate) here: bool,
    /// List archived threads instead
    #[arg(long)]
    pub(crate) archived: bool,
    /// List only threads with this text in their name or first message
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: Option<String>,
    /// Maximum number of results
    #[arg(short = 'n', long, default_value_t = 50, value_name = "COUNT")]
    pub(crate) limit: usize,
    /// Continue after a previous page, with its `next_cursor`
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SearchArgs {
    /// Words to search for; all must match
    #[arg(required = true)]
    pub(crate) words: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Maximum number of results
    #[arg(short = 'n', long, default_value_t = 20, value_name = "COUNT")]
    pub(crate) limit: usize,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) word: ThreadArg,
    /// Print the thread's metadata as JSON instead of its transcript
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the tree of agents below the thread instead of its transcript
    #[arg(long, conflicts_with = "json")]
    pub(crate) tree: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) word: ThreadArg,
    /// Export format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ExportFormat,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// The forms of an export.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Readable text
    #[default]
    Markdown,
    /// A file for `codex threads import`
    Bundle,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ImportArgs {
    /// Bundle to import; `-` reads standard input
    pub(crate) bundle: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RepairArgs {
    /// Thread id (or its beginning) or name; without it, repair the index
    pub(crate) thread: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    pub(crate) word: ThreadArg,
    /// Do not ask for confirmation; required without a terminal
    #[arg(short, long, visible_alias = "yes", visible_short_alias = 'y')]
    pub(crate) force: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RenameArgs {
    #[command(flatten)]
    pub(crate) word: ThreadArg,
    /// New name
    pub(crate) name: String,
}
