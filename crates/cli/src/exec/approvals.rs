//! Approval requests of the engine, and who answers them.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use codex_dialects::exec::Projector;
use codex_log::{Question, QuestionId, QuestionKind};
use codex_wire::decision::ReviewDecision;
use codex_wire::ids::ThreadId;
use serde::Deserialize;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::args::Approvals;
use crate::console;

/// The time limit for the other side of a socket to read a request.
const WRITE_PATIENCE: Duration = Duration::from_secs(10);

/// An answer, possibly to a request that was not made yet.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Answer {
    #[serde(default)]
    id: Option<String>,
    /// The thread that has asked; any if unset.
    #[serde(default)]
    thread_id: Option<ThreadId>,
    /// The command that it is about, instead of an id.
    #[serde(default)]
    command: Option<String>,
    decision: ReviewDecision,
}

impl Answer {
    fn is_for(&self, thread: ThreadId, asked: &Question) -> bool {
        if self.thread_id.is_some_and(|named| named != thread) {
            return false;
        }
        if let Some(id) = &self.id {
            return *id == asked.item().as_str();
        }
        match (&self.command, &asked.kind) {
            (None, _) => true,
            (Some(command), QuestionKind::Command { argv, .. }) => {
                // The joined command line is accepted too.
                *command == codex_wire::command_line::join(argv)
                    || matches!(argv.as_slice(), [_, _, script] if script == command)
            }
            (Some(command), QuestionKind::Permissions { asked, .. }) => {
                *command == codex_wire::command_line::join(&asked.argv())
            }
            (Some(_), QuestionKind::Patch { .. } | QuestionKind::Tool { .. } | QuestionKind::Elicitation(_)) => false,
        }
    }
}

#[derive(Debug, PartialEq)]
pub(crate) enum Asked {
    Answered {
        thread: ThreadId,
        question: QuestionId,
        decision: ReviewDecision,
    },
    /// An answer may still arrive.
    Waits,
    Unanswerable,
}

pub(crate) struct Answerer {
    who: AnswerSource,
    /// Open questions, each with the thread that asks.
    open: Vec<(ThreadId, Arc<Question>)>,
    /// Answers without a request.
    kept: VecDeque<Answer>,
    /// Incoming answers; `None` when no more can arrive.
    incoming: Option<UnboundedReceiver<Answer>>,
}

enum AnswerSource {
    Nobody,
    No,
    Stdio,
    Socket(UnixStream),
}

impl Answerer {
    /// Connects to the source of answers.
    pub(crate) fn new(approvals: Option<&Approvals>) -> anyhow::Result<Self> {
        let (who, incoming) = match approvals {
            // A policy that the caller has set may still ask; but then nobody has asked for the run to end there.
            None | Some(Approvals::Deny) => (AnswerSource::No, None),
            Some(Approvals::Policy) => (AnswerSource::Nobody, None),
            Some(Approvals::Stdio) => (AnswerSource::Stdio, Some(listen(std::io::stdin()))),
            Some(Approvals::Unix(path)) => {
                let failed = || format!("--approvals: could not connect to {}", path.display());
                let socket = UnixStream::connect(path).with_context(failed)?;
                socket.set_write_timeout(Some(WRITE_PATIENCE)).with_context(failed)?;
                let reading = socket.try_clone().with_context(failed)?;
                (AnswerSource::Socket(socket), Some(listen(reading)))
            }
        };
        Ok(Self { who, open: Vec::new(), kept: VecDeque::new(), incoming })
    }

    /// Whether requests are printed as events.
    pub(crate) fn asks_in_events(&self) -> bool {
        matches!(self.who, AnswerSource::Stdio)
    }

    /// Asks a question of a thread, which may be a child agent's.
    pub(crate) fn ask(&mut self, thread: ThreadId, is_child: bool, asked: &Arc<Question>) -> Asked {
        let question = asked.id.clone();
        match &mut self.who {
            AnswerSource::No => return Asked::Answered { thread, question, decision: ReviewDecision::Denied },
            AnswerSource::Nobody => return Asked::Unanswerable,
            AnswerSource::Stdio => {}
            AnswerSource::Socket(socket) => {
                let line =
                    serde_json::to_string(&Projector::ask(asked, is_child.then_some(thread))).map(|line| line + "\n");
                let written = line.map_err(Into::into).and_then(|line| socket.write_all(line.as_bytes()));
                if written.is_err() {
                    self.incoming = None;
                }
            }
        }
        if let Some(place) = self.kept.iter().position(|answer| answer.is_for(thread, asked))
            && let Some(answer) = self.kept.remove(place)
        {
            return Asked::Answered { thread, question, decision: answer.decision };
        }
        if self.incoming.is_none() {
            return Asked::Unanswerable;
        }
        self.open.push((thread, Arc::clone(asked)));
        Asked::Waits
    }

