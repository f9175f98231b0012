//! Messages that wait for the next turn. The server keeps them if it can, so that they outlive the chat and every screen
//! sees them; otherwise they are here.

use serde_json::{Value, json};

use super::app::App;
use super::calls::Pending;
use crate::key::Key;
use crate::keymap::Context;
use crate::wrap::hint_rows;
use crate::{Row, Span, Style};
use codex_dialogue::message::Message;

/// A message that waits.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Queued {
    /// The name that the server has given it; none if it does not have it yet, or keeps no queue.
    id: Option<String>,
    pub(super) message: Message,
}

/// Who keeps the queue.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Keeper {
    /// Not known yet.
    #[default]
    Asked,
    Server,
    Chat,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) entries: Vec<Queued>,
    /// The message that keys act on.
    pub(super) at: Option<usize>,
    keeper: Keeper,
    /// Whether the next message waits until somebody sends it.
    is_paused: bool,
    /// The place of the message that is being edited.
    edited: Option<usize>,
    /// The number of messages that this chat has added, for their names.
    added: u64,
}

impl App {
    /// Asks the server for the queue of the thread that was opened.
    pub(super) fn ask_queue(&mut self) {
        self.queue = Queue::default();
        self.list_queue();
    }

    fn list_queue(&mut self) {
        self.call("thread/queue/list", json!({"threadId": self.thread_id()}), Pending::Queue(QueueStep::Listed));
    }

    /// The queue has changed, here or on another screen.
    pub(super) fn queue_changed(&mut self) {
        if self.queue.keeper != Keeper::Chat {
            self.list_queue();
        }
    }

    /// The server has answered a call about the queue.
    pub(super) fn queue_answer(&mut self, step: QueueStep, answer: Result<&Value, &str>) {
        match step {
            QueueStep::Listed => self.take_queue(answer.ok()),
            QueueStep::Added { place } => self.queued(place, answer),
            QueueStep::Removed { message, at, taken } => self.unqueued(message, at, taken, answer),
            // Another screen may have changed it at the same time; the server says how it is.
            QueueStep::Ordered if answer.is_err() => self.queue_changed(),
            QueueStep::Ordered => {}
        }
    }

    fn take_queue(&mut self, answer: Option<&Value>) {
        let Some(answer) = answer else {
            if self.queue.keeper == Keeper::Asked {
                self.queue.keeper = Keeper::Chat;
            }
            return;
        };
        let was_asked = std::mem::replace(&mut self.queue.keeper, Keeper::Server) == Keeper::Asked;
        let kept = answer["data"].as_array().into_iter().flatten().map(|entry| Queued {
            id: entry["id"].as_str().map(str::to_owned),
            message: Message::from_input(&entry["input"]),
        });
        let own: Vec<Queued> = self.queue.entries.drain(..).filter(|entry| entry.id.is_none()).collect();
        self.queue.entries = kept.collect();
        self.queue.is_paused = answer["isPaused"] == true;
        if was_asked {
            for entry in own {
                self.add_queued(entry.message, None);
            }
        } else {
            self.queue.entries.extend(own);
        }
        self.queue.at = self.queue.at.filter(|_| !self.queue.entries.is_empty());
        self.queue.at = self.queue.at.map(|at| at.min(self.queue.entries.len() - 1));
    }

    /// Queues what is typed for the next turn; `false` if there is nothing to queue it behind.
    pub(super) fn enqueue(&mut self) -> bool {
        let is_waiting = self.running.is_some() || !self.queue.entries.is_empty() || self.queue.edited.is_some();
        if !is_waiting || self.composer.editor.text().trim().is_empty() {
            return false;
        }
        let message = self.composer.take_message(&self.names.skill_files);
        let place = self.queue.edited.take();
        self.add_queued(message, place);
        true
    }

