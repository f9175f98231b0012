//! Reviews: the request to the reviewer, and the findings in its answer.

use codex_log::review::{ASKED, describe};
pub(crate) use codex_log::review::{hint, read};
use codex_log::{AgentMessage, Body, Item, ItemId, Record};
use codex_wire::ids::ThreadId;
use codex_wire::input::UserInput;
use codex_wire::response::{ContentItem, Message, ResponseItem};
use codex_wire::review::{ReviewOutputEvent, ReviewTarget};
use codex_wire::text::Text;

use crate::turn::UserMessage;

/// The instructions of the reviewer.
pub(crate) const INSTRUCTIONS: &str = include_str!("../prompts/review.md");

/// The request to the reviewer.
pub(crate) fn prompt(target: &ReviewTarget) -> String {
    match target {
        ReviewTarget::UncommittedChanges => {
            "Review the current code changes (staged, unstaged, and untracked files) and provide prioritized findings."
                .to_owned()
        }
        ReviewTarget::BaseBranch(base) => format!(
            "Review the code changes of this branch against {branch}: run `git diff $(git merge-base HEAD {branch})`. \
             Provide prioritized, actionable findings.",
            branch = base.branch
        ),
        ReviewTarget::Commit(commit) => {
            let title = commit.title.as_ref().map(|title| format!(" (\"{title}\")")).unwrap_or_default();
            let sha = &commit.sha;
            format!(
                "Review the code changes introduced by commit {sha}{title}. Provide prioritized, actionable findings."
            )
        }
        ReviewTarget::Custom(custom) => custom.instructions.clone(),
        ReviewTarget::Other(_) => "Review the changes in this folder.".to_owned(),
    }
}

/// The same request as a message.
pub(crate) fn message(prompt: &str, is_echoed: bool) -> UserMessage {
    UserMessage {
        id: ItemId::new(format!("{ASKED}{}", ThreadId::fresh())),
        key: None,
        content: vec![UserInput::text(prompt)],
        message: Message::user(prompt),
        is_echoed,
        context: Vec::new(),
    }
}

/// The events that add a review to the thread as a message of the model.
pub(crate) fn said(output: &ReviewOutputEvent) -> Vec<Body> {
    let text = Text::from(describe(output));
    let item = Item::AgentMessage(AgentMessage { id: ItemId::new("review:rollout:assistant"), text: text.clone() });
    let content = vec![ContentItem::OutputText { text }];
    let message = Message { id: None, role: "assistant".to_owned(), content };
    let record = Record::new(ResponseItem::Message(message)).ok().map(Body::Recorded);
    [Body::ItemStarted(item.clone()), Body::ItemCompleted(item)].into_iter().chain(record).collect()
}

/// The report for the model that continues afterwards.
pub(crate) fn report(output: Option<&ReviewOutputEvent>) -> String {
    let result = match output {
        Some(output) => format!("These are its results:\n\n{}", describe(output)),
        None => "It was stopped before it had results.".to_owned(),
    };
    format!("<user_action>\nThe person had a review made in a session of its own. {result}\n</user_action>")
}
