//! Opens the thread of the chat: a new one, an existing one, a copy, or one that the user picks.

use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use super::connection::Connection;
use super::error::{ChatError, Refused};
use super::session::{Chat, Flow, Opened, ThreadPicker};
use crate::picker::{Entry, Picker};
use crate::transcript::{Style, heading};

/// The maximum number of threads to pick from, and on a terminal that cannot show a list in place.
const MOST_CHOICES: usize = 100;
const MOST_PRINTED: usize = 10;
/// The maximum number of turns shown of a resumed thread.
const MOST_TURNS: usize = 500;

/// The thread to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThreadToOpen {
    New,
    Resume(String),
    Fork(String),
    /// The user picks one, to fork or not.
    Choice {
        is_fork: bool,
        everywhere: bool,
    },
}

impl<W: Write> Chat<W> {
    /// Opens a thread. The previous one continues without this client, which means that an idle one is closed.
    pub(crate) async fn open(&mut self, wanted: &ThreadToOpen, cwd: &Path) -> Result<Result<(), Refused>, ChatError> {
        let mut params = self.named.clone();
        if !self.context.is_elsewhere() {
            params.insert("cwd".to_owned(), cwd.to_string_lossy().into());
        }
        let method = match wanted {
            ThreadToOpen::New => "thread/start",
            ThreadToOpen::Resume(id) => {
                params.insert("threadId".to_owned(), id.as_str().into());
                "thread/resume"
            }
            ThreadToOpen::Fork(id) => {
                params.insert("threadId".to_owned(), id.as_str().into());
                "thread/fork"
            }
            ThreadToOpen::Choice { is_fork, everywhere } => {
                let is_here = !everywhere && !self.context.is_elsewhere();
                return self.offer(*is_fork, is_here.then_some(cwd)).await.map(Ok);
            }
        };
        let elsewhere = match wanted {
            ThreadToOpen::Resume(id) => match self.context.server_socket() {
                Some(socket) => Connection::holding(&socket, id).await,
                None => None,
            },
            _ => None,
        };
        let server = elsewhere.as_ref().unwrap_or_else(|| self.connection.first());
        let answer = match server.attempt(method, Value::Object(params)).await? {
            Ok(answer) => answer,
            Err(refused) => return Ok(Err(refused)),
        };
        let before = self.thread.take().map(|before| before.id);
        if let Some(before) = &before {
            // It is saved already; whether it can be unloaded now does not matter.
            self.attempt("thread/unsubscribe", json!({"threadId": before})).await?.ok();
        }
        let is_joined = elsewhere.is_some();
        self.connection.turn_to(elsewhere);
        let id = answer.pointer("/thread/id").and_then(Value::as_str).unwrap_or_default();
        self.connection.follow(id, before.as_deref().filter(|before| *before != id));
        self.view.begin_thread();
        self.agents.clear();
        self.running = None;
        self.introduce(&answer);
        if self.thread.as_ref().is_some_and(|thread| thread.has_turns) {
            self.show_earlier(&answer).await?;
        }
        if is_joined {
            self.take_over(&answer);
            self.view.note(
                Style::Dim,
                "joined",
                "this thread runs in the background server and stays there when you quit",
            );
        }
        Ok(Ok(()))
    }

    /// Joins a turn that is already running.
    fn take_over(&mut self, answer: &Value) {
        let turns = turns_of(answer);
        let running = turns.and_then(|turns| turns.last()).filter(|turn| turn["status"] == "inProgress");
        if let Some(turn) = running.and_then(|turn| turn["id"].as_str()) {
            self.begin_turn(turn.to_owned());
        }
    }

    /// Shows which thread it is, and its latest messages.
    fn introduce(&mut self, answer: &Value) {
        let text = |at: &str| answer.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        let sandbox = sandbox_name(&text("/sandbox/type"));
        let turns = turns_of(answer);
        let thread = Opened {
            id: text("/thread/id"),
            model: text("/model"),
            provider: text("/modelProvider"),
            effort: text("/reasoningEffort"),
            approvals: approvals_name(answer),
            sandbox,
            has_turns: turns.is_some_and(|turns| !turns.is_empty()),
            last_turn: turns.and_then(|turns| turns.last()?["id"].as_str()).unwrap_or_default().to_owned(),
        };
        self.view.line(&heading(&[
            ("thread", thread.id.clone()),
            ("folder", text("/cwd")),
            ("model", format!("{} ({})", thread.model, thread.provider)),
            ("sandbox", format!("{}, approvals: {}", thread.sandbox, thread.approvals)),
            ("help", "/help".to_owned()),
        ]));
        self.thread = Some(thread);
        self.view.cwd = text("/cwd").into();
    }

