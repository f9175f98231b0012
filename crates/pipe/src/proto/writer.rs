//! The writing side: the thread's log and direct answers, as lines.

use codex_dialects::eq::{self, Vocabulary};
use codex_log::{Body, Event};
use codex_thread::Feed;
use codex_wire::change::put_tags_outside;
use codex_wire::event::EventMsg;
use serde::Serialize;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use super::Answer;

/// The number of bytes that are collected before they are written, while more are available.
const WRITE_BYTES: usize = 64 * 1024;

/// The writing side.
pub(super) struct Writer<W> {
    output: W,
    vocabulary: Vocabulary,
    buffer: Vec<u8>,
    messages: Vec<EventMsg>,
}

#[derive(Serialize)]
struct EventLine<'a, M> {
    id: &'a str,
    msg: &'a M,
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    /// Writes to an output.
    pub(super) fn new(output: W, vocabulary: Vocabulary) -> Self {
        Self { output, vocabulary, buffer: Vec::new(), messages: Vec::new() }
    }

    /// Writes events and answers until both have ended. An answer follows all events that precede it, so
    /// `shutdown_complete` comes last.
    pub(super) async fn run(&mut self, mut feed: Feed, mut answers: mpsc::Receiver<Answer>) -> std::io::Result<()> {
        let (mut feed_open, mut answers_open) = (true, true);
        loop {
            tokio::select! {
                event = feed.next(), if feed_open => match event {
                    Some(event) => self.add_event(&event),
                    None => feed_open = false,
                },
                answer = answers.recv(), if answers_open => match answer {
                    Some(Answer { id, msg }) => {
                        while let Some(event) = feed.try_next() {
                            self.add_event(&event);
                        }
                        self.add(&id, &msg);
                    }
                    None => answers_open = false,
                },
                else => return Ok(()),
            }
            while self.buffer.len() < WRITE_BYTES
                && let Some(event) = feed.try_next()
            {
                self.add_event(&event);
            }
            self.output.write_all(&self.buffer).await?;
            self.output.flush().await?;
            self.buffer.clear();
        }
    }

    fn add_event(&mut self, event: &Event) {
        let mut messages = std::mem::take(&mut self.messages);
        eq::project(event, self.vocabulary, &mut messages);
        let id = match (&event.turn, &event.body) {
            (_, Body::ThreadStarted(_)) | (None, _) => "",
            (Some(turn), _) => turn.as_str(),
        };
        for msg in messages.drain(..) {
            self.add(id, &msg);
        }
        self.messages = messages;
    }

    fn add(&mut self, id: &str, msg: &EventMsg) {
        let whole = self.buffer.len();
        let written = match msg {
            EventMsg::ApplyPatchApprovalRequest(_) | EventMsg::PatchApplyBegin(_) | EventMsg::PatchApplyEnd(_) => {
                serde_json::to_value(msg).and_then(|mut msg| {
                    put_tags_outside(&mut msg);
                    serde_json::to_writer(&mut self.buffer, &EventLine { id, msg: &msg })
                })
            }
            msg => serde_json::to_writer(&mut self.buffer, &EventLine { id, msg }),
        };
        match written {
            Ok(()) => self.buffer.push(b'\n'),
            // A partial line would be worse than none.
            Err(_) => self.buffer.truncate(whole),
        }
    }
}
