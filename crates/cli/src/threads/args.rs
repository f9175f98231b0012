//! The command line of `codex threads`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

/// Options of `threads`.
#[derive(Debug, ClapArgs)]
pub(crate) struct ThreadsArgs {
    #[command(subcommand)]
    pub(crate) command: ThreadsCommand,
}

/// What to do with threads.
#[derive(Debug, Subcommand)]
pub(crate) enum ThreadsCommand {
    /// List threads, the one that was written last first
    #[command(visible_alias = "ls")]
    List(ListArgs),
    /// Find threads by what was said or run in them
    Search(SearchArgs),
    /// Show what was said and done in a thread
    Show(ShowArgs),
    /// Write a thread to a file: as Markdown to read, or as a bundle for another machine
    Export(ExportArgs),
    /// Take in a bundle
    Import(ImportArgs),
    /// Mend what can be mended: a thread's file, or without a thread the index of all of them
    Repair(RepairArgs),
    /// Put a thread away, so that lists do not show it
    Archive(ThreadWord),
    /// Take a thread back that was put away
    Unarchive(ThreadWord),
    /// Delete a thread for good
    #[command(visible_alias = "rm")]
    Delete(DeleteArgs),
    /// Give a thread a name; an empty one takes it away
    Rename(RenameArgs),
}

/// A thread.
#[derive(Debug, ClapArgs)]
pub(crate) struct ThreadWord {
    /// The id of the thread, its beginning, or the name of the thread
    pub(crate) thread: String,
}

/// Which threads to list.
#[derive(Debug, ClapArgs)]
pub(crate) struct ListArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Only threads of this folder
    #[arg(long)]
    pub(crate) here: bool,
    /// Those that were put away instead
    #[arg(long)]
    pub(crate) archived: bool,
    /// Only those with this in their name or in what was said first
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: Option<String>,
    /// At most so many
    #[arg(short = 'n', long, default_value_t = 50, value_name = "COUNT")]
    pub(crate) limit: usize,
    /// Go on where the page before this one ended, as its `next_cursor` says
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
}

/// What to look for.
#[derive(Debug, ClapArgs)]
pub(crate) struct SearchArgs {
    /// Words that must all be there
    #[arg(required = true)]
    pub(crate) words: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// At most so many
    #[arg(short = 'n', long, default_value_t = 20, value_name = "COUNT")]
    pub(crate) limit: usize,
}

/// What to show.
#[derive(Debug, ClapArgs)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) word: ThreadWord,
    /// Print what is known of the thread as JSON, and not what was said
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to export.
#[derive(Debug, ClapArgs)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) word: ThreadWord,
    /// In which form
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ExportFormat,
    /// To this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// The forms of an export.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// A text to read
    #[default]
    Markdown,
    /// A file that `codex threads import` takes in
    Bundle,
}

/// What to import.
#[derive(Debug, ClapArgs)]
pub(crate) struct ImportArgs {
    /// The bundle; `-` reads standard input
    pub(crate) bundle: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to mend.
#[derive(Debug, ClapArgs)]
pub(crate) struct RepairArgs {
    /// The id of a thread, its beginning, or the name of a thread
    pub(crate) thread: Option<String>,
}

/// What to delete.
#[derive(Debug, ClapArgs)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    pub(crate) word: ThreadWord,
    /// Do not ask; needed where nobody can be asked
    #[arg(short, long, visible_alias = "yes", visible_short_alias = 'y')]
    pub(crate) force: bool,
}

/// What to call a thread.
#[derive(Debug, ClapArgs)]
pub(crate) struct RenameArgs {
    #[command(flatten)]
    pub(crate) word: ThreadWord,
    /// Its name
    pub(crate) name: String,
}
