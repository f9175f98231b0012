//! Compaction: the summary that replaces a conversation.

use codex_wire::plan::{StepStatus, UpdatePlanArgs};
use codex_wire::response::{ContentItem, Message, ResponseItem};

use codex_thread::HistoryMode;

/// The instructions for a summary.
pub(crate) const PROMPT: &str = include_str!("../prompts/compact.md");

/// The number of bytes of the user's messages that are carried over, newest first.
const CARRIED_BYTES: usize = 80_000;

/// The prefix of a summary.
const SUMMED_UP: &str = "The conversation before this was summed up by you:";

/// The prefix of a summary that contains the user's messages.
const SAID_SO_FAR: &str = "So far the person has said:\n\n";

/// The user's own messages, without generated ones: those of an earlier summary quote the user
/// or do not contain the user's words at all.
pub(crate) fn said(messages: impl IntoIterator<Item = Message>) -> Vec<Message> {
    messages.into_iter().filter_map(said_in).collect()
}

fn said_in(message: Message) -> Option<Message> {
    let text = message.text();
    if text.starts_with(SUMMED_UP) {
        return None;
    }
    let Some((quoted, _)) = text.strip_prefix(SAID_SO_FAR).and_then(|text| text.split_once(SUMMED_UP)) else {
        return Some(message);
    };
    let quoted =
        Some(quoted.trim_end()).filter(|quoted| !quoted.is_empty()).map(|quoted| Message::user(quoted).content);
    let pictures = message.content.into_iter().filter(is_picture);
    let content: Vec<_> = quoted.into_iter().flatten().chain(pictures).collect();
    (!content.is_empty()).then_some(Message { content, ..Message::user("") })
}

/// The parts of a summary.
pub(crate) struct Summary<'a> {
    /// The model's summary.
    pub(crate) text: &'a str,
    /// The user's messages, oldest first.
    pub(crate) said: &'a [Message],
    /// The plan that was open.
    pub(crate) plan: Option<&'a UpdatePlanArgs>,
    /// The history mode of the client.
    pub(crate) history: HistoryMode,
}

impl Summary<'_> {
    /// The messages that replace the conversation, after its initial items.
    pub(crate) fn messages(&self) -> Vec<ResponseItem> {
        let said = self.carried();
        let summary = self.body();
        let messages = match self.history {
            HistoryMode::Full => said.into_iter().cloned().chain([Message::user(summary)]).collect(),
            HistoryMode::Brief => {
                let texts: Vec<String> = said.iter().map(|message| message.text().into()).collect();
                let pictures = said.iter().flat_map(|message| &message.content).filter(|part| is_picture(part));
                let said = texts.join("\n\n");
                let mut message = Message::user(format!("{SAID_SO_FAR}{said}\n\n{summary}"));
                message.content.extend(pictures.cloned());
                vec![message]
            }
        };
        messages.into_iter().map(ResponseItem::Message).collect()
    }

    /// The newest messages of the user that fit, oldest first.
    fn carried(&self) -> Vec<&Message> {
        let mut room = CARRIED_BYTES;
        let newest = self.said.iter().rev().take_while(|message| {
            let size = message.content.iter().map(size).sum::<usize>();
            let fits = size <= room;
            room = room.saturating_sub(size);
            fits
        });
        let mut carried: Vec<&Message> = newest.collect();
        carried.reverse();
        carried
    }

    fn body(&self) -> String {
        let mut text = format!("{SUMMED_UP}\n\n{}", self.text.trim());
        if let Some(plan) = self.plan.filter(|plan| plan.plan.iter().any(|step| step.status != StepStatus::Completed)) {
            text.push_str("\n\nYour open plan:");
            for step in &plan.plan {
                text.extend(["\n- [", step.status.as_str(), "] ", &step.step]);
            }
        }
        text
    }
}

fn is_picture(part: &ContentItem) -> bool {
    matches!(part, ContentItem::InputImage { .. })
}

fn size(part: &ContentItem) -> usize {
    match part {
        ContentItem::InputImage { image_url } => image_url.len(),
        other => other.text().map_or(0, |text| text.len()),
    }
}

#[cfg(test)]
mod tests {
    use codex_wire::plan::PlanItemArg;
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(said: &[&str], history: HistoryMode, expected: Expect) {
        let said: Vec<Message> = said.iter().map(|text| Message::user(*text)).collect();
        let step = |step: &str, status| PlanItemArg { step: step.to_owned(), status };
        let plan = UpdatePlanArgs {
            explanation: None,
            plan: vec![step("look", StepStatus::Completed), step("act", StepStatus::InProgress)],
        };
        let summary = Summary { text: "a fern.\n", said: &said, plan: Some(&plan), history };
        let shown: Vec<String> = summary
            .messages()
            .iter()
            .map(|item| match item {
                ResponseItem::Message(message) => message.text().into(),
                other => other.kind().to_owned(),
            })
            .collect();
        expected.assert_eq(&shown.join("\n=====\n"));
    }

    #[test]
    fn the_users_messages_and_the_plan_precede_the_summary() {
        check(
            &["one", "two"],
            HistoryMode::Full,
            expect![[r#"
                one
                =====
                two
                =====
                The conversation before this was summed up by you:

                a fern.

                Your open plan:
                - [completed] look
                - [in_progress] act"#]],
        );
    }

    #[test]
    fn a_brief_recall_is_one_message() {
        check(
            &["one"],
            HistoryMode::Brief,
            expect![[r#"
                So far the person has said:

                one

                The conversation before this was summed up by you:

                a fern.

                Your open plan:
                - [completed] look
                - [in_progress] act"#]],
        );
    }

    #[test]
    fn the_newest_messages_are_carried_as_far_as_there_is_room() {
        let long = "x".repeat(CARRIED_BYTES);
        let said = [Message::user("old"), Message::user(long), Message::user("new")];
        let summary = Summary { text: "", said: &said, plan: None, history: HistoryMode::Full };
        assert_eq!(summary.messages().len(), 2, "the newest message and the summary");
    }

    #[test]
    fn quotes_in_an_earlier_summary_count_as_user_messages() {
        for history in [HistoryMode::Full, HistoryMode::Brief] {
            let first: Vec<Message> = ["one", "two"].map(Message::user).into();
            let summary = Summary { text: "a fern", said: &first, plan: None, history }.messages();
            let left = summary.into_iter().filter_map(|item| match item {
                ResponseItem::Message(message) => Some(message),
                _ => None,
            });
            let said = said(left.chain([Message::user("three")]));
            let texts: Vec<String> = said.iter().map(|message| message.text().into()).collect();
            assert_eq!(texts.join("\n\n"), "one\n\ntwo\n\nthree", "{history:?}");
        }
        let nothing = Summary { text: "a fern", said: &[], plan: None, history: HistoryMode::Brief }.messages();
        let messages = nothing.into_iter().map(|item| match item {
            ResponseItem::Message(message) => message,
            other => panic!("{other:?} is no message"),
        });
        assert_eq!(said(messages), []);
    }
}
