//! Messages of the person on their way to the server.

use std::io::Write;

use codex_wire::ids::ThreadId;
use serde_json::{Value, json};

use super::error::{ChatError, Refused};
use super::session::Chat;
use crate::transcript::Style;

impl<W: Write> Chat<W> {
    fn remember(&mut self, text: &str) {
        let thread = self.thread.as_ref().and_then(|thread| thread.id.parse::<ThreadId>().ok());
        if let Some(problem) = self.history.add(thread, text) {
            self.view.note(Style::Yellow, "warning", &problem);
        }
    }

    /// Sends a message: to the running turn, or in a new one.
    pub(crate) async fn say(&mut self, text: String) -> Result<(), ChatError> {
        let Some(thread) = self.thread.as_ref().map(|thread| thread.id.clone()) else { return Ok(()) };
        self.remember(&text);
        let mut input = vec![json!({"type": "text", "text": text})];
        input.extend(self.pictures.drain(..).map(|path| json!({"type": "localImage", "path": path})));
        // Under its name, the server takes a message once, however often it is sent.
        let name = ThreadId::fresh().to_string();
        let params = json!({"threadId": thread, "input": input, "clientUserMessageId": name});
        if let Some(turn) = self.running.as_ref().map(|running| running.turn.clone()) {
            let mut steering = params.clone();
            steering["expectedTurnId"] = turn.into();
            match self.connection.say(steering).await? {
                Some(Ok(_)) => {
                    if let Some(running) = &mut self.running {
                        running.waiting += 1;
                    }
                    return Ok(());
                }
                // The turn has ended while this was typed.
                Some(Err(_)) => {}
                None => return Ok(()),
            }
        }
        match self.connection.say(params).await? {
            Some(Ok(answer)) => {
                let turn = answer.pointer("/turn/id").and_then(Value::as_str).unwrap_or_default();
                self.begin_turn(turn.to_owned());
            }
            Some(Err(Refused(why))) => {
                self.view.note(Style::Red, "error", &why);
                self.editor.replace(&text);
            }
            None => {}
        }
        Ok(())
    }
}
