//! The handle by which others drive a thread.

mod goals;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use codex_config::{Config, Home};
use codex_log::settings::{Settings, SettingsChange};
use codex_log::{Answer, Event, Question, QuestionId, ThreadStarted, TurnId};
use codex_model::Model;
use codex_store::{ForkError, Notes, ReadError, RolloutError};
use codex_wire::ids::ThreadId;
use codex_wire::input::UserInput;
use codex_wire::response::ResponseItem;
use codex_wire::review::ReviewRequest;
use codex_wire::rollout::SessionSource;
use codex_wire::skill::SkillsListEntry;
use codex_wire::tokens::TokenUsageInfo;
use tokio::sync::{mpsc, oneshot};

use crate::beginning::Beginning;
use crate::feed::Feed;
use crate::goal::{Goal, GoalChange, GoalError};
use crate::session::Session;
use crate::skills;

/// How many commands may wait for a thread; more make the sender wait.
const WAITING_COMMANDS: usize = 64;

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

/// What the model remembers of what was cut off or cut out. Clients were written for either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recall {
    /// An interrupted answer is forgotten with its calls, and a summary is one message: the submission queue's way.
    Brief,
    /// What was cut off is known to have been, and what the user said stays apart from a summary.
    Full,
}

/// Why a thread could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The working directory is unusable.
    #[error("the working directory {cwd} does not exist", cwd = .cwd.display())]
    NoSuchFolder {
        /// Which one.
        cwd: PathBuf,
    },
    /// The file that replaces the base instructions could not be read.
    #[error("{key}: could not read {path}", path = .path.display())]
    Instructions {
        /// What names it in the configuration.
        key: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// What it should go on with could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Its file could not be made, opened or written.
    #[error(transparent)]
    Rollout(#[from] RolloutError),
    /// The other thread could not be copied.
    #[error(transparent)]
    Fork(#[from] ForkError),
    /// The work before the start was cut off by the end of the program.
    #[error("could not prepare the thread")]
    Prepare(#[source] tokio::task::JoinError),
    /// The files of the thread or of its project could not be read in time.
    #[error("the files of the thread and its project could not be read within {} s", .after.as_secs())]
    Slow {
        /// How long they were waited for.
        after: Duration,
    },
    /// Our own tool descriptions could not be encoded.
    #[error("could not describe the tools")]
    Tools(#[from] serde_json::Error),
}

impl StartError {
    /// Whether the thread could not be saved, which is no fault of whoever asked for it.
    #[must_use]
    pub fn is_unsaved(&self) -> bool {
        let (Self::Rollout(error) | Self::Fork(ForkError::Write(error))) = self else { return false };
        !matches!(error, RolloutError::Locked { .. } | RolloutError::Moved { .. })
    }
}

/// The thread has ended, so nothing more can be asked of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the thread has ended")]
pub struct Closed;

/// What became of a user's input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnStart {
    /// It started a turn.
    Started,
    /// A turn was running; the model gets the input with its next request.
    Joined(TurnId),
    /// The same input, by its key, has been said before, in this turn. Nothing has changed.
    Known(TurnId),
}

/// What somebody says.
#[derive(Debug, Clone, Default)]
pub struct Saying {
    /// The pieces.
    pub content: Vec<UserInput>,
    /// What the turn that it starts, and those after it, run under.
    pub change: SettingsChange,
    /// The client's own name for it. What was said before under the same key is not said again, so a client that does
    /// not know whether it was heard can repeat itself.
    pub key: Option<Arc<str>>,
}

/// A place in a thread's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Which log: numbers begin anew whenever a thread is loaded. Without it, the one that is loaded is meant.
    pub log: Option<String>,
    /// The number of the event that was read last.
    pub seq: u64,
}

/// A place to read a thread's log from now on, and what is going on at that moment.
#[derive(Debug)]
pub struct Subscription {
    /// The log from here on.
    pub feed: Feed,
    /// What turns run under now.
    pub settings: Arc<Settings>,
    /// The turn that runs.
    pub running: Option<TurnId>,
    /// The questions that wait for an answer.
    pub asked: Vec<Arc<Question>>,
    /// What the thread has used; none before the first answer.
    pub tokens: Option<TokenUsageInfo>,
    /// The events of a running turn before the feed that its events refer to: how the turn began, which items are not
    /// whole, what was said last. A projection takes them in before the feed, and tells nobody.
    pub standing: Vec<Arc<Event>>,
    /// Where the feed begins.
    pub begins: FeedStart,
}

/// Where a feed begins in its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedStart {
    /// The name of the log.
    pub log: ThreadId,
    /// The number of the event that had been published last.
    pub last: Option<u64>,
    /// Whether the feed begins where the reader stopped. If not, it begins now, and what came before must be read from
    /// the thread's file.
    pub is_unbroken: bool,
}

/// What became of the wish to take the conversation back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WayBack {
    /// The conversation is where it was after that answer.
    Gone,
    /// No turn has ended with that answer. Nothing has changed.
    Unknown,
    /// This session keeps no points to go back to, see [`Thread::reconfigure`]. Nothing has changed.
    NotKept,
}

