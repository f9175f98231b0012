//! The state of the chat, and how inputs change it.
//!
//! Invariant: pure. Everything that has to be done outside is an [`Effect`].

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use codex_client::Event;
use codex_client::State;
use codex_client::approvals;
use codex_client::state::Thread;
use codex_dialogue::History;
use codex_wire::ids::RequestId;
use serde_json::{Map, Value};

use super::approval::Panel;
use super::back::Left;
use super::calls::Pending;
use super::choices::Choice;
use super::completion::Names;
use super::composer::Composer;
use super::layout;
use super::mouse::Selection;
use super::queue::Queue;
use super::status::{Display, Told};
use super::transcript::Transcript;
use super::views::{BoardKind, Ledger};
use crate::chat::{Agents, ChatContext, ThreadToOpen};
use crate::input::Mouse;
use crate::key::Key;
use crate::keymap::Keymap;
use crate::theme::{Rgb, Theme};
use crate::{Row, Span, Style, printable};
use codex_views::board::Board;
use codex_views::list::List;
use codex_views::page::Page;
use codex_views::threads::Threads;

/// The interval at which the duration of a turn is updated.
const TICK: Duration = Duration::from_secs(1);

/// Everything that can happen.
#[derive(Debug)]
pub(super) enum Input {
    Key(Key, Instant),
    Mouse(Mouse),
    Focus(bool),
    Background(Rgb),
    Resized(usize, usize),
    Event(Event),
    /// The answer to a call.
    Answer(u64, Result<Value, String>),
    /// A thread was opened; whether in a server that runs on.
    Opened(Result<Value, String>, bool),
    /// Keys before the discard request with this number are gone.
    Discarded(u64),
    /// The choices are on the screen since this time.
    Drawn(Instant),
    Time(Instant),
    /// A draft of before.
    Draft(String),
    /// The chat is being left.
    Leaving,
    /// The text that was written in another program.
    Written(Result<String, String>),
    /// The server is gone.
    Lost(String),
}

/// Everything that is to be done outside.
#[derive(Debug, PartialEq)]
pub(super) enum Effect {
    Call {
        id: u64,
        method: &'static str,
        params: Value,
    },
    Open(ThreadToOpen),
    /// Follow a thread across breaks of the connection, instead of another one.
    Follow(String, Option<String>),
    Decide(RequestId, approvals::Decision),
    Refuse(RequestId),
    /// Discard keys typed before now.
    Discard,
    /// Let the person write the text in a program of theirs.
    Write(String),
    /// Read the draft with a name.
    ReadDraft(String),
    /// Keep a draft by its name, or remove it.
    KeepDraft(String, Option<String>),
    /// Put a text on the clipboard.
    Copy(String),
    /// Tell the person that somebody waits for them.
    Notify(String),
    /// Write a text to a new file, and answer with its path.
    Export {
        id: u64,
        name: Option<String>,
        text: String,
    },
    /// Save the picture on the clipboard, and answer with its path.
    Picture(u64),
    /// Run a program with these variables, and answer with its output.
    Program {
        id: u64,
        words: Vec<String>,
        about: Value,
    },
    /// Name the window.
    Title(String),
    /// Draw everything again.
    Redraw,
    /// Give back memory: at once, or as soon as nothing happens.
    Rest(When),
    Suspend,
    Leave,
}

/// The time at which memory is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Now,
    Later,
}

/// Something that covers the transcript.
#[derive(Debug)]
pub(super) enum Overlay {
    Page(Page),
    Board(BoardKind, Board),
    Threads(Threads),
    Choice(Choice, List),
    /// A search, while its text is typed.
    Search(String),
}

/// The open thread.
#[derive(Debug, Default)]
pub(super) struct Opened {
    pub(super) id: String,
    pub(super) model: String,
    pub(super) provider: String,
    pub(super) effort: String,
    pub(super) approvals: String,
    pub(super) sandbox: String,
    pub(super) has_turns: bool,
}

#[derive(Debug)]
pub(super) struct Running {
    pub(super) turn: String,
    pub(super) since: Instant,
    /// The number of messages that have joined the turn and were not seen yet.
    pub(super) steered: usize,
}

