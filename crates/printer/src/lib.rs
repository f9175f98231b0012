//! Renders a thread's log as text for a terminal, as it grows: the output of `exec` and `demo`.
//!
//! Invariant: a projection of the log. It writes to whatever it is given, and opens nothing.

#![cfg_attr(test, allow(clippy::needless_raw_string_hashes, reason = "expect-test writes its snapshots that way"))]

use std::borrow::Cow;
use std::io::Write;

use codex_log::agents::AgentEvent;
use codex_log::{
    Abort, Body, CommandItem, Delta, Event, Failure, Item, ItemId, Outcome, PatchItem, QuestionKind, Status,
    limit_words,
};
use codex_terminal::in_brief;
use codex_wire::agent::SubagentLifecycleEvent;
use codex_wire::change::FileChange;
use codex_wire::input::UserInput;
use codex_wire::plan::UpdatePlanArgs;

use codex_terminal::transcript::{Change, Direct, Ended, Style, TextKind, Transcript};

/// Renders events for people.
pub struct Terminal<W> {
    transcript: Transcript<Direct<W>>,
    /// Whether all causes of a failure are shown.
    is_verbose: bool,
    /// The width of a terminal on which a line can be replaced.
    columns: Option<usize>,
    /// Whether the current line will be replaced.
    is_passing: bool,
    /// The message or the thought whose pieces were shown.
    pieces_of: Option<ItemId>,
}

impl<W: Write> Terminal<W> {
    pub fn new(output: W, colour: bool) -> Self {
        Self {
            transcript: Transcript::new(Direct { output, colour }),
            is_verbose: false,
            columns: None,
            is_passing: false,
            pieces_of: None,
        }
    }

    /// Shows all causes of failures.
    #[must_use]
    pub fn verbose(self, is_verbose: bool) -> Self {
        Self { is_verbose, ..self }
    }

    /// Replaces temporary lines, on a terminal with this many columns.
    #[must_use]
    pub fn replacing(self, columns: Option<usize>) -> Self {
        Self { columns, ..self }
    }

    /// Shows one event.
    pub fn show(&mut self, event: &Event) -> std::io::Result<()> {
        self.take_back()?;
        let transcript = &mut self.transcript;
        match &event.body {
            Body::ItemDelta { item, delta } => {
                self.delta(delta)?;
                if !matches!(delta, Delta::Output { .. }) {
                    self.pieces_of = Some(item.clone());
                }
            }
            Body::ItemStarted(item) => self.item_started(item)?,
            Body::ItemCompleted(item) => self.item_completed(item)?,
            Body::PlanUpdated(UpdatePlanArgs { explanation, plan, .. }) => {
                transcript.plan(explanation.as_deref(), plan.iter().map(|item| (item.step.as_str(), item.status)))?;
            }
            Body::AnswerRetried { failure, attempt, limit, .. } => self.retried(failure, *attempt, *limit)?,
            Body::Compacted(compacted) => {
                let text = format!("about {} tokens before, about {} now", compacted.before, compacted.after);
                transcript.note(Style::Dim, "summary", &text)?;
            }
            Body::LimitReached { failure, until_ms, .. } => {
                transcript.note(Style::Yellow, "limit", &limit_words(failure, *until_ms))?;
            }
            Body::Warning { message } => transcript.note(Style::Yellow, "warning", message)?,
            Body::Agent(told) => {
                if let Some(text) = agent_words(told) {
                    transcript.note(Style::Dim, "agent", &text)?;
                }
            }
            Body::TurnEnded(outcome) => self.outcome(outcome)?,
            Body::Asked(question) => self.question(&question.kind)?,
            Body::Answered { .. }
            | Body::ItemInterrupted(_)
            | Body::TerminalWritten { .. }
            | Body::ImageViewed { .. }
            | Body::DiffChanged(_)
            | Body::ReviewEntered(_)
            | Body::ReviewExited(_)
            | Body::WentBack { .. }
            | Body::RolledBack(_)
            | Body::ServerChanged(_)
            | Body::ServersStarted(_)
            | Body::CallProgressed { .. }
            | Body::Budget(_)
            | Body::Unread(_)
            | Body::GoalChanged(_)
            | Body::GoalCleared
            | Body::Queue(_)
            | Body::TokensCounted { .. }
            | Body::ThreadStarted(_)
            | Body::TurnStarted { .. }
            | Body::ModelAsked(_)
            | Body::Recorded(_) => {}
        }
        self.flush()
    }

