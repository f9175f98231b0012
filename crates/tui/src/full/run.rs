//! Runs the full-screen chat: inputs to the state, effects to the server and the terminal.
//!
//! Invariant: one task owns the state, and it never waits for the terminal.

mod outside;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use codex_dialogue::keys::{self, Keys};
use codex_dialogue::{ChatEnd, StopSignal};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::app::{App, Effect, Input, Settings, When};
use super::status::{Display, DisplaySettings};
use crate::Row;
use crate::chat::{ChatError, ChatParts, Connection, Ended, ThreadToOpen};
use crate::keymap::Keymap;
use crate::theme::{Rgb, Theme};
use crate::vim::Vim;
use codex_dialogue::paint::{self, FrameNumber, Painter};

/// The shortest time between two frames.
const FRAME: Duration = Duration::from_millis(16);
/// The same while only the server tells something: nobody reads faster.
const STREAMED_FRAME: Duration = Duration::from_millis(40);
const SLOWEST_FRAME: Duration = Duration::from_secs(1);
/// The part of the time that frames of a stream may take to draw: one of so many.
const DRAWING_SHARE: u32 = 10;
/// The time after which a chat that waits gives back memory.
const REST: Duration = Duration::from_millis(300);
/// The time in which a frame that was written is told. A terminal that takes nothing delays a key by it.
const TOLD: Duration = Duration::from_millis(50);
/// The most inputs that are taken before a frame is drawn.
const AT_ONCE: usize = 1024;

/// The parts of a full-screen chat besides its connection.
pub struct FullParts {
    pub parts: ChatParts,
    pub theme: Theme,
    /// Opens the terminal.
    pub out: fn() -> io::Stdout,
    pub is_in_tmux: bool,
    pub keymap: Keymap,
    /// Whether the keys of vi are used.
    pub has_vim: bool,
    pub display: DisplaySettings,
}

/// A full-screen chat.
pub struct FullChat {
    app: App,
    connection: Connection,
    keys: Keys,
    stop: StopSignal,
    painter: Painter,
    answers: (mpsc::Sender<Answer>, mpsc::Receiver<Answer>),
    out: fn() -> io::Stdout,
    is_in_tmux: bool,
    /// The first frame with the choices of a request.
    choices: Option<FrameNumber>,
    is_lost: bool,
    is_back: bool,
    /// The first failure to keep a draft, which is told.
    draft_failure: Option<String>,
    /// The time at which memory is given back.
    rest_at: Option<Instant>,
}

/// The answer to a call, by its number.
type Answer = (u64, Result<Value, String>);

enum Next {
    Inputs(Vec<Input>),
    Resized,
    Continued,
    Stop,
    /// Nothing but a frame is due.
    Frame,
}

impl FullChat {
    /// A chat over a connection, on a terminal that was set up for it.
    ///
    /// # Errors
    /// If the system has no room for a thread.
    pub fn new(connection: Connection, (keys, stop): (Keys, StopSignal), parts: FullParts) -> io::Result<Self> {
        let FullParts { parts, theme, out, is_in_tmux, keymap, has_vim, display } = parts;
        let ChatParts { history, context, named, cwd, first, pictures, is_verbose } = parts;
        let run = codex_wire::ids::ThreadId::fresh().to_string();
        let settings = Settings { context, named, cwd, is_verbose, keymap, run, display: Display::new(display) };
        let mut app = App::new(settings, history, theme, size(), std::time::Instant::now());
        app.calls.first = first;
        app.calls.pictures = pictures;
        app.composer.vim = has_vim.then(Vim::default);
        let painter = Painter::start(out())?;
        keys.expect_frames(painter.stopper());
        let answers = mpsc::channel(256);
        Ok(Self {
            app,
            connection,
            keys,
            stop,
            painter,
            answers,
            out,
            is_in_tmux,
            choices: None,
            is_lost: false,
            is_back: false,
            draft_failure: None,
            rest_at: None,
        })
    }

    /// Opens a thread, and chats until the end. Then the shell's screen is back, with the conversation printed once.
    ///
    /// # Errors
    /// If the server fails.
    pub async fn converse(mut self, wanted: ThreadToOpen) -> Result<Ended, ChatError> {
        // The answer comes as an input, or not at all.
        self.painter.send(b"\x1b]11;?\x1b\\");
        let left = self.run(wanted).await;
        for effect in self.update(Input::Leaving) {
            if let Effect::KeepDraft(name, draft) = effect {
                self.keep_draft(&name, draft.as_deref());
            }
        }
        self.print(true);
        let thread = self.app.thread.take().filter(|thread| thread.has_turns).map(|thread| thread.id);
        let closed = if self.is_lost { Ok(()) } else { self.connection.close().await };
        let left = left?;
        closed?;
        Ok(Ended { left, thread })
    }

