//! The contents of boards, and the effects of their keys.

use codex_client::Event;
use serde_json::{Value, json};

use codex_views::board::{Board, Pressed};
use codex_views::page::Page;
use codex_views::{agents, policy, servers, terminals, threads, timeline as words};

use super::timeline;
use super::timeline::Only;
use crate::chat::{ThreadToOpen, command_text};
use crate::full::app::{App, Effect, Overlay};
use crate::full::calls::Pending;
use crate::key::Key;
use crate::{Row, Span, Style, one_line, printable};

/// The kinds of boards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::full) enum BoardKind {
    Agents,
    Servers,
    Policy,
    Terminals,
    Timeline(Only),
}

impl BoardKind {
    /// A board of this kind, whose entries are still to come.
    fn board(self) -> Board {
        match self {
            Self::Agents => Board::new("Agents", "attach", agents::ACTIONS)
                .or_say("No agents yet. The model starts them if you ask it to."),
            Self::Servers => {
                Board::new("MCP servers", "tools", servers::ACTIONS).or_say("No MCP servers yet. Press a to add one.")
            }
            Self::Policy => Board::new("Approval policy", "open", policy::ACTIONS),
            Self::Terminals => Board::new("Background terminals", "go to it", terminals::ACTIONS)
                .or_say("No command runs in the background."),
            Self::Timeline(only) => {
                Board::new(only.title(), "go to it", words::ACTIONS).cut().or_say("Nothing has happened yet.")
            }
        }
    }
}

/// The purpose of a call of a view.
#[derive(Debug)]
pub(in crate::full) enum Wanted {
    /// The contents of a board.
    Board(BoardKind),
    /// An action, with what to say if it works; then the board is asked again.
    Done(BoardKind, String),
    /// A change of the configured servers, which takes effect when they are reloaded.
    Configured(String),
    /// The outcome for a command.
    Check(String),
    /// The address of a login to a server.
    Login(String),
    /// Threads to pick from.
    Threads(threads::Asked),
    /// A change of a thread in the picker.
    ThreadChanged(String),
    /// The output of the program of the status line.
    StatusLine,
    /// The open thread has this name.
    Named(String),
    /// The file of an export.
    Exported,
    /// The thread is archived, and the chat goes on in a new one.
    Archived,
}

impl App {
    fn want(&mut self, method: &'static str, params: Value, wanted: Wanted) {
        self.call(method, params, Pending::View(wanted));
    }

    /// Opens a board, and asks for its contents.
    pub(in crate::full) fn open_board(&mut self, kind: BoardKind) {
        self.overlay = Some(Overlay::Board(kind, kind.board()));
        self.refresh(kind);
    }

    fn refresh(&mut self, kind: BoardKind) {
        let named = json!({"threadId": self.thread_id()});
        match kind {
            BoardKind::Agents => self.want("thread/agents/read", named, Wanted::Board(kind)),
            BoardKind::Servers => self.want("mcpServerStatus/list", named, Wanted::Board(kind)),
            BoardKind::Policy => self.want("thread/permissions/read", named, Wanted::Board(kind)),
            BoardKind::Terminals => self.want("thread/backgroundTerminals/list", named, Wanted::Board(kind)),
            BoardKind::Timeline(only) => {
                let entries = self
                    .open_thread()
                    .map(|thread| timeline::entries(thread, only, &self.transcript.cwd))
                    .unwrap_or_default();
                if let Some(Overlay::Board(_, board)) = &mut self.overlay {
                    board.fill(entries);
                    board.go_to_end();
                }
            }
        }
    }

    /// Asks for the contents of a board again if it is open.
    pub(in crate::full) fn refresh_open(&mut self, kind: BoardKind) {
        if self.board_mut(kind).is_some() {
            self.refresh(kind);
        }
    }

    /// The open board of a kind, also below a page.
    fn board_mut(&mut self, wanted: BoardKind) -> Option<&mut Board> {
        let below = self.calls.under.as_deref_mut();
        [self.overlay.as_mut(), below].into_iter().flatten().find_map(|overlay| match overlay {
            Overlay::Board(kind, board) if *kind == wanted => Some(board),
            _ => None,
        })
    }

