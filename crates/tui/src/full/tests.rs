//! Screens as a terminal shows them, drawn from inputs.

mod back;
mod choices;
mod composer;
mod display;
mod keys;
mod queue;
mod reconnecting;
mod requests;
mod resizes;
mod states;
mod views;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use codex_client::router;
use codex_dialogue::History;
use codex_wire::policy::{SandboxMode, SandboxPolicy};
use serde_json::{Map, Value, json};

use super::app::{App, Effect, Input, Settings};
use super::status::{Display, DisplaySettings};
use crate::chat::ChatContext;
use crate::key::Key;
use crate::keymap::Keymap;
use crate::theme::{Theme, ThemeName};
use codex_dialogue::paint::Shown;

struct Nothing;

impl ChatContext for Nothing {
    fn find_thread(&self, word: &str) -> Result<String, String> {
        Ok(word.to_owned())
    }

    fn sandbox_policy(&self, _mode: SandboxMode) -> SandboxPolicy {
        SandboxPolicy::DangerFullAccess
    }

    fn project(&self) -> PathBuf {
        "/w".into()
    }

    fn trust(&self) -> Option<&'static str> {
        Some("trusted")
    }

    fn config_file(&self) -> PathBuf {
        "/nowhere/config.toml".into()
    }

    fn export(&self, name: Option<&str>, _text: &str) -> Result<PathBuf, String> {
        Ok(PathBuf::from("/w").join(name.unwrap_or("thread.md")))
    }

    fn server_socket(&self) -> Option<PathBuf> {
        Some("/nowhere/socket".into())
    }
}

/// A chat with an open thread, and the terminal that shows it.
pub(super) struct Screen {
    pub(super) app: App,
    shown: Shown,
    terminal: vt100::Parser,
    pub(super) now: Instant,
    pub(super) effects: Vec<Effect>,
}

impl Screen {
    pub(super) fn new(width: u16, height: u16) -> Self {
        Self::with(width, height, DisplaySettings { notifications: true, ..DisplaySettings::default() })
    }

    /// A chat with these settings of the display.
    pub(super) fn with(width: u16, height: u16, display: DisplaySettings) -> Self {
        let display = Display::new(display);
        let settings = Settings {
            context: Arc::new(Nothing),
            named: Map::new(),
            cwd: "/w".into(),
            is_verbose: false,
            keymap: Keymap::default(),
            run: "run".to_owned(),
            display,
        };
        let (size, now) = ((usize::from(width), usize::from(height)), Instant::now());
        let theme = Theme::new(ThemeName::Ansi, true, false);
        let app = App::new(settings, History::default(), theme, size, now);
        let (shown, terminal) = (Shown::default(), vt100::Parser::new(height, width, 0));
        let mut screen = Self { app, shown, terminal, now, effects: Vec::new() };
        screen.input(Input::Opened(Ok(opened(&[])), false));
        screen.effects.clear();
        screen
    }

    pub(super) fn input(&mut self, input: Input) {
        let effects = self.app.update(input);
        self.effects.extend(effects);
    }

    /// A notification of the server.
    pub(super) fn tell(&mut self, method: &str, params: Value) {
        self.input(Input::Event(router::notification(method, params)));
    }

    pub(super) fn item(&mut self, method: &str, item: Value) {
        self.tell(method, json!({"threadId": "t", "turnId": "u", "item": item}));
    }

    pub(super) fn delta(&mut self, item: &str, text: &str) {
        self.tell("item/agentMessage/delta", json!({"threadId": "t", "turnId": "u", "itemId": item, "delta": text}));
    }

    pub(super) fn press(&mut self, keys: &[Key]) {
        for key in keys {
            self.now += Duration::from_millis(1);
            let now = self.now;
            self.input(Input::Key(key.clone(), now));
        }
    }

    pub(super) fn type_text(&mut self, text: &str) {
        let keys: Vec<Key> = text.chars().map(Key::Char).collect();
        self.press(&keys);
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.now += time;
        let now = self.now;
        self.input(Input::Time(now));
    }

    pub(super) fn resize(&mut self, width: u16, height: u16) {
        self.input(Input::Resized(usize::from(width), usize::from(height)));
        self.terminal.screen_mut().set_size(height, width);
        self.shown = Shown::default();
    }

    /// Draws, and returns the rows of the terminal.
    pub(super) fn rows(&mut self) -> Vec<String> {
        let bytes = self.shown.update(self.app.draw());
        self.terminal.process(&bytes);
        let (_, width) = self.terminal.screen().size();
        self.terminal.screen().rows(0, width).map(|row| row.trim_end().to_owned()).collect()
    }

    pub(super) fn text(&mut self) -> String {
        self.rows().join("\n") + "\n"
    }

    /// The rows, with a line below each that names the attributes of its cells: b bold, u underlined, r reversed, and a
    /// digit for a colour.
    pub(super) fn attributes(&mut self) -> String {
        let rows = self.rows();
        let mut out = String::new();
        for (at, row) in (0u16..).zip(&rows) {
            out.push_str(row);
            out.push('\n');
            let letter = |column: u16| match self.terminal.screen().cell(at, column) {
                Some(cell) if cell.inverse() => 'r',
                Some(cell) if cell.bold() && cell.underline() => 'h',
                Some(cell) if cell.bold() => 'b',
                Some(cell) if cell.underline() => 'u',
                Some(cell) if cell.dim() => 'd',
                Some(cell) if cell.italic() => 'i',
                Some(cell) => match cell.fgcolor() {
                    vt100::Color::Idx(number) => char::from_digit(u32::from(number), 36).unwrap_or('?'),
                    _ => ' ',
                },
                None => ' ',
            };
            let width = self.terminal.screen().size().1;
            let letters: String = (0..width).map(letter).collect();
            if !letters.trim().is_empty() {
                out.push_str(letters.trim_end());
                out.push('\n');
            }
        }
        out
    }

    pub(super) fn start_turn(&mut self) {
        self.tell("turn/started", json!({"threadId": "t", "turn": {"id": "u"}}));
    }

    pub(super) fn end_turn(&mut self, status: &str) {
        self.tell("turn/completed", json!({"threadId": "t", "turn": {"id": "u", "status": status, "items": []}}));
    }

    /// The calls so far, by method, with their parameters.
    pub(super) fn calls(&self) -> Vec<(&'static str, &Value)> {
        let mut calls = Vec::new();
        for effect in &self.effects {
            if let Effect::Call { method, params, .. } = effect {
                calls.push((*method, params));
            }
        }
        calls
    }

    /// Answers the last call of a method.
    pub(super) fn answer(&mut self, wanted: &str, answer: Result<Value, String>) {
        let id = self.effects.iter().rev().find_map(|effect| match effect {
            Effect::Call { id, method, .. } if *method == wanted => Some(*id),
            _ => None,
        });
        self.input(Input::Answer(id.expect("it was called"), answer));
    }
}

pub(super) fn opened(turns: &[Value]) -> Value {
    json!({"thread": {"id": "t", "turns": turns}, "model": "m1", "modelProvider": "p", "cwd": "/home/me/w",
        "approvalPolicy": "on-request", "sandbox": {"type": "workspaceWrite"}})
}
