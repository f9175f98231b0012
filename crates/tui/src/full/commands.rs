//! The meaning of a submitted line: a message, a command of the user, or a command of the chat; and keys of lists.

use codex_wire::policy::{AskForApproval, SandboxMode};
use serde_json::{Value, json};

use super::app::{App, Effect, Overlay};
use super::calls::Pending;
use super::views::{BoardKind, Only, Wanted};
use crate::chat::{AGENTS, INIT, ThreadToOpen};
use crate::key::Key;
use crate::keymap::Context;
use crate::slash::Slash;
use crate::vim::Vim;
use crate::{Style, query, slash};
use codex_dialogue::message::Message;
use codex_views::help;

impl App {
    pub(super) fn submit(&mut self) {
        let message = self.composer.take_message(&self.names.skill_files);
        let text = message.text.clone();
        if let Some(words) = self.calls.unconfirmed.take() {
            return if matches!(text.trim(), "y" | "yes") {
                self.approvals(&words, true);
            } else {
                self.say(Style::Dim, "approvals", "nothing was changed");
            };
        }
        if message.is_empty() {
            return;
        }
        match self.saved_prompt(&text) {
            Some(Ok(prompt)) => return self.send(Message { text: prompt, ..message }),
            Some(Err(())) => return self.composer.replace(&text),
            None => {}
        }
        if let Some(command) = text.trim().strip_prefix('!').map(str::trim).filter(|command| !command.is_empty()) {
            self.history.add(None, &text);
            if let Some(thread) = self.thread_id() {
                let params = json!({"threadId": thread, "command": command});
                self.call("thread/shellCommand", params, Pending::Tell);
            }
            return;
        }
        let line = slash::renamed(&text);
        match slash::read(&line) {
            Some(command) => {
                self.history.add(None, &text);
                self.command(command, &line);
            }
            None => self.send(message),
        }
    }

    fn command(&mut self, command: Slash, line: &str) {
        match command {
            Slash::Help => {
                let lines = help::commands(&self.settings.keymap, self.size.0);
                self.page("Help", lines);
            }
            Slash::Agents => self.open_board(BoardKind::Agents),
            Slash::Quit => self.effect(Effect::Leave),
            Slash::Status => {
                let lines = self.status_lines();
                self.page("Status", lines);
            }
            Slash::Diff if line.trim().ends_with(" turn") || line.trim().ends_with(" thread") => {
                self.show_changes(line.trim().ends_with(" thread"));
            }
            Slash::Diff => self.git(&["diff", "HEAD", "--no-ext-diff", "--no-textconv", "--no-color"], Pending::Diff),
            Slash::Model(None) => self.call("model/list", json!({}), Pending::Models),
            Slash::Model(Some(name)) => self.choose_model(name),
            Slash::Approvals(words) if words.is_empty() => self.open_board(BoardKind::Policy),
            Slash::Approvals(words) => self.approvals(&words, false),
            Slash::New | Slash::Resume(_) | Slash::Compact | Slash::Init | Slash::Review(_)
                if self.running.is_some() =>
            {
                self.remark(Style::Yellow, "Busy: a turn is running. Esc stops it");
            }
            Slash::Init => self.init(),
            Slash::Review(what) => self.review(what),
            Slash::Compact => {
                let thread = self.thread_id();
                self.call("thread/compact/start", json!({"threadId": thread}), Pending::Tell);
            }
            Slash::New => self.effect(Effect::Open(ThreadToOpen::New)),
            Slash::Resume(Some(word)) => self.effect(Effect::Open(ThreadToOpen::Resume(word))),
            Slash::Resume(None) => {
                self.list_threads(false, false);
            }
            Slash::Unknown(name) => self.own_command(&name, line),
        }
    }