    /// Puts a page over a board, which is back when the page is closed.
    fn page_over(&mut self, board: (BoardKind, Board), title: &str, lines: Vec<Row>) {
        self.calls.under = Some(Box::new(Overlay::Board(board.0, board.1)));
        self.overlay = Some(Overlay::Page(Page::new(title, lines)));
    }

    /// A key for a board.
    pub(in crate::full) fn board_key(&mut self, kind: BoardKind, mut board: Board, key: &Key) {
        match board.press(key) {
            Pressed::Nothing => self.overlay = Some(Overlay::Board(kind, board)),
            Pressed::Close => {}
            Pressed::Entered(value) => self.entered(kind, board, &value),
            Pressed::Action { key: 'r', .. } if kind != BoardKind::Servers => {
                self.overlay = Some(Overlay::Board(kind, board));
                self.refresh(kind);
            }
            Pressed::Action { key, value, text } => {
                let value = value.unwrap_or_default();
                match kind {
                    BoardKind::Agents if key == 'i' => {
                        let lines = agents::inbox(&value);
                        return self.page_over((kind, board), "Inbox", lines);
                    }
                    BoardKind::Timeline(only) => return self.open_board(BoardKind::Timeline(only.next())),
                    BoardKind::Agents | BoardKind::Servers | BoardKind::Policy | BoardKind::Terminals => {}
                }
                self.overlay = Some(Overlay::Board(kind, board));
                match kind {
                    BoardKind::Agents => self.stop_agent(&value),
                    BoardKind::Servers => self.server_action(key, &value, &text),
                    BoardKind::Policy => self.policy_action(key, &value, text),
                    BoardKind::Terminals => self.terminal_action(key, &value),
                    BoardKind::Timeline(_) => {}
                }
            }
        }
    }

    /// Enter on an entry.
    fn entered(&mut self, kind: BoardKind, board: Board, value: &Value) {
        match kind {
            BoardKind::Agents => {
                let id = value["threadId"].as_str().unwrap_or_default().to_owned();
                self.attach(id);
            }
            BoardKind::Servers => {
                let title = format!("Tools of {}", one_line(&printable(value["name"].as_str().unwrap_or_default())));
                self.page_over((kind, board), &title, servers::tools(value));
            }
            BoardKind::Policy => {
                if let Some(name) = value["open"].as_str() {
                    return self.offer_policies(Overlay::Board(kind, board), name == "sandbox");
                }
                self.page_over((kind, board), "Rule", policy::whole(value));
            }
            BoardKind::Terminals | BoardKind::Timeline(_) => {
                if let Some(item) = words::item(value) {
                    self.go_to_item(item);
                }
            }
        }
    }

    /// Scrolls to an item.
    fn go_to_item(&mut self, item: &str) {
        let size = self.transcript_size();
        let thread = self.thread.as_ref().and_then(|open| self.client.thread(&open.id));
        if !self.transcript.go_to_item(thread, size, item) {
            self.hint = Some("It is not in this part of the thread".to_owned());
        }
    }

    /// Opens the thread of an agent, or the one that it was opened from. Both go on.
    fn attach(&mut self, id: String) {
        if let Some(here) = self.thread_id() {
            let family = &mut self.calls.family;
            match family.iter().position(|known| *known == id) {
                Some(at) => family.truncate(at),
                None => family.push(here),
            }
        }
        self.calls.is_kin = true;
        self.effect(Effect::Open(ThreadToOpen::Resume(id)));
    }

    fn stop_agent(&mut self, agent: &Value) {
        let id = agent["threadId"].as_str().unwrap_or_default().to_owned();
        let turn = self.client.thread(&id).and_then(|thread| thread.running_turn()).map(|turn| turn.id().to_owned());
        match turn {
            Some(turn) => {
                let params = json!({"threadId": id, "turnId": turn});
                self.want("turn/interrupt", params, Wanted::Done(BoardKind::Agents, "Stopped".to_owned()));
            }
            None => self.tell_board(BoardKind::Agents, Style::Dim, "It is not working."),
        }
    }

