//! Lists to choose from: earlier messages and prompts, models, themes, policies.

use serde_json::Value;

use super::app::{App, Overlay};
use crate::Style;
use crate::key::Key;
use crate::picker::{Entry, Picked};
use crate::theme::{self, Theme};
use codex_views::list::List;
use codex_views::policy;

/// The most earlier prompts to choose from.
const MOST_PROMPTS: usize = 500;

/// The purpose of a list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Choice {
    /// Earlier messages, to go back to.
    Earlier,
    /// Earlier prompts, to send again.
    Prompt,
    Model,
    /// A theme is seen while it is selected; this is the one to return to.
    Theme(Theme),
    /// A policy for approvals, or a sandbox.
    Policy,
}

impl App {
    /// Opens a list of values, each with a help, at the current one.
    fn offer<'a>(
        &mut self,
        choice: Choice,
        title: &str,
        values: impl IntoIterator<Item = (&'a str, &'a str)>,
        now: &str,
    ) {
        let entry = |(value, help): (&str, &str)| {
            let help = if value == now { format!("(current) {help}") } else { help.to_owned() };
            (value.to_owned(), Entry { title: value.to_owned(), help, ..Entry::default() })
        };
        let list = List::new(title, values.into_iter().map(entry).collect()).at(now);
        self.overlay = Some(Overlay::Choice(choice, list));
    }

    /// Offers earlier prompts, the latest first.
    pub(super) fn offer_prompts(&mut self) {
        let prompts = self.history.latest(MOST_PROMPTS).into_iter();
        let entries: Vec<_> = prompts.map(|text| (text.clone(), Entry { title: text, ..Entry::default() })).collect();
        if entries.is_empty() {
            self.hint = Some("There is no earlier prompt".to_owned());
            return;
        }
        self.overlay = Some(Overlay::Choice(Choice::Prompt, List::new("Earlier prompts", entries)));
    }

    pub(super) fn offer_models(&mut self, answer: &Value) {
        let now = self.thread.as_ref().map(|thread| thread.model.clone()).unwrap_or_default();
        let text = |model: &'_ Value, name: &str| model[name].as_str().unwrap_or_default().to_owned();
        let models: Vec<(String, String)> = answer["data"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|model| (text(model, "model"), text(model, "description")))
            .collect();
        if models.is_empty() {
            return self.remark(Style::Dim, &format!("{now}. The provider lists no models; /model NAME switches."));
        }
        let models = models.iter().map(|(name, help)| (name.as_str(), help.as_str()));
        self.offer(Choice::Model, "Model from the next turn on", models, &now);
    }

    pub(super) fn offer_themes(&mut self) {
        let own: Vec<String> = self.settings.display.themes.iter().map(|own| own.name.clone()).collect();
        let now = self.theme.name().unwrap_or_default();
        let themes = theme::NAMES.iter().map(|(name, _, help)| (*name, *help));
        let all = themes.chain(own.iter().map(|name| (name.as_str(), "one of yours")));
        self.offer(Choice::Theme(self.theme), "Colours of this chat", all, now);
    }

    /// Offers the policies for approvals, or the sandboxes, over the board of policies.
    pub(super) fn offer_policies(&mut self, board: Overlay, is_sandbox: bool) {
        let thread = self.thread.as_ref();
        let now = thread.map(|thread| if is_sandbox { thread.sandbox.clone() } else { thread.approvals.clone() });
        let (title, values) =
            if is_sandbox { ("Sandbox", policy::SANDBOXES) } else { ("When you are asked", policy::APPROVALS) };
        self.offer(Choice::Policy, title, values.iter().copied(), &now.unwrap_or_default());
        self.calls.under = Some(Box::new(board));
    }

    /// A key for a list.
    pub(super) fn choice_key(&mut self, choice: Choice, mut list: List, key: &Key) {
        match list.press(key) {
            Picked::Open => {
                if let (Choice::Theme(_), Some(name)) = (choice, list.selected()) {
                    // Every name of the list is known.
                    let _: Result<(), String> = self.theme.take(name, &self.settings.display.themes);
                }
                self.overlay = Some(Overlay::Choice(choice, list));
            }
            Picked::Entry(at) => {
                self.overlay = self.calls.under.take().map(|below| *below);
                let value = list.values.get(at).cloned().unwrap_or_default();
                self.chosen(choice, &value);
            }
            Picked::Nothing => {
                self.overlay = self.calls.under.take().map(|below| *below);
                if let Choice::Theme(before) = choice {
                    self.theme = before;
                }
            }
        }
    }

    fn chosen(&mut self, choice: Choice, value: &str) {
        match choice {
            Choice::Earlier => self.go_back(value),
            Choice::Prompt => self.composer.replace(value),
            Choice::Model => self.choose_model(value.to_owned()),
            Choice::Theme(_) => self.choose_theme(value),
            Choice::Policy => self.approvals(&[value.to_owned()], false),
        }
    }

    pub(super) fn choose_theme(&mut self, name: &str) {
        match self.theme.take(name, &self.settings.display.themes) {
            Ok(()) => {
                let why = self.theme.without_effect().map(|why| format!("It has no effect: {why}"));
                let keep = || format!("To keep it: theme = \"{name}\" in [tui] of config.toml");
                self.hint = Some(why.unwrap_or_else(keep));
            }
            Err(why) => self.remark(Style::Yellow, &why),
        }
    }
}
