//! Questions to people about the actions of tools, and their answers.
//!
//! Invariants: every question has its own id, so an answer never reaches another question, not even one about the same
//! item; an answer that cannot be decoded is a no.

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
use crate::permissions::{GrantScope, Permissions};

/// The id of a question: the item that it is about, and the number of earlier questions about that item.
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
    /// The reason for the question, unless it follows from the policy.
    pub reason: Option<String>,
    pub kind: QuestionKind,
    /// The time after which it counts as answered with a no.
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
        /// The exact command.
        argv: Vec<String>,
        /// The working directory.
        cwd: PathBuf,
        /// Its parsed form, for display.
        parsed: Vec<ParsedCommand>,
        /// A command prefix that a rule could allow from here on.
        amendment: Option<Vec<String>>,
    },
    /// A patch.
    Patch {
        /// The change of each file.
        changes: Arc<BTreeMap<PathBuf, FileChange>>,
        /// The folder that an approval for the session grants to later patches of the thread, if any.
        grant_root: Option<PathBuf>,
    },
    /// A call of an MCP tool.
    Tool {
        /// The tool and its arguments.
        invocation: McpInvocation,
        /// The description that the server gives for the tool.
        description: Option<String>,
    },
    /// A question of an MCP server while a call runs.
    Elicitation(Elicitation),
    /// Wider permissions for commands.
    Permissions {
        asked: Permissions,
        /// The working directory.
        cwd: PathBuf,
    },
}

/// A question of an MCP server to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elicitation {
    pub server: String,
    /// The server's id of the question.
    pub id: RequestId,
    pub message: String,
    /// The form of the answer.
    pub form: ElicitationForm,
}

/// The form of an answer to an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElicitationForm {
    /// An object that follows this schema.
    Schema(Value),
    /// Consent to open this URL.
    Url {
        url: String,
        /// The server's id of the interaction at that URL.
        id: String,
    },
}

impl Elicitation {
    /// Whether a yes has to come with content.
    #[must_use]
    pub fn needs_content(&self) -> bool {
        match &self.form {
            ElicitationForm::Schema(schema) => schema["required"].as_array().is_some_and(|names| !names.is_empty()),
            ElicitationForm::Url { .. } => false,
        }
    }
}

impl QuestionKind {
    /// A word for its subject.
    #[must_use]
    pub fn noun(&self) -> &'static str {
        match self {
            Self::Command { .. } => "command",
            Self::Patch { .. } => "patch",
            Self::Tool { .. } => "tool call",
            Self::Elicitation(_) => "question of an MCP server",
            Self::Permissions { .. } => "request for permissions",
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
        /// Whether the user accepted, declined or cancelled it.
        action: ElicitationDecision,
        /// The content of the answer.
        content: Option<Value>,
    },
    /// Permissions, perhaps fewer than were asked for, or none.
    Granted { permissions: Permissions, scope: GrantScope },
    /// A no: the client sent something that is not an answer to the question.
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
            Self::Granted { permissions, .. } if permissions.is_empty() => ReviewDecision::Denied,
            Self::Granted { scope: GrantScope::Turn, .. } => ReviewDecision::Approved,
            Self::Granted { scope: GrantScope::Session, .. } => ReviewDecision::ApprovedForSession,
            Self::Declined => ReviewDecision::Denied,
        }
    }

    /// Whether the action is allowed.
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