    /// Reports a retry. On a terminal the next such line replaces this one.
    fn retried(&mut self, failure: &Failure, attempt: u32, limit: u32) -> std::io::Result<()> {
        let text = format!("{attempt} of {limit}: {}", in_brief(&failure.message));
        let Some(columns) = self.columns.filter(|_| !self.is_verbose) else {
            self.transcript.note(Style::Yellow, "retry", &text)?;
            return self.causes(&failure.message);
        };
        self.transcript.enter(TextKind::Nothing)?;
        self.transcript.write(Style::Yellow, "retry: ")?;
        // A wrapped line could not be removed.
        let room = columns.saturating_sub("retry: ".len() + 1);
        let line: String = text.chars().map(|c| if c == '\n' { ' ' } else { c }).take(room).collect();
        self.transcript.write(Style::Plain, &line)?;
        self.is_passing = true;
        Ok(())
    }

    /// Removes the temporary line.
    fn take_back(&mut self) -> std::io::Result<()> {
        if std::mem::take(&mut self.is_passing) {
            self.transcript.ink.output.write_all(b"\r\x1b[K")?;
        }
        Ok(())
    }

    /// The causes that a line has left out.
    fn causes(&mut self, message: &str) -> std::io::Result<()> {
        if self.is_verbose && in_brief(message) != message { self.transcript.line(message) } else { Ok(()) }
    }

    /// Prints a line of this program.
    pub fn line(&mut self, text: &str) -> std::io::Result<()> {
        self.take_back()?;
        self.transcript.line(text)?;
        self.flush()
    }

    /// Prints an error.
    pub fn error(&mut self, message: &str) -> std::io::Result<()> {
        self.take_back()?;
        self.transcript.note(Style::Red, "error", message)?;
        self.flush()
    }

    pub fn into_inner(self) -> W {
        self.transcript.ink.output
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.transcript.ink.output.flush()
    }

    fn delta(&mut self, delta: &Delta) -> std::io::Result<()> {
        match delta {
            Delta::Text(text) => self.transcript.more(TextKind::Message, text),
            Delta::Output { bytes, .. } => self.transcript.more(TextKind::Output, &String::from_utf8_lossy(bytes)),
            Delta::SummaryPart { .. } => self.transcript.enter(TextKind::Nothing),
            Delta::Summary { text, .. } | Delta::Raw { text, .. } => self.transcript.more(TextKind::Reasoning, text),
        }
    }

    fn item_started(&mut self, item: &Item) -> std::io::Result<()> {
        match item.patch() {
            Some(patch) => self.patch(patch),
            None if item.command().is_some() => self.transcript.command(item.id().as_str(), &item.title()),
            None => Ok(()),
        }
    }

    fn item_completed(&mut self, item: &Item) -> std::io::Result<()> {
        if let Some(command) = item.command() {
            self.command_end(command, &item.title())
        } else if let Some(patch) = item.patch() {
            self.patch_end(patch)
        } else if let Some(said) = item.said() {
            self.transcript.user(said.content.iter().map(piece))
        } else {
            self.whole_text(item)?;
            self.transcript.enter(TextKind::Nothing)
        }
    }

