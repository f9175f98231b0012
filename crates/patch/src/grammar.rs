//! The syntax tree of a patch.

use std::path::PathBuf;

/// A parsed patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// The operations, in order; a later one sees the result of an earlier one.
    pub operations: Vec<Operation>,
}

/// An operation on one file. Paths are as written, relative to the working directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Creates a file, or replaces the existing one.
    Add { path: PathBuf, content: String },
    /// Deletes a file.
    Delete { path: PathBuf },
    /// Edits a file, or moves it, or both.
    Update {
        path: PathBuf,
        /// The new path, if it moves.
        move_to: Option<PathBuf>,
        /// The edits, from the top of the file to its end.
        chunks: Vec<Chunk>,
    },
}

/// An edit at one place of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Lines to search for first, in order; the edit is below the last of them.
    pub anchors: Vec<String>,
    pub lines: Vec<Line>,
    /// Whether the edit is at the end of the file.
    pub end_of_file: bool,
    /// An explicit remark about the newline at the end of the file, if any.
    pub final_newline: Option<bool>,
}

/// One line of a [`Chunk`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub kind: LineKind,
    /// The line without its ending.
    pub text: String,
    /// Whether it was written with its own carriage return.
    pub carriage_return: bool,
    /// Whether it was an empty line without a prefix, which may be accidental.
    pub bare: bool,
}

/// The role of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// It stays.
    Context,
    /// It is removed.
    Remove,
    /// It is added.
    Add,
}

impl Chunk {
    /// The lines that must be in the file.
    pub(crate) fn old(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| line.kind != LineKind::Add)
    }
}