    /// The commands of the full screen alone.
    fn own_command(&mut self, name: &str, line: &str) {
        let rest = line.trim().split_once(char::is_whitespace).map_or("", |(_, rest)| rest).trim().to_owned();
        match name {
            "usage" => {
                let lines = self.usage_lines();
                self.page("Usage", lines);
            }
            "timeline" => {
                self.open_board(BoardKind::Timeline(Only::default()));
                if let (Some(Overlay::Board(_, board)), false) = (&mut self.overlay, rest.is_empty()) {
                    board.filter_by(&rest);
                }
            }
            "mcp" => self.open_board(BoardKind::Servers),
            "ps" => self.open_board(BoardKind::Terminals),
            "copy" if rest == "code" => self.copy_code(),
            "copy" => self.copy_last(),
            "mention" => self.composer.replace("@"),
            "queue" if !self.choose_queued(false) => self.remark(Style::Dim, "Nothing is queued."),
            "queue" => {}
            "stop" if self.running.is_some() => {
                let turn = self.running.as_ref().map(|running| running.turn.clone());
                let params = json!({"threadId": self.thread_id(), "turnId": turn});
                self.call("turn/interrupt", params, Pending::Nothing);
            }
            "stop" => {
                let params = json!({"threadId": self.thread_id()});
                self.call("thread/backgroundTerminals/clean", params, Pending::Tell);
                self.remark(Style::Dim, "No turn is running; background terminals are stopped.");
            }
            "back" => self.offer_earlier(),
            "forward" => self.go_forward(),
            "vim" => {
                let is_on = self.composer.vim.take().is_none();
                self.composer.vim = is_on.then(Vim::default);
                self.hint = Some(format!("The keys of vi are {}", if is_on { "on" } else { "off" }));
            }
            "fold" => {
                let fold = self.transcript.cycle();
                self.hint = Some(format!("Showing: {}", fold.name()));
            }
            "theme" if rest.is_empty() => self.offer_themes(),
            "theme" => self.choose_theme(&rest),
            "keys" => {
                let lines = help::keys(&self.settings.keymap, self.size.0);
                self.page("Keys", lines);
            }
            name => self.thread_command(name, rest),
        }
    }

    /// The commands about the open thread.
    fn thread_command(&mut self, name: &str, rest: String) {
        match name {
            "fork" => {
                if let Some(id) = self.thread_id() {
                    self.effect(Effect::Open(ThreadToOpen::Fork(id)));
                }
            }
            "rename" if rest.is_empty() => self.remark(Style::Yellow, "Add a name: /rename NAME"),
            "rename" => {
                let params = json!({"threadId": self.thread_id(), "name": rest});
                self.call("thread/name/set", params, Pending::View(Wanted::Named(rest)));
            }
            "export" => self.export(Some(rest).filter(|name| !name.is_empty())),
            "archive" => {
                let params = json!({"threadId": self.thread_id()});
                self.call("thread/archive", params, Pending::View(Wanted::Archived));
            }
            "pwd" => {
                let cwd = self.transcript.cwd.display().to_string();
                self.say(Style::Dim, "folder", &cwd);
            }
            "rollout" => {
                let file =
                    self.open_thread().and_then(|thread| thread.members().get("path")?.as_str().map(str::to_owned));
                self.say(Style::Dim, "file", file.as_deref().unwrap_or("this thread has no file yet"));
            }
            name => self.remark(Style::Yellow, &format!("Unknown command /{name}. Type /help for a list")),
        }
    }

    /// Writes the conversation as Markdown.
    fn export(&mut self, name: Option<String>) {
        let Some(text) = self.open_thread().map(codex_client::markdown::thread) else { return };
        let id = self.expect(Pending::View(Wanted::Exported));
        self.effect(Effect::Export { id, name, text });
    }

    fn init(&mut self) {
        let context = &self.settings.context;
        let file = context.project().join(AGENTS);
        if !context.is_elsewhere() && file.symlink_metadata().is_ok() {
            let text = format!("{} exists already. Delete it first, or ask for the changes you want", file.display());
            return self.remark(Style::Yellow, &text);
        }
        // The person has typed the command, and not this text.
        self.deliver(INIT.to_owned().into());
    }

    /// Starts a review: of uncommitted changes, of a branch, of a commit, or of whatever the words describe.
    fn review(&mut self, what: Option<String>) {
        match what {
            None => self.start_review(json!({"type": "uncommittedChanges"})),
            Some(words) if words.contains(char::is_whitespace) => {
                self.start_review(json!({"type": "custom", "instructions": words}));
            }
            Some(name) => self.look_for(name, 0),
        }
    }

    /// Asks git whether a name is a branch here, one elsewhere, or a commit.
    fn look_for(&mut self, name: String, tried: usize) {
        let whole = match tried {
            0 => format!("refs/heads/{name}"),
            1 => format!("refs/remotes/{name}"),
            _ => format!("{name}^{{commit}}"),
        };
        let words = ["rev-parse", "--verify", "--quiet", "--end-of-options", &whole];
        self.git(&words, Pending::Review { name, tried });
    }