    /// Shows the history of the thread: with all items, or as in the response if they are not available.
    async fn show_earlier(&mut self, answer: &Value) -> Result<(), ChatError> {
        let params = json!({"threadId": answer.pointer("/thread/id"), "itemsView": "full", "limit": MOST_TURNS,
            "sortDirection": "desc"});
        let (mut turns, mut has_more) = (Vec::new(), false);
        if let Ok(mut page) = self.attempt("thread/turns/list", params).await? {
            has_more = page["nextCursor"].is_string();
            turns = page["data"].as_array_mut().map(std::mem::take).unwrap_or_default();
            turns.reverse();
        }
        let told = turns_of(answer);
        let turns = if turns.is_empty() { told.map_or(&[][..], Vec::as_slice) } else { &turns };
        self.agents.earlier(turns);
        self.view.earlier(turns, has_more);
        Ok(())
    }

    /// Shows threads to pick from.
    pub(crate) async fn offer(&mut self, is_fork: bool, folder: Option<&Path>) -> Result<(), ChatError> {
        let mut params = json!({"limit": MOST_CHOICES, "modelProviders": [], "sortKey": "updated_at",
            "sourceKinds": ["cli", "vscode", "exec", "appServer", "unknown"]});
        if let Some(folder) = folder {
            params["cwd"] = folder.to_string_lossy().into();
        }
        let threads = match self.attempt("thread/list", params).await? {
            Ok(mut answer) => answer.get_mut("data").map(Value::take).unwrap_or_default(),
            Err(Refused(why)) => {
                self.view.note(Style::Red, "error", &why);
                return Ok(());
            }
        };
        let here = self.thread.as_ref().map(|thread| thread.id.clone()).unwrap_or_default();
        let others = threads.as_array().into_iter().flatten().filter(|thread| thread["id"] != here.as_str());
        let (mut ids, mut entries) = (Vec::new(), Vec::new());
        for thread in others.take(if self.screen.capabilities().is_dumb { MOST_PRINTED } else { MOST_CHOICES }) {
            let text = |name: &str| thread[name].as_str().unwrap_or_default().to_owned();
            let title = Some(text("name")).filter(|name| !name.is_empty()).unwrap_or_else(|| text("preview"));
            ids.push(text("id"));
            entries.push(Entry {
                note: super::written(thread["updatedAt"].as_i64().unwrap_or_default()),
                title,
                ..Entry::default()
            });
        }
        if ids.is_empty() {
            self.view.line("There is no other thread here yet. `codex threads list` shows those of all folders.");
            return Ok(());
        }
        if self.screen.capabilities().is_dumb {
            for (at, Entry { note, title, .. }) in entries.iter().enumerate() {
                self.view.line(&format!("{:>3}  {note}  {}", at + 1, crate::one_line(title)));
            }
            self.view.line("Pick a thread by number (Enter to cancel):");
        }
        self.choosing = Some(ThreadPicker { ids, picker: Picker::new(entries), is_fork });
        Ok(())
    }

    /// Handles a choice by number.
    pub(crate) async fn choose_by_number(&mut self, choosing: ThreadPicker, text: &str) -> Result<Flow, ChatError> {
        let number = text.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let number = number.filter(|number| *number < choosing.ids.len());
        if number.is_none() && !text.is_empty() {
            self.view.note(Style::Yellow, "choose", &format!("a number from 1 to {}", choosing.ids.len()));
            self.choosing = Some(choosing);
            return Ok(Flow::Stay);
        }
        self.choose(choosing, number).await
    }

    /// Handles the user's choice.
    pub(crate) async fn choose(&mut self, choosing: ThreadPicker, number: Option<usize>) -> Result<Flow, ChatError> {
        let Some(id) = number.and_then(|number| choosing.ids.get(number)).cloned() else {
            return Ok(if self.thread.is_none() { Flow::Leave } else { Flow::Stay });
        };
        let wanted = if choosing.is_fork { ThreadToOpen::Fork(id) } else { ThreadToOpen::Resume(id) };
        let cwd = self.cwd.clone();
        match self.open(&wanted, &cwd).await? {
            Ok(()) => self.say_first().await?,
            Err(Refused(why)) => {
                self.view.note(Style::Red, "error", &why);
                self.choosing = Some(choosing);
            }
        }
        Ok(Flow::Stay)
    }

    /// Sends the initial prompt.
    pub(crate) async fn say_first(&mut self) -> Result<(), ChatError> {
        match self.first.take() {
            Some(text) => self.say(text).await,
            None => Ok(()),
        }
    }
}

/// The turns of an opened thread, if they are there.
fn turns_of(answer: &Value) -> Option<&Vec<Value>> {
    answer.pointer("/thread/turns").and_then(Value::as_array)
}

/// The name of the approval policy of an opened thread: its word, or that of its only member.
pub(crate) fn approvals_name(answer: &Value) -> String {
    let policy = &answer["approvalPolicy"];
    let member = || policy.as_object().and_then(|policy| policy.keys().next()).map(String::as_str);
    policy.as_str().or_else(member).unwrap_or_default().to_owned()
}

/// The configuration name of a sandbox mode.
pub(crate) fn sandbox_name(kind: &str) -> String {
    match kind {
        "readOnly" => "read-only".to_owned(),
        "workspaceWrite" => "workspace-write".to_owned(),
        "dangerFullAccess" => "danger-full-access".to_owned(),
        other => other.to_owned(),
    }
}
