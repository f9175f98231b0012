//! Requests to the thread besides user messages: the user's shell commands, reviews, and `/init`; and the status of the
//! thread.

use std::io::Write;

use serde_json::{Value, json};

use super::error::{ChatError, Refused};
use super::session::Chat;
use crate::transcript::Style;

/// The file that describes a project to a model.
pub(crate) const AGENTS: &str = "AGENTS.md";

pub(crate) const INIT: &str = "Write a file AGENTS.md in the root of this project: a contributor guide for coding agents and people.

Look at the project first: its layout, its build files, its tests and its history. Then describe, with headings and short
lists, what somebody needs who has never seen it: what is where, how to build, run and test it (exact commands), which
conventions the code and the commit messages follow, and what to be careful with. Only say what you have found; do not
guess. Keep it under 400 words, in Markdown.";

impl<W: Write> Chat<W> {
    pub(crate) async fn run_own(&mut self, command: &str) -> Result<(), ChatError> {
        let Some(thread) = &self.thread else { return Ok(()) };
        let params = json!({"threadId": thread.id, "command": command});
        if let Err(Refused(why)) = self.attempt("thread/shellCommand", params).await? {
            self.view.note(Style::Red, "error", &why);
        }
        Ok(())
    }

    /// Asks the model to describe the project, unless there is a description.
    pub(crate) async fn init(&mut self) -> Result<(), ChatError> {
        let file = self.context.project().join(AGENTS);
        if !self.context.is_elsewhere() && file.symlink_metadata().is_ok() {
            let text = format!("{} exists already. Delete it first, or ask for the changes you want", file.display());
            self.view.remark(Style::Yellow, &text);
            return Ok(());
        }
        self.say(INIT.to_owned()).await
    }

    /// Starts a review: of uncommitted changes, of a branch, of a commit, or of whatever the words describe.
    pub(crate) async fn review(&mut self, what: Option<&str>) -> Result<(), ChatError> {
        let target = match what {
            None => json!({"type": "uncommittedChanges"}),
            Some(words) if words.contains(char::is_whitespace) => json!({"type": "custom", "instructions": words}),
            Some(name) if self.is_there(&format!("refs/heads/{name}")).await? || self.is_branch(name).await? => {
                json!({"type": "baseBranch", "branch": name})
            }
            Some(name) if self.is_there(&format!("{name}^{{commit}}")).await? => json!({"type": "commit", "sha": name}),
            Some(name) => {
                self.view.note(Style::Red, "error", &format!("there is no branch or commit `{name}`"));
                return Ok(());
            }
        };
        let Some(thread) = &self.thread else { return Ok(()) };
        let params = json!({"threadId": thread.id, "target": target, "delivery": "inline"});
        match self.attempt("review/start", params).await? {
            Ok(answer) => {
                let turn = answer.pointer("/turn/id").and_then(Value::as_str).unwrap_or_default();
                self.begin_turn(turn.to_owned());
            }
            Err(Refused(why)) => self.view.note(Style::Red, "error", &why),
        }
        Ok(())
    }

    async fn is_branch(&mut self, name: &str) -> Result<bool, ChatError> {
        self.is_there(&format!("refs/remotes/{name}")).await
    }

    /// Whether git knows a name.
    async fn is_there(&mut self, name: &str) -> Result<bool, ChatError> {
        Ok(self.git(&["rev-parse", "--verify", "--quiet", "--end-of-options", name]).await?.is_ok())
    }

    /// Shows the status of the thread and the configuration.
    pub(crate) fn status(&mut self) {
        let mut rows = Vec::new();
        if let Some(thread) = &self.thread {
            let effort = if thread.effort.is_empty() { "default" } else { &thread.effort };
            rows.extend([
                ("thread", thread.id.clone()),
                ("model", thread.model.clone()),
                ("provider", thread.provider.clone()),
                ("effort", effort.to_owned()),
                ("folder", self.view.cwd.display().to_string()),
                ("sandbox", thread.sandbox.clone()),
                ("approvals", thread.approvals.clone()),
            ]);
        }
        if self.context.is_elsewhere() {
            rows.extend(self.view.usage());
            self.rows(rows);
            return;
        }
        rows.push(("trust", self.context.trust().unwrap_or("not asked").to_owned()));
        rows.extend(self.view.usage());
        let file = self.context.config_file();
        let is_there = if file.exists() { "" } else { " (not there)" };
        rows.push(("config", format!("{}{is_there}", file.display())));
        self.rows(rows);
    }

    fn rows(&mut self, rows: Vec<(&'static str, String)>) {
        for (what, value) in rows {
            self.view.line(&format!("{what:>11}  {value}"));
        }
        self.view.line("");
    }
}
