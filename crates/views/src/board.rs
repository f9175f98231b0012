//! A board: a list over the transcript whose entries can be filtered and acted upon.
//!
//! Invariant: pure, and only entries around the selected one are laid out. An action that destroys something needs a
//! second press of its key.

use serde_json::Value;

use codex_terminal::key::Key;
use codex_terminal::laid::{logical, shortened, wrapped};
use codex_terminal::wrap::hint_rows;
use codex_terminal::{Row, Span, Style, query};

/// The entries that Page Up and Page Down skip.
const PAGE: usize = 10;

/// An entry of a board.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entry {
    /// The thing that keys act upon; none for a heading, which cannot be selected.
    pub value: Option<Value>,
    pub lines: Vec<Row>,
}

impl Entry {
    #[must_use]
    pub fn heading(text: &str) -> Self {
        Self { value: None, lines: vec![Row::new(), vec![Span::new(Style::Heading, text)]] }
    }

    #[must_use]
    pub fn new(value: Value, lines: Vec<Row>) -> Self {
        Self { value: Some(value), lines }
    }

    fn has(&self, needle: &str) -> bool {
        self.lines.iter().any(|line| logical(line).to_lowercase().contains(needle))
    }
}

/// The input that an action needs before it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    Nothing,
    /// A selected entry.
    Selection,
    /// A selected entry, and a second press.
    Confirmation,
    /// A second press alone.
    ConfirmationOfAll,
    /// A line of text, after this question.
    Text(&'static str),
}

/// An action of a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Action {
    pub key: char,
    pub label: &'static str,
    pub needs: Needs,
}

/// The effect of a key.
#[derive(Debug, Clone, PartialEq)]
pub enum Pressed {
    /// Nothing outside the board.
    Nothing,
    Close,
    /// Enter on an entry.
    Entered(Value),
    Action {
        key: char,
        value: Option<Value>,
        text: String,
    },
}

/// The text that is being typed, and its purpose.
#[derive(Debug)]
enum Typing {
    Filter,
    For(Action),
}

#[derive(Debug)]
pub struct Board {
    title: String,
    /// The effect of Enter.
    enter: &'static str,
    actions: &'static [Action],
    entries: Vec<Entry>,
    /// The entries that the filter leaves.
    shown: Vec<usize>,
    /// The position of the selected one among them.
    at: usize,
    filter: String,
    typing: Option<(Typing, String)>,
    unconfirmed: Option<Action>,
    /// The outcome of the last action.
    told: Vec<Row>,
    is_loading: bool,
    /// Whether lines that are too long are cut and not wrapped.
    is_cut: bool,
    /// The text that stands for no entries.
    nothing: &'static str,
}

impl Board {
    /// A board whose entries are still to come.
    #[must_use]
    pub fn new(title: &str, enter: &'static str, actions: &'static [Action]) -> Self {
        Self {
            title: title.to_owned(),
            enter,
            actions,
            entries: Vec::new(),
            shown: Vec::new(),
            at: 0,
            filter: String::new(),
            typing: None,
            unconfirmed: None,
            told: Vec::new(),
            is_loading: true,
            is_cut: false,
            nothing: "Nothing to list.",
        }
    }

    /// The same with lines that are cut at the end of the row.
    #[must_use]
    pub fn cut(self) -> Self {
        Self { is_cut: true, ..self }
    }

    /// The same with a text for a list without entries.
    #[must_use]
    pub fn or_say(self, nothing: &'static str) -> Self {
        Self { nothing, ..self }
    }

    /// Shows these entries; the selection stays where it is if it can.
    pub fn fill(&mut self, entries: Vec<Entry>) {
        let before = self.selected().cloned();
        (self.entries, self.is_loading) = (entries, false);
        self.choose();
        let is_before = |at: &usize| before.is_some() && self.entries[*at].value == before;
        if let Some(at) = self.shown.iter().position(is_before) {
            self.at = at;
        }
    }

    /// Shows only entries with a text.
    pub fn filter_by(&mut self, text: &str) {
        text.clone_into(&mut self.filter);
        self.choose();
        self.go_to_end();
    }

    /// Tells the outcome of an action.
    pub fn tell(&mut self, rows: Vec<Row>) {
        self.told = rows;
    }

    /// Lets the text of an action be typed further, after a mistake in it.
    pub fn type_again(&mut self, key: char, text: &str) {
        let action = self.actions.iter().find(|action| action.key == key);
        self.typing = action.map(|action| (Typing::For(*action), text.to_owned()));
    }

    /// Selects the last entry.
    pub fn go_to_end(&mut self) {
        self.at = self.shown.len().saturating_sub(1);
        self.settle(false);
    }

