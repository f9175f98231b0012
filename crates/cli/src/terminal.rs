//! A thread's log as text for a terminal, shown as it grows.

use std::borrow::Cow;
use std::io::{IsTerminal, Write};

use codex_config::Env;
use codex_engine::log::{
    Abort, Body, CommandItem, CommandStatus, Delta, Event, Item, ItemId, Outcome, PatchItem, PatchStatus, Subject,
};
use codex_wire::change::FileChange;
use codex_wire::input::UserInput;
use codex_wire::plan::{StepStatus, UpdatePlanArgs};

/// How text is set apart. Everything reads well without.
#[derive(Debug, Clone, Copy)]
enum Style {
    Plain,
    Dim,
    Bold,
    Green,
    Yellow,
    Red,
}

/// Writes events for people.
pub(crate) struct Terminal<W> {
    output: W,
    colour: bool,
    /// The kind of text the cursor stands in, so that a new one starts on a line of its own.
    within: Within,
    /// The command that began last. The end of any other names it, because several may run side by side.
    newest: Option<ItemId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    Nothing,
    Message,
    Reasoning,
    Output,
}

/// Whether to colour what goes to standard output.
pub(crate) fn wants_colour(env: &Env) -> bool {
    colours(std::io::stdout().is_terminal(), env)
}

/// Whether to colour what goes to a terminal, or to something else.
pub(crate) fn colours(is_terminal: bool, env: &Env) -> bool {
    is_terminal && env.get("NO_COLOR").is_none() && env.text("TERM").is_none_or(|term| term != "dumb")
}

impl<W: Write> Terminal<W> {
    pub(crate) fn new(output: W, colour: bool) -> Self {
        Self { output, colour, within: Within::Nothing, newest: None }
    }

    /// Shows one event.
    pub(crate) fn show(&mut self, event: &Event) -> std::io::Result<()> {
        match &event.body {
            Body::ItemDelta { delta, .. } => self.delta(delta)?,
            Body::ItemStarted(Item::Command(command)) => self.command(command)?,
            Body::ItemCompleted(Item::Command(command)) => self.command_end(command)?,
            Body::ItemStarted(Item::Patch(patch)) => self.patch(patch)?,
            Body::ItemCompleted(Item::Patch(patch)) => self.patch_end(patch)?,
            Body::ItemCompleted(Item::UserMessage { content, .. }) => self.user(content)?,
            Body::ItemCompleted(_) => self.enter(Within::Nothing)?,
            Body::PlanUpdated(plan) => self.plan(plan)?,
            Body::AnswerRetried { failure, attempt, limit, .. } => {
                self.note(Style::Yellow, "retry", &format!("{attempt} of {limit}: {}", failure.message))?;
            }
            Body::Compacted(compacted) => {
                let text = format!("about {} tokens before, about {} now", compacted.before, compacted.after);
                self.note(Style::Dim, "summed up", &text)?;
            }
            Body::Warning { message } => self.note(Style::Yellow, "warning", message)?,
            Body::TurnEnded(outcome) => self.outcome(outcome)?,
            Body::ApprovalAsked(approval) => self.question(&approval.subject)?,
            Body::ApprovalAnswered { .. }
            | Body::TerminalWritten { .. }
            | Body::ImageViewed { .. }
            | Body::DiffChanged(_)
            | Body::ReviewEntered(_)
            | Body::ReviewExited(_)
            | Body::WentBack { .. }
            | Body::RolledBack { .. }
            | Body::TokensCounted { .. }
            | Body::ThreadStarted(_)
            | Body::TurnStarted { .. }
            | Body::ModelAsked(_)
            | Body::Recorded(_)
            | Body::ItemStarted(_) => {}
        }
        self.output.flush()
    }

    /// Shows a line of our own.
    pub(crate) fn line(&mut self, text: &str) -> std::io::Result<()> {
        self.enter(Within::Nothing)?;
        self.write(Style::Dim, text)?;
        writeln!(self.output)?;
        self.output.flush()
    }

