//! The handle by which others drive a thread.

use std::sync::Arc;
use std::time::Duration;

use codex_log::settings::{Settings, SettingsChange};
use codex_log::state::ThreadState;
use codex_log::{Answer, QuestionId, ThreadStarted, TurnId};
use codex_wire::ids::ThreadId;
use codex_wire::input::UserInput;
use codex_wire::response::ResponseItem;
use codex_wire::review::ReviewRequest;
use tokio::sync::{mpsc, oneshot};

use crate::request::{Closed, OpenQuestions, QuestionName, ThreadRequest, TurnInput, TurnStart, WayBack};
use crate::subscription::{Cursor, Subscription};

/// How many requests may wait for a thread; more make the sender wait.
const WAITING_REQUESTS: usize = 64;

/// A thread. Clones drive the same one; when the last is dropped, the thread stops.
#[derive(Debug, Clone)]
pub struct Thread {
    started: Arc<ThreadStarted>,
    /// In boxes, because room for thirty of them is made at once and every thread has it.
    requests: mpsc::Sender<Box<ThreadRequest>>,
}

impl Thread {
    /// A handle on a thread that began so, and where its task receives what is asked of it.
    #[must_use]
    pub fn new(started: Arc<ThreadStarted>) -> (Self, mpsc::Receiver<Box<ThreadRequest>>) {
        let (requests, inbox) = mpsc::channel(WAITING_REQUESTS);
        (Self { started, requests }, inbox)
    }

    /// The name of the thread.
    #[must_use]
    pub fn id(&self) -> ThreadId {
        self.started.meta.id
    }

