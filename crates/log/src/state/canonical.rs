//! States in a form that can be compared.

use super::{HistoryStart, ThreadState};
use crate::encode::turn_context;
use crate::settings::Settings;

impl ThreadState {
    /// The state as text, part by part, without data that lines do not contain: settings of a session, subjects of
    /// questions, and the messages before a summary of an older release.
    #[must_use]
    pub fn canonical(&self) -> Vec<(&'static str, String)> {
        let settings = self.settings.as_deref().map(|settings| Settings::recorded(turn_context(settings)));
        let asked: Vec<_> = self.questions.iter().map(|question| question.item().as_str()).collect();
        let conversation = &self.conversation;
        let (begins, preface) = (conversation.begins(), conversation.preface().len());
        let before = if begins == HistoryStart::Summary { preface } else { 0 };
        let places = |places: &[usize]| format!("{:?}", places.iter().map(|place| place - before).collect::<Vec<_>>());
        let turns = conversation.turns().iter().map(|turn| format!("{} {:?}", turn.item - before, turn.id));
        let calls = conversation.open_calls();
        let calls = calls.iter().map(|call| format!("{} {}", call.item - before, call.call_id));
        let items = conversation.items()[before..].iter().map(|item| item.json().into_owned());
        vec![
            ("meta", format!("{:?}", self.meta)),
            ("settings", format!("{settings:?}")),
            ("tokens", format!("{:?}", self.tokens)),
            ("used", format!("{:?}", self.used)),
            ("goal", format!("{:?}", self.goal)),
            ("queue", format!("{:?}", self.queue)),
            ("plan", format!("{:?}", self.plan)),
            ("keys", format!("{:?}", self.keys)),
            ("turn", format!("{:?}", self.turn)),
            ("limit wait", format!("{:?}", self.limit_wait)),
            ("questions", format!("{asked:?}")),
            (
                "begins",
                format!("{begins:?}, {} preface, {} replaced", preface - before, conversation.replaced() - before),
            ),
            ("said", places(conversation.said())),
            ("turns", turns.collect::<Vec<_>>().join("\n")),
            ("calls", calls.collect::<Vec<_>>().join("\n")),
            ("items", items.collect::<Vec<_>>().join("\n")),
        ]
    }
}
