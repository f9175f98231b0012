//! Calls to the server, and what their answers change.

use std::path::Path;

use serde_json::{Value, json};

use super::app::{App, Effect, Opened, Overlay};
use super::changes;
use super::loading;
use super::queue::QueueStep;
use super::transcript::HEAD;
use super::views::Wanted;
use crate::chat::{approvals_name, sandbox_name};
use crate::{Row, Span, Style, visible};
use codex_dialogue::message::Message;
use codex_views::fields::field;

/// The git command for listing changes: nothing that a repository configures is run.
const GIT: &[&str] = &["git", "--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"];
const GIT_MS: u64 = 20_000;

/// The purpose of a call.
#[derive(Debug)]
pub(super) enum Pending {
    /// Its answer changes nothing, and a refusal neither.
    Nothing,
    /// A refusal is shown.
    Tell,
    Start(Message),
    /// A message to the running turn, with its name.
    Steer(Message, String),
    Turns,
    /// A call of a view.
    View(Wanted),
    Branch,
    Diff,
    /// The changes of known files; `None` if there is no commit to compare with.
    NewFiles(Option<String>),
    Models,
    Model(String),
    Policies {
        approvals: Option<String>,
        sandbox: Option<String>,
    },
    Files(String),
    /// A kind of thing that a review could be of, and the others if it is not.
    Review {
        name: String,
        tried: usize,
    },
    /// A copy to go back to, with so many turns.
    Back {
        message: Message,
        turns: usize,
    },
    Prompts,
    Skills,
    /// The file of a picture.
    Picture,
    SearchOpened,
    Queue(QueueStep),
}

impl App {
    pub(super) fn call(&mut self, method: &'static str, params: Value, pending: Pending) {
        let id = self.expect(pending);
        self.effect(Effect::Call { id, method, params });
    }

    /// The number of an answer that is to come.
    pub(super) fn expect(&mut self, pending: Pending) -> u64 {
        let id = self.calls.next;
        self.calls.next += 1;
        self.calls.pending.insert(id, pending);
        id
    }

    pub(super) fn thread_id(&self) -> Option<String> {
        self.thread.as_ref().map(|thread| thread.id.clone())
    }

    /// A thread was opened, or could not be.
    pub(super) fn opened(&mut self, answer: Result<Value, String>, is_joined: bool) {
        let mut answer = match answer {
            Ok(answer) => answer,
            Err(why) => {
                self.calls.is_kin = false;
                return self.say(Style::Red, "error", &why);
            }
        };
        let (turns, cursor) = loading::turns_of(&mut answer);
        let text = |at: &str| answer.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        let has_turns = !turns.is_empty() || !text("/thread/preview").is_empty();
        let open = turns.last().filter(|turn| turn["status"] == "inProgress").and_then(|turn| turn["id"].as_str());
        let open = open.map(str::to_owned);
        if self.thread_id().is_some_and(|before| before == text("/thread/forkedFromId")) {
            self.hint = Some("This is a copy; the thread that you left is unchanged".to_owned());
        }
        self.transcript.clear();
        self.follow(text("/thread/id"));
        if !std::mem::take(&mut self.calls.is_kin) {
            self.calls.agents.clear();
            self.calls.family.clear();
        }
        self.calls.ledger.clear();
        self.calls.left = self.calls.returning.take().unwrap_or_default();
        self.forget_names();
        (self.calls.under, self.calls.drafted) = (None, None);
        self.transcript.cwd = text("/cwd").into();
        (self.running, self.branch, self.overlay, self.selection) = (None, None, None, None);
        self.thread = Some(Opened {
            id: text("/thread/id"),
            model: text("/model"),
            provider: text("/modelProvider"),
            effort: text("/reasoningEffort"),
            approvals: approvals_name(&answer),
            sandbox: sandbox_name(&text("/sandbox/type")),
            has_turns,
        });
        self.introduce();
        self.load(turns, cursor);
        if let Some(turn) = open {
            self.begin_turn(&turn);
        }
        if is_joined {
            self.say(Style::Dim, "joined", "this thread runs in the background server and stays there when you quit");
        }
        self.ask_branch();
        self.ask_queue();
        let pictures = std::mem::take(&mut self.calls.pictures);
        if let Some(first) = self.calls.first.take() {
            return self.send(Message::with_pictures(first, pictures));
        }
        self.restore_draft();
        for picture in pictures {
            self.composer.editor.attach(&picture);
        }
    }

