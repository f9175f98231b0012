//! Keys that are not for the line editor: answers, choices, and Ctrl-C, Esc and Ctrl-Z.

use std::io::Write;

use serde_json::json;
use tokio::time::Instant;

use super::error::ChatError;
use super::session::{Chat, Flow};
use crate::picker::Picked;
use crate::question::{KeyOutcome, Question};
use crate::reply::{filled_in, reply};
use codex_dialogue::keys::Key;

impl<W: Write> Chat<W> {
    pub(crate) fn ask(&mut self, question: Question) {
        if self.asking.add(question) {
            self.ask_first();
        }
    }

    fn ask_first(&mut self) {
        let Some(question) = self.asking.first() else { return };
        let mut about = question.patch().map(|patch| self.view.take_patch(patch)).unwrap_or_default();
        about.extend(question.describe());
        let page = self.asking.begin(&about, self.screen.size(), Instant::now().into_std());
        self.view.spans(page);
    }

    /// Withdraws prompts that were answered elsewhere, or that no longer matter.
    pub(crate) fn withdraw(&mut self, is_over: impl Fn(&Question) -> bool) {
        let (over, is_first) = self.asking.withdraw(is_over);
        for question in &over {
            self.connection.refuse(&question.id);
        }
        if is_first {
            self.ask_first();
        }
    }

    pub(crate) fn answer(&mut self, key: &Key, at: Instant) {
        match self.asking.press(key, at.into_std()) {
            KeyOutcome::Nothing => {}
            KeyOutcome::More(page) => self.view.spans(page),
            KeyOutcome::Filled(question, values) => {
                self.view.line("  answered\n");
                self.connection.answer(&question.id, filled_in(&question, values));
                self.ask_first();
            }
            KeyOutcome::Decided(question, decision) => {
                self.view.line(&format!("  {}\n", decision.past()));
                self.connection.answer(&question.id, reply(&question, decision));
                self.is_warned = *key == Key::Ctrl('c');
                self.ask_first();
            }
        }
    }

    pub(crate) async fn pick(&mut self, key: &Key) -> Result<Flow, ChatError> {
        let Some(mut choosing) = self.choosing.take() else { return Ok(Flow::Stay) };
        match choosing.picker.press(key) {
            Picked::Open => {
                self.choosing = Some(choosing);
                Ok(Flow::Stay)
            }
            Picked::Entry(number) => self.choose(choosing, Some(number)).await,
            Picked::Nothing => self.choose(choosing, None).await,
        }
    }

    /// Ctrl-C: stops the turn, or clears the input; pressed again, quits.
    pub(crate) async fn interrupt(&mut self) -> Result<Flow, ChatError> {
        if std::mem::replace(&mut self.is_warned, true) {
            return Ok(Flow::Leave);
        }
        if self.running.is_some() {
            self.stop_turn().await?;
        } else {
            self.editor.take();
        }
        Ok(Flow::Stay)
    }

    /// Stops the running turn, if there is one.
    pub(crate) async fn stop_turn(&mut self) -> Result<(), ChatError> {
        if let (Some(thread), Some(running)) = (&self.thread, &self.running) {
            let params = json!({"threadId": thread.id, "turnId": running.turn});
            // A turn that has just ended needs no stopping.
            self.attempt("turn/interrupt", params).await?.ok();
        }
        Ok(())
    }

    /// Ctrl-Z: stops the program until the shell continues it. If the terminal is gone, the next drawing fails.
    pub(crate) fn suspend(&mut self) {
        let suspended = self.screen.leave().and_then(|()| self.keys.suspend());
        self.is_back = suspended.is_ok();
        self.resize();
        self.screen.come_back().unwrap_or_default();
    }

    /// Handles SIGCONT: sets up the terminal again, unless that was done already.
    pub(crate) fn continued(&mut self) {
        if !std::mem::take(&mut self.is_back) {
            let taken = self.keys.retake().and_then(|()| self.screen.come_back());
            taken.unwrap_or_default();
        }
    }
}