    fn tell_board(&mut self, kind: BoardKind, style: Style, text: &str) {
        let row = vec![Span::new(style, printable(text).replace('\n', " "))];
        match self.board_mut(kind) {
            Some(board) => board.tell(vec![row]),
            None => self.transcript.note(vec![row]),
        }
    }

    fn server_action(&mut self, key: char, server: &Value, text: &str) {
        let name = server["name"].as_str().unwrap_or_default().to_owned();
        let write = |name: &str, member: &str, value: Value| json!({"keyPath": format!("mcp_servers.{name}{member}"), "value": value, "mergeStrategy": "replace"});
        match key {
            'l' => {
                let params = json!({"name": name, "threadId": self.thread_id()});
                self.want("mcpServer/oauth/login", params, Wanted::Login(name));
            }
            'r' => {
                let told = format!("{name} is restarting");
                self.want("mcpServer/restart", json!({"name": name}), Wanted::Done(BoardKind::Servers, told));
            }
            'e' => {
                let is_enabled = server["runtimeStatus"] == "disabled";
                let told = format!("{name} is {}", if is_enabled { "enabled" } else { "disabled" });
                let params = write(&name, ".enabled", is_enabled.into());
                self.want("config/value/write", params, Wanted::Configured(told));
            }
            'a' => match servers::typed(text) {
                Ok((name, value)) => {
                    let params = write(&name, "", value);
                    self.want("config/value/write", params, Wanted::Configured(format!("{name} is added")));
                }
                Err(why) => {
                    self.tell_board(BoardKind::Servers, Style::Red, &why);
                    if let Some(board) = self.board_mut(BoardKind::Servers) {
                        board.type_again(key, text);
                    }
                }
            },
            'd' => {
                let params = write(&name, "", Value::Null);
                self.want("config/value/write", params, Wanted::Configured(format!("{name} is removed")));
            }
            _ => {}
        }
    }

    fn policy_action(&mut self, key: char, value: &Value, text: String) {
        let thread = self.thread_id();
        let done = |text: &str| Wanted::Done(BoardKind::Policy, text.to_owned());
        match (key, &value["rule"], &value["grant"]) {
            ('c', ..) => {
                let params = json!({"threadId": thread, "command": text});
                self.want("thread/permissions/check", params, Wanted::Check(text));
            }
            ('d', rule, _) if rule.is_object() => {
                let params =
                    json!({"threadId": thread, "file": rule["file"], "line": rule["line"], "text": rule["text"]});
                self.want("thread/permissions/rule/delete", params, done("The rule is deleted"));
            }
            ('d', _, grant) if grant.is_object() => {
                let params = json!({"threadId": thread, "grantId": grant["id"]});
                self.want("thread/permissions/revoke", params, done("The approval is taken back"));
            }
            _ => self.tell_board(BoardKind::Policy, Style::Dim, "Press Enter to change it."),
        }
    }

    fn terminal_action(&mut self, key: char, terminal: &Value) {
        let done = |text: &str| Wanted::Done(BoardKind::Terminals, text.to_owned());
        let thread = self.thread_id();
        if key == 'S' {
            let params = json!({"threadId": thread});
            self.want("thread/backgroundTerminals/clean", params, done("All of them are stopped"));
        } else {
            let params = json!({"threadId": thread, "processId": terminal["processId"]});
            self.want("thread/backgroundTerminals/terminate", params, done("Stopped"));
        }
    }