    /// Says that something went wrong.
    pub(crate) fn error(&mut self, message: &str) -> std::io::Result<()> {
        self.note(Style::Red, "error", message)?;
        self.output.flush()
    }

    /// Gives back where it writes.
    pub(crate) fn into_inner(self) -> W {
        self.output
    }

    fn delta(&mut self, delta: &Delta) -> std::io::Result<()> {
        match delta {
            Delta::Text(text) => {
                self.enter(Within::Message)?;
                self.write(Style::Plain, text)
            }
            Delta::Output { bytes, .. } => {
                self.enter(Within::Output)?;
                self.write(Style::Dim, &String::from_utf8_lossy(bytes))
            }
            Delta::SummaryPart { .. } => self.enter(Within::Nothing),
            Delta::Summary { text, .. } | Delta::Raw { text, .. } => {
                self.enter(Within::Reasoning)?;
                self.write(Style::Dim, text)
            }
        }
    }

    fn user(&mut self, content: &[UserInput]) -> std::io::Result<()> {
        self.enter(Within::Nothing)?;
        self.write(Style::Bold, "> ")?;
        for item in content {
            match item {
                UserInput::Text { text } => self.write(Style::Bold, text)?,
                UserInput::Image { .. } => self.write(Style::Dim, "[picture]")?,
                UserInput::LocalImage { path } => self.write(Style::Dim, &format!("[{}]", path.display()))?,
                UserInput::Skill { name, .. } | UserInput::Mention { name, .. } => self.write(Style::Dim, name)?,
            }
        }
        writeln!(self.output, "\n")
    }

    fn command(&mut self, command: &CommandItem) -> std::io::Result<()> {
        self.enter(Within::Nothing)?;
        self.newest = Some(command.id.clone());
        self.write(Style::Green, "$ ")?;
        self.write(Style::Bold, &command_text(command))?;
        writeln!(self.output)
    }

    fn command_end(&mut self, command: &CommandItem) -> std::io::Result<()> {
        let Some(end) = &command.end else { return Ok(()) };
        if self.within == Within::Output && !end.aggregated.ends_with('\n') {
            writeln!(self.output)?;
        }
        self.within = Within::Nothing;
        let (style, what) = match command.status {
            CommandStatus::Completed => (Style::Dim, "exit 0".to_owned()),
            CommandStatus::Declined => (Style::Yellow, end.formatted.clone()),
            CommandStatus::Failed | CommandStatus::Running | CommandStatus::AwaitingApproval => {
                (Style::Red, format!("exit {}", end.exit_code))
            }
        };
        let is_newest = self.newest.as_ref() == Some(&command.id);
        let whose = if is_newest { String::new() } else { format!(": {}", command_text(command)) };
        self.write(style, &format!("  {what}, {:.1} s{whose}", end.duration.as_secs_f64()))?;
        writeln!(self.output, "\n")
    }

    fn question(&mut self, subject: &Subject) -> std::io::Result<()> {
        let what = match subject {
            Subject::Command { argv, .. } => argv.join(" "),
            Subject::Patch { changes, .. } => format!("a patch of {} files", changes.len()),
        };
        self.note(Style::Yellow, "approval needed", &what)
    }

    fn patch(&mut self, patch: &PatchItem) -> std::io::Result<()> {
        self.enter(Within::Nothing)?;
        for (path, change) in &*patch.changes {
            let (what, text) = match change {
                FileChange::Add { content } => ("add", content),
                FileChange::Delete { content } => ("delete", content),
                FileChange::Update { unified_diff, .. } => ("change", unified_diff),
            };
            self.write(Style::Bold, &format!("{what} {}", path.display()))?;
            writeln!(self.output)?;
            for line in text.lines() {
                let style = match (change, line.chars().next()) {
                    (FileChange::Add { .. }, _) | (FileChange::Update { .. }, Some('+')) => Style::Green,
                    (FileChange::Delete { .. }, _) | (FileChange::Update { .. }, Some('-')) => Style::Red,
                    (FileChange::Update { .. }, _) => Style::Dim,
                };
                self.write(style, &format!("  {line}"))?;
                writeln!(self.output)?;
            }
        }
        Ok(())
    }