    fn introduce(&mut self) {
        let Some(thread) = &self.thread else { return };
        let lines = vec![
            vec![Span::new(Style::Bold, format!("codex {}", env!("CARGO_PKG_VERSION")))],
            field("thread", &thread.id),
            field("folder", &self.transcript.cwd.to_string_lossy()),
            field("model", &format!("{} ({})", thread.model, thread.provider)),
            field("sandbox", &format!("{}, approvals: {}", thread.sandbox, thread.approvals)),
            field("help", "/help"),
        ];
        self.transcript.keyed(HEAD, lines);
        for warning in std::mem::take(&mut self.settings.display.warnings) {
            self.say(Style::Yellow, "warning", &warning);
        }
        for problem in self.settings.keymap.problems().to_vec() {
            self.say(Style::Yellow, "warning", &problem.to_string());
        }
    }

    /// An answer has come.
    pub(super) fn answer(&mut self, id: u64, answer: Result<Value, String>) {
        let Some(pending) = self.calls.pending.remove(&id) else { return };
        match (pending, answer) {
            (Pending::Nothing, _) | (Pending::Tell, Ok(_)) => {}
            // It was sent again, and its turn is over.
            (Pending::Start(_), Ok(answer)) if is_over(&answer) => {}
            (Pending::Start(_), Ok(answer)) => self.started(&answer),
            (Pending::Start(message), Err(why)) => {
                self.say(Style::Red, "error", &why);
                self.give_back(&message);
            }
            (Pending::Steer(..), Ok(_)) => {
                if let Some(running) = &mut self.running {
                    running.steered += 1;
                }
            }
            // The turn has ended while this was typed.
            (Pending::Steer(message, name), Err(_)) => self.start(message, name),
            (Pending::Turns, Ok(answer)) => self.take_turns(answer),
            (Pending::Picture, Ok(path)) => {
                self.composer.editor.attach(Path::new(path.as_str().unwrap_or_default()));
            }
            (Pending::Picture, Err(why)) => self.hint = Some(why),
            (Pending::View(wanted), answer) => self.view_answer(wanted, answer),
            (Pending::Branch, answer) => {
                self.branch = answer.ok().and_then(|answer| output(&answer)).map(|text| text.trim().to_owned());
            }
            (Pending::Diff, answer) => {
                let diff = answer.ok().and_then(|answer| output(&answer));
                self.git(&["ls-files", "--others", "--exclude-standard"], Pending::NewFiles(diff));
            }
            (Pending::NewFiles(diff), answer) => {
                let new = answer.ok().and_then(|answer| output(&answer));
                self.show_diff(diff.as_deref(), new.as_deref());
            }
            (Pending::Models, Ok(answer)) => self.offer_models(&answer),
            (Pending::Model(name), Ok(_)) => {
                if let Some(thread) = &mut self.thread {
                    thread.model.clone_from(&name);
                }
                self.say(Style::Dim, "model", &format!("{name} from the next turn on"));
            }
            (Pending::Policies { approvals, sandbox }, Ok(_)) => self.policies_changed(approvals, sandbox),
            (Pending::Files(word), Ok(answer)) => self.take_files(&word, &answer),
            (Pending::Files(_), Err(_)) => {}
            (Pending::Review { name, tried }, answer) => self.review_next(name, tried, answer.ok().as_ref()),
            (Pending::Back { message, turns }, answer) => self.went_back(&message, turns, answer),
            (Pending::Prompts, Ok(answer)) => self.take_prompts(&answer),
            (Pending::Skills, Ok(answer)) => self.take_skills(&answer),
            (Pending::Prompts | Pending::Skills, Err(_)) => {}
            (Pending::SearchOpened, answer) => self.search_opened(answer.is_ok()),
            (Pending::Queue(step), answer) => self.queue_answer(step, answer.as_ref().map_err(String::as_str)),
            (_, Err(why)) => self.say(Style::Red, "error", &why),
        }
    }