/// The surroundings of a chat, which do not change.
pub(super) struct Settings {
    pub(super) context: Arc<dyn ChatContext>,
    /// The settings from the command line, which override those of a resumed thread.
    pub(super) named: Map<String, Value>,
    pub(super) cwd: PathBuf,
    pub(super) is_verbose: bool,
    pub(super) keymap: Keymap,
    /// A name for this run, which no other has.
    pub(super) run: String,
    pub(super) display: Display,
}

/// The state.
pub(super) struct App {
    pub(super) settings: Settings,
    pub(super) client: State,
    pub(super) thread: Option<Opened>,
    pub(super) transcript: Transcript,
    pub(super) composer: Composer,
    pub(super) history: History,
    pub(super) panel: Panel,
    pub(super) overlay: Option<Overlay>,
    pub(super) queue: Queue,
    pub(super) names: Names,
    pub(super) running: Option<Running>,
    pub(super) size: (usize, usize),
    pub(super) theme: Theme,
    pub(super) now: Instant,
    pub(super) selection: Option<Selection>,
    pub(super) calls: Calls,
    pub(super) hint: Option<String>,
    pub(super) branch: Option<String>,
    pub(super) lost: Option<String>,
    pub(super) is_warned: bool,
}

/// Calls that wait for an answer, and the small things that keys remember.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) next: u64,
    pub(super) pending: HashMap<u64, Pending>,
    pub(super) effects: Vec<Effect>,
    /// The initial prompt and its pictures.
    pub(super) first: Option<String>,
    pub(super) pictures: Vec<PathBuf>,
    /// Policies that await confirmation.
    pub(super) unconfirmed: Option<Vec<String>>,
    pub(super) escaped: Option<Instant>,
    pub(super) sought: String,
    pub(super) is_away: bool,
    /// The child agents of the open thread.
    pub(super) agents: Agents,
    /// The threads that the open one was reached from, the nearest last.
    pub(super) family: Vec<String>,
    /// Whether the thread that is being opened is one of these, or an agent of the open one.
    pub(super) is_kin: bool,
    /// The screen below a page.
    pub(super) under: Option<Box<Overlay>>,
    /// The tokens of turns.
    pub(super) ledger: Ledger,
    /// The threads that were left by going back, the last one at the end; and those that stay so after a return.
    pub(super) left: Vec<Left>,
    pub(super) returning: Option<Vec<Left>>,
    /// The name under which the draft was saved last.
    pub(super) drafted: Option<String>,
    /// The title and the status line.
    pub(super) told: Told,
}

impl App {
    pub(super) fn new(settings: Settings, history: History, theme: Theme, size: (usize, usize), now: Instant) -> Self {
        let (fold, panel) = (settings.display.fold, Panel::new(&settings.keymap));
        Self {
            settings,
            client: State::default(),
            thread: None,
            transcript: Transcript::new(fold),
            composer: Composer::default(),
            history,
            panel,
            overlay: None,
            queue: Queue::default(),
            names: Names::default(),
            running: None,
            size,
            theme,
            now,
            selection: None,
            calls: Calls::default(),
            hint: None,
            branch: None,
            lost: None,
            is_warned: false,
        }
    }

    /// The open thread as the server tells it.
    pub(super) fn open_thread(&self) -> Option<&Thread> {
        self.client.thread(&self.thread.as_ref()?.id)
    }

