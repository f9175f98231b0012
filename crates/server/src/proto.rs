//! The submission and event queues as JSON lines: `{"id", "op"}` in, `{"id", "msg"}` out.
//!
//! One task reads and obeys, another writes, so a client that is slow to read can still interrupt. A line that is no
//! submission is answered with a `warning` that says what is wrong with it, and the stream goes on.

use codex_engine::eq::{self, Vocabulary};
use codex_engine::log::{Body, TurnId};
use codex_engine::settings::SettingsChange;
use codex_engine::{Closed, Feed, Thread};
use codex_wire::event::{ConversationPathEvent, EventMsg, TaskCompleteEvent, WarningEvent};
use codex_wire::input::UserInput;
use codex_wire::op::{Op, Submission, TurnContextOverride, UserTurn};
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::lines::{Line, LineReader, MAX_LINE_BYTES};

/// How many direct answers may wait to be written; more make the reading side wait.
const WAITING_ANSWERS: usize = 64;

/// How many bytes are gathered before they are written, while more is at hand.
const WRITE_BYTES: usize = 64 * 1024;

/// Serves one thread to one client until it shuts down, its input ends, or its output is gone.
///
/// At the end of the input a running turn is finished first, so that `codex proto < file` gives all answers.
///
/// # Errors
/// When input or output fails for another reason than that the client has left.
pub async fn serve<R, W>(thread: Thread, feed: Feed, vocabulary: Vocabulary, input: R, output: W) -> std::io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (answers, waiting) = mpsc::channel(WAITING_ANSWERS);
    let reader = Reader { thread: thread.clone(), answers, line: 0 };
    let mut writer = Writer { output, vocabulary, buffer: Vec::new(), messages: Vec::new() };
    let write = writer.run(feed, waiting);
    tokio::pin!(write);
    let read = reader.run(LineReader::new(input));
    tokio::pin!(read);
    let written = tokio::select! {
        written = &mut write => {
            thread.close().await;
            written
        }
        read = &mut read => {
            let written = write.await;
            read.and(written)
        }
    };
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// A message that answers a submission directly.
struct Answer {
    id: String,
    msg: EventMsg,
}

/// The reading side.
struct Reader {
    thread: Thread,
    answers: mpsc::Sender<Answer>,
    line: u64,
}

/// Whether more lines are wanted.
#[derive(PartialEq, Eq)]
enum Next {
    GoOn,
    Stop,
}

impl Reader {
    async fn run<R: AsyncRead + Unpin>(mut self, mut lines: LineReader<R>) -> std::io::Result<()> {
        loop {
            let line = match lines.next().await {
                Ok(line) => line,
                Err(error) => {
                    self.thread.close().await;
                    return Err(error);
                }
            };
            self.line += 1;
            let next = match line {
                Some(Line::Whole(line)) => self.take(&line).await,
                Some(Line::TooLong { bytes }) => {
                    let problem = format!("it has {bytes} bytes, and {MAX_LINE_BYTES} are allowed");
                    self.refuse(String::new(), &problem).await;
                    Next::GoOn
                }
                None => {
                    self.thread.finish().await;
                    Next::Stop
                }
            };
            if next == Next::Stop {
                return Ok(());
            }
        }
    }

    async fn take(&self, line: &[u8]) -> Next {
        if line.trim_ascii().is_empty() {
            return Next::GoOn;
        }
        match serde_json::from_slice::<Submission>(line) {
            Ok(Submission { id, op }) => self.obey(id, op).await,
            Err(error) => {
                // Where the line does have an id, the answer carries it.
                let id = serde_json::from_slice::<serde_json::Value>(line)
                    .ok()
                    .and_then(|value| value.get("id")?.as_str().map(str::to_owned))
                    .unwrap_or_default();
                self.refuse(id, &error.to_string()).await;
                Next::GoOn
            }
        }
    }