    /// A turn has begun. The end of a short one may be read before this answer.
    fn started(&mut self, answer: &Value) {
        let turn = answer.pointer("/turn/id").and_then(Value::as_str).unwrap_or_default();
        if !self.has_ended(turn) {
            self.begin_turn(turn);
        }
    }

    pub(super) fn update_thread(&mut self, event: codex_client::Event) {
        let effects = self.update(super::app::Input::Event(event));
        self.calls.effects.extend(effects);
    }

    /// Sends a message of the person, which is one of the earlier prompts from now on.
    pub(super) fn send(&mut self, message: Message) {
        let Some(thread) = self.thread_id() else { return };
        let id = thread.parse::<codex_wire::ids::ThreadId>().ok();
        if let Some(problem) = self.history.add(id, &message.text) {
            self.say(Style::Yellow, "warning", &problem);
        }
        self.deliver(message);
    }

    /// Brings a message to the running turn, or to a new one.
    pub(super) fn deliver(&mut self, message: Message) {
        let Some(thread) = self.thread_id() else { return };
        self.stop_editing();
        self.transcript.top = None;
        // Under its name, the server takes a message once, however often it is sent.
        let name = format!("{}-message-{}", self.settings.run, self.calls.next);
        match self.running.as_ref().map(|running| running.turn.clone()) {
            Some(turn) => {
                let params = json!({"threadId": thread, "expectedTurnId": turn, "input": message.input(),
                    "clientUserMessageId": name});
                self.call("turn/steer", params, Pending::Steer(message, name));
            }
            None => self.start(message, name),
        }
    }

    fn start(&mut self, message: Message, name: String) {
        let Some(thread) = self.thread_id() else { return };
        let params = json!({"threadId": thread, "input": message.input(), "clientUserMessageId": name});
        self.call("turn/start", params, Pending::Start(message));
    }

    pub(super) fn git(&mut self, words: &[&str], pending: Pending) {
        let here = if self.settings.context.is_elsewhere() { &self.transcript.cwd } else { &self.settings.cwd };
        let command = [GIT, words].concat();
        let params = json!({"command": command, "cwd": here, "timeoutMs": GIT_MS,
            "sandboxPolicy": {"type": "readOnly"}});
        self.call("command/exec", params, pending);
    }

    pub(super) fn ask_branch(&mut self) {
        self.git(&["symbolic-ref", "--short", "--quiet", "HEAD"], Pending::Branch);
    }

    fn show_diff(&mut self, diff: Option<&str>, new: Option<&str>) {
        if diff.is_none() && new.is_none() {
            return self.remark(Style::Yellow, "There is no repository here, or git could not be run.");
        }
        let (diff, new) = (diff.unwrap_or_default(), new.unwrap_or_default());
        if diff.is_empty() && new.is_empty() {
            return self.remark(Style::Dim, "No uncommitted changes.");
        }
        let file = |name: &str| {
            let note = Span::new(Style::Dim, " (not added to git yet)");
            vec![Span::new(Style::Bold, format!("new {}", visible(name))), note]
        };
        let mut before: Vec<Row> = new.lines().map(file).collect();
        before.extend((!before.is_empty() && !diff.is_empty()).then(Row::new));
        let page = changes::page("Uncommitted changes", before, changes::of_text(diff), &self.transcript.cwd);
        self.overlay = Some(Overlay::Page(page));
    }
}

/// Whether the turn in an answer has ended.
fn is_over(answer: &Value) -> bool {
    answer.pointer("/turn/status").is_some_and(|status| status != "inProgress")
}

/// The output of a command that has succeeded.
fn output(answer: &Value) -> Option<String> {
    (answer["exitCode"] == 0).then(|| answer["stdout"].as_str().unwrap_or_default().to_owned())
}