    /// The value of the selected entry.
    #[must_use]
    pub fn selected(&self) -> Option<&Value> {
        self.shown.get(self.at).and_then(|at| self.entries[*at].value.as_ref())
    }

    /// Applies the filter. A heading stays if an entry below it does.
    fn choose(&mut self) {
        let needle = self.filter.to_lowercase();
        let mut shown = Vec::with_capacity(self.entries.len());
        let mut heading = None;
        for (at, entry) in self.entries.iter().enumerate() {
            if entry.value.is_none() {
                heading = Some(at);
            } else if needle.is_empty() || entry.has(&needle) {
                shown.extend(heading.take());
                shown.push(at);
            }
        }
        // Without a filter, a heading with nothing below it says that there is nothing.
        self.shown = if needle.is_empty() { (0..self.entries.len()).collect() } else { shown };
        self.at = self.at.min(self.shown.len().saturating_sub(1));
        self.settle(true);
    }

    /// Moves the selection from a heading to the next entry, or to the one before if there is none.
    fn settle(&mut self, is_down: bool) {
        let is_entry = |place: &usize| self.entries[self.shown[*place]].value.is_some();
        let below = (self.at..self.shown.len()).find(is_entry);
        let above = (0..self.at.min(self.shown.len())).rev().find(is_entry);
        let found = if is_down { below.or(above) } else { above.filter(|_| !is_entry_at(self, self.at)).or(below) };
        self.at = found.unwrap_or(self.at);
    }

    fn step(&mut self, by: isize) {
        let last = self.shown.len().saturating_sub(1);
        self.at = self.at.saturating_add_signed(by).min(last);
        self.settle(by > 0);
    }

    /// Moves the selection, as the wheel does.
    pub fn scroll(&mut self, by: isize) {
        self.step(by);
    }

    pub fn press(&mut self, key: &Key) -> Pressed {
        if let Some((typing, mut text)) = self.typing.take() {
            return self.typed(typing, &mut text, key);
        }
        let unconfirmed = self.unconfirmed.take();
        match key {
            Key::Ctrl('c' | 'd') | Key::Char('q') => return Pressed::Close,
            Key::Esc if self.filter.is_empty() => return Pressed::Close,
            Key::Esc => {
                self.filter.clear();
                self.choose();
            }
            Key::Up | Key::Char('k') => self.step(-1),
            Key::Down | Key::Char('j') => self.step(1),
            Key::PageUp => self.step(-PAGE.cast_signed()),
            Key::PageDown | Key::Char(' ') => self.step(PAGE.cast_signed()),
            Key::Home | Key::Char('g') => {
                self.at = 0;
                self.settle(true);
            }
            Key::End | Key::Char('G') => self.go_to_end(),
            Key::Char('/') | Key::Ctrl('s') => self.typing = Some((Typing::Filter, self.filter.clone())),
            Key::Enter => return self.selected().cloned().map_or(Pressed::Nothing, Pressed::Entered),
            Key::Char(c) => return self.act(*c, unconfirmed),
            _ => {}
        }
        Pressed::Nothing
    }

    fn act(&mut self, key: char, unconfirmed: Option<Action>) -> Pressed {
        let Some(action) = self.actions.iter().find(|action| action.key == key).copied() else {
            return Pressed::Nothing;
        };
        let value = self.selected().cloned();
        let is_confirmed = unconfirmed == Some(action);
        match action.needs {
            Needs::Selection | Needs::Confirmation if value.is_none() => return Pressed::Nothing,
            Needs::Confirmation | Needs::ConfirmationOfAll if !is_confirmed => {
                self.unconfirmed = Some(action);
                return Pressed::Nothing;
            }
            Needs::Text(_) => {
                self.typing = Some((Typing::For(action), String::new()));
                return Pressed::Nothing;
            }
            Needs::Nothing | Needs::Selection | Needs::Confirmation | Needs::ConfirmationOfAll => {}
        }
        self.told.clear();
        Pressed::Action { key, value, text: String::new() }
    }

    /// A key while text is typed.
    fn typed(&mut self, typing: Typing, text: &mut String, key: &Key) -> Pressed {
        match key {
            Key::Enter => {
                return match typing {
                    Typing::Filter => Pressed::Nothing,
                    Typing::For(_) if text.trim().is_empty() => Pressed::Nothing,
                    Typing::For(action) => {
                        let (value, text) = (self.selected().cloned(), text.trim().to_owned());
                        Pressed::Action { key: action.key, value, text }
                    }
                };
            }
            Key::Esc | Key::Ctrl('c') => {
                if matches!(typing, Typing::Filter) {
                    self.filter.clear();
                    self.choose();
                }
                return Pressed::Nothing;
            }
            key => drop(query::edit(text, key)),
        }
        if matches!(typing, Typing::Filter) {
            self.filter.clone_from(text);
            self.at = 0;
            self.choose();
        }
        self.typing = Some((typing, std::mem::take(text)));
        Pressed::Nothing
    }