    /// Whether it has ended, so that it answers nothing any more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.requests.is_closed()
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
        self.say_once(turn, TurnInput { content, change, key: None }).await
    }

    /// The same, unless it was said before under the same key.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn say_once(&self, turn: TurnId, input: TurnInput) -> Result<TurnStart, Closed> {
        let input = Box::new(input);
        self.ask(|reply| ThreadRequest::Say { turn, input, reply }).await
    }

    /// Changes the settings of later turns, and returns what they are now.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn configure(&self, change: SettingsChange) -> Result<Arc<Settings>, Closed> {
        let change = Box::new(change);
        self.ask(|reply| ThreadRequest::Configure { change, reply }).await
    }

    /// Stops what runs and changes the settings, as the earliest clients did first of all. From here on the end of a turn
    /// names the answer it came with, input takes the place of a running turn, and [`Thread::go_back`] works.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn reconfigure(&self, change: SettingsChange) -> Result<Arc<Settings>, Closed> {
        let change = Box::new(change);
        self.ask(|reply| ThreadRequest::Reconfigure { change, reply }).await
    }

    /// Takes the conversation back to where it was after the turn that ended with this answer.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn go_back(&self, response: String) -> Result<WayBack, Closed> {
        self.ask(|reply| ThreadRequest::GoBack { response, reply }).await
    }

    /// Sums the conversation up, in a turn of that name. A running turn makes way.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn compact(&self, turn: TurnId) -> Result<(), Closed> {
        self.ask(|reply| ThreadRequest::Compact { turn, reply }).await
    }

    /// Has changes reviewed, in a turn of that name and a conversation of its own. A running turn makes way.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn review(&self, turn: TurnId, request: ReviewRequest) -> Result<(), Closed> {
        let request = Box::new(request);
        self.ask(|reply| ThreadRequest::Review { turn, request, reply }).await
    }

    /// Runs a command of the user's own, for a shell, in a turn of that name: outside the sandbox, and nobody is asked.
    /// The model learns of it with the next thing that is said. False when a turn runs already.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn run_user_shell(
        &self,
        turn: TurnId,
        command: String,
        timeout: Option<Duration>,
    ) -> Result<bool, Closed> {
        self.ask(|reply| ThreadRequest::RunUserShell { turn, command, timeout, reply }).await
    }

    /// Puts items into the conversation with the model; false when a turn runs, whose calls and outputs they could part.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn inject(&self, items: Vec<ResponseItem>) -> Result<bool, Closed> {
        self.ask(|reply| ThreadRequest::Inject { items, reply }).await
    }

    /// Answers a question; false when it does not wait for an answer any more.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn answer(&self, question: QuestionId, answer: Answer) -> Result<bool, Closed> {
        let question = QuestionName::Id(question);
        self.ask(|reply| ThreadRequest::Answer { question, answer, reply }).await
    }

    /// Answers the question about a call, named by the call, or by its turn when only one is asked about; false when
    /// nothing that is meant waits for an answer.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn answer_named(&self, name: String, answer: Answer) -> Result<bool, Closed> {
        let question = QuestionName::CallOrTurn(name);
        self.ask(|reply| ThreadRequest::Answer { question, answer, reply }).await
    }

    /// Stops the running turn and returns when it has ended; false when none was running.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn interrupt(&self) -> Result<bool, Closed> {
        self.ask(|reply| ThreadRequest::Interrupt { reply }).await
    }

    /// Forgets the last turns; false if a turn runs or not so many are known since the last summary.
    ///
    /// Files that the turns have changed stay as they are.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn roll_back(&self, turns: usize) -> Result<bool, Closed> {
        self.ask(|reply| ThreadRequest::RollBack { turns, reply }).await
    }

    /// The turn that runs, if one does.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn running(&self) -> Result<Option<TurnId>, Closed> {
        self.ask(|reply| ThreadRequest::Running { reply }).await
    }

    /// What the log of the thread comes to; none while something of it is not in the file, or is kept nowhere.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn state(&self) -> Result<Option<Box<ThreadState>>, Closed> {
        self.ask(|reply| ThreadRequest::State { reply }).await
    }

    /// Reads along from here on. Whoever does is told what waits for an answer.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn subscribe(&self) -> Result<Subscription, Closed> {
        self.ask(|reply| ThreadRequest::Subscribe { after: None, reply }).await
    }

    /// Reads along from a place in the log, if what was said since is still known, or from here on.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn subscribe_after(&self, after: Cursor) -> Result<Subscription, Closed> {
        self.ask(|reply| ThreadRequest::Subscribe { after: Some(after), reply }).await
    }

    /// How many read along.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn listeners(&self) -> Result<usize, Closed> {
        self.ask(|reply| ThreadRequest::CountListeners { reply }).await
    }

    /// Lets the running turn end, then closes the thread like [`Thread::close`].
    pub async fn finish(&self) {
        let _: Result<(), Closed> = self.ask(|reply| ThreadRequest::Finish { reply }).await;
    }

    /// Stops the thread and returns when everything is written. Its feeds end after their last event.
    pub async fn close(&self) {
        // A thread that has ended already is as closed as it can be.
        let _: Result<(), Closed> = self.ask(|reply| ThreadRequest::Close { reply }).await;
    }

    /// Whether [`Thread::retire`] would close the thread.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn is_retirable(&self, questions: OpenQuestions) -> Result<bool, Closed> {
        self.ask(|reply| ThreadRequest::IsRetirable { questions, reply }).await
    }

    /// Closes the thread unless a turn runs or somebody reads along; false if it goes on. Nobody can begin either between the
    /// look and the end. A turn that only asks a person is no reason to go on: its questions are asked again when the thread
    /// is resumed, or the turn is interrupted if they cannot be and `questions` says so.
    ///
    /// # Errors
    /// When the thread has ended.
    pub async fn retire(&self, questions: OpenQuestions) -> Result<bool, Closed> {
        self.ask(|reply| ThreadRequest::Retire { questions, reply }).await
    }

    pub(crate) async fn ask<T>(&self, request: impl FnOnce(oneshot::Sender<T>) -> ThreadRequest) -> Result<T, Closed> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(Box::new(request(reply))).await.map_err(|_| Closed)?;
        answer.await.map_err(|_| Closed)
    }
}
