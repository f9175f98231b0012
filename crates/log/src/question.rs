//! Questions to people about what a tool is about to do, and their answers.
//!
//! Invariants: a question has a name of its own, so an answer never reaches another one, not even about the same item;
//! an answer that is not understood is a no.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use codex_wire::change::FileChange;
use codex_wire::command::ParsedCommand;
use codex_wire::decision::{ElicitationDecision, ReviewDecision};
use codex_wire::ids::RequestId;
use codex_wire::mcp::McpInvocation;
use serde_json::Value;

use crate::ItemId;

/// The name of a question: the item that it is about, and how many there were about it before.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct QuestionId {
    item: ItemId,
    earlier: u32,
}

impl QuestionId {
    /// The first question about an item.
    #[must_use]
    pub fn first(item: ItemId) -> Self {
        Self { item, earlier: 0 }
    }

    /// The next question about the same item.
    #[must_use]
    pub fn next(&self) -> Self {
        Self { item: self.item.clone(), earlier: self.earlier + 1 }
    }

    /// The item that it is about.
    #[must_use]
    pub fn item(&self) -> &ItemId {
        &self.item
    }
}

impl fmt::Display for QuestionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.item.as_str())?;
        if self.earlier > 0 {
            write!(formatter, "#{}", self.earlier + 1)?;
        }
        Ok(())
    }
}

/// A question to a person.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    pub id: QuestionId,
    /// Why the question is asked, where that is not plain from the policy.
    pub reason: Option<String>,
    pub kind: QuestionKind,
    /// After how long it counts as answered with a no.
    pub deadline: Option<Duration>,
}

impl Question {
    /// The item that it is about.
    #[must_use]
    pub fn item(&self) -> &ItemId {
        self.id.item()
    }
}

/// The subject of a question.
#[derive(Debug, Clone, PartialEq)]
pub enum QuestionKind {
    /// A command.
    Command {
        /// Exactly what would run.
        argv: Vec<String>,
        /// Where it would run.
        cwd: PathBuf,
        /// Its parsed form, for display.
        parsed: Vec<ParsedCommand>,
        /// A beginning of commands that a rule could allow from here on.
        amendment: Option<Vec<String>>,
    },
    /// A patch.
    Patch {
        /// The change of each file.
        changes: Arc<BTreeMap<PathBuf, FileChange>>,
        /// The folder that a yes for the session opens to later patches of the thread, where it opens one.
        grant_root: Option<PathBuf>,
    },
    /// A call of a tool of an MCP server.
    Tool {
        /// The tool and its arguments.
        invocation: McpInvocation,
        /// The tool's description of itself.
        description: Option<String>,
    },
    /// Something that an MCP server wants to know while a call runs.
    Elicitation(Elicitation),
}

/// A question of an MCP server to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elicitation {
    /// The server.
    pub server: String,
    /// The server's own name for the question.
    pub id: RequestId,
    /// The question.
    pub message: String,
    /// How it is answered.
    pub form: ElicitationForm,
}

/// How a question of an MCP server is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElicitationForm {
    /// By an object that follows this schema.
    Schema(Value),
    /// By opening this address; a yes is consent to do so.
    Url {
        /// The address.
        url: String,
        /// The server's name for what happens there.
        id: String,
    },
}

impl QuestionKind {
    /// Its subject, in a word.
    #[must_use]
    pub fn noun(&self) -> &'static str {
        match self {
            Self::Command { .. } => "command",
            Self::Patch { .. } => "patch",
            Self::Tool { .. } => "tool call",
            Self::Elicitation(_) => "question of an MCP server",
        }
    }
}

/// An answer to a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// A decision about a command, a patch or a tool.
    Decision(ReviewDecision),
    /// The answer to a question of an MCP server.
    Given {
        /// Whether it is answered at all.
        action: ElicitationDecision,
        /// The answer itself.
        content: Option<Value>,
    },
    /// A no: what came was no answer to the question.
    Declined,
}

impl Answer {
    /// The answer as a decision. Anything else is a no.
    #[must_use]
    pub fn decision(&self) -> ReviewDecision {
        match self {
            Self::Decision(decision) => decision.clone(),
            Self::Given { action: ElicitationDecision::Accept, .. } => ReviewDecision::Approved,
            Self::Given { action: ElicitationDecision::Decline, .. } => ReviewDecision::Denied,
            Self::Given { action: ElicitationDecision::Cancel, .. } => ReviewDecision::Abort,
            Self::Declined => ReviewDecision::Denied,
        }
    }

    /// Whether what was asked about may be done.
    #[must_use]
    pub fn allows(&self) -> bool {
        self.decision().allows()
    }
}

impl From<ReviewDecision> for Answer {
    fn from(decision: ReviewDecision) -> Self {
        Self::Decision(decision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_about_one_item_have_names_of_their_own() {
        let first = QuestionId::first(ItemId::new("call"));
        let second = first.next();
        assert_ne!(first, second);
        assert_eq!((first.to_string(), second.to_string()), ("call".to_owned(), "call#2".to_owned()));
        assert_eq!(second.item(), first.item());
    }

    #[test]
    fn an_unknown_answer_is_a_no() {
        assert!(!Answer::Declined.allows());
        assert_eq!(Answer::Declined.decision(), ReviewDecision::Denied);
        assert!(Answer::from(ReviewDecision::Approved).allows());
    }
}