    /// Its rows: a title, the entries around the selected one, what was told, and the keys.
    #[must_use]
    pub fn rows(&self, (width, height): (usize, usize)) -> Vec<Row> {
        let told: Vec<Row> = wrapped(&self.told, width).into_iter().map(|laid| laid.row).collect();
        let told_room = told.len().min(height / 2);
        let mut footer = self.footer(width);
        let most = (height / 4).clamp(1, 3);
        if self.typing.is_some() {
            // The end of the text is where it is typed.
            footer.drain(..footer.len().saturating_sub(most));
        }
        footer.truncate(most);
        let room = height.saturating_sub(1 + told_room + footer.len());
        let mut rows = vec![vec![Span::new(Style::Bar, format!(" {} ", self.heading()))]];
        rows.extend(self.entry_rows(width, room));
        rows.resize((room + 1).max(1), Row::new());
        rows.extend(told.into_iter().take(told_room));
        rows.extend(footer);
        rows
    }

    fn heading(&self) -> String {
        let is_entry = |at: &&usize| self.entries[**at].value.is_some();
        let all = self.entries.iter().filter(|entry| entry.value.is_some()).count();
        let hidden = all - self.shown.iter().filter(is_entry).count();
        match hidden {
            _ if self.is_loading => format!("{} · loading", self.title),
            0 => format!("{} · {all}", self.title),
            hidden => format!("{} · {} of {all}, {hidden} hidden by the filter", self.title, all - hidden),
        }
    }

    fn footer(&self, width: usize) -> Vec<Row> {
        if let Some((typing, text)) = &self.typing {
            let mark = match typing {
                Typing::For(Action { needs: Needs::Text(question), .. }) => format!("{question} "),
                Typing::For(_) | Typing::Filter => "/".to_owned(),
            };
            return wrapped(&[query::row(&mark, text)], width).into_iter().map(|laid| laid.row).collect();
        }
        if let Some(action) = self.unconfirmed {
            return hint_rows(
                &format!("Press {} again to {} · any other key cancels", action.key, action.label),
                width,
            );
        }
        // Keys that need a selected entry are not named without one.
        let has_entry = self.selected().is_some();
        let is_usable = |action: &&Action| has_entry || matches!(action.needs, Needs::Nothing | Needs::Text(_));
        let mut parts: Vec<String> = has_entry.then(|| format!("Enter {}", self.enter)).into_iter().collect();
        let actions = self.actions.iter().filter(is_usable);
        parts.extend(actions.map(|action| format!("{} {}", action.key, action.label)));
        match self.filter.as_str() {
            "" if self.entries.is_empty() => {}
            "" => parts.push("/ filter".to_owned()),
            filter => parts.push(format!("/{filter} · Esc all")),
        }
        parts.push("q close".to_owned());
        hint_rows(&parts.join(" · "), width)
    }

    /// The rows of the entries around the selected one.
    fn entry_rows(&self, width: usize, room: usize) -> Vec<Row> {
        if self.shown.is_empty() && !self.is_loading {
            let why = if self.filter.is_empty() { self.nothing } else { "nothing matches" };
            return vec![vec![Span::new(Style::Dim, format!("  {why}"))]];
        }
        let mut rows = self.laid(self.at, width);
        let (mut above, mut below) = (self.at, self.at + 1);
        while above > 0 && rows.len() < room / 2 {
            above -= 1;
            rows.splice(0..0, self.laid(above, width));
        }
        while below < self.shown.len() && rows.len() < room {
            rows.extend(self.laid(below, width));
            below += 1;
        }
        while above > 0 && rows.len() < room {
            above -= 1;
            rows.splice(0..0, self.laid(above, width));
        }
        // More rows above than fit: those of the selected entry stay.
        let own = self.laid(self.at, width).len();
        let before: usize = (above..self.at).map(|at| self.laid(at, width).len()).sum();
        let cut = (before + own).saturating_sub(room).min(rows.len().saturating_sub(room)).min(before);
        rows.drain(..cut);
        rows.truncate(room);
        rows
    }