    fn patch_end(&mut self, patch: &PatchItem) -> std::io::Result<()> {
        let (style, text) = match (&patch.end, patch.status) {
            (_, PatchStatus::Completed) | (None, _) => (Style::Dim, "applied"),
            (Some(end), _) => (Style::Red, end.stderr.as_str()),
        };
        self.write(style, &format!("  {text}"))?;
        writeln!(self.output, "\n")
    }

    fn plan(&mut self, plan: &UpdatePlanArgs) -> std::io::Result<()> {
        self.enter(Within::Nothing)?;
        self.write(Style::Bold, "Plan")?;
        if let Some(why) = &plan.explanation {
            self.write(Style::Dim, &format!(" ({why})"))?;
        }
        writeln!(self.output)?;
        for item in &plan.plan {
            let (mark, style) = match item.status {
                StepStatus::Completed => ("[x] ", Style::Green),
                StepStatus::InProgress => ("[>] ", Style::Bold),
                StepStatus::Pending => ("[ ] ", Style::Plain),
            };
            self.write(style, &format!("  {mark}{}", item.step))?;
            writeln!(self.output)?;
        }
        writeln!(self.output)
    }

    fn outcome(&mut self, outcome: &Outcome) -> std::io::Result<()> {
        match outcome {
            Outcome::Completed { .. } => self.enter(Within::Nothing),
            Outcome::Aborted(Abort::Interrupted) => self.note(Style::Yellow, "stopped", "the turn was interrupted"),
            Outcome::Aborted(Abort::Replaced | Abort::ReviewEnded) => {
                self.note(Style::Yellow, "stopped", "the turn was replaced")
            }
            Outcome::Failed(failure) => {
                self.note(Style::Red, "error", &failure.message)?;
                failure.hint.map_or(Ok(()), |hint| self.note(Style::Plain, "hint", hint))
            }
        }
    }

    fn note(&mut self, style: Style, what: &str, message: &str) -> std::io::Result<()> {
        self.enter(Within::Nothing)?;
        self.write(style, &format!("{what}: "))?;
        self.write(Style::Plain, message)?;
        writeln!(self.output)
    }

    /// Ends the text the cursor stands in, unless the next piece belongs to it.
    fn enter(&mut self, within: Within) -> std::io::Result<()> {
        if self.within != within && self.within != Within::Nothing {
            writeln!(self.output, "\n")?;
        }
        self.within = within;
        Ok(())
    }

    fn write(&mut self, style: Style, text: &str) -> std::io::Result<()> {
        let text = printable(text);
        let code = match style {
            Style::Plain => None,
            Style::Bold => Some(1),
            Style::Dim => Some(2),
            Style::Red => Some(31),
            Style::Green => Some(32),
            Style::Yellow => Some(33),
        };
        match code.filter(|_| self.colour) {
            Some(code) => write!(self.output, "\x1b[{code}m{text}\x1b[0m"),
            None => write!(self.output, "{text}"),
        }
    }
}

/// What a shell is given reads better without the shell around it.
fn command_text(command: &CommandItem) -> String {
    match command.argv.as_slice() {
        [_, flag, script] if flag == "-lc" || flag == "-c" => script.clone(),
        argv => argv.join(" "),
    }
}

/// Text without what a terminal would obey: a model or a repository must not move the cursor, hide text or reorder it.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    let harmless = |c: char| {
        let reorders = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}');
        (!c.is_control() && !reorders) || matches!(c, '\n' | '\t')
    };
    if text.chars().all(harmless) {
        return Cow::Borrowed(text);
    }
    text.chars().map(|c| if harmless(c) { c } else { '\u{fffd}' }).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown_as_a_mark() {
        assert_eq!(printable("plain\ttext\n"), "plain\ttext\n");
        assert_eq!(printable("\x1b]0;title\x07 a\rb \u{202e}evil"), "\u{fffd}]0;title\u{fffd} a\u{fffd}b \u{fffd}evil");
    }
}
