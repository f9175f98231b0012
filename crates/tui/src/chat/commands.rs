//! The chat's own commands.

use std::io::Write;
use std::sync::Arc;

use codex_wire::policy::{AskForApproval, SandboxMode};
use serde_json::{Value, json};

use super::error::{ChatError, Refused};
use super::open_thread::ThreadToOpen;
use super::session::{Chat, Flow};
use crate::slash::{HELP, KEYS, Slash};
use crate::transcript::Style;

/// The git command for listing changes: nothing that a repository configures is run.
const GIT: &[&str] = &["git", "--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"];

const GIT_MS: u64 = 20_000;

impl<W: Write> Chat<W> {
    pub(crate) async fn command(&mut self, command: Slash) -> Result<Flow, ChatError> {
        match command {
            Slash::Help => self.help(),
            Slash::Quit => return Ok(Flow::Leave),
            Slash::Unknown(name) => {
                self.view.remark(Style::Yellow, &format!("Unknown command /{name}. Type /help for a list"));
            }
            Slash::Diff => self.diff().await?,
            Slash::Status => self.status(),
            Slash::Agents => self.list_agents(),
            Slash::Model(None) => self.models().await?,
            Slash::Model(Some(name)) => {
                if self.configure(json!({"model": name})).await?
                    && let Some(thread) = &mut self.thread
                {
                    thread.model = name;
                    self.view.note(Style::Dim, "model", &format!("{} from the next turn on", thread.model));
                }
            }
            Slash::Approvals(words) => self.approvals(&words, false).await?,
            Slash::New | Slash::Resume(_) | Slash::Compact | Slash::Init | Slash::Review(_)
                if self.running.is_some() =>
            {
                self.view.remark(Style::Yellow, "Busy: a turn is running. Esc stops it");
            }
            Slash::Init => self.init().await?,
            Slash::Review(what) => self.review(what.as_deref()).await?,
            Slash::Compact => self.compact().await?,
            Slash::New => self.go_to(&ThreadToOpen::New).await?,
            Slash::Resume(None) => self.go_to(&ThreadToOpen::Choice { is_fork: false, everywhere: false }).await?,
            Slash::Resume(Some(word)) => self.resume(&word).await?,
        }
        Ok(Flow::Stay)
    }

    fn list_agents(&mut self) {
        let lines = self.agents.lines();
        if lines.is_empty() {
            self.view.remark(Style::Dim, "No agents have been started in this chat");
        }
        for line in lines {
            self.view.note(Style::Dim, "agent", &line);
        }
    }

    fn help(&mut self) {
        for (what, means) in HELP.iter().chain(KEYS) {
            self.view.line(&format!("  {what:<32}{means}"));
        }
        self.view.line("");
    }

    async fn go_to(&mut self, wanted: &ThreadToOpen) -> Result<(), ChatError> {
        let cwd = self.cwd.clone();
        if let Err(Refused(why)) = self.open(wanted, &cwd).await? {
            self.view.note(Style::Red, "error", &why);
        }
        Ok(())
    }

    async fn resume(&mut self, word: &str) -> Result<(), ChatError> {
        let (context, word) = (Arc::clone(&self.context), word.to_owned());
        let found = tokio::task::spawn_blocking(move || context.find_thread(&word)).await;
        match found.unwrap_or_else(|error| Err(error.to_string())) {
            Ok(id) => self.go_to(&ThreadToOpen::Resume(id)).await,
            Err(error) => {
                self.view.note(Style::Red, "error", &error);
                Ok(())
            }
        }
    }

    async fn compact(&mut self) -> Result<(), ChatError> {
        let Some(thread) = &self.thread else { return Ok(()) };
        let params = json!({"threadId": thread.id});
        if let Err(Refused(why)) = self.attempt("thread/compact/start", params).await? {
            self.view.note(Style::Red, "error", &why);
        }
        Ok(())
    }

    /// Changes the settings of later turns. Returns whether it succeeded.
    async fn configure(&mut self, mut change: Value) -> Result<bool, ChatError> {
        let Some(thread) = &self.thread else { return Ok(false) };
        change["threadId"] = thread.id.as_str().into();
        let done = self.attempt("thread/settings/update", change).await?;
        if let Err(Refused(why)) = &done {
            self.view.note(Style::Red, "error", why);
        }
        Ok(done.is_ok())
    }

    async fn models(&mut self) -> Result<(), ChatError> {
        let now = self.thread.as_ref().map(|thread| thread.model.clone()).unwrap_or_default();
        self.view.note(Style::Dim, "model", &now);
        if let Ok(answer) = self.attempt("model/list", json!({})).await? {
            for model in answer["data"].as_array().into_iter().flatten() {
                let text = |name: &str| model[name].as_str().unwrap_or_default();
                self.view.line(&format!("  {:<24}{}", text("model"), text("description")));
            }
        }
        Ok(())
    }