/// A thread. Clones drive the same one; when the last is dropped, the thread stops.
#[derive(Debug, Clone)]
pub struct Thread {
    id: ThreadId,
    config: Arc<Config>,
    home: Home,
    started: Arc<ThreadStarted>,
    /// In boxes, because room for thirty of them is made at once and every thread has it.
    commands: mpsc::Sender<Box<Command>>,
}

/// What becomes of questions of a thread that nobody listens to, if they cannot be asked again when it is resumed: those about
/// a command that has run before, those after which the user has said something, and those of a thread that is not saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenQuestions {
    /// They wait for an answer, and the thread with them.
    Wait,
    /// Their turn is interrupted.
    Interrupt,
}

/// How a client says which question it answers.
#[derive(Debug)]
pub(crate) enum QuestionName {
    /// By its own name.
    Id(QuestionId),
    /// By the call it is about, or by its turn when only one is asked there.
    CallOrTurn(String),
}

/// What a session is asked to do.
#[derive(Debug)]
pub(crate) enum Command {
    Say { turn: TurnId, saying: Box<Saying>, reply: oneshot::Sender<TurnStart> },
    Configure { change: Box<SettingsChange>, reply: oneshot::Sender<Arc<Settings>> },
    Reconfigure { change: Box<SettingsChange>, reply: oneshot::Sender<Arc<Settings>> },
    GoBack { response: String, reply: oneshot::Sender<WayBack> },
    Compact { turn: TurnId, reply: oneshot::Sender<()> },
    Review { turn: TurnId, request: Box<ReviewRequest>, reply: oneshot::Sender<()> },
    RunOwn { turn: TurnId, command: String, timeout: Option<Duration>, reply: oneshot::Sender<bool> },
    Inject { items: Vec<ResponseItem>, reply: oneshot::Sender<bool> },
    Answer { question: QuestionName, answer: Answer, reply: oneshot::Sender<bool> },
    Interrupt { reply: oneshot::Sender<bool> },
    RollBack { turns: usize, reply: oneshot::Sender<bool> },
    SetGoal { change: Box<GoalChange>, reply: oneshot::Sender<Result<Goal, GoalError>> },
    ClearGoal { reply: oneshot::Sender<bool> },
    Goal { reply: oneshot::Sender<Option<Goal>> },
    Running { reply: oneshot::Sender<Option<TurnId>> },
    Subscribe { after: Option<Place>, reply: oneshot::Sender<Subscription> },
    CountListeners { reply: oneshot::Sender<usize> },
    IsRetirable { questions: OpenQuestions, reply: oneshot::Sender<bool> },
    Finish { reply: oneshot::Sender<()> },
    Close { reply: oneshot::Sender<()> },
    Retire { questions: OpenQuestions, reply: oneshot::Sender<bool> },
}

impl Thread {
    /// Starts a thread. It is on disk when this returns, unless it is not to be saved.
    ///
    /// # Errors
    /// When the working directory does not exist, what the thread goes on with cannot be read, or it cannot be saved.
    pub async fn start(setup: Setup) -> Result<(Self, Feed), StartError> {
        let (commands, inbox) = mpsc::channel(WAITING_COMMANDS);
        let (config, home) = (Arc::clone(&setup.config), setup.home.clone());
        let (session, feed) = Session::start(setup, inbox).await?;
        let started = session.started();
        let id = started.meta.id;
        tokio::spawn(Box::new(session).run());
        Ok((Self { id, config, home, started, commands }, feed))
    }

    /// The name of the thread.
    #[must_use]
    pub fn id(&self) -> ThreadId {
        self.id
    }

    /// How it began.
    #[must_use]
    pub fn started(&self) -> &ThreadStarted {
        &self.started
    }

