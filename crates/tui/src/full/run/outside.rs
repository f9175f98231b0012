//! Effects on files, programs and the clipboard, beside everything else.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use codex_dialogue::{clipboard, status_program};
use serde_json::Value;

use super::FullChat;

/// The longest text that is put on the clipboard: terminals take little more.
const CLIPBOARD_BYTES: usize = 512 * 1024;

impl FullChat {
    /// Saves the picture on the clipboard, beside everything else.
    pub(super) fn read_picture(&self, id: u64) {
        let (context, answers) = (Arc::clone(&self.app.settings.context), self.answers.0.clone());
        tokio::spawn(async move {
            let picture = clipboard::picture(|name| context.variable(name), &context.programs()).await;
            let path = picture.and_then(|picture| context.keep_picture(&picture));
            // The chat may be over.
            let _: Result<(), _> = answers.send((id, path.map(|path| path.to_string_lossy().into()))).await;
        });
    }

    /// Writes a text to a file, off the async threads.
    pub(super) fn export(&self, id: u64, name: Option<String>, text: String) {
        let (context, answers) = (Arc::clone(&self.app.settings.context), self.answers.0.clone());
        tokio::task::spawn_blocking(move || {
            let path = context.export(name.as_deref(), &text).map(|path| path.to_string_lossy().into());
            // The chat may be over.
            let _: Result<(), _> = answers.blocking_send((id, path));
        });
    }

    /// Runs the program of the status line, for a second at most.
    pub(super) fn run_program(&self, id: u64, words: Vec<String>, about: Value) {
        let (answers, cwd) = (self.answers.0.clone(), self.app.settings.cwd.clone());
        tokio::spawn(async move {
            let output = status_program::output(&words, &about, &cwd).await.map(Value::String);
            // The chat may be over.
            let _: Result<(), _> = answers.send((id, output)).await;
        });
    }

    /// Puts a text on the clipboard of the terminal.
    pub(super) fn copy(&mut self, text: &str) {
        let end = (0..=CLIPBOARD_BYTES.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let sequence = format!("\x1b]52;c;{}\x07", BASE64.encode(&text[..end]));
        self.sequence(&sequence);
    }

    pub(super) fn notify(&mut self, text: &str) {
        let sequence = format!("\x1b]9;codex: {text}\x07");
        self.sequence(&sequence);
        self.painter.send(b"\x07");
    }

    /// Sends a sequence to the terminal around tmux, if there is one.
    fn sequence(&mut self, sequence: &str) {
        if self.is_in_tmux {
            self.painter.send(codex_dialogue::paint::through_tmux(sequence).as_bytes());
        }
        self.painter.send(sequence.as_bytes());
    }
}
