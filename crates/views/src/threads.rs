//! The picker of threads: recent ones, or those that a search finds; of this folder or of all, archived ones and child
//! agents if wanted. Threads that a filter hides are counted.
//!
//! Invariant: pure. At most one request is on its way, and an answer to an earlier question changes nothing.

use std::path::PathBuf;

use serde_json::{Value, json};

use codex_terminal::key::Key;
use codex_terminal::laid::shortened;
use codex_terminal::wrap::hint_rows;
use codex_terminal::{Row, Span, Style, one_line, printable, query, selection};

/// The number of threads of a page, which is the most that a server sends, and of all pages together.
const PAGE: usize = 100;
const MOST: usize = 2000;

/// All kinds of programs whose threads a person may resume; child agents are told apart by their parents.
const KINDS: &[&str] =
    &["cli", "vscode", "exec", "appServer", "unknown", "subAgent", "subAgentThreadSpawn", "subAgentOther"];

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    id: String,
    name: String,
    title: String,
    snippet: String,
    cwd: PathBuf,
    updated_at: i64,
    parent: Option<String>,
    is_archived: bool,
}

/// A question to the server.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    query: String,
    is_archived: bool,
    cursor: Option<String>,
    pub method: &'static str,
    pub params: Value,
}

/// The effect of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Picked {
    Nothing,
    Cancelled,
    Open(String),
    Fork(String),
    Name(String, String),
    Delete(String),
    /// Archive a thread, or restore it.
    Archive(String, bool),
}

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Threads {
    /// Whether Enter copies the thread.
    is_fork: bool,
    folder: Option<PathBuf>,
    is_everywhere: bool,
    has_archived: bool,
    has_children: bool,
    query: String,
    /// The question whose answer is still to come, and the query that the list answers.
    is_asking: bool,
    answered: Option<String>,
    found: Vec<Found>,
    is_more: bool,
    at: usize,
    /// The new name of the selected thread, while it is typed.
    naming: Option<String>,
    is_deleting: bool,
    told: Option<String>,
}

impl Threads {
    /// A picker of the threads of a folder, or of all folders.
    #[must_use]
    pub fn new(is_fork: bool, folder: Option<PathBuf>, is_everywhere: bool) -> Self {
        Self {
            is_fork,
            is_everywhere: is_everywhere || folder.is_none(),
            folder,
            has_archived: false,
            has_children: false,
            query: String::new(),
            is_asking: false,
            answered: None,
            found: Vec::new(),
            is_more: false,
            at: 0,
            naming: None,
            is_deleting: false,
            told: None,
        }
    }

    /// The next question, if one is due.
    pub fn question(&mut self) -> Option<Asked> {
        if self.is_asking || self.answered.as_deref() == Some(self.query.trim()) {
            return None;
        }
        self.is_asking = true;
        Some(asked(self.query.trim(), false, None))
    }

    /// Asks everything again.
    pub fn forget(&mut self) {
        self.answered = None;
    }

    pub fn tell(&mut self, text: String) {
        self.told = Some(text);
    }

    /// Takes an answer, and returns the next question, if one is due. The open thread is left out.
    pub fn take(&mut self, asked_before: &Asked, answer: &Value, open: &str) -> Option<Asked> {
        self.is_asking = false;
        if asked_before.query != self.query.trim() {
            return self.question();
        }
        if !asked_before.is_archived && asked_before.cursor.is_none() {
            self.found.clear();
            self.is_more = false;
        }
        for entry in answer["data"].as_array().into_iter().flatten() {
            let thread = entry.get("thread").unwrap_or(entry);
            let text = |name: &str| thread[name].as_str().unwrap_or_default().to_owned();
            let title = Some(text("name")).filter(|name| !name.is_empty()).unwrap_or_else(|| text("preview"));
            let found = Found {
                id: text("id"),
                name: one_line(&printable(&text("name"))),
                title: one_line(&printable(&title)),
                snippet: one_line(&printable(entry["snippet"].as_str().unwrap_or_default())),
                cwd: text("cwd").into(),
                updated_at: thread["updatedAt"].as_i64().unwrap_or_default(),
                parent: thread["parentThreadId"].as_str().map(str::to_owned),
                is_archived: asked_before.is_archived,
            };
            if found.id != open && !found.id.is_empty() {
                self.found.push(found);
            }
        }
        self.answered = Some(self.query.trim().to_owned());
        self.at = self.at.min(self.shown().len().saturating_sub(1));
        let cursor = answer["nextCursor"].as_str().map(str::to_owned);
        self.is_more |= cursor.is_some() && self.found.len() >= MOST;
        let next = match cursor.filter(|_| self.found.len() < MOST) {
            Some(cursor) => Some(asked(&asked_before.query, asked_before.is_archived, Some(cursor))),
            None if !asked_before.is_archived => Some(asked(&asked_before.query, true, None)),
            None => None,
        };
        self.is_asking = next.is_some();
        next
    }