    /// The answer to a call of a view.
    pub(in crate::full) fn view_answer(&mut self, wanted: Wanted, answer: Result<Value, String>) {
        match (wanted, answer) {
            (Wanted::Board(kind), Ok(answer)) => self.fill(kind, &answer),
            (Wanted::Board(kind), Err(why)) => {
                if let Some(board) = self.board_mut(kind) {
                    board.fill(Vec::new());
                }
                self.tell_board(kind, Style::Red, &why);
            }
            (Wanted::Done(kind, told), Ok(_)) => {
                self.tell_board(kind, Style::Green, &told);
                self.refresh(kind);
            }
            (Wanted::Done(kind, _), Err(why)) => self.tell_board(kind, Style::Red, &why),
            (Wanted::Configured(told), Ok(_)) => {
                self.want("config/mcpServer/reload", Value::Null, Wanted::Done(BoardKind::Servers, told));
            }
            (Wanted::Check(command), Ok(answer)) => {
                if let Some(board) = self.board_mut(BoardKind::Policy) {
                    board.tell(policy::forecast(&command, &answer));
                }
            }
            (Wanted::Login(name), Ok(answer)) => {
                let address = answer["authorizationUrl"].as_str().unwrap_or_default().to_owned();
                self.effect(Effect::Copy(address.clone()));
                let lines = vec![
                    vec![Span::new(Style::Plain, format!("Open this address to log in to {name}. It is copied."))],
                    vec![Span::new(Style::Link, printable(&address))],
                ];
                if let Some(board) = self.board_mut(BoardKind::Servers) {
                    board.tell(lines);
                }
            }
            (Wanted::Configured(_) | Wanted::Login(_), Err(why)) => {
                self.tell_board(BoardKind::Servers, Style::Red, &why);
            }
            (Wanted::Check(_), Err(why)) => self.tell_board(BoardKind::Policy, Style::Red, &why),
            (Wanted::Threads(asked), answer) => self.take_threads(&asked, answer),
            (Wanted::ThreadChanged(told), answer) => self.thread_changed(told, answer.err()),
            (Wanted::StatusLine, answer) => self.take_status(answer),
            (Wanted::Exported, Ok(path)) => {
                self.say(Style::Green, "exported", path.as_str().unwrap_or_default());
            }
            (Wanted::Archived, Ok(_)) => {
                self.hint = Some("The thread is archived; /resume and Ctrl-A list it".to_owned());
                self.effect(Effect::Open(ThreadToOpen::New));
            }
            (Wanted::Named(name), Ok(_)) => self.hint = Some(format!("This thread is called {name}")),
            (Wanted::Named(_) | Wanted::Exported | Wanted::Archived, Err(why)) => self.say(Style::Red, "error", &why),
        }
    }

    fn fill(&mut self, kind: BoardKind, answer: &Value) {
        let parent = self.calls.family.last().cloned();
        let entries = match kind {
            BoardKind::Agents => agents::entries(answer, parent.as_deref()),
            BoardKind::Servers => servers::entries(answer),
            BoardKind::Policy => policy::entries(answer),
            BoardKind::Terminals => terminals::entries(answer, |line| command_text(line).into_owned()),
            BoardKind::Timeline(_) => return,
        };
        if let Some(board) = self.board_mut(kind) {
            board.fill(entries);
        }
    }

    /// Asks for the contents of an open board again if an event changes them.
    pub(in crate::full) fn board_event(&mut self, event: &Event) {
        let Some(Overlay::Board(kind, _)) = &self.overlay else { return };
        let kind = *kind;
        let is_item = |wanted: &str| match event {
            Event::ItemCompleted { item, .. } => item.get("type").is_some_and(|kind| kind == wanted),
            _ => false,
        };
        let is_about_turns = matches!(event, Event::TurnStarted { .. } | Event::TurnEnded { .. });
        let is_about = |start: &str| matches!(event, Event::Other { method, .. } if method.starts_with(start));
        let is_changed = match kind {
            BoardKind::Agents => is_about_turns || is_item("collabAgentToolCall"),
            BoardKind::Servers => is_about("mcpServer/"),
            BoardKind::Policy => is_about_turns || matches!(event, Event::Resolved { .. }),
            BoardKind::Terminals => is_about_turns || is_item("commandExecution"),
            BoardKind::Timeline(_) => false,
        };
        if is_changed {
            self.refresh(kind);
        }
        if let Event::Other { method, params } = event
            && method == "mcpServer/oauthLogin/completed"
        {
            let name = params["name"].as_str().unwrap_or_default();
            match params["error"].as_str() {
                Some(why) => self.tell_board(kind, Style::Red, &format!("The login to {name} has failed: {why}")),
                None => self.tell_board(kind, Style::Green, &format!("Logged in to {name}")),
            }
        }
    }
}
