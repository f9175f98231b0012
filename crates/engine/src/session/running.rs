//! The running turn.

use std::sync::Arc;

use codex_log::settings::Settings;
use codex_log::store::StoreError;
use codex_log::{Failure, Outcome, TurnId};
use codex_model::Prompt;
use codex_tools::context::ToolContext;
use codex_tools::full_message;
use codex_wire::error_info::CodexErrorInfo;
use codex_wire::ids::ThreadId;
use codex_wire::input::UserInput;
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::notify::{Notice, notify};
use crate::setup::Setup;
use crate::tree_requests::Place;
use crate::turn::Turn;
use crate::work::Work;

/// The message for the model after an interrupted turn.
pub(super) const INTERRUPTED: &str = "<turn_aborted>\nThe person has stopped this turn. What was running may have done part of its \
                                      work; look before you do it again.\n</turn_aborted>";

/// The running turn.
pub(super) struct RunningTurn {
    pub(super) id: TurnId,
    /// Its settings; a later change applies to the next turn.
    pub(super) settings: Arc<Settings>,
    pub(super) machine: Turn,
    pub(super) work: Work,
    /// The latest request, for retries.
    prompt: Option<Prompt>,
    pub(super) output_schema: Option<Value>,
    /// Whether some of its tokens were counted.
    pub(super) is_counted: bool,
    /// The context of its calls, once it is determined.
    pub(super) tool_context: Option<Arc<ToolContext>>,
    /// The user's messages in it.
    said: Vec<String>,
    /// The wait for servers before the model is asked.
    pub(super) wait: Option<BoxFuture<'static, Result<(), String>>>,
}

impl RunningTurn {
    /// A turn that has just begun.
    pub(super) fn new(id: TurnId, settings: Arc<Settings>, machine: Turn, output_schema: Option<Value>) -> Self {
        let (work, said) = (Work::Nothing, Vec::new());
        Self {
            id,
            settings,
            machine,
            work,
            prompt: None,
            output_schema,
            is_counted: false,
            tool_context: None,
            said,
            wait: None,
        }
    }

    /// Asks the model, or repeats the last request.
    pub(super) fn ask(&mut self, setup: &Setup, prompt: Option<Prompt>) {
        if prompt.is_some() {
            self.prompt = prompt;
        }
        if let Some(prompt) = &self.prompt {
            // A repeated request takes its turn like any other.
            self.work = Work::Nothing;
            let place = setup.place(&prompt.model);
            let request = Prompt { pace: place.as_ref().and_then(Place::pace), ..prompt.clone() };
            self.work = Work::Answer(setup.model.ask(request), place);
        }
    }

    /// Waits until the model can be asked, or returns how the turn ends without a server that it needs. Cancel safe.
    pub(super) async fn tools_ready(wait: &mut Option<BoxFuture<'static, Result<(), String>>>) -> Option<Outcome> {
        match wait {
            Some(waiting) => {
                let ready = waiting.await;
                *wait = None;
                missing(ready)
            }
            None => std::future::pending().await,
        }
    }

    /// Records a message of the user.
    pub(super) fn hear(&mut self, content: &[UserInput]) {
        self.said.extend(content.iter().filter_map(|item| match item {
            UserInput::Text { text, .. } => Some(text.clone()),
            _ => None,
        }));
    }

    /// Starts the user's notification program, because the turn has ended.
    pub(super) fn tell_program(&self, setup: &Setup, thread: ThreadId, outcome: &Outcome) {
        let Outcome::Completed { last_message, .. } = outcome else { return };
        notify(
            &setup.config.notify,
            &Notice {
                home: setup.home.path(),
                thread,
                turn: &self.id,
                settings: &self.settings,
                said: self.said.clone(),
                last_message: last_message.as_deref(),
            },
        );
    }
}

/// The end of a turn that cannot be saved.
pub(super) fn unsaved(saved: Result<(), StoreError>) -> Option<Outcome> {
    let error = saved.err()?;
    let message = format!("this thread could not be saved: {}", full_message(&error));
    Some(Outcome::Failed(Failure { message, hint: None, info: CodexErrorInfo::Other }))
}

/// The end of a turn whose thread another process may take over.
pub(super) fn revoked(reason: String) -> Outcome {
    Outcome::Failed(Failure { message: reason, hint: None, info: CodexErrorInfo::Other })
}

/// The outcome of a turn without a server that it needs.
fn missing(ready: Result<(), String>) -> Option<Outcome> {
    let message = ready.err()?;
    let hint = Some("fix the server, or remove `required` from its configuration");
    Some(Outcome::Failed(Failure { message, hint, info: CodexErrorInfo::Other }))
}