    async fn run(&mut self, wanted: ThreadToOpen) -> Result<ChatEnd, ChatError> {
        if let Some(end) = self.perform(vec![Effect::Open(wanted)]).await? {
            return Ok(end);
        }
        let (mut is_changed, mut is_urgent, mut drawn_at) = (true, true, None::<Instant>);
        let mut drawing_time = Duration::ZERO;
        loop {
            // A frame that takes long to draw, such as one with a table of a megabyte, is drawn less often.
            let streamed = (drawing_time * DRAWING_SHARE).clamp(STREAMED_FRAME, SLOWEST_FRAME);
            let pace = if is_urgent { FRAME } else { streamed };
            let due = drawn_at.map_or_else(Instant::now, |at| at + pace);
            if is_changed && due <= Instant::now() && !self.painter.is_busy() {
                let begin = Instant::now();
                self.draw();
                drawing_time = begin.elapsed();
                (is_changed, is_urgent, drawn_at) = (false, false, Some(Instant::now()));
            }
            let effects = match self.next(is_changed.then_some(due)).await {
                Next::Stop => return Ok(ChatEnd::ByForce),
                Next::Frame => continue,
                Next::Resized => {
                    let (width, height) = size();
                    self.update(Input::Resized(width, height))
                }
                Next::Continued => {
                    if !std::mem::take(&mut self.is_back) {
                        // If this fails, the terminal is gone, which is told as an input.
                        let _: io::Result<()> = self.keys.retake();
                        self.painter.send(b"\x1b[2J");
                    }
                    vec![Effect::Redraw]
                }
                Next::Inputs(inputs) => {
                    is_urgent |= !matches!(inputs.first(), Some(Input::Event(_)));
                    inputs.into_iter().flat_map(|input| self.update(input)).collect()
                }
            };
            is_changed = true;
            if let Some(end) = self.perform(effects).await? {
                return Ok(end);
            }
        }
    }

    async fn next(&mut self, due: Option<Instant>) -> Next {
        let deadline = self.app.deadline().map(Instant::from_std);
        let until = |time: Option<Instant>| async move {
            match time {
                Some(time) => tokio::time::sleep_until(time).await,
                None => std::future::pending().await,
            }
        };
        // A frame that waits for the terminal is drawn once the one before it is written.
        let due = due.filter(|_| !self.painter.is_busy());
        let first = tokio::select! {
            biased;
            () = &mut self.stop => return Next::Stop,
            // Before the keys: one that was pressed after the choices were drawn must find them drawn.
            Some((number, at)) = self.painter.written() => match self.choices.take_if(|first| *first <= number) {
                Some(_) => Input::Drawn(at),
                None => return Next::Frame,
            },
            input = self.keys.next() => match input {
                keys::Input::Gone => return Next::Stop,
                keys::Input::Resized => return Next::Resized,
                keys::Input::Continued => return Next::Continued,
                keys::Input::Key(key, at) => {
                    let drawn = self.choices_drawn().await;
                    return Next::Inputs(drawn.into_iter().chain([Input::Key(key, at.into_std())]).collect());
                }
                keys::Input::Mouse(mouse) => Input::Mouse(mouse),
                keys::Input::Focus(is_here) => Input::Focus(is_here),
                keys::Input::Background(red, green, blue) => Input::Background(Rgb(red, green, blue)),
                keys::Input::Discarded(number) => Input::Discarded(number),
                keys::Input::Paused => return Next::Frame,
            },
            Some((id, answer)) = self.answers.1.recv() => Input::Answer(id, answer),
            event = self.connection.next(), if !self.is_lost => match event {
                Ok(event) => Input::Event(event),
                Err(error) => {
                    self.is_lost = true;
                    Input::Lost(error.to_string())
                }
            },
            () = until(deadline) => Input::Time(std::time::Instant::now()),
            () = until(self.rest_at) => {
                self.rest_at = None;
                self.app.settings.context.rest();
                return Next::Frame;
            }
            () = until(due) => return Next::Frame,
        };
        let mut inputs = vec![first];
        while inputs.len() < AT_ONCE {
            match self.connection.try_next() {
                Some(event) if !self.is_lost => inputs.push(Input::Event(event)),
                _ => break,
            }
        }
        Next::Inputs(inputs)
    }

