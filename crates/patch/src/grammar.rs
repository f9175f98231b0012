//! What a patch is made of.

use std::path::PathBuf;

/// A patch as it was written: what to do to which files, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// What to do, in order; a later operation sees what an earlier one did.
    pub operations: Vec<Operation>,
}

/// What to do to one file. Paths are as written: relative ones are meant from the working directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Makes a file, in place of the one that is there, if any.
    Add {
        /// Which file.
        path: PathBuf,
        /// What goes into it.
        content: String,
    },
    /// Removes a file.
    Delete {
        /// Which file.
        path: PathBuf,
    },
    /// Edits a file, or moves it, or both.
    Update {
        /// Which file.
        path: PathBuf,
        /// Its new place, if it moves.
        move_to: Option<PathBuf>,
        /// The edits, from the top of the file to its end.
        chunks: Vec<Chunk>,
    },
}

/// One place of a file that is edited.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Lines to look for first, one after the other; the edit is below the last of them.
    pub anchors: Vec<String>,
    /// What is there and what changes.
    pub lines: Vec<Line>,
    /// Whether the edit is at the end of the file.
    pub end_of_file: bool,
    /// What is said about the newline at the end of the file; none if nothing is.
    pub final_newline: Option<bool>,
}

/// One line of a [`Chunk`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What becomes of it.
    pub kind: LineKind,
    /// The line without its ending.
    pub text: String,
    /// Whether it was written with a carriage return of its own.
    pub carriage_return: bool,
    /// Whether it was an empty line without a prefix, so that it may be a slip and not meant at all.
    pub bare: bool,
}

/// What becomes of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// It stays.
    Context,
    /// It goes.
    Remove,
    /// It comes.
    Add,
}

impl Chunk {
    /// The lines that must be in the file.
    pub(crate) fn old(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| line.kind != LineKind::Add)
    }
}
