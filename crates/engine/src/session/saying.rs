//! What is put into a conversation from outside: what the user says, and what a client brings along.

use std::path::PathBuf;
use std::sync::Arc;

use codex_log::settings::SettingsChange;
use codex_log::{Abort, Body, Record, TurnId};
use codex_wire::input::UserInput;
use codex_wire::response::ResponseItem;

use super::Session;
use crate::environment::{Environment, shell_name};
use crate::images;
use crate::turn::{Input, Turn, UserMessage};
use codex_thread::{TurnInput, TurnStart};

impl Session {
    /// Obeys what was said, unless it was said before.
    pub(super) async fn hear(&mut self, turn: TurnId, saying: TurnInput) -> TurnStart {
        let key = saying.key.clone();
        if let Some(known) = key.as_deref().and_then(|key| self.heard.turn_of(key)) {
            return TurnStart::Known(known.clone());
        }
        let start = self.say(turn.clone(), saying).await;
        if let Some(key) = key {
            let taken_in_by = match &start {
                TurnStart::Joined(running) => running.clone(),
                TurnStart::Started | TurnStart::Known(_) => turn,
            };
            self.heard.note(key, taken_in_by);
        }
        start
    }

    async fn say(&mut self, turn: TurnId, saying: TurnInput) -> TurnStart {
        let TurnInput { content, change, key } = saying;
        if self.bookmarks.is_some() {
            // The clients that have bookmarks were written for input that takes the place of what runs.
            self.stop(Abort::Replaced).await;
        }
        if let Some(running) = &self.running {
            let joined = running.id.clone();
            if change != SettingsChange::default() {
                let message = "the input joined the running turn, so its settings were not applied".to_owned();
                self.emit(Body::Warning { message });
            }
            let said = self.message(content, key, self.turn_settings().cwd.clone()).await;
            self.aims.goal.person_spoke();
            self.step(Input::UserSaid(said)).await;
            return TurnStart::Joined(joined);
        }
        self.settings = Arc::new(self.settings.changed(&change));
        let said = self.message(content, key, self.settings.cwd.clone()).await;
        let (machine, effects) = Turn::start(&turn, said, self.window(), self.manners(&self.settings));
        self.begin(turn, machine, change.output_schema);
        self.aims.goal.person_spoke();
        self.tell_environment();
        self.perform(effects).await;
        TurnStart::Started
    }

    /// Tells the model of its surroundings, if they have changed.
    pub(super) fn tell_environment(&mut self) {
        let environment = Environment::new(&self.settings, shell_name(self.setup.shell.as_deref()));
        for message in environment.news(&self.environment) {
            self.tell_model(message);
        }
        self.environment = environment;
    }

    /// Makes a message of what was said. What it waits for does not borrow the session.
    fn message(
        &self,
        content: Vec<UserInput>,
        key: Option<Arc<str>>,
        cwd: PathBuf,
    ) -> impl Future<Output = UserMessage> + use<> {
        let show = images::Show { history: self.setup.profile.history, marks: self.setup.profile.marks_images };
        let said = images::user_message(content, cwd, Arc::clone(&self.skills), show);
        async { UserMessage { key, ..said.await } }
    }

    /// Puts items of somebody else's into the conversation; false while a turn runs.
    pub(super) async fn inject(&mut self, items: Vec<ResponseItem>) -> bool {
        if self.running.is_some() {
            return false;
        }
        for record in items.into_iter().filter_map(|item| Record::new(item).ok()) {
            self.emit(Body::Recorded(record));
        }
        self.publish_durably().await;
        true
    }
}