    /// Waits for the next answer; forever if none can arrive.
    pub(crate) async fn next(&mut self) -> Asked {
        let Some(incoming) = &mut self.incoming else { return std::future::pending().await };
        let Some(answer) = incoming.recv().await else {
            self.incoming = None;
            return if self.open.is_empty() { Asked::Waits } else { Asked::Unanswerable };
        };
        let Some(place) = self.open.iter().position(|(thread, asked)| answer.is_for(*thread, asked)) else {
            self.kept.push_back(answer);
            return Asked::Waits;
        };
        let (thread, asked) = self.open.remove(place);
        Asked::Answered { thread, question: asked.id.clone(), decision: answer.decision }
    }
}

/// Reads answers, one per line. Other lines are skipped with a note on standard error.
fn listen(input: impl Read + Send + 'static) -> UnboundedReceiver<Answer> {
    let (sender, receiver) = unbounded_channel();
    std::thread::spawn(move || {
        for line in BufReader::new(input).lines().map_while(Result::ok) {
            match serde_json::from_str::<Answer>(&line) {
                _ if line.trim().is_empty() => {}
                Ok(answer) => {
                    if sender.send(answer).is_err() {
                        return;
                    }
                }
                Err(error) => {
                    console::note(format_args!("warning: not an answer: {error}"));
                }
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use codex_log::ItemId;

    use super::*;

    fn question(call: &str, script: &str) -> Arc<Question> {
        let argv = ["bash", "-lc", script].map(str::to_owned).to_vec();
        let kind = QuestionKind::Command { argv, cwd: "/w".into(), parsed: Vec::new(), amendment: None };
        Arc::new(Question { id: QuestionId::first(ItemId::new(call)), reason: None, kind, deadline: None })
    }

    fn answer(text: &str) -> Answer {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn an_answer_is_for_a_call_a_command_or_the_next_request() {
        let asked = question("c1", "git push");
        for text in [
            r#"{"id":"c1","decision":"approved"}"#,
            r#"{"command":"git push","decision":"accept"}"#,
            r#"{"command":"bash -lc 'git push'","decision":"deny"}"#,
            r#"{"decision":"approved"}"#,
        ] {
            assert!(answer(text).is_for(ThreadId::unknown(), &asked), "{text}");
        }
        for text in [r#"{"id":"c2","decision":"approved"}"#, r#"{"command":"git","decision":"approved"}"#] {
            assert!(!answer(text).is_for(ThreadId::unknown(), &asked), "{text}");
        }
    }

    #[test]
    fn an_answer_may_name_the_thread_that_has_asked() {
        let (thread, other) = (ThreadId::fresh(), ThreadId::fresh());
        let named = answer(&format!(r#"{{"id":"c1","thread_id":"{thread}","decision":"approved"}}"#));
        assert!(named.is_for(thread, &question("c1", "git push")));
        assert!(!named.is_for(other, &question("c1", "git push")));
    }

    #[tokio::test]
    async fn exactly_one_command_is_granted() {
        let input: &[u8] = b"nonsense\n{\"command\":\"git push\",\"decision\":\"approved\"}\n";
        let (kept, incoming) = (VecDeque::new(), Some(listen(input)));
        let mut answerer = Answerer { who: AnswerSource::Stdio, open: Vec::new(), kept, incoming };
        assert_eq!(answerer.next().await, Asked::Waits);
        let thread = ThreadId::unknown();
        let granted = |call: &str| Asked::Answered {
            thread,
            question: QuestionId::first(ItemId::new(call)),
            decision: ReviewDecision::Approved,
        };
        assert_eq!(answerer.ask(thread, false, &question("c1", "git push")), granted("c1"));
        assert_eq!(answerer.ask(thread, false, &question("c2", "git push")), Asked::Waits);
        assert_eq!(answerer.next().await, Asked::Unanswerable);
        assert_eq!(answerer.ask(thread, false, &question("c3", "rm -rf /")), Asked::Unanswerable);
    }
}