    async fn obey(&self, id: String, op: Op) -> Next {
        let obeyed = match op {
            Op::UserInput(input) => self.say(id, input.items, SettingsChange::default()).await,
            Op::UserTurn(mut turn) => {
                let items = std::mem::take(&mut turn.items);
                self.say(id, items, turn_settings(turn)).await
            }
            Op::OverrideTurnContext(change) => self.thread.configure(override_settings(change)).await.map(drop),
            Op::ConfigureSession(change) => self.configure(id, change).await,
            Op::Interrupt => self.thread.interrupt().await.map(drop),
            Op::GetPath => {
                let path = self.thread.started().rollout.clone();
                let msg = ConversationPathEvent { conversation_id: self.thread.id(), path };
                self.answer(id, EventMsg::ConversationPath(msg)).await;
                Ok(())
            }
            Op::Shutdown => {
                self.thread.close().await;
                self.answer(id, EventMsg::ShutdownComplete).await;
                return Next::Stop;
            }
            Op::ExecApproval(_) | Op::PatchApproval(_) | Op::ResolveElicitation(_) => {
                self.warn(id, format!("`{}` answers nothing: no approval is pending", op.kind())).await;
                Ok(())
            }
            Op::AddToHistory(_)
            | Op::GetHistoryEntryRequest(_)
            | Op::ListMcpTools
            | Op::ListCustomPrompts
            | Op::ListSkills(_)
            | Op::Compact
            | Op::Undo
            | Op::Review(_)
            | Op::RunUserShellCommand(_)
            | Op::ListModels => {
                self.warn(id, format!("`{}` is not supported by this release", op.kind())).await;
                Ok(())
            }
            Op::Other(_) => {
                let problem = format!("unknown op `{}`", op.kind());
                self.refuse(id, &problem).await;
                Ok(())
            }
        };
        if obeyed == Err(Closed) { Next::Stop } else { Next::GoOn }
    }

    async fn say(&self, id: String, items: Vec<UserInput>, change: SettingsChange) -> Result<(), Closed> {
        if items.is_empty() {
            // There is nothing to answer, but a client may wait for the end of what it asked.
            self.warn(id.clone(), "the input has no items, so there is nothing to answer".to_owned()).await;
            self.answer(id, EventMsg::TaskComplete(TaskCompleteEvent::default())).await;
            return Ok(());
        }
        self.thread.say(TurnId::new(id), items, change).await.map(drop)
    }

    /// Reconfigures the session as the oldest clients did: what runs is stopped, and the new state is told.
    async fn configure(&self, id: String, change: TurnContextOverride) -> Result<(), Closed> {
        self.thread.interrupt().await?;
        let settings = self.thread.configure(override_settings(change)).await?;
        let mut started = self.thread.started().clone();
        started.settings = settings;
        self.answer(id, eq::session_configured(self.thread.id(), &started)).await;
        Ok(())
    }

    async fn refuse(&self, id: String, problem: &str) {
        self.warn(id, format!("line {} is not a submission: {problem}", self.line)).await;
    }

    async fn warn(&self, id: String, message: String) {
        self.answer(id, EventMsg::Warning(WarningEvent { message })).await;
    }

    async fn answer(&self, id: String, msg: EventMsg) {
        // When the writer is gone, so is the client.
        let _: Result<(), _> = self.answers.send(Answer { id, msg }).await;
    }
}

fn turn_settings(turn: UserTurn) -> SettingsChange {
    SettingsChange {
        cwd: Some(turn.cwd),
        approval_policy: Some(turn.approval_policy),
        sandbox_policy: Some(turn.sandbox_policy),
        model: Some(turn.model),
        effort: Some(turn.effort),
        summary: Some(turn.summary),
        output_schema: turn.final_output_json_schema,
    }
}

fn override_settings(change: TurnContextOverride) -> SettingsChange {
    SettingsChange {
        cwd: change.cwd,
        approval_policy: change.approval_policy,
        sandbox_policy: change.sandbox_policy,
        model: change.model,
        effort: change.effort,
        summary: change.summary,
        output_schema: None,
    }
}

/// The writing side.
struct Writer<W> {
    output: W,
    vocabulary: Vocabulary,
    buffer: Vec<u8>,
    messages: Vec<EventMsg>,
}

#[derive(Serialize)]
struct EventLine<'a> {
    id: &'a str,
    msg: &'a EventMsg,
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    /// Writes events and answers until both have ended. An answer comes after all events that were there before it,
    /// so `shutdown_complete` comes last.
    async fn run(&mut self, mut feed: Feed, mut answers: mpsc::Receiver<Answer>) -> std::io::Result<()> {
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

    fn add_event(&mut self, event: &codex_engine::log::Event) {
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
        match serde_json::to_writer(&mut self.buffer, &EventLine { id, msg }) {
            Ok(()) => self.buffer.push(b'\n'),
            // Half a line would be worse than none.
            Err(_) => self.buffer.truncate(whole),
        }
    }
}