    /// The news that the choices are on the screen, if they are being written. The terminal may show them, and a person may
    /// answer, a moment before the thread that writes has told so.
    async fn choices_drawn(&mut self) -> Option<Input> {
        let first = self.choices?;
        let written = async {
            loop {
                let (number, at) = self.painter.written().await?;
                if first <= number {
                    return Some(at);
                }
            }
        };
        let at = tokio::time::timeout(TOLD, written).await.ok()??;
        self.choices = None;
        Some(Input::Drawn(at))
    }

    /// Takes an input. After a mistake of this program the shell's screen is back, and the conversation is printed.
    fn update(&mut self, input: Input) -> Vec<Effect> {
        let app = AssertUnwindSafe(&mut self.app);
        match catch_unwind(move || { app }.update(input)) {
            Ok(effects) => effects,
            Err(panic) => self.give_up(panic),
        }
    }

    fn draw(&mut self) {
        let app = AssertUnwindSafe(&self.app);
        let frame = match catch_unwind(move || { app }.draw()) {
            Ok(frame) => frame,
            Err(panic) => self.give_up(panic),
        };
        let number = self.painter.show(frame);
        if !self.app.panel.has_choices() {
            self.choices = None;
        } else if self.choices.is_none() && !self.app.panel.is_open() {
            self.choices = Some(number);
        }
    }

    fn give_up(&mut self, panic: Box<dyn std::any::Any + Send>) -> ! {
        // The panic hook has restored the terminal. One that took no frame would take no conversation either.
        if self.painter.finish() {
            let _: std::thread::Result<()> = catch_unwind(AssertUnwindSafe(|| self.print(true)));
        }
        resume_unwind(panic)
    }

    /// Leaves the screen and prints what was not printed yet.
    fn print(&mut self, is_all: bool) {
        if !self.painter.finish() {
            return self.keys.drop_output();
        }
        self.keys.restore();
        let thread = self.app.thread.as_ref().and_then(|open| self.app.client.thread(&open.id));
        let rows: Vec<Row> = self.app.transcript.unprinted(thread, self.app.size.0, is_all);
        let mut bytes = Vec::new();
        for row in rows {
            paint::spans(&mut bytes, &row, self.app.theme);
            bytes.extend(b"\r\n");
        }
        if !paint::print((self.out)(), bytes) {
            self.keys.drop_output();
        }
    }

