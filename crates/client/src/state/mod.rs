//! Threads, turns and items as events leave them: the state that `thread/read` would show.
//!
//! Invariant: pure. The state depends on the events alone, not on when they came or how their bytes were cut.

mod reduce;

use std::collections::{BTreeMap, HashMap};

use codex_wire::ids::RequestId;
use serde_json::{Map, Value, json};

use crate::event::{Members, Teller};

/// Everything that is known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    threads: BTreeMap<String, Thread>,
    rate_limits: Value,
    /// The methods that were not known, each once.
    unknown: Vec<String>,
    notes: u64,
}

/// A thread.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Thread {
    members: Members,
    turns: Vec<Turn>,
    plan: Value,
    diff: String,
    usage: Value,
    errors: Vec<String>,
    questions: Vec<Question>,
    /// The kinds of items that are told by name, so that events without a name repeat them.
    named: Vec<&'static str>,
    /// The last place of each turn's id.
    places: Places,
}

/// The places of a list by id, because a server may send many.
type Places = HashMap<String, usize>;

/// A turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    id: String,
    status: String,
    error: Value,
    items: Vec<Item>,
    /// The last place of each item's id.
    places: Places,
}

/// An item.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    id: String,
    members: Members,
    is_complete: bool,
    /// The dialect that told it best so far.
    teller: Teller,
    /// The dialect that tells its deltas.
    deltas: Option<Teller>,
    /// The time of its beginning, in milliseconds of Unix time.
    began_ms: Option<i64>,
}

/// A question that waits for an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    pub id: RequestId,
    pub method: String,
    pub params: Value,
}

impl State {
    /// The thread of a name.
    #[must_use]
    pub fn thread(&self, id: &str) -> Option<&Thread> {
        self.threads.get(id)
    }

    /// All threads by their names.
    pub fn threads(&self) -> impl Iterator<Item = (&str, &Thread)> {
        self.threads.iter().map(|(id, thread)| (id.as_str(), thread))
    }

    /// Methods that were not known.
    #[must_use]
    pub fn unknown(&self) -> &[String] {
        &self.unknown
    }

    /// The limits of the account, as the server tells them.
    #[must_use]
    pub fn rate_limits(&self) -> &Value {
        &self.rate_limits
    }

    /// The state as JSON, the same in every language.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let threads: Map<String, Value> =
            self.threads.iter().map(|(id, thread)| (id.clone(), thread.to_value())).collect();
        json!({
            "threads": threads, "rateLimits": self.rate_limits, "unknown": self.unknown, "notes": self.notes,
        })
    }
}

impl Thread {
    /// Its members as the server told them, without its turns.
    #[must_use]
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// Its turns, oldest first.
    #[must_use]
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// The turn that runs.
    #[must_use]
    pub fn running_turn(&self) -> Option<&Turn> {
        self.turns.last().filter(|turn| turn.status == "inProgress")
    }

    /// The questions that wait for an answer.
    #[must_use]
    pub fn questions(&self) -> &[Question] {
        &self.questions
    }

    /// The changes of its latest turn so far, as a diff.
    #[must_use]
    pub fn diff(&self) -> &str {
        &self.diff
    }

    /// The tokens it has used, as the server tells them.
    #[must_use]
    pub fn usage(&self) -> &Value {
        &self.usage
    }

    fn to_value(&self) -> Value {
        let turns: Vec<Value> = self.turns.iter().map(Turn::to_value).collect();
        let questions: Vec<Value> =
            self.questions.iter().map(|question| json!({"id": question.id, "method": question.method})).collect();
        json!({
            "members": self.members, "turns": turns, "plan": self.plan, "diff": self.diff, "usage": self.usage,
            "errors": self.errors, "questions": questions,
        })
    }
}

impl Turn {
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// `inProgress`, `completed`, `interrupted` or `failed`.
    #[must_use]
    pub fn status(&self) -> &str {
        &self.status
    }

    /// The error of a turn that failed, as the server told it.
    #[must_use]
    pub fn error(&self) -> &Value {
        &self.error
    }

    /// Its items, oldest first.
    #[must_use]
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    fn to_value(&self) -> Value {
        let items: Vec<Value> =
            self.items.iter().map(|item| json!({"complete": item.is_complete, "item": item.members})).collect();
        json!({"id": self.id, "status": self.status, "error": self.error, "items": items})
    }
}

impl Item {
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its members, with `type`.
    #[must_use]
    pub fn members(&self) -> &Members {
        &self.members
    }

    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The time of its beginning, in milliseconds of Unix time, if the server told it.
    #[must_use]
    pub fn began_ms(&self) -> Option<i64> {
        self.began_ms
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.members.get("type").and_then(Value::as_str).unwrap_or_default()
    }
}