    /// Adds a message at a place, or at the end.
    fn add_queued(&mut self, message: Message, place: Option<usize>) {
        let place = place.unwrap_or(usize::MAX).min(self.queue.entries.len());
        if self.queue.keeper == Keeper::Server {
            self.queue.added += 1;
            let name = format!("{}-{}", self.settings.run, self.queue.added);
            let params = json!({"threadId": self.thread_id(), "clientUserMessageId": name, "input": message.input()});
            self.call("thread/queue/add", params, Pending::Queue(QueueStep::Added { place }));
        }
        self.queue.entries.insert(place, Queued { id: None, message });
    }

    /// The server has a message, or refuses it.
    fn queued(&mut self, place: usize, answer: Result<&Value, &str>) {
        let own = self.queue.entries.iter().position(|entry| entry.id.is_none());
        match answer {
            Ok(answer) => {
                let id = answer["queuedSubmission"]["id"].as_str().map(str::to_owned);
                let is_known = self.queue.entries.iter().any(|entry| entry.id.is_some() && entry.id == id);
                let Some(own) = own else { return };
                if is_known || id.is_none() {
                    self.queue.entries.remove(own);
                } else {
                    self.queue.entries[own].id = id;
                }
                let is_last = place + 1 >= self.queue.entries.len();
                if !is_last {
                    self.order_queue();
                }
            }
            Err(why) => {
                self.say(Style::Red, "error", why);
                if let Some(entry) = own.map(|own| self.queue.entries.remove(own)) {
                    self.give_back(&entry.message);
                }
            }
        }
    }

    /// Puts a message into the composer, if nothing else is there.
    pub(super) fn give_back(&mut self, message: &Message) {
        if self.composer.editor.is_empty() {
            self.composer.editor.restore(&message.parts());
        }
    }

    /// Tells the server the order of all messages.
    fn order_queue(&mut self) {
        let ids: Option<Vec<String>> = self.queue.entries.iter().map(|entry| entry.id.clone()).collect();
        // Until the server has all of them there is nothing to order.
        if let Some(ids) = ids.filter(|_| self.queue.keeper == Keeper::Server) {
            let params = json!({"threadId": self.thread_id(), "queuedSubmissionIds": ids});
            self.call("thread/queue/reorder", params, Pending::Queue(QueueStep::Ordered));
        }
    }

    /// The turn has ended. After a stop the queue waits, so that nothing is sent unexpectedly.
    pub(super) fn send_next(&mut self, is_completed: bool) {
        if self.queue.keeper == Keeper::Server || self.queue.entries.is_empty() {
            return;
        }
        self.queue.is_paused = !is_completed;
        if is_completed {
            self.queue.at = None;
            let next = self.queue.entries.remove(0);
            self.send(next.message);
        }
    }

    /// Chooses a queued message; whether there is one.
    pub(super) fn choose_queued(&mut self, is_last: bool) -> bool {
        let last = self.queue.entries.len().checked_sub(1);
        self.queue.at = last.map(|last| if is_last { last } else { 0 });
        self.queue.at.is_some()
    }

    /// Keys for queued messages.
    pub(super) fn queue_key(&mut self, key: &Key) {
        let Some(key) = self.settings.keymap.translate(Context::Queue, key) else { return };
        let Some(at) = self.queue.at.filter(|at| *at < self.queue.entries.len()) else {
            self.queue.at = None;
            return;
        };
        let last = self.queue.entries.len() - 1;
        match key {
            Key::Up => self.queue.at = Some(at.saturating_sub(1)),
            Key::Down => self.queue.at = Some((at + 1).min(last)),
            Key::AltUp if at > 0 => self.swap_queued(at, at - 1),
            Key::AltDown if at < last => self.swap_queued(at, at + 1),
            Key::Enter => self.take_queued(at, Taken::Edit),
            Key::Char('d') => self.take_queued(at, Taken::Drop),
            Key::Char('s') => self.take_queued(at, Taken::Send),
            Key::Esc => self.queue.at = None,
            _ => {}
        }
    }

    fn swap_queued(&mut self, at: usize, to: usize) {
        self.queue.entries.swap(at, to);
        self.queue.at = Some(to);
        self.order_queue();
    }