    fn laid(&self, place: usize, width: usize) -> Vec<Row> {
        let Some(entry) = self.shown.get(place).map(|at| &self.entries[*at]) else { return Vec::new() };
        let is_selected = place == self.at && entry.value.is_some();
        let mut rows: Vec<Row> = Vec::new();
        for (at, line) in entry.lines.iter().enumerate() {
            let mark = if is_selected && at == 0 { "› " } else { "  " };
            let mut marked = vec![Span::new(Style::Hang, mark)];
            marked.extend(line.iter().cloned().map(|span| match span.style {
                Style::Plain if is_selected && at == 0 => Span::new(Style::Bold, span.text),
                _ => span,
            }));
            let marked = if entry.value.is_none() { line.clone() } else { marked };
            if self.is_cut {
                rows.push(shortened(marked, width));
                continue;
            }
            rows.extend(wrapped(&[marked], width).into_iter().map(|laid| laid.row));
        }
        rows
    }
}

fn is_entry_at(board: &Board, place: usize) -> bool {
    board.shown.get(place).is_some_and(|at| board.entries[*at].value.is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ACTIONS: &[Action] = &[
        Action { key: 'd', label: "delete it", needs: Needs::Confirmation },
        Action { key: 't', label: "try", needs: Needs::Text("Command:") },
    ];

    fn board() -> Board {
        let mut board = Board::new("Things", "open", ACTIONS);
        let entry = |name: &str| Entry::new(json!(name), vec![vec![Span::new(Style::Plain, name)]]);
        board.fill(vec![Entry::heading("First"), entry("one"), entry("two"), Entry::heading("Second"), entry("three")]);
        board
    }

    fn text(board: &Board, height: usize) -> Vec<String> {
        board
            .rows((40, height))
            .iter()
            .map(|row| row.iter().map(|span| span.text.as_str()).collect::<String>())
            .collect()
    }

    #[test]
    fn headings_are_skipped_and_a_filter_counts_what_it_hides() {
        let mut board = board();
        assert_eq!(board.selected(), Some(&json!("one")));
        board.press(&Key::Down);
        board.press(&Key::Down);
        assert_eq!(board.selected(), Some(&json!("three")));
        board.press(&Key::Up);
        assert_eq!(board.selected(), Some(&json!("two")));
        board.press(&Key::Home);
        assert_eq!(board.selected(), Some(&json!("one")));
        for key in "/TH".chars() {
            board.press(&Key::Char(key));
        }
        board.press(&Key::Enter);
        let rows = text(&board, 8);
        assert_eq!(rows[0], " Things · 1 of 3, 2 hidden by the filter ");
        assert!(rows.iter().any(|row| row == "› three") && rows.iter().any(|row| row == "Second"), "{rows:?}");
        assert!(rows.iter().all(|row| row != "First"), "{rows:?}");
        board.press(&Key::Esc);
        assert_eq!(text(&board, 8)[0], " Things · 3 ");
        assert_eq!(board.press(&Key::Esc), Pressed::Close);
    }

    #[test]
    fn what_destroys_is_confirmed_and_text_is_asked_for() {
        let mut board = board();
        assert_eq!(board.press(&Key::Char('d')), Pressed::Nothing);
        assert!(
            text(&board, 8).ends_with(&["Press d again to delete it".to_owned(), "any other key cancels".to_owned()])
        );
        board.press(&Key::Down);
        assert_eq!(board.press(&Key::Char('d')), Pressed::Nothing, "another key takes it back");
        let done = Pressed::Action { key: 'd', value: Some(json!("two")), text: String::new() };
        assert_eq!(board.press(&Key::Char('d')), done);
        board.press(&Key::Char('t'));
        for key in "ls".chars() {
            board.press(&Key::Char(key));
        }
        board.press(&Key::Paste(" --all".repeat(30)));
        assert!(text(&board, 8).last().is_some_and(|row| row.ends_with("--all▏")), "{:?}", text(&board, 8));
        board.press(&Key::Ctrl('u'));
        for key in "ls".chars() {
            board.press(&Key::Char(key));
        }
        let done = Pressed::Action { key: 't', value: Some(json!("two")), text: "ls".to_owned() };
        assert_eq!(board.press(&Key::Enter), done);
    }

    #[test]
    fn the_selected_entry_is_in_view_on_a_screen_of_any_size() {
        let mut board = Board::new("Many", "open", &[]);
        let entry =
            |at: usize| Entry::new(json!(at), vec![vec![Span::new(Style::Plain, format!("entry {at} end"))]; 2]);
        board.fill((0..100).map(entry).collect());
        for at in 0..100 {
            for (width, height) in [(1, 1), (3, 4), (20, 7), (80, 30)] {
                let rows = board.rows((width, height));
                assert_eq!(rows.len(), height.max(2), "{width}x{height}");
                let all: String = rows.iter().flatten().map(|span| span.text.as_str()).collect();
                assert!(width < 20 || all.contains(&format!("entry {at} end")), "{at} {width}x{height} {all}");
            }
            board.press(&Key::Down);
        }
    }
}
