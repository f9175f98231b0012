//! The status line, the title of the window, and the other settings of the display.
//!
//! Invariant: pure. A program that writes the status line is asked only when something has changed, so an idle chat does
//! nothing.

use codex_views::status_parts::{ALWAYS_NEEDED, PARTS, Part, USUAL};
use serde_json::json;

use super::app::{App, Effect};
use super::calls::Pending;
use super::layout::Fold;
use super::views::Wanted;
use crate::theme::OwnTheme;
use crate::wrap::row_columns;
use crate::{Row, Span, Style, amount, one_line, printable};

/// The settings of the display, as the configuration has them.
#[derive(Debug, Clone, Default)]
pub struct DisplaySettings {
    pub fold: Option<String>,
    pub status_line: Option<Vec<String>>,
    pub status_command: Option<Vec<String>>,
    pub notifications: bool,
    pub themes: Vec<OwnTheme>,
    /// Problems to tell the user.
    pub warnings: Vec<String>,
}

/// The settings of the display.
#[derive(Debug, Default)]
pub(super) struct Display {
    parts: Vec<Part>,
    program: Option<Vec<String>>,
    pub(super) fold: Fold,
    pub(super) notifies: bool,
    pub(super) themes: Vec<OwnTheme>,
    pub(super) warnings: Vec<String>,
}

impl Display {
    pub(super) fn new(settings: DisplaySettings) -> Self {
        let DisplaySettings { fold, status_line, status_command, notifications, themes, mut warnings } = settings;
        let mut parts = Vec::new();
        for name in status_line.iter().flatten() {
            if let Some((_, part)) = PARTS.iter().find(|(known, _)| known == name) {
                parts.push(*part);
            } else {
                let known: Vec<&str> = PARTS.iter().take(9).map(|(name, _)| *name).collect();
                warnings.push(format!("tui.status_line: unknown part `{name}`; there are {}", known.join(", ")));
            }
        }
        let parts = if status_line.is_some() { parts } else { USUAL.to_vec() };
        let levels = [Fold::Commands, Fold::Preview, Fold::All];
        let level = fold.as_ref().map(|fold| levels.into_iter().find(|level| level.name() == fold));
        if level == Some(None) {
            warnings.push("tui.fold is commands, preview or all".to_owned());
        }
        let program = status_command.filter(|words| !words.is_empty());
        Self { parts, program, fold: level.flatten().unwrap_or_default(), notifies: notifications, themes, warnings }
    }
}

/// The state of the status line and the title, as they were told last.
#[derive(Debug, Default)]
pub(super) struct Told {
    title: String,
    /// The state for which the program was asked, and its output.
    asked: String,
    output: Option<String>,
}

impl App {
    /// Tells the title, and asks the program of the status line, if something has changed.
    pub(super) fn settle_status(&mut self) {
        let title = self.title();
        if title != self.calls.told.title {
            self.calls.told.title.clone_from(&title);
            self.effect(Effect::Title(title));
        }
        let Some(words) = self.settings.display.program.clone() else { return };
        let Some(thread) = &self.thread else { return };
        let turn = self.running.as_ref().map(|running| running.turn.clone());
        let context = self.context_used().unwrap_or_default();
        let cost = self.cost().map(amount).unwrap_or_default();
        let about = json!({"CODEX_THREAD_ID": thread.id, "CODEX_MODEL": thread.model, "CODEX_SANDBOX_MODE": thread.sandbox,
            "CODEX_APPROVAL_POLICY": thread.approvals, "CODEX_CONTEXT": context, "CODEX_COST": cost,
            "CODEX_BRANCH": self.branch, "CODEX_WAITING": self.panel.len().to_string(),
            "CODEX_TURN": turn.unwrap_or_default()});
        let asked = about.to_string();
        if asked != self.calls.told.asked {
            self.calls.told.asked = asked;
            let id = self.expect(Pending::View(Wanted::StatusLine));
            self.effect(Effect::Program { id, words, about });
        }
    }

    /// The output of the program of the status line.
    pub(super) fn take_status(&mut self, output: Result<serde_json::Value, String>) {
        let text = match &output {
            Ok(output) => output.as_str().unwrap_or_default().lines().next().unwrap_or_default().to_owned(),
            Err(why) => format!("tui.status_command: {why}"),
        };
        self.calls.told.output = Some(printable(&text).into_owned());
    }

    fn title(&self) -> String {
        let folder = self.transcript.cwd.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let state = match (&self.running, self.panel.is_empty()) {
            (_, false) => " · needs you",
            (Some(_), true) => " · working",
            (None, true) => "",
        };
        format!("codex · {}{state}", one_line(&printable(&folder)))
    }

    /// The last row.
    pub(super) fn status_row(&self) -> Row {
        let mut parts: Vec<(usize, String)> = Vec::new();
        parts.extend(self.lost.iter().map(|lost| (ALWAYS_NEEDED, format!("disconnected: {lost}"))));
        let named = |part: &Part| Some((part.need(), self.part(*part)?));
        match &self.calls.told.output {
            Some(output) if self.settings.display.program.is_some() => {
                parts.push((0, output.clone()));
                parts.extend(named(&Part::Waiting));
            }
            _ => parts.extend(self.settings.display.parts.iter().filter_map(named)),
        }
        parts.retain(|(_, part)| !part.is_empty());
        loop {
            let texts: Vec<&str> = parts.iter().map(|(_, text)| text.as_str()).collect();
            let text = format!(" {}", printable(&texts.join(" · ")).replace('\n', " "));
            let columns = row_columns(&[Span::new(Style::Bar, text.clone())]);
            if columns <= self.size.0 || parts.len() < 2 {
                return vec![Span::new(Style::Bar, text + &" ".repeat(self.size.0.saturating_sub(columns)))];
            }
            let least = (0..parts.len()).min_by_key(|at| parts[*at].0).unwrap_or(0);
            parts.remove(least);
        }
    }

    fn part(&self, part: Part) -> Option<String> {
        let thread = self.thread.as_ref();
        match part {
            Part::Model => thread.map(|thread| thread.model.clone()),
            Part::Effort => thread.map(|thread| thread.effort.clone()),
            Part::Mode => thread.map(|thread| format!("{}/{}", thread.sandbox, thread.approvals)),
            Part::Thread => thread.map(|thread| thread.id.clone()),
            Part::Context => self.context_used(),
            Part::Folder => Some(folder(&self.transcript.cwd.to_string_lossy())),
            Part::Branch => self.branch.clone(),
            Part::Cost => self.cost().map(|cost| format!("cost {}", amount(cost))),
            Part::Waiting => (!self.panel.is_empty()).then(|| self.panel.waiting()),
        }
    }
}

/// The last two parts of a path.
fn folder(path: &str) -> String {
    let mut parts: Vec<&str> = path.rsplit('/').filter(|part| !part.is_empty()).take(2).collect();
    parts.reverse();
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_are_told_and_those_of_other_releases_are_known() {
        let line = ["git-branch", "model", "nonsense"].map(str::to_owned).to_vec();
        let settings =
            DisplaySettings { status_line: Some(line), fold: Some("some".to_owned()), ..DisplaySettings::default() };
        let display = Display::new(settings);
        assert_eq!(display.parts, [Part::Branch, Part::Model]);
        assert_eq!(display.warnings.len(), 2, "{:?}", display.warnings);
        let usual = Display::new(DisplaySettings { fold: Some("all".to_owned()), ..DisplaySettings::default() });
        assert_eq!((usual.parts.as_slice(), usual.fold), (USUAL, Fold::All));
        assert_eq!(folder("/home/me/project"), "me/project");
    }
}