    /// Shows a text that came without pieces.
    fn whole_text(&mut self, item: &Item) -> std::io::Result<()> {
        if self.pieces_of.take().is_some_and(|shown| shown == *item.id()) {
            return Ok(());
        }
        match item.answer() {
            Some(text) => self.transcript.more(TextKind::Message, text),
            None if item.is_thought() => self.transcript.more(TextKind::Reasoning, &item.title()),
            None => Ok(()),
        }
    }

    fn command_end(&mut self, command: &CommandItem, line: &str) -> std::io::Result<()> {
        let Some(end) = &command.end else { return Ok(()) };
        let ended = match command.status {
            Status::Completed => Ended::Exit(0),
            Status::Declined => Ended::Declined(&end.formatted),
            Status::Failed | Status::Running | Status::AwaitingApproval => Ended::Exit(end.exit_code),
        };
        let is_open = !end.aggregated.ends_with('\n');
        self.transcript.command_end((command.id.as_str(), line), ended, end.duration.as_secs_f64(), is_open)
    }

    fn question(&mut self, kind: &QuestionKind) -> std::io::Result<()> {
        let what = match kind {
            QuestionKind::Command { argv, .. } => argv.join(" "),
            QuestionKind::Patch { changes, .. } => format!("a patch of {} files", changes.len()),
            QuestionKind::Tool { invocation, .. } => {
                let arguments = invocation.arguments.as_ref().map(ToString::to_string).unwrap_or_default();
                format!("MCP tool {}.{} {arguments}", invocation.server, invocation.tool)
            }
            QuestionKind::Permissions { asked, .. } => asked.argv().join(" "),
            QuestionKind::Elicitation(asked) => format!("MCP server {}: {}", asked.server, asked.message),
        };
        self.transcript.note(Style::Yellow, "approval needed", &what)
    }

    fn patch(&mut self, patch: &PatchItem) -> std::io::Result<()> {
        self.transcript.enter(TextKind::Nothing)?;
        for (path, change) in &*patch.changes {
            let (change, text) = match change {
                FileChange::Add { content } => (Change::Add, content),
                FileChange::Delete { content } => (Change::Delete, content),
                FileChange::Update { unified_diff, .. } => (Change::Update, unified_diff),
            };
            self.transcript.change(change, &path.display().to_string(), text)?;
        }
        Ok(())
    }

    fn patch_end(&mut self, patch: &PatchItem) -> std::io::Result<()> {
        let end = patch.end.as_ref().filter(|_| patch.status != Status::Completed);
        self.transcript.changed(end.map(|end| end.stderr.as_str()))
    }

    fn outcome(&mut self, outcome: &Outcome) -> std::io::Result<()> {
        let transcript = &mut self.transcript;
        match outcome {
            Outcome::Completed { .. } => transcript.enter(TextKind::Nothing),
            Outcome::Aborted(Abort::Interrupted) => {
                transcript.note(Style::Yellow, "stopped", "the turn was interrupted")
            }
            Outcome::Aborted(Abort::Replaced | Abort::ReviewEnded) => {
                transcript.note(Style::Yellow, "stopped", "the turn was replaced")
            }
            Outcome::Failed(failure) => {
                transcript.note(Style::Red, "error", &in_brief(&failure.message))?;
                self.causes(&failure.message)?;
                failure.hint.map_or(Ok(()), |hint| self.transcript.note(Style::Plain, "hint", hint))
            }
        }
    }
}

/// A part of the user's message.
fn piece(input: &UserInput) -> (Style, Cow<'_, str>) {
    match input {
        UserInput::Text { text, .. } => (Style::Bold, text.into()),
        UserInput::Image { .. } => (Style::Dim, "[picture]".into()),
        UserInput::LocalImage { path } => (Style::Dim, format!("[{}]", path.display()).into()),
        UserInput::Skill { name, .. } | UserInput::Mention { name, .. } => (Style::Dim, name.into()),
    }
}

