//! The chat itself: keys and notifications in, requests and output out.
//!
//! Invariant: one task owns everything here. The state of the thread is known only from notifications.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use codex_client::Event;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::agents::Agents;
use super::connection::Connection;
use super::context::ChatContext;
use super::error::{ChatError, Refused};
use super::open_thread::ThreadToOpen;
use super::view::View;
use crate::editor::{Edit, Editor};
use crate::picker::Picker;
use crate::question::{Question, QuestionQueue};
use crate::transcript::Style;
use crate::{Row, Span, slash};
use codex_dialogue::keys::{Input, Key, Keys};
use codex_dialogue::screen::{Footer, Screen};
use codex_dialogue::{ChatEnd, History, StopSignal};

/// The interval at which the duration of a turn is updated.
const TICK: Duration = Duration::from_secs(1);

/// The maximum number of server messages handled before keys are checked again.
const AT_ONCE: usize = 256;

/// A chat in a terminal.
pub struct Chat<W> {
    pub(crate) connection: Connection,
    pub(crate) screen: Screen<W>,
    pub(crate) view: View,
    pub(crate) keys: Keys,
    pub(crate) stop: StopSignal,
    pub(crate) editor: Editor,
    pub(crate) history: History,
    pub(crate) context: Arc<dyn ChatContext>,
    pub(crate) named: Map<String, Value>,
    pub(crate) thread: Option<Opened>,
    pub(crate) cwd: PathBuf,
    /// The initial prompt, sent as soon as a thread is open.
    pub(crate) first: Option<String>,
    pub(crate) pictures: Vec<PathBuf>,
    pub(crate) running: Option<Running>,
    pub(crate) asking: QuestionQueue,
    pub(crate) agents: Agents,
    pub(crate) choosing: Option<ThreadPicker>,
    /// Policies that await confirmation.
    pub(crate) unconfirmed: Option<Vec<String>>,
    /// Whether the next Ctrl-C quits.
    pub(crate) is_warned: bool,
    /// Whether the next SIGCONT was handled already.
    pub(crate) is_back: bool,
}

/// The parts of a chat besides its connection.
pub struct ChatParts {
    pub history: History,
    pub context: Arc<dyn ChatContext>,
    /// The settings from the command line, which override those of a resumed thread.
    pub named: Map<String, Value>,
    pub cwd: PathBuf,
    /// The initial prompt.
    pub first: Option<String>,
    /// Images to attach to the initial prompt.
    pub pictures: Vec<PathBuf>,
    /// Whether all causes of a failure are shown.
    pub is_verbose: bool,
}

#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) provider: String,
    pub(crate) effort: String,
    pub(crate) approvals: String,
    pub(crate) sandbox: String,
    /// Whether it has turns, so that it can be resumed.
    pub(crate) has_turns: bool,
    /// The last turn that was shown.
    pub(crate) last_turn: String,
}

#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) turn: String,
    since: Instant,
    pub(crate) waiting: usize,
}

#[derive(Debug)]
pub(crate) struct ThreadPicker {
    pub(crate) ids: Vec<String>,
    pub(crate) picker: Picker,
    /// Whether to fork the picked one.
    pub(crate) is_fork: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    Stay,
    Leave,
}

/// The end of a chat, and the thread that can be resumed.
#[derive(Debug, PartialEq, Eq)]
pub struct Ended {
    pub left: ChatEnd,
    pub thread: Option<String>,
}

enum ChatEvent {
    Event(Event),
    Input(Input),
    Time,
    Stop,
}

impl<W: Write> Chat<W> {
    /// A chat over a connection, with nothing open.
    pub fn new(
        connection: Connection,
        screen: Screen<W>,
        (keys, stop): (Keys, StopSignal),
        made_of: ChatParts,
    ) -> Self {
        let ChatParts { history, context, named, cwd, first, pictures, is_verbose } = made_of;
        let mut view = View::new(screen.capabilities().colour);
        view.is_verbose = is_verbose;
        let is_numbered = screen.capabilities().is_dumb;
        Self {
            connection,
            screen,
            view,
            keys,
            stop,
            editor: Editor::default(),
            history,
            context,
            named,
            thread: None,
            cwd,
            first,
            pictures,
            running: None,
            asking: QuestionQueue::new(is_numbered),
            agents: Agents::default(),
            choosing: None,
            unconfirmed: None,
            is_warned: false,
            is_back: false,
        }
    }

    /// Opens a thread, and chats until the end.
    pub async fn converse(mut self, wanted: &ThreadToOpen) -> Result<Ended, ChatError> {
        let left = self.open_and_run(wanted).await;
        let shown = self.draw().and_then(|()| self.screen.finish());
        let thread = self.thread.take().filter(|thread| thread.has_turns).map(|thread| thread.id);
        // However the chat has ended, everything is written.
        let closed = self.connection.close().await;
        let left = left?;
        closed?;
        // A terminal that is gone shows nothing, which is no failure.
        if left == ChatEnd::ByChoice {
            shown.map_err(ChatError::Terminal)?;
        }
        Ok(Ended { left, thread })
    }