    /// The question could not be answered.
    pub fn fail(&mut self, why: &str) {
        self.is_asking = false;
        self.answered = Some(self.query.trim().to_owned());
        self.told = Some(one_line(&printable(why)));
    }

    /// Whether every list has come and none has a thread.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.is_asking && self.query.is_empty() && self.found.is_empty()
    }

    fn is_wanted(&self, thread: &Found) -> bool {
        self.is_here(thread)
            && (self.has_archived || !thread.is_archived)
            && (self.has_children || thread.parent.is_none())
    }

    fn is_here(&self, thread: &Found) -> bool {
        self.is_everywhere || self.folder.as_ref().is_none_or(|folder| thread.cwd == *folder)
    }

    /// The threads that the filters leave, children below their roots, with their depth.
    fn shown(&self) -> Vec<(&Found, usize)> {
        let wanted: Vec<&Found> = self.found.iter().filter(|thread| self.is_wanted(thread)).collect();
        let mut below: std::collections::HashMap<&str, Vec<&Found>> = std::collections::HashMap::new();
        let ids: std::collections::HashSet<&str> = wanted.iter().map(|thread| thread.id.as_str()).collect();
        let mut roots = Vec::new();
        for thread in &wanted {
            match thread.parent.as_deref().filter(|parent| ids.contains(parent) && *parent != thread.id) {
                Some(parent) => below.entry(parent).or_default().push(thread),
                None => roots.push(*thread),
            }
        }
        let mut shown = Vec::with_capacity(wanted.len());
        let mut open: Vec<(&Found, usize)> = roots.into_iter().rev().map(|root| (root, 0)).collect();
        while let Some((thread, depth)) = open.pop() {
            shown.push((thread, depth));
            let children = below.remove(thread.id.as_str()).unwrap_or_default();
            open.extend(children.into_iter().rev().map(|child| (child, depth + 1)));
        }
        shown
    }

    /// The threads that the filters hide.
    fn hidden(&self) -> String {
        let count = |is: &dyn Fn(&Found) -> bool| self.found.iter().filter(|thread| is(thread)).count();
        let mut parts = Vec::new();
        let mut add = |count: usize, what: &str| {
            if count > 0 {
                parts.push(format!("{count} {what}"));
            }
        };
        add(count(&|thread| !self.is_here(thread)), "in other folders");
        let here = |thread: &Found| self.is_here(thread);
        add(count(&|thread| here(thread) && !self.has_archived && thread.is_archived), "archived");
        let is_kept = |thread: &Found| here(thread) && (self.has_archived || !thread.is_archived);
        add(count(&|thread| is_kept(thread) && !self.has_children && thread.parent.is_some()), "agents");
        let more = if self.is_more { ", and more than can be listed" } else { "" };
        if parts.is_empty() && more.is_empty() {
            return String::new();
        }
        format!("hidden: {}{more}", if parts.is_empty() { "none".to_owned() } else { parts.join(", ") })
    }

    fn selected(&self) -> Option<String> {
        self.shown().get(self.at).map(|(thread, _)| thread.id.clone())
    }

    pub fn press(&mut self, key: &Key) -> Picked {
        if let Some(name) = &mut self.naming {
            match key {
                Key::Enter => {
                    let name = self.naming.take().unwrap_or_default().trim().to_owned();
                    let id = self.selected().filter(|_| !name.is_empty());
                    return id.map_or(Picked::Nothing, |id| Picked::Name(id, name));
                }
                Key::Esc | Key::Ctrl('c') => self.naming = None,
                key => drop(query::edit(name, key)),
            }
            return Picked::Nothing;
        }
        self.told = None;
        let was_deleting = std::mem::take(&mut self.is_deleting);
        match key {
            Key::Enter => {
                let is_fork = self.is_fork;
                return self
                    .selected()
                    .map_or(Picked::Nothing, |id| if is_fork { Picked::Fork(id) } else { Picked::Open(id) });
            }
            Key::Ctrl('f') => return self.selected().map_or(Picked::Nothing, Picked::Fork),
            Key::Ctrl('x') if was_deleting => return self.selected().map_or(Picked::Nothing, Picked::Delete),
            Key::Ctrl('x') => self.is_deleting = self.selected().is_some(),
            // The name that it has is changed, not typed again.
            Key::Ctrl('n') => self.naming = self.shown().get(self.at).map(|(thread, _)| thread.name.clone()),
            Key::Ctrl('e') => {
                let chosen = self.shown().get(self.at).map(|(thread, _)| (thread.id.clone(), !thread.is_archived));
                return chosen.map_or(Picked::Nothing, |(id, is_archived)| Picked::Archive(id, is_archived));
            }
            Key::Esc | Key::Ctrl('c' | 'd') => return Picked::Cancelled,
            Key::Char('\t') if self.folder.is_some() => self.filter(|threads| threads.is_everywhere ^= true),
            Key::Ctrl('a') => self.filter(|threads| threads.has_archived ^= true),
            Key::Ctrl('t') => self.filter(|threads| threads.has_children ^= true),
            key if query::edit(&mut self.query, key) => self.at = 0,
            key => self.at = selection::moved(self.at, self.shown().len(), key).unwrap_or(self.at),
        }
        Picked::Nothing
    }

    fn filter(&mut self, change: impl FnOnce(&mut Self)) {
        change(self);
        self.at = 0;
    }

    pub fn scroll(&mut self, by: isize) {
        self.at = self.at.saturating_add_signed(by).min(self.shown().len().saturating_sub(1));
    }

    /// Its rows: a title, the threads around the selected one, what is hidden, the query, and the keys.
    #[must_use]
    pub fn rows(&self, (width, height): (usize, usize)) -> Vec<Row> {
        let shown = self.shown();
        let mut title = vec![if self.is_fork { "Fork a thread" } else { "Threads" }.to_owned()];
        title.push(if self.is_everywhere { "all folders" } else { "this folder" }.to_owned());
        title.extend(self.has_archived.then(|| "with archived".to_owned()));
        title.extend(self.has_children.then(|| "with agents".to_owned()));
        title.push(shown.len().to_string());
        title.extend((self.is_asking && self.answered.is_none()).then(|| "searching".to_owned()));
        let mut rows = vec![vec![Span::new(Style::Bar, format!(" {} ", title.join(" · ")))]];
        let mut keys = hint_rows(&self.keys(), width);
        keys.truncate((height / 4).clamp(1, 3));
        let room = height.saturating_sub(3 + keys.len()).max(1);
        let first = selection::first_in_view(self.at, shown.len(), room);
        for (place, (thread, depth)) in shown.iter().enumerate().skip(first).take(room) {
            rows.push(self.row(thread, *depth, place == self.at, width));
        }
        if shown.is_empty() && !self.is_asking {
            rows.push(vec![Span::new(Style::Dim, format!("  {}", self.nothing()))]);
        }
        rows.resize(room + 1, Row::new());
        rows.push(vec![Span::new(Style::Dim, self.told.clone().unwrap_or_else(|| self.hidden()))]);
        rows.push(match &self.naming {
            Some(name) => query::row("New name: ", name),
            None if self.query.is_empty() => {
                vec![Span::new(Style::Bold, "> "), Span::new(Style::Dim, "Type to search")]
            }
            None => query::row("> ", &self.query),
        });
        rows.extend(keys);
        rows
    }

    /// The reason why no thread is listed.
    fn nothing(&self) -> &'static str {
        match self.query.is_empty() {
            true if self.found.is_empty() => "No threads yet.",
            true => "No threads here. Those that are hidden are counted below.",
            false => "No thread matches.",
        }
    }

    fn keys(&self) -> String {
        if self.naming.is_some() {
            return "Enter save · Esc cancel".to_owned();
        }
        if self.is_deleting {
            return "Press Ctrl-X again to delete this thread for good".to_owned();
        }
        let enter = if self.is_fork { "Enter fork" } else { "Enter open" };
        let folders = match (self.folder.is_some(), self.is_everywhere) {
            (false, _) => "",
            (true, true) => " · Tab this folder only",
            (true, false) => " · Tab all folders",
        };
        let archived = if self.has_archived { "hide" } else { "show" };
        let agents = if self.has_children { "hide" } else { "show" };
        let is_archived = self.shown().get(self.at).is_some_and(|(thread, _)| thread.is_archived);
        let archive = if is_archived { "restore" } else { "archive" };
        format!(
            "{enter} · Esc close{folders} · Ctrl-F fork · Ctrl-N rename · Ctrl-E {archive} · Ctrl-X delete \
             · Ctrl-A {archived} archived · Ctrl-T {agents} agents"
        )
    }

    fn row(&self, thread: &Found, depth: usize, is_selected: bool, width: usize) -> Row {
        let style = if is_selected { Style::Bold } else { Style::Plain };
        let mut row = vec![
            Span::new(style, if is_selected { "› " } else { "  " }),
            Span::new(Style::Dim, format!("{}  ", written(thread.updated_at))),
            Span::new(style, format!("{}{}", "  ".repeat(depth.min(8)), if depth > 0 { "└ " } else { "" })),
            Span::new(style, if thread.title.is_empty() { "(no message)" } else { thread.title.as_str() }),
        ];
        if thread.is_archived {
            row.push(Span::new(Style::Yellow, "  archived"));
        }
        if !thread.snippet.is_empty() && thread.snippet != thread.title {
            row.push(Span::new(Style::Dim, format!("  {}", thread.snippet)));
        } else if self.is_everywhere {
            row.push(Span::new(Style::Dim, format!("  {}", printable(&thread.cwd.to_string_lossy()))));
        }
        shortened(row, width)
    }
}

