//! A review: a turn with a conversation of its own, which the thread's conversation does not see.

use std::sync::Arc;

use codex_log::settings::Settings;
use codex_log::{Abort, Body, Delta, Item, ItemId, Outcome, Record, ReviewEntered, TurnId};
use codex_wire::ids::ThreadId;
use codex_wire::input::UserInput;
use codex_wire::policy::{AskForApproval, SandboxPolicy};
use codex_wire::response::{ContentItem, Message, ResponseItem};
use codex_wire::review::ReviewRequest;
use codex_wire::text::Text;

use super::{Running, Session};
use crate::context::Context;
use crate::review;
use crate::turn::{Turn, UserMessage};
use crate::work::Work;
use codex_thread::HistoryMode;

/// What is put aside while a review runs.
pub(super) struct Review {
    context: Context,
    instructions: Arc<str>,
}

impl Session {
    /// Begins a review. What runs makes way.
    pub(super) async fn review(&mut self, turn: TurnId, request: ReviewRequest) {
        self.stop(Abort::Replaced).await;
        let prompt = review::prompt(&request.target);
        let said = UserMessage {
            id: ItemId::new(format!("{}{}", review::ASKED, ThreadId::fresh())),
            key: None,
            content: vec![UserInput::text(prompt.clone())],
            message: Message::user(prompt.clone()),
            // Clients of the queue were told what the reviewer is asked by the review's beginning alone.
            is_echoed: self.setup.profile.history == HistoryMode::Full,
        };
        let settings = Settings {
            approval_policy: AskForApproval::Never,
            sandbox_policy: SandboxPolicy::ReadOnly,
            model: self.setup.config.model.review.clone().unwrap_or_else(|| self.settings.model.clone()),
            ..(*self.settings).clone()
        };
        let (machine, effects) = Turn::start(&turn, said, self.window(), self.manners(&settings));
        let settings = Arc::new(settings);
        let work = Work::Nothing;
        self.running = Some(Running {
            id: turn,
            settings,
            machine,
            work,
            prompt: None,
            output_schema: None,
            diff: None,
            said: Vec::new(),
        });
        self.aims.goal.begin_turn();
        let hint = request.user_facing_hint.unwrap_or_else(|| review::hint(&request.target));
        self.emit(Body::ReviewEntered(Arc::new(ReviewEntered { target: request.target, hint, prompt })));
        self.put_conversation_aside();
        self.perform(effects).await;
    }

    fn put_conversation_aside(&mut self) {
        let fresh = self.context.fresh();
        let context = std::mem::replace(&mut self.context, fresh);
        let instructions = std::mem::replace(&mut self.instructions, review::INSTRUCTIONS.into());
        self.reviewing = Some(Review { context, instructions });
        self.tell_model(Message::user(self.environment.text()));
        self.context.end_preface();
    }

    /// Whether an event belongs to the reviewer alone. What it says becomes the review; its conversation is not ours.
    pub(super) fn is_private(&self, body: &Body) -> bool {
        let is_said = matches!(
            body,
            Body::Recorded(_)
                | Body::ItemStarted(Item::AgentMessage { .. })
                | Body::ItemCompleted(Item::AgentMessage { .. })
                | Body::ItemDelta { delta: Delta::Text(_), .. }
        );
        is_said && self.reviewing.is_some()
    }

    /// Ends the review, if one runs, and returns how its turn ends.
    pub(super) fn end_review(&mut self, outcome: Outcome) -> Outcome {
        let Some(Review { mut context, instructions }) = self.reviewing.take() else { return outcome };
        context.take_costs(&self.context);
        self.context = context;
        self.instructions = instructions;
        let answer = match &outcome {
            Outcome::Completed { last_message, .. } => last_message.clone(),
            Outcome::Aborted(_) | Outcome::Failed(_) => None,
        };
        let output = answer.as_deref().map(review::read);
        self.emit(Body::ReviewExited(output.clone().map(Arc::new)));
        self.tell_model(Message::user(review::report(output.as_ref())));
        match (outcome, output) {
            (Outcome::Aborted(_), _) => Outcome::Aborted(Abort::ReviewEnded),
            (Outcome::Completed { bookmark, .. }, Some(output)) if self.setup.profile.history == HistoryMode::Full => {
                self.say_for_reviewer(codex_log::review::describe(&output));
                Outcome::Completed { last_message: None, bookmark }
            }
            (outcome, _) => outcome,
        }
    }

    /// Puts the review into the thread as something the model said.
    fn say_for_reviewer(&mut self, text: String) {
        let text = Text::from(text);
        let item = Item::AgentMessage { id: ItemId::new("review:rollout:assistant"), text: text.clone() };
        self.emit(Body::ItemStarted(item.clone()));
        self.emit(Body::ItemCompleted(item));
        let content = vec![ContentItem::OutputText { text }];
        let message = Message { id: None, role: "assistant".to_owned(), content };
        if let Ok(record) = Record::new(ResponseItem::Message(message)) {
            self.emit(Body::Recorded(record));
        }
    }
}