    /// Says something: starts a turn of that name, or joins the one that is running.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn say(
        &self,
        turn: TurnId,
        content: Vec<UserInput>,
        change: SettingsChange,
    ) -> Result<TurnStart, Closed> {
        self.say_once(turn, Saying { content, change, key: None }).await
    }

    /// The same, unless it was said before under the same key.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn say_once(&self, turn: TurnId, saying: Saying) -> Result<TurnStart, Closed> {
        let saying = Box::new(saying);
        self.ask(|reply| Command::Say { turn, saying, reply }).await
    }

    /// Changes the settings of later turns, and returns what they are now.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn configure(&self, change: SettingsChange) -> Result<Arc<Settings>, Closed> {
        let change = Box::new(change);
        self.ask(|reply| Command::Configure { change, reply }).await
    }

    /// Stops what runs and changes the settings, as the earliest clients did first of all. From here on the end of a turn
    /// names the answer it came with, input takes the place of a running turn, and [`Thread::go_back`] works.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn reconfigure(&self, change: SettingsChange) -> Result<Arc<Settings>, Closed> {
        let change = Box::new(change);
        self.ask(|reply| Command::Reconfigure { change, reply }).await
    }

    /// Takes the conversation back to where it was after the turn that ended with this answer.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn go_back(&self, response: String) -> Result<WayBack, Closed> {
        self.ask(|reply| Command::GoBack { response, reply }).await
    }

    /// Sums the conversation up, in a turn of that name. A running turn makes way.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn compact(&self, turn: TurnId) -> Result<(), Closed> {
        self.ask(|reply| Command::Compact { turn, reply }).await
    }

    /// Has changes reviewed, in a turn of that name and a conversation of its own. A running turn makes way.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn review(&self, turn: TurnId, request: ReviewRequest) -> Result<(), Closed> {
        let request = Box::new(request);
        self.ask(|reply| Command::Review { turn, request, reply }).await
    }

    /// Runs a command of the user's own, for a shell, in a turn of that name: outside the sandbox, and nobody is asked.
    /// The model learns of it with the next thing that is said. False when a turn runs already.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn run_own(&self, turn: TurnId, command: String, timeout: Option<Duration>) -> Result<bool, Closed> {
        self.ask(|reply| Command::RunOwn { turn, command, timeout, reply }).await
    }

    /// Puts items into the conversation with the model; false when a turn runs, whose calls and outputs they could part.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn inject(&self, items: Vec<ResponseItem>) -> Result<bool, Closed> {
        self.ask(|reply| Command::Inject { items, reply }).await
    }

    /// Whether the user has set up servers of tools.
    #[must_use]
    pub fn has_tool_servers(&self) -> bool {
        self.config.tree.get(&["mcp_servers"]).is_some()
    }

    /// The skills for a folder, or for the thread's own. It reads files; run it off the async threads.
    #[must_use]
    pub fn skills(&self, cwd: Option<&Path>) -> SkillsListEntry {
        skills::list(&self.config, &self.home, cwd.unwrap_or(&self.started.settings.cwd))
    }

    /// Answers a question; false when it does not wait for an answer any more.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn answer(&self, question: QuestionId, answer: Answer) -> Result<bool, Closed> {
        let question = QuestionName::Id(question);
        self.ask(|reply| Command::Answer { question, answer, reply }).await
    }

    /// Answers the question about a call, named by the call, or by its turn when only one is asked about; false when
    /// nothing that is meant waits for an answer.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn answer_named(&self, name: String, answer: Answer) -> Result<bool, Closed> {
        let question = QuestionName::CallOrTurn(name);
        self.ask(|reply| Command::Answer { question, answer, reply }).await
    }

    /// Stops the running turn and returns when it has ended; false when none was running.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn interrupt(&self) -> Result<bool, Closed> {
        self.ask(|reply| Command::Interrupt { reply }).await
    }

    /// Forgets the last turns; false if a turn runs or not so many are known since the last summary.
    ///
    /// Files that the turns have changed stay as they are.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn roll_back(&self, turns: usize) -> Result<bool, Closed> {
        self.ask(|reply| Command::RollBack { turns, reply }).await
    }

    /// The turn that runs, if one does.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn running(&self) -> Result<Option<TurnId>, Closed> {
        self.ask(|reply| Command::Running { reply }).await
    }

    /// Reads along from here on. Whoever does is told what waits for an answer.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn subscribe(&self) -> Result<Subscription, Closed> {
        self.ask(|reply| Command::Subscribe { after: None, reply }).await
    }

    /// Reads along from a place in the log, if what was said since is still known, or from here on.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn subscribe_after(&self, after: Place) -> Result<Subscription, Closed> {
        self.ask(|reply| Command::Subscribe { after: Some(after), reply }).await
    }

    /// How many read along.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn listeners(&self) -> Result<usize, Closed> {
        self.ask(|reply| Command::CountListeners { reply }).await
    }

    /// Lets the running turn end, then closes the thread like [`Thread::close`].
    pub async fn finish(&self) {
        let _: Result<(), Closed> = self.ask(|reply| Command::Finish { reply }).await;
    }

    /// Stops the thread and returns when everything is written. Its feeds end after their last event.
    pub async fn close(&self) {
        // A thread that has ended already is as closed as it can be.
        let _: Result<(), Closed> = self.ask(|reply| Command::Close { reply }).await;
    }

    /// Whether [`Thread::retire`] would close the thread.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn is_retirable(&self, questions: OpenQuestions) -> Result<bool, Closed> {
        self.ask(|reply| Command::IsRetirable { questions, reply }).await
    }

    /// Closes the thread unless a turn runs or somebody reads along; false if it goes on. Nobody can begin either between the
    /// look and the end. A turn that only asks a person is no reason to go on: its questions are asked again when the thread
    /// is resumed, or the turn is interrupted if they cannot be and `questions` says so.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn retire(&self, questions: OpenQuestions) -> Result<bool, Closed> {
        self.ask(|reply| Command::Retire { questions, reply }).await
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, Closed> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(Box::new(command(reply))).await.map_err(|_| Closed)?;
        answer.await.map_err(|_| Closed)
    }
}