    async fn open_and_run(&mut self, wanted: &ThreadToOpen) -> Result<ChatEnd, ChatError> {
        let cwd = self.cwd.clone();
        self.open(wanted, &cwd).await??;
        if self.thread.is_none() && self.choosing.is_none() {
            return Ok(ChatEnd::ByChoice);
        }
        if self.thread.is_some() {
            self.say_first().await?;
        }
        self.run().await
    }

    async fn run(&mut self) -> Result<ChatEnd, ChatError> {
        loop {
            if self.draw().is_err() {
                // A terminal that cannot be written to is gone.
                return Ok(ChatEnd::ByForce);
            }
            match self.wait().await? {
                ChatEvent::Event(event) => self.events(event),
                ChatEvent::Time if self.asking.is_empty() => {}
                ChatEvent::Time => self.asking.arming.wake(Instant::now().into_std(), || self.keys.discard()),
                ChatEvent::Stop => return Ok(ChatEnd::ByForce),
                ChatEvent::Input(Input::Gone) => return Ok(ChatEnd::ByForce),
                ChatEvent::Input(Input::Mouse(_) | Input::Focus(_) | Input::Background(..) | Input::Paused) => {}
                ChatEvent::Input(Input::Resized) => self.resize(),
                ChatEvent::Input(Input::Continued) => self.continued(),
                ChatEvent::Input(Input::Discarded(number)) => self.asking.arming.discarded(number),
                ChatEvent::Input(Input::Key(key, at)) => {
                    if self.press(&key, at).await? == Flow::Leave {
                        return Ok(ChatEnd::ByChoice);
                    }
                }
            }
        }
    }

    async fn wait(&mut self) -> Result<ChatEvent, ChatError> {
        let tick = self.running.as_ref().map(|_| Instant::now() + TICK);
        let deadline = if self.asking.is_empty() { tick } else { self.asking.arming.deadline().map(Instant::from_std) };
        let time = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        Ok(tokio::select! {
            biased;
            () = &mut self.stop => ChatEvent::Stop,
            input = self.keys.next() => ChatEvent::Input(input),
            event = self.connection.next() => ChatEvent::Event(event?),
            () = time => ChatEvent::Time,
        })
    }

    /// Follows the size of the terminal. If that fails, so does the next drawing.
    pub(crate) fn resize(&mut self) {
        let resized = crossterm::terminal::size().and_then(|size| self.screen.resize(size));
        resized.unwrap_or_default();
    }

    pub(crate) fn draw(&mut self) -> std::io::Result<()> {
        let (text, footer) = (self.view.take(), self.footer());
        // The time before they are drawn: a person, or a program, may be faster than the code after the drawing.
        let now = Instant::now();
        self.screen.show(text, footer)?;
        self.asking.arming.drawn(now.into_std());
        Ok(())
    }

    fn footer(&self) -> Footer {
        if !self.asking.is_empty() {
            let is_question = self.asking.arming.has_choices();
            return Footer {
                status: self.asking.choices(),
                is_question,
                typed: self.asking.typed(),
                ..Footer::default()
            };
        }
        if let Some(ThreadPicker { picker, .. }) =
            self.choosing.as_ref().filter(|_| !self.screen.capabilities().is_dumb)
        {
            let (width, height) = self.screen.size();
            let typed = Some((picker.query().to_owned(), picker.query().len()));
            let status = dim("Pick a thread: arrows or a number, type to search, Enter to open, Esc to cancel");
            return Footer { list: picker.rows(width, height / 2), status, is_question: false, typed };
        }
        let status = match &self.running {
            Some(running) if self.view.retries() > 0 => {
                dim(&format!("{} · retry {}", running.describe(), self.view.retries()))
            }
            Some(running) => dim(&running.describe()),
            None if self.is_warned => dim("Press Ctrl-C again to quit"),
            None => Row::new(),
        };
        Footer { status, typed: Some(self.editor.shown()), ..Footer::default() }
    }

    fn events(&mut self, first: Event) {
        self.event(first);
        for _ in 0..AT_ONCE {
            let Some(next) = self.connection.try_next() else { break };
            self.event(next);
        }
    }

    /// Whether an event is about the open thread. Events about the previous one may still arrive.
    fn is_about_this(&self, thread: &str) -> bool {
        thread.is_empty() || self.thread.as_ref().is_some_and(|open| open.id == thread)
    }