/// The local time of a thread's last change.
#[must_use]
pub fn written(seconds: i64) -> String {
    let time = chrono::DateTime::from_timestamp(seconds, 0).unwrap_or_default();
    time.with_timezone(&chrono::Local).format("%Y-%m-%d %H:%M").to_string()
}

fn asked(query: &str, is_archived: bool, cursor: Option<String>) -> Asked {
    let mut params = json!({"limit": PAGE, "archived": is_archived, "cursor": cursor, "sourceKinds": KINDS});
    let method = if query.is_empty() {
        params["modelProviders"] = json!([]);
        params["sortKey"] = json!("updated_at");
        "thread/list"
    } else {
        params["searchTerm"] = json!(query);
        "thread/search"
    };
    Asked { query: query.to_owned(), is_archived, cursor, method, params }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(threads: &[(&str, &str, Option<&str>)]) -> Value {
        let data: Vec<Value> = threads
            .iter()
            .map(|(id, cwd, parent)| json!({"id": id, "name": id, "cwd": cwd, "parentThreadId": parent}))
            .collect();
        json!({"data": data, "nextCursor": null})
    }

    fn text(threads: &Threads) -> String {
        let line = |row: &Row| row.iter().map(|span| span.text.as_str()).collect::<String>() + "\n";
        threads.rows((100, 12)).iter().map(line).collect()
    }

    #[test]
    fn what_filters_hide_is_counted_and_children_are_below_their_roots() {
        let mut threads = Threads::new(false, Some("/w".into()), false);
        let first = threads.question().expect("a list");
        assert_eq!((first.method, threads.question()), ("thread/list", None));
        let list = answer(&[("a", "/w", None), ("c", "/w", Some("a")), ("b", "/v", None)]);
        let second = threads.take(&first, &list, "open").expect("archived ones are asked for too");
        assert_eq!(second.params["archived"], true);
        assert_eq!(threads.take(&second, &answer(&[("d", "/w", None)]), "open"), None);
        assert!(text(&threads).contains("hidden: 1 in other folders, 1 archived, 1 agents"), "{}", text(&threads));
        threads.press(&Key::Ctrl('t'));
        threads.press(&Key::Char('\t'));
        threads.press(&Key::Ctrl('a'));
        let all = text(&threads);
        assert!(all.contains("└ c") && !all.contains("hidden") && all.contains("archived"), "{all}");
        let (a, c) = (all.find("  a  /w"), all.find("└ c"));
        assert!(a < c, "{all}");
    }

    #[test]
    fn an_answer_to_an_earlier_query_changes_nothing() {
        let mut threads = Threads::new(false, None, true);
        let first = threads.question().expect("a list");
        threads.press(&Key::Char('x'));
        assert_eq!(threads.question(), None, "one is on its way");
        let next = threads.take(&first, &answer(&[("a", "/w", None)]), "").expect("the search");
        assert_eq!((next.method, &next.params["searchTerm"]), ("thread/search", &json!("x")));
        assert!(!text(&threads).contains("› "), "{}", text(&threads));
        let found =
            json!({"data": [{"thread": {"id": "b", "preview": "hello"}, "snippet": "an x"}], "nextCursor": null});
        threads.take(&next, &found, "");
        assert!(text(&threads).contains("hello  an x"), "{}", text(&threads));
        assert_eq!(threads.press(&Key::Ctrl('x')), Picked::Nothing);
        assert!(text(&threads).contains("again to delete"));
        assert_eq!(threads.press(&Key::Ctrl('x')), Picked::Delete("b".to_owned()));
        threads.press(&Key::Ctrl('n'));
        threads.press(&Key::Char('N'));
        assert_eq!(threads.press(&Key::Enter), Picked::Name("b".to_owned(), "N".to_owned()));
        assert_eq!(threads.press(&Key::Ctrl('f')), Picked::Fork("b".to_owned()));
    }

    #[test]
    fn a_thread_is_archived_and_restored_and_its_name_is_changed() {
        let mut threads = Threads::new(false, Some("/w".into()), false);
        let first = threads.question().expect("a list");
        assert!(!text(&threads).contains("No threads"), "nothing is known yet");
        let second = threads.take(&first, &answer(&[("a", "/w", None)]), "").expect("archived ones");
        threads.take(&second, &answer(&[("b", "/w", None)]), "");
        assert_eq!(threads.press(&Key::Ctrl('e')), Picked::Archive("a".to_owned(), true));
        threads.press(&Key::Ctrl('a'));
        threads.press(&Key::Down);
        assert!(
            text(&threads).contains("Ctrl-E restore") && text(&threads).contains("Esc close"),
            "{}",
            text(&threads)
        );
        assert_eq!(threads.press(&Key::Ctrl('e')), Picked::Archive("b".to_owned(), false));
        threads.press(&Key::Ctrl('n'));
        assert!(text(&threads).contains("New name: b▏\nEnter save · Esc cancel"), "{}", text(&threads));
        threads.press(&Key::Char('c'));
        assert_eq!(threads.press(&Key::Enter), Picked::Name("b".to_owned(), "bc".to_owned()));
        let mut elsewhere = Threads::new(false, Some("/other".into()), false);
        let asked = elsewhere.question().expect("a list");
        let archived = elsewhere.take(&asked, &answer(&[("a", "/w", None)]), "").expect("archived ones");
        elsewhere.take(&archived, &answer(&[]), "");
        let shown = text(&elsewhere);
        assert!(shown.contains("No threads here.") && shown.contains("hidden: 1 in other folders"), "{shown}");
    }
}