    /// Handles the answer to the confirmation for full access.
    pub(crate) async fn confirm(&mut self, words: &[String], answer: &str) -> Result<(), ChatError> {
        if matches!(answer, "y" | "yes") {
            return self.approvals(words, true).await;
        }
        self.view.note(Style::Dim, "approvals", "nothing was changed");
        Ok(())
    }

    async fn approvals(&mut self, words: &[String], is_confirmed: bool) -> Result<(), ChatError> {
        let (mut change, mut approvals, mut sandbox) = (json!({}), None, None);
        for word in words {
            if let Ok(policy) = word.parse::<AskForApproval>() {
                approvals = Some(policy);
                change["approvalPolicy"] = policy.as_str().into();
            } else if let Ok(mode) = word.parse::<SandboxMode>() {
                sandbox = Some(mode);
                change["sandboxPolicy"] = serde_json::to_value(self.context.sandbox_policy(mode))?;
            } else {
                let known = "untrusted, on-request, on-failure, never; read-only, workspace-write, danger-full-access";
                self.view.note(Style::Yellow, "unknown", &format!("{word}; there are {known}"));
                return Ok(());
            }
        }
        if !is_confirmed && self.is_reckless(approvals, sandbox) {
            self.unconfirmed = Some(words.to_vec());
            let what = "commands would run without a sandbox and without asking you. Type yes to confirm";
            self.view.note(Style::Red, "careful", what);
            return Ok(());
        }
        if !words.is_empty() && !self.configure(change).await? {
            return Ok(());
        }
        if let Some(thread) = &mut self.thread {
            if let Some(policy) = approvals {
                thread.approvals = policy.to_string();
            }
            if let Some(mode) = sandbox {
                thread.sandbox = mode.to_string();
            }
            let text = format!("{}, sandbox: {}", thread.approvals, thread.sandbox);
            self.view.note(Style::Dim, "approvals", &text);
        }
        Ok(())
    }

    /// Whether a change leaves neither a sandbox nor approvals.
    fn is_reckless(&self, approvals: Option<AskForApproval>, sandbox: Option<SandboxMode>) -> bool {
        let Some(thread) = &self.thread else { return false };
        let (never, anything) = (AskForApproval::Never.as_str(), SandboxMode::DangerFullAccess.as_str());
        let after = |new: Option<&'static str>, now: &str, worst: &str| new.unwrap_or(now) == worst;
        let was_so = thread.approvals == never && thread.sandbox == anything;
        !was_so
            && after(approvals.map(|policy| policy.as_str()), &thread.approvals, never)
            && after(sandbox.map(|mode| mode.as_str()), &thread.sandbox, anything)
    }

    /// Shows the changes since the last commit. Git runs in a read-only sandbox.
    async fn diff(&mut self) -> Result<(), ChatError> {
        let how = ["--no-ext-diff", "--no-textconv", "--no-color"];
        let mut diff = self.git(&[["diff", "HEAD"].as_slice(), &how].concat()).await?;
        if diff.is_err() {
            // There may be no commit yet.
            diff = self.git(&[["diff"].as_slice(), &how].concat()).await?;
        }
        let new = self.git(&["ls-files", "--others", "--exclude-standard"]).await?;
        match (diff, new) {
            (Ok(diff), Ok(new)) if diff.is_empty() && new.is_empty() => self.view.line("No uncommitted changes.\n"),
            (Ok(diff), Ok(new)) => {
                self.view.spans(crate::diff::of_git(&diff));
                new.lines().for_each(|name| self.view.note(Style::Green, "new file", name));
                self.view.line("");
            }
            (Err(why), _) | (_, Err(why)) => self.view.note(Style::Red, "error", &why),
        }
        Ok(())
    }

    pub(crate) async fn git(&mut self, words: &[&str]) -> Result<Result<String, String>, ChatError> {
        let command = [GIT, words].concat();
        let cwd = if self.context.is_elsewhere() { &self.view.cwd } else { &self.cwd };
        let params = json!({"command": command, "cwd": cwd, "timeoutMs": GIT_MS,
            "sandboxPolicy": {"type": "readOnly"}});
        Ok(match self.attempt("command/exec", params).await? {
            Ok(answer) if answer["exitCode"] == 0 => Ok(answer["stdout"].as_str().unwrap_or_default().to_owned()),
            Ok(answer) => Err(answer["stderr"].as_str().unwrap_or_default().trim().to_owned()),
            Err(Refused(why)) => Err(why),
        })
    }
}
