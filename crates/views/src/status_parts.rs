//! The parts of the status line, and those that a short row does without.

/// A part of the status line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Model,
    Effort,
    Mode,
    Context,
    Folder,
    Branch,
    Cost,
    Waiting,
    Thread,
}

/// The names of the parts, also those of other releases.
pub const PARTS: &[(&str, Part)] = &[
    ("model", Part::Model),
    ("effort", Part::Effort),
    ("mode", Part::Mode),
    ("context", Part::Context),
    ("folder", Part::Folder),
    ("branch", Part::Branch),
    ("cost", Part::Cost),
    ("waiting", Part::Waiting),
    ("thread", Part::Thread),
    ("model-name", Part::Model),
    ("permissions", Part::Mode),
    ("context-used", Part::Context),
    ("context-remaining", Part::Context),
    ("current-dir", Part::Folder),
    ("project-root", Part::Folder),
    ("git-branch", Part::Branch),
    ("session-id", Part::Thread),
];

/// The parts of a status line that nobody has set up.
pub const USUAL: &[Part] =
    &[Part::Model, Part::Mode, Part::Context, Part::Folder, Part::Branch, Part::Cost, Part::Waiting];

/// The parts that a row without room for all does without, the first one first.
const LEAST_NEEDED: &[Part] =
    &[Part::Thread, Part::Effort, Part::Branch, Part::Folder, Part::Cost, Part::Model, Part::Context, Part::Mode];

/// The place in the order of need of whatever is never left out.
pub const ALWAYS_NEEDED: usize = LEAST_NEEDED.len();

impl Part {
    /// The place in the order of need; a part with a higher one stays longer.
    #[must_use]
    pub fn need(self) -> usize {
        LEAST_NEEDED.iter().position(|known| *known == self).unwrap_or(ALWAYS_NEEDED)
    }
}