    /// Takes a message out of the queue. If the server keeps it, it is taken once the server says that it is still there.
    fn take_queued(&mut self, at: usize, taken: Taken) {
        if taken != Taken::Drop {
            self.queue.at = None;
        }
        let Queued { id, message } = self.queue.entries.remove(at);
        let count = self.queue.entries.len();
        self.queue.at = self.queue.at.filter(|_| count > 0).map(|at| at.min(count - 1));
        let Some(id) = id else { return self.taken(message, at, taken) };
        if taken == Taken::Send && self.running.is_none() {
            let params = json!({"threadId": self.thread_id(), "queuedSubmissionId": id});
            return self.call("thread/queue/start", params, Pending::Tell);
        }
        let params = json!({"threadId": self.thread_id(), "queuedSubmissionId": id});
        self.call("thread/queue/delete", params, Pending::Queue(QueueStep::Removed { message, at, taken }));
    }

    /// The server has removed a message, unless it is sent already.
    fn unqueued(&mut self, message: Message, at: usize, taken: Taken, answer: Result<&Value, &str>) {
        match answer {
            Ok(answer) if answer["deleted"] == true => self.taken(message, at, taken),
            Ok(_) => self.hint = Some("That message was sent already".to_owned()),
            Err(why) => {
                self.say(Style::Red, "error", why);
                self.list_queue();
            }
        }
    }

    fn taken(&mut self, message: Message, at: usize, taken: Taken) {
        match taken {
            Taken::Drop => {}
            Taken::Send => self.send(message),
            Taken::Edit => {
                self.composer.editor.restore(&message.parts());
                self.queue.edited = Some(at);
                let (queue, send) = (self.settings.keymap.key_of("queue"), self.settings.keymap.key_of("send"));
                self.hint = Some(format!("{queue} puts it back into the queue, {send} sends it now"));
            }
        }
    }

    /// A message was sent, so none is edited any more.
    pub(super) fn stop_editing(&mut self) {
        self.queue.edited = None;
    }

    pub(super) fn queue_rows(&self) -> Vec<Row> {
        let most = (self.size.1 / 4).max(1);
        let first = self.queue.at.map_or(0, |at| (at + 1).saturating_sub(most));
        let row = |(at, entry): (usize, &Queued)| {
            let mark = if Some(at) == self.queue.at { "» " } else { "· " };
            let text = crate::one_line(&crate::printable(&entry.message.text));
            vec![Span::new(Style::Hang, mark), Span::new(Style::Dim, format!("queued: {text}"))]
        };
        let entries = self.queue.entries.iter().enumerate();
        let mut rows: Vec<Row> = entries.skip(first).take(most).map(row).collect();
        let hidden = self.queue.entries.len() - rows.len();
        if hidden > 0 {
            rows.push(vec![Span::new(Style::Dim, format!("· {hidden} more queued"))]);
        }
        let key = |action: &str| self.settings.keymap.key_of(action);
        if self.queue.at.is_some() {
            let text = format!(
                "{} edit · {} drop · {} send now · {}, {} move · {} done",
                key("queue-edit"),
                key("queue-drop"),
                key("queue-send"),
                key("queue-move-up"),
                key("queue-move-down"),
                key("queue-close")
            );
            rows.extend(hint_rows(&text, self.size.0));
        } else if self.queue.is_paused && !self.queue.entries.is_empty() && self.running.is_none() {
            let text =
                format!("The queue is paused: {}, then {} sends a message", key("edit-queue"), key("queue-send"));
            rows.push(vec![Span::new(Style::Dim, text)]);
        }
        rows
    }
}

/// A call about the queue.
#[derive(Debug)]
pub(super) enum QueueStep {
    Listed,
    /// A message for this place.
    Added {
        place: usize,
    },
    Removed {
        message: Message,
        at: usize,
        taken: Taken,
    },
    Ordered,
}

/// The purpose for which a message is taken out of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    Edit,
    Drop,
    Send,
}
