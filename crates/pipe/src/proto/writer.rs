//! The writing side: the thread's log and direct answers, as lines.

use codex_dialects::eq::{self, Vocabulary};
use codex_log::{Body, Event, QuestionId};
use codex_thread::{Children, Closed, Feed, Thread};
use codex_wire::change::put_tags_outside;
use codex_wire::decision::ReviewDecision;
use codex_wire::event::EventMsg;
use codex_wire::ids::ThreadId;
use serde::Serialize;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, watch};

use super::Answer;

/// The number of bytes that are collected before they are written, while more are available.
const WRITE_BYTES: usize = 64 * 1024;

/// The writing side.
pub(super) struct Writer<W> {
    output: W,
    vocabulary: Vocabulary,
    children: Children,
    /// Whether the client may still answer.
    has_input: watch::Receiver<bool>,
    /// The open questions of child agents.
    asked: Vec<(Thread, QuestionId)>,
    buffer: Vec<u8>,
    messages: Vec<EventMsg>,
}

#[derive(Serialize)]
struct EventLine<'a, M> {
    id: &'a str,
    /// The thread, if it is a child agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<ThreadId>,
    msg: &'a M,
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    /// Writes to an output.
    pub(super) fn new(output: W, vocabulary: Vocabulary, children: Children, has_input: watch::Receiver<bool>) -> Self {
        let (asked, buffer, messages) = (Vec::new(), Vec::new(), Vec::new());
        Self { output, vocabulary, children, has_input, asked, buffer, messages }
    }

    /// Writes events and answers until both have ended. An answer follows all events that precede it, so
    /// `shutdown_complete` comes last.
    pub(super) async fn run(&mut self, mut feed: Feed, mut answers: mpsc::Receiver<Answer>) -> std::io::Result<()> {
        let (mut feed_open, mut answers_open) = (true, true);
        loop {
            tokio::select! {
                event = feed.next(), if feed_open => match event {
                    Some(event) => self.take(&event).await,
                    None => feed_open = false,
                },
                (thread, event) = self.children.next(), if feed_open => self.take_child(&thread, &event).await,
                Ok(()) = self.has_input.changed(), if feed_open => self.deny_all().await,
                answer = answers.recv(), if answers_open => match answer {
                    Some(Answer { id, msg }) => {
                        while let Some(event) = feed.try_next() {
                            self.take(&event).await;
                        }
                        self.add(&id, None, &msg);
                    }
                    None => answers_open = false,
                },
                else => return Ok(()),
            }
            while self.buffer.len() < WRITE_BYTES
                && let Some(event) = feed.try_next()
            {
                self.take(&event).await;
            }
            self.output.write_all(&self.buffer).await?;
            self.output.flush().await?;
            self.buffer.clear();
        }
    }

    async fn take(&mut self, event: &Event) {
        self.add_event(event, None);
        self.children.follow(event).await;
    }

    /// Passes the questions of a child agent on. If nobody can answer, they are denied.
    async fn take_child(&mut self, thread: &Thread, event: &Event) {
        match &event.body {
            Body::Asked(question) => {
                self.add_event(event, Some(thread.id()));
                self.asked.push((thread.clone(), question.id.clone()));
                if !*self.has_input.borrow() {
                    self.deny_all().await;
                }
            }
            Body::Answered { question, .. } => {
                self.asked.retain(|(asker, asked)| asker.id() != thread.id() || asked != question);
            }
            _ => self.children.follow(event).await,
        }
    }

    async fn deny_all(&mut self) {
        for (thread, question) in std::mem::take(&mut self.asked) {
            // A child that has ended needs no answer any more.
            let _: Result<bool, Closed> = thread.answer(question, ReviewDecision::Denied.into()).await;
        }
    }

    fn add_event(&mut self, event: &Event, child: Option<ThreadId>) {
        let mut messages = std::mem::take(&mut self.messages);
        eq::project(event, self.vocabulary, &mut messages);
        let id = match (&event.turn, &event.body) {
            (_, Body::ThreadStarted(_)) | (None, _) => "",
            (Some(turn), _) => turn.as_str(),
        };
        for msg in messages.drain(..) {
            self.add(id, child, &msg);
        }
        self.messages = messages;
    }

    fn add(&mut self, id: &str, session_id: Option<ThreadId>, msg: &EventMsg) {
        let whole = self.buffer.len();
        let written = match msg {
            EventMsg::ApplyPatchApprovalRequest(_) | EventMsg::PatchApplyBegin(_) | EventMsg::PatchApplyEnd(_) => {
                serde_json::to_value(msg).and_then(|mut msg| {
                    put_tags_outside(&mut msg);
                    serde_json::to_writer(&mut self.buffer, &EventLine { id, session_id, msg: &msg })
                })
            }
            msg => serde_json::to_writer(&mut self.buffer, &EventLine { id, session_id, msg }),
        };
        match written {
            Ok(()) => self.buffer.push(b'\n'),
            // A partial line would be worse than none.
            Err(_) => self.buffer.truncate(whole),
        }
    }
}