/// A line about a child agent.
fn agent_words(told: &AgentEvent) -> Option<String> {
    let AgentEvent::Lifecycle(event) = told else { return None };
    Some(match event {
        SubagentLifecycleEvent::Created(created) => {
            let agent = &created.subagent;
            let name = agent.label.as_deref().or(agent.summary.as_deref()).unwrap_or("unnamed");
            format!("{} created: {name}", agent.agent_id)
        }
        SubagentLifecycleEvent::Status(change) => format!("{} {}", change.agent_id, change.status.as_str()),
        SubagentLifecycleEvent::ReasoningHeader(change) => format!("{} {}", change.agent_id, change.reasoning_header),
        SubagentLifecycleEvent::Deleted(_) | SubagentLifecycleEvent::Other(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use codex_log::AgentMessage;
    use codex_wire::error_info::CodexErrorInfo;
    use codex_wire::ids::ThreadId;
    use expect_test::{Expect, expect};

    use super::*;

    const CAUSES: &str = "could not get an answer from a.invalid:443: error sending request: dns error: no";

    /// Retries twice and fails.
    #[track_caller]
    fn check(terminal: Terminal<Vec<u8>>, expected: Expect) {
        let mut terminal = terminal;
        let message = CAUSES.to_owned();
        let failure = Failure { message, hint: None, info: CodexErrorInfo::Other };
        terminal.retried(&failure, 1, 5).unwrap();
        terminal.take_back().unwrap();
        terminal.retried(&failure, 2, 5).unwrap();
        terminal.take_back().unwrap();
        terminal.outcome(&Outcome::Failed(failure)).unwrap();
        expected
            .assert_eq(&String::from_utf8(terminal.into_inner()).unwrap().replace('\r', "\\r").replace('\x1b', "\\e"));
    }

    #[test]
    fn a_text_is_shown_once_with_pieces_or_without() {
        let shown = |bodies: Vec<Body>| {
            let mut terminal = Terminal::new(Vec::new(), false);
            for body in bodies {
                let seq = codex_log::Seq::default();
                terminal.show(&Event { thread: ThreadId::fresh(), seq, at_ms: 0, turn: None, body }).unwrap();
            }
            String::from_utf8(terminal.into_inner()).unwrap()
        };
        let message = |id: &str| Item::AgentMessage(AgentMessage { id: ItemId::new(id), text: "Done.".into() });
        let piece = |id: &str| Body::ItemDelta { item: ItemId::new(id), delta: Delta::Text("Done.".into()) };
        let whole = |id: &str| Body::ItemCompleted(message(id));
        assert_eq!(shown(vec![whole("a")]).matches("Done.").count(), 1);
        assert_eq!(shown(vec![piece("a"), whole("a")]).matches("Done.").count(), 1);
        assert_eq!(shown(vec![piece("a"), whole("a"), whole("b")]).matches("Done.").count(), 2);
    }

    #[test]
    fn retries_are_lines_or_one_line_that_counts() {
        let terminal = || Terminal::new(Vec::new(), false);
        check(
            terminal(),
            expect![[r#"
            retry: 1 of 5: cannot reach a.invalid: name not found
            retry: 2 of 5: cannot reach a.invalid: name not found
            error: cannot reach a.invalid: name not found
        "#]],
        );
        check(
            terminal().replacing(Some(30)),
            expect![[r#"
            retry: 1 of 5: cannot reach a\r\e[Kretry: 2 of 5: cannot reach a\r\e[Kerror: cannot reach a.invalid: name not found
        "#]],
        );
        check(
            terminal().verbose(true),
            expect![[r#"
            retry: 1 of 5: cannot reach a.invalid: name not found
            could not get an answer from a.invalid:443: error sending request: dns error: no
            retry: 2 of 5: cannot reach a.invalid: name not found
            could not get an answer from a.invalid:443: error sending request: dns error: no
            error: cannot reach a.invalid: name not found
            could not get an answer from a.invalid:443: error sending request: dns error: no
        "#]],
        );
    }
}
