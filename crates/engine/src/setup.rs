//! What a new thread is made of, and its start.

use std::path::PathBuf;
use std::sync::Arc;

use codex_config::{Config, Home};
use codex_model::Model;
use codex_store::Notes;
use codex_thread::{Feed, StartError, Thread};
use codex_wire::rollout::SessionSource;

use crate::beginning::Beginning;
use crate::session::Session;

/// What a new thread is made of.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a way of some clients, and all combinations make sense")]
pub struct Setup {
    /// What the user has set.
    pub config: Arc<Config>,
    /// The home folder, where the thread is kept.
    pub home: Home,
    /// Where it works.
    pub cwd: PathBuf,
    /// The model it asks.
    pub model: Arc<dyn Model>,
    /// The program that drives it, as told to the provider.
    pub originator: String,
    /// The kind of program that drives it, as kept in the rollout.
    pub source: SessionSource,
    /// The user's shell, from the environment.
    pub shell: Option<String>,
    /// A folder of programs that commands find before all others, such as `apply_patch`.
    pub programs: Option<PathBuf>,
    /// What the model remembers of what was cut off or cut out.
    pub recall: Recall,
    /// What the model is told in place of our own instructions.
    pub base_instructions: Option<Arc<str>>,
    /// What it begins with.
    pub beginning: Beginning,
    /// What the model is told where there are no skills, so that it does not go looking for some.
    pub without_skills: Option<&'static str>,
    /// Whether what a resumed thread has cost so far is forgotten, as some clients expect.
    pub counts_anew: bool,
    /// Whether questions that nobody had answered when the program ended are asked again when the thread is resumed.
    pub asks_again: bool,
    /// Whether the model is told when somebody has stopped a turn.
    pub tells_of_interrupts: bool,
    /// Whether the model gets pictures between marks that name them.
    pub marks_images: bool,
    /// Whether the thread goes on by itself towards a goal that it had before. One that is set is always followed.
    pub follows_goals: bool,
    /// How many bytes of what it said last are kept for readers that were cut off; see [`Thread::subscribe_after`].
    pub recent_bytes: usize,
    /// Where it is noted that there is something to read; none where nobody would look.
    pub notes: Option<Notes>,
}

impl Setup {
    /// Starts a thread. It is on disk when this returns, unless it is not to be saved.
    ///
    /// # Errors
    /// When the working directory does not exist, what the thread goes on with cannot be read, or it cannot be saved.
    pub async fn start(self) -> Result<(Thread, Feed), StartError> {
        let (session, thread, feed) = Session::start(self).await?;
        tokio::spawn(Box::new(session).run());
        Ok((thread, feed))
    }
}

/// What the model remembers of what was cut off or cut out. Clients were written for either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recall {
    /// An interrupted answer is forgotten with its calls, and a summary is one message: the submission queue's way.
    Brief,
    /// What was cut off is known to have been, and what the user said stays apart from a summary.
    Full,
}