    pub(super) fn review_next(&mut self, name: String, tried: usize, answer: Option<&Value>) {
        let is_there = answer.is_some_and(|answer| answer["exitCode"] == 0);
        match (is_there, tried) {
            (true, 0 | 1) => self.start_review(json!({"type": "baseBranch", "branch": name})),
            (true, _) => self.start_review(json!({"type": "commit", "sha": name})),
            (false, 0 | 1) => self.look_for(name, tried + 1),
            (false, _) => self.say(Style::Red, "error", &format!("there is no branch or commit `{name}`")),
        }
    }

    fn start_review(&mut self, target: Value) {
        let params = json!({"threadId": self.thread_id(), "target": target, "delivery": "inline"});
        self.call("review/start", params, Pending::Start(Message::default()));
    }

    pub(super) fn choose_model(&mut self, name: String) {
        self.configure(json!({"model": name}), Pending::Model(name));
    }

    fn configure(&mut self, mut change: Value, pending: Pending) {
        change["threadId"] = json!(self.thread_id());
        self.call("thread/settings/update", change, pending);
    }

    pub(super) fn approvals(&mut self, words: &[String], is_confirmed: bool) {
        let (mut change, mut approvals, mut sandbox) = (json!({}), None, None);
        for word in words {
            if let Ok(policy) = word.parse::<AskForApproval>() {
                approvals = Some(policy.as_str().to_owned());
                change["approvalPolicy"] = policy.as_str().into();
            } else if let Ok(mode) = word.parse::<SandboxMode>() {
                sandbox = Some(mode.as_str().to_owned());
                change["sandboxPolicy"] = json!(self.settings.context.sandbox_policy(mode));
            } else {
                let known = "untrusted, on-request, on-failure, never; read-only, workspace-write, danger-full-access";
                return self.say(Style::Yellow, "unknown", &format!("{word}; there are {known}"));
            }
        }
        if words.is_empty() {
            return self.policies_changed(None, None);
        }
        if !is_confirmed && self.is_reckless(approvals.as_deref(), sandbox.as_deref()) {
            self.calls.unconfirmed = Some(words.to_vec());
            // The answer is typed below the conversation.
            self.overlay = None;
            let what = "commands would run without a sandbox and without asking you. Type yes to confirm";
            return self.say(Style::Red, "careful", what);
        }
        self.configure(change, Pending::Policies { approvals, sandbox });
    }

    pub(super) fn policies_changed(&mut self, approvals: Option<String>, sandbox: Option<String>) {
        let Some(thread) = &mut self.thread else { return };
        thread.approvals = approvals.unwrap_or_else(|| thread.approvals.clone());
        thread.sandbox = sandbox.unwrap_or_else(|| thread.sandbox.clone());
        let text = format!("{}, sandbox: {}", thread.approvals, thread.sandbox);
        self.say(Style::Dim, "approvals", &text);
        self.refresh_open(BoardKind::Policy);
    }

    /// Whether a change leaves neither a sandbox nor approvals.
    fn is_reckless(&self, approvals: Option<&str>, sandbox: Option<&str>) -> bool {
        let Some(thread) = &self.thread else { return false };
        let (never, anything) = (AskForApproval::Never.as_str(), SandboxMode::DangerFullAccess.as_str());
        let was_so = thread.approvals == never && thread.sandbox == anything;
        let is_so = approvals.unwrap_or(&thread.approvals) == never && sandbox.unwrap_or(&thread.sandbox) == anything;
        is_so && !was_so
    }

    pub(super) fn overlay_key(&mut self, key: &Key) {
        let size = (self.size.0, self.size.1.saturating_sub(1));
        match self.overlay.take() {
            Some(Overlay::Page(mut page)) => {
                // While a search is typed, keys are text.
                let context = Context::Page;
                let known =
                    if page.is_typing() { Some(key.clone()) } else { self.settings.keymap.translate(context, key) };
                let is_open = known.is_none_or(|key| page.press(&key, size));
                let below = self.calls.under.take();
                if is_open {
                    self.calls.under = below;
                    self.overlay = Some(Overlay::Page(page));
                } else {
                    self.overlay = below.map(|below| *below);
                }
            }
            Some(Overlay::Board(kind, board)) => self.board_key(kind, board, key),
            Some(Overlay::Threads(threads)) => self.threads_key(threads, key),
            Some(Overlay::Choice(choice, list)) => self.choice_key(choice, list, key),
            Some(Overlay::Search(mut text)) => match key {
                Key::Enter => {
                    self.calls.sought = text;
                    self.search_again();
                }
                Key::Esc | Key::Ctrl('c' | 'd') => {}
                key => {
                    query::edit(&mut text, key);
                    self.overlay = Some(Overlay::Search(text));
                }
            },
            None => {}
        }
    }
}