    async fn perform(&mut self, effects: Vec<Effect>) -> Result<Option<ChatEnd>, ChatError> {
        let mut waiting: std::collections::VecDeque<Effect> = effects.into();
        while let Some(effect) = waiting.pop_front() {
            match effect {
                Effect::Leave => return Ok(Some(ChatEnd::ByChoice)),
                Effect::Call { id, method, params } => self.call(id, method, params),
                Effect::Follow(thread, before) => self.connection.follow(&thread, before.as_deref()),
                Effect::Decide(id, decision) => self.connection.answer(&id, decision),
                Effect::Refuse(id) => self.connection.refuse(&id),
                Effect::Discard => {
                    let now = std::time::Instant::now();
                    let keys = &mut self.keys;
                    self.app.panel.readiness.wake(now, || keys.discard());
                }
                Effect::Write(text) => {
                    let input = self.write(text).await;
                    waiting.extend(self.update(input));
                    waiting.push_back(Effect::Redraw);
                }
                Effect::KeepDraft(name, draft) => self.keep_draft(&name, draft.as_deref()),
                Effect::ReadDraft(name) => {
                    if let Some(draft) = self.app.settings.context.draft(&name) {
                        waiting.extend(self.update(Input::Draft(draft)));
                    }
                }
                Effect::Copy(text) => self.copy(&text),
                Effect::Notify(text) if self.app.settings.display.notifies => self.notify(&text),
                Effect::Notify(_) => {}
                Effect::Title(title) => self.painter.send(format!("\x1b]0;{title}\x07").as_bytes()),
                Effect::Export { id, name, text } => self.export(id, name, text),
                Effect::Picture(id) => self.read_picture(id),
                Effect::Program { id, words, about } => self.run_program(id, words, about),
                Effect::Redraw => self.redraw(),
                Effect::Rest(When::Now) => self.app.settings.context.rest(),
                Effect::Rest(When::Later) => self.rest_at = Some(Instant::now() + REST),
                Effect::Suspend => self.suspend(),
                Effect::Open(wanted) => {
                    if let Some(input) = self.open(wanted).await? {
                        waiting.extend(self.update(input));
                    } else {
                        waiting.extend(std::mem::take(&mut self.app.calls.effects));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Keeps a draft. A failure is told once.
    fn keep_draft(&mut self, name: &str, draft: Option<&str>) {
        let kept = self.app.settings.context.keep_draft(name, draft);
        if let (Err(why), None) = (kept, &self.draft_failure) {
            self.app.say(crate::Style::Yellow, "warning", &why);
            self.draft_failure = Some(why);
        }
    }

    /// Gives the terminal to a program in which the text is written.
    async fn write(&mut self, text: String) -> Input {
        // A terminal that takes nothing is left as it is.
        let _: bool = self.painter.finish();
        if let Err(error) = self.keys.pause().await {
            return Input::Written(Err(format!("the terminal is busy: {error}")));
        }
        self.keys.restore();
        let context = Arc::clone(&self.app.settings.context);
        let written = tokio::task::spawn_blocking(move || context.write(&text)).await;
        // If this fails, the terminal is gone, which is told as an input.
        let _: io::Result<()> = self.keys.retake();
        self.keys.unpause();
        (self.app.size, self.app.selection) = (size(), None);
        Input::Written(written.unwrap_or_else(|error| Err(error.to_string())))
    }

    /// Calls a method beside everything else.
    fn call(&self, id: u64, method: &'static str, params: Value) {
        let (caller, answers) = (self.connection.caller().clone(), self.answers.0.clone());
        tokio::spawn(async move {
            let answer = caller.raw(method, params).await.map_err(|error| match error {
                codex_client::CallError::Refused { message, .. } => message,
                error => error.to_string(),
            });
            // The chat may be over.
            let _: Result<(), _> = answers.send((id, answer)).await;
        });
    }

    /// Opens a thread; `None` if the user has to pick one.
    async fn open(&mut self, wanted: ThreadToOpen) -> Result<Option<Input>, ChatError> {
        let context = Arc::clone(&self.app.settings.context);
        let mut params = self.app.settings.named.clone();
        if !context.is_elsewhere() {
            params.insert("cwd".to_owned(), self.app.settings.cwd.to_string_lossy().into());
        }
        let (method, id) = match wanted {
            ThreadToOpen::New => ("thread/start", None),
            ThreadToOpen::Resume(word) => ("thread/resume", Some(word)),
            ThreadToOpen::Fork(word) => ("thread/fork", Some(word)),
            ThreadToOpen::Choice { is_fork, everywhere } => {
                self.app.list_threads(is_fork, everywhere);
                return Ok(None);
            }
        };
        let mut elsewhere = None;
        if let Some(word) = id {
            let finder = Arc::clone(&context);
            let found = tokio::task::spawn_blocking(move || finder.find_thread(&word)).await;
            let id = match found.unwrap_or_else(|error| Err(error.to_string())) {
                Ok(id) => id,
                Err(why) => return Ok(Some(Input::Opened(Err(why), false))),
            };
            if let Some(socket) = context.server_socket().filter(|_| method == "thread/resume") {
                elsewhere = Connection::holding(&socket, &id).await;
            }
            params.insert("threadId".to_owned(), id.into());
            params.insert("excludeTurns".to_owned(), true.into());
            if method == "thread/resume" {
                params.insert("initialTurnsPage".to_owned(), super::loading::latest());
            }
        }
        let server = elsewhere.as_ref().unwrap_or_else(|| self.connection.first());
        let answer = match server.attempt(method, Value::Object(params)).await? {
            Ok(answer) => answer,
            Err(refused) => return Ok(Some(Input::Opened(Err(refused.to_string()), false))),
        };
        // A thread whose agent is opened is heard further, and so is an agent that the chat comes back from.
        let id = answer["thread"]["id"].as_str().unwrap_or_default();
        let is_kin = self.app.calls.is_kin;
        let before = self.app.thread.as_ref().filter(|before| id != before.id && !is_kin);
        if let Some(before) = before {
            // It is saved already; whether it can be unloaded now does not matter.
            self.connection.attempt("thread/unsubscribe", json!({"threadId": before.id})).await?.ok();
        }
        let is_joined = elsewhere.is_some();
        self.connection.turn_to(elsewhere);
        Ok(Some(Input::Opened(Ok(answer), is_joined)))
    }

    fn redraw(&mut self) {
        let mut frame = self.app.draw();
        frame.is_whole = true;
        self.painter.show(frame);
    }

    /// Ctrl-Z: gives the terminal back until the shell continues the program.
    fn suspend(&mut self) {
        self.print(false);
        self.is_back = self.keys.suspend().is_ok();
        (self.app.size, self.app.selection) = (size(), None);
        self.redraw();
    }
}

/// The size of the terminal.
fn size() -> (usize, usize) {
    let (width, height) = crossterm::terminal::size().unwrap_or_default();
    let or = |size: u16, usual| if size == 0 { usual } else { usize::from(size) };
    (or(width, 80), or(height, 24))
}