    /// The next time at which [`Input::Time`] is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let tick = self.running.as_ref().map(|running| {
            let gone = self.now.saturating_duration_since(running.since);
            running.since + TICK * u32::try_from(gone.as_secs() + 1).unwrap_or(u32::MAX)
        });
        let panel = if self.panel.is_empty() { None } else { self.panel.readiness.deadline() };
        let all = [tick, panel, self.panel.deadline(self.now), self.composer.deadline()];
        all.into_iter().flatten().min()
    }

    /// Takes an input; returns the effects.
    pub(super) fn update(&mut self, input: Input) -> Vec<Effect> {
        match input {
            Input::Key(key, at) => {
                self.now = self.now.max(at);
                self.key(&key, at);
            }
            Input::Mouse(mouse) => self.mouse(mouse),
            Input::Focus(is_here) => self.calls.is_away = !is_here,
            Input::Background(colour) => self.theme.take_background(colour),
            Input::Resized(width, height) => {
                self.size = (width, height);
                self.selection = None;
                self.effect(Effect::Redraw);
            }
            Input::Event(event) => self.event(event),
            Input::Answer(id, answer) => self.answer(id, answer),
            Input::Opened(answer, is_joined) => self.opened(answer, is_joined),
            Input::Discarded(number) => self.panel.readiness.discarded(number),
            Input::Drawn(at) => {
                if self.panel.has_choices() {
                    self.panel.readiness.drawn(at);
                }
            }
            Input::Time(now) => self.time(now),
            Input::Draft(draft) if self.composer.editor.is_empty() => {
                self.composer.restore(&draft);
                self.calls.drafted = self.draft_name();
                self.hint = Some("The text that you did not send is back".to_owned());
            }
            Input::Draft(_) => {}
            Input::Leaving => self.composer.hurry(self.now),
            Input::Written(Ok(text)) => self.composer.replace(text.trim_end_matches('\n')),
            Input::Written(Err(why)) => self.say(Style::Red, "error", &why),
            Input::Lost(why) => {
                self.running = None;
                self.lost = Some(why.clone());
                self.say(Style::Red, "error", &format!("the server is gone: {why}. Quit and resume to continue"));
            }
        }
        self.panel.settle(self.size);
        self.composer.settle(self.now);
        self.keep_draft();
        self.settle_status();
        std::mem::take(&mut self.calls.effects)
    }

    pub(super) fn effect(&mut self, effect: Effect) {
        self.calls.effects.push(effect);
    }

    /// Adds a note with a label to the transcript.
    pub(super) fn say(&mut self, style: Style, what: &str, text: &str) {
        self.transcript.note(vec![layout::note(style, what, text)]);
    }

    pub(super) fn remark(&mut self, style: Style, text: &str) {
        self.transcript.note(vec![vec![Span::new(style, printable(text))]]);
    }

    pub(super) fn page(&mut self, title: &str, lines: Vec<Row>) {
        self.overlay = Some(Overlay::Page(Page::new(title, lines)));
    }

    fn time(&mut self, now: Instant) {
        self.now = self.now.max(now);
        if !self.panel.is_empty() && self.panel.readiness.deadline().is_some_and(|until| until <= now) {
            // The number is told by whoever discards, before anything else happens.
            self.effect(Effect::Discard);
        }
    }

    /// Saves the draft if that is due.
    fn keep_draft(&mut self) {
        if let Some(draft) = self.composer.take_draft(self.now)
            && let Some(name) = self.draft_name()
        {
            // The first message gives the draft of a new thread another name.
            if let Some(before) = self.calls.drafted.take().filter(|before| *before != name) {
                self.effect(Effect::KeepDraft(before, None));
            }
            let draft = Some(draft).filter(|draft| !draft.is_empty());
            self.calls.drafted = draft.as_ref().map(|_| name.clone());
            self.effect(Effect::KeepDraft(name, draft));
        }
    }

    /// Asks for the draft of the thread that was opened.
    pub(super) fn restore_draft(&mut self) {
        if let Some(name) = self.draft_name() {
            self.effect(Effect::ReadDraft(name));
        }
    }

    /// The name under which the draft is kept: that of the thread, or that of the folder until something was said.
    pub(super) fn draft_name(&self) -> Option<String> {
        let thread = self.thread.as_ref()?;
        if thread.has_turns || self.settings.context.is_elsewhere() {
            return Some(thread.id.clone());
        }
        Some(format!("new in {}", self.transcript.cwd.display()))
    }

    pub(super) fn is_about_this(&self, thread: &str) -> bool {
        thread.is_empty() || self.thread.as_ref().is_some_and(|open| open.id == thread)
    }
}
