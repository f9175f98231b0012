//! The permissions of a thread's commands: the user's rules, the approvals of its session, and the outcome for a command.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

spelled! {
    /// The decision of a rule.
    pub enum RuleDecision {
        /// The command runs without asking.
        "allow" => Allow,
        /// A person is asked.
        "prompt" => Prompt,
        /// The command does not run.
        "forbidden" => Forbidden,
    }
}

spelled! {
    /// The kind of an approval.
    pub enum GrantKind {
        /// One command in one folder.
        "command" => Command,
        /// Patches below a folder.
        "folder" => Folder,
        /// A tool of an MCP server.
        "tool" => Tool,
    }
}

spelled! {
    /// The outcome for a command.
    pub enum CommandOutcome {
        "run" => Run,
        /// A person is asked first.
        "ask" => Ask,
        /// It does not run, and the model is told.
        "refuse" => Refuse,
    }
}

/// A rule of the user about commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
#[serde(rename_all = "camelCase")]
pub struct CommandRule {
    pub decision: RuleDecision,
    /// The rule as written.
    pub text: String,
    /// The file that contains it.
    pub file: PathBuf,
    /// Its line there, starting at 1.
    pub line: u32,
    /// Whether it allows sandboxed runs only.
    #[serde(default)]
    pub sandbox_only: bool,
    /// Its own justification.
    #[serde(default)]
    pub justification: Option<String>,
}

/// An approval that a person has given for the rest of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct SessionGrant {
    /// Its name in `thread/permissions/revoke`.
    pub id: String,
    pub kind: GrantKind,
    /// The command line, the folder or the tool.
    pub text: String,
}

/// The rules and approvals that a thread judges commands by.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct Permissions {
    /// The rules in the order of their files.
    pub rules: Vec<CommandRule>,
    /// The approvals, oldest first.
    pub grants: Vec<SessionGrant>,
}

/// The outcome of a command if it were to run now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct CommandForecast {
    pub outcome: CommandOutcome,
    /// Whether it would run in the sandbox.
    pub sandboxed: bool,
    /// The reason, for people.
    pub reason: String,
    /// The rules that match it, the strictest first.
    pub rules: Vec<CommandRule>,
}