    fn event(&mut self, event: Event) {
        if let Event::Asked { thread, id, method, params } = event {
            match Question::read(id, &method, &params, |item| self.view.is_whole(item)) {
                Ok(question) if self.agents.knows(&thread) => {
                    self.agents.asked(&question.id);
                    self.ask(question);
                }
                Ok(question) if self.is_about_this(&thread) => self.ask(question),
                Ok(Question { id, .. }) | Err(id) => self.connection.refuse(&id),
            }
            return;
        }
        self.agents.event(&event);
        if self.is_about_connection(&event) {
            return;
        }
        if !self.is_about_this(about(&event)) {
            if let Event::Resolved { id, .. } = event {
                self.withdraw(|question| question.id == id);
            }
            return;
        }
        self.view.event(&event);
        match event {
            Event::TurnStarted { turn, .. } => self.begin_turn(turn),
            Event::ItemCompleted { item, .. } if item.get("type").is_some_and(|kind| kind == "userMessage") => {
                if let Some(running) = &mut self.running {
                    running.waiting = running.waiting.saturating_sub(1);
                }
            }
            Event::TurnEnded { .. } => {
                self.running = None;
                let agents = std::mem::take(&mut self.agents);
                self.withdraw(|question| !agents.has_asked(&question.id));
                self.agents = agents;
            }
            Event::Resolved { id, .. } => self.withdraw(|question| question.id == id),
            _ => {}
        }
    }

    pub(crate) fn begin_turn(&mut self, turn: String) {
        if let Some(thread) = &mut self.thread {
            thread.has_turns = true;
            thread.last_turn.clone_from(&turn);
        }
        if self.running.as_ref().is_none_or(|running| running.turn != turn) {
            self.running = Some(Running { turn, since: Instant::now(), waiting: 0 });
        }
    }

    async fn press(&mut self, key: &Key, at: Instant) -> Result<Flow, ChatError> {
        if *key == Key::Ctrl('z') {
            self.suspend();
            return Ok(Flow::Stay);
        }
        if !self.asking.is_empty() {
            self.answer(key, at);
            return Ok(Flow::Stay);
        }
        if self.choosing.is_some() && !self.screen.capabilities().is_dumb && *key != Key::Ctrl('l') {
            return self.pick(key).await;
        }
        if *key == Key::Ctrl('c') {
            return self.interrupt().await;
        }
        self.is_warned = false;
        match self.editor.press(key) {
            Edit::Submit => return self.submit().await,
            Edit::End => return Ok(Flow::Leave),
            Edit::Older => {
                if let Some(text) = self.history.older(&self.editor.text()) {
                    self.editor.replace(&text);
                }
            }
            Edit::Newer => {
                if let Some(text) = self.history.newer() {
                    self.editor.replace(&text);
                }
            }
            Edit::Full => self.view.note(Style::Yellow, "too long", "the text has as many bytes as can be sent"),
            // If this fails, so does the next drawing.
            Edit::Ignored if *key == Key::Ctrl('l') => self.screen.clear().unwrap_or_default(),
            Edit::Ignored if *key == Key::Esc => self.stop_turn().await?,
            Edit::Changed | Edit::Ignored => {}
        }
        Ok(Flow::Stay)
    }

    async fn submit(&mut self) -> Result<Flow, ChatError> {
        let text = self.editor.take();
        if let Some(choosing) = self.choosing.take() {
            return self.choose_by_number(choosing, text.trim()).await;
        }
        if let Some(words) = self.unconfirmed.take() {
            self.confirm(&words, text.trim()).await?;
            return Ok(Flow::Stay);
        }
        if text.trim().is_empty() {
            return Ok(Flow::Stay);
        }
        if let Some(command) = text.trim().strip_prefix('!').map(str::trim).filter(|command| !command.is_empty()) {
            self.history.add(None, &text);
            return self.run_own(command).await.map(|()| Flow::Stay);
        }
        match slash::read(&text) {
            Some(command) => {
                self.history.add(None, &text);
                self.command(command).await
            }
            None => self.say(text).await.map(|()| Flow::Stay),
        }
    }

    /// Sends a request. An error response is not a failure of the chat.
    pub(crate) async fn attempt(&mut self, method: &str, params: Value) -> Result<Result<Value, Refused>, ChatError> {
        self.connection.attempt(method, params).await
    }
}

impl Running {
    fn describe(&self) -> String {
        let waiting = match self.waiting {
            0 => String::new(),
            1 => " · 1 message queued".to_owned(),
            count => format!(" · {count} messages queued"),
        };
        format!("Working… {} s{waiting} · Esc or Ctrl-C to stop", self.since.elapsed().as_secs())
    }
}

fn dim(text: &str) -> Row {
    vec![Span::new(Style::Dim, text)]
}

/// The thread that an event is about; empty if it is about none.
pub(crate) fn about(event: &Event) -> &str {
    match event {
        // A search for files has a session, which is no thread.
        Event::Other { params, .. } | Event::Unknown { params, .. } => {
            params.get("threadId").and_then(Value::as_str).unwrap_or_default()
        }
        event => event.thread().unwrap_or_default(),
    }
}
