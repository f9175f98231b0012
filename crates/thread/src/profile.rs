//! How threads behave for one kind of client.

/// What clients of one kind were written to expect of a thread. The engine follows its fields and knows no client by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a way of some clients, and all combinations make sense")]
pub struct ClientProfile {
    /// What the model remembers of what was cut off or cut out.
    pub history: HistoryMode,
    /// What the model is told where there are no skills, so that it does not go looking for some.
    pub without_skills: Option<&'static str>,
    /// Whether what a resumed thread has cost so far is forgotten.
    pub counts_from_zero: bool,
    /// Whether questions that nobody had answered when the program ended are asked again when the thread is resumed.
    pub asks_again: bool,
    /// Whether the model is told when somebody has stopped a turn.
    pub tells_of_interrupts: bool,
    /// Whether the model gets pictures between marks that name them.
    pub marks_images: bool,
    /// Whether the thread goes on by itself towards a goal that it had before. One that is set is always followed.
    pub follows_goals: bool,
    /// Whether it is noted that there is something to read.
    pub keeps_read_marks: bool,
}

/// What the model remembers of what was cut off or cut out. Clients were written for either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryMode {
    /// An interrupted answer is forgotten with its calls, and a summary is one message: the submission queue's way.
    Brief,
    /// What was cut off is known to have been, and what the user said stays apart from a summary.
    Full,
}

/// What the model is told where there are no skills.
const NO_SKILLS: &str = "## Skills\nThere are no skills here.";

impl ClientProfile {
    /// Clients of the submission queue.
    pub const QUEUE: Self = Self { history: HistoryMode::Brief, ..Self::EXEC };

    /// A single turn without a person.
    pub const EXEC: Self = Self {
        history: HistoryMode::Full,
        without_skills: None,
        counts_from_zero: false,
        asks_again: false,
        tells_of_interrupts: false,
        marks_images: false,
        follows_goals: false,
        keeps_read_marks: false,
    };

    /// Clients of the app-server as it was in 0.77, both versions of its protocol.
    pub const V077: Self =
        Self { without_skills: Some(NO_SKILLS), counts_from_zero: true, asks_again: true, ..Self::EXEC };

    /// Clients of the app-server as it was in 0.166.
    pub const V0166: Self = Self {
        without_skills: Some(NO_SKILLS),
        asks_again: true,
        tells_of_interrupts: true,
        marks_images: true,
        follows_goals: true,
        keeps_read_marks: true,
        ..Self::EXEC
    };
}
