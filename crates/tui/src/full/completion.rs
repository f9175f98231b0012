//! Lists for the word before the cursor: commands and prompts at `/`, skills at `$`, files at `@`.

use std::path::PathBuf;

use codex_terminal::prompt_text;
use serde_json::{Value, json};

use super::app::App;
use super::calls::Pending;
use crate::{Style, slash};

/// The id of the search for files, and the most files in a list.
const SEARCH: &str = "codex-chat";
const MOST_FILES: usize = 50;

/// The start of the names of saved prompts.
const PROMPTS: &str = "/prompts:";

/// A saved prompt.
#[derive(Debug)]
struct Prompt {
    name: String,
    help: String,
    content: String,
}

/// The names that can be completed.
#[derive(Debug, Default)]
pub(super) struct Names {
    prompts: Vec<Prompt>,
    /// The skills with what they are for, and with their files.
    skills: Vec<(String, String)>,
    pub(super) skill_files: Vec<(String, PathBuf)>,
    search: FileSearch,
}

/// The search for files while somebody types.
#[derive(Debug, Default, PartialEq, Eq)]
enum FileSearch {
    #[default]
    Closed,
    /// It was asked for; the query then is the word before the cursor.
    Opening,
    Open,
    /// The server has no such search, so each word is asked for alone.
    Absent,
}

impl App {
    /// The word before the cursor has changed: offers completions.
    pub(super) fn complete(&mut self) {
        let word = self.composer.wanted();
        if !word.as_ref().is_some_and(|word| word.starts_with('@') && word.len() > 1) {
            self.end_search();
        }
        let Some(word) = word else { return self.composer.offer(Vec::new()) };
        if word.starts_with('/') && self.composer.editor.raw() == word {
            return self.complete_command(&word);
        }
        if let Some(start) = word.strip_prefix('$') {
            return self.complete_skill(start);
        }
        match word.strip_prefix('@') {
            Some("") => {
                self.composer.offer(Vec::new());
                self.hint = Some("Type a part of the name of a file".to_owned());
            }
            Some(name) => self.search_files(name, &word),
            None => self.composer.offer(Vec::new()),
        }
    }

    fn complete_command(&mut self, word: &str) {
        if word == "/" {
            let params = json!({"threadId": self.thread_id()});
            self.call("customPrompt/list", params, Pending::Prompts);
        }
        let saved = self.names.prompts.iter().map(|prompt| (format!("{PROMPTS}{} ", prompt.name), prompt.help.clone()));
        // A prompt is also found by its own name.
        let short = word.trim_start_matches('/');
        let fits = |(full, _): &(String, String)| {
            full.starts_with(word) || full.strip_prefix(PROMPTS).is_some_and(|own| own.starts_with(short))
        };
        let entries = slash::completions(word).into_iter().chain(saved.filter(fits)).collect();
        self.composer.offer(entries);
    }

    fn complete_skill(&mut self, start: &str) {
        if start.is_empty() {
            let cwd = self.transcript.cwd.clone();
            self.call("skills/list", json!({"cwds": [cwd]}), Pending::Skills);
        }
        let fits = self.names.skills.iter().filter(|(name, _)| name.starts_with(start));
        let entries = fits.map(|(name, help)| (format!("${name} "), help.clone())).collect();
        self.composer.offer(entries);
    }

    fn search_files(&mut self, name: &str, word: &str) {
        let roots = json!([self.transcript.cwd]);
        match self.names.search {
            FileSearch::Closed => {
                self.names.search = FileSearch::Opening;
                let params = json!({"sessionId": SEARCH, "roots": roots});
                self.call("fuzzyFileSearch/sessionStart", params, Pending::SearchOpened);
            }
            FileSearch::Opening => {}
            FileSearch::Open => {
                let params = json!({"sessionId": SEARCH, "query": name});
                self.call("fuzzyFileSearch/sessionUpdate", params, Pending::Nothing);
            }
            FileSearch::Absent => {
                let params = json!({"query": name, "roots": roots, "cancellationToken": SEARCH});
                self.call("fuzzyFileSearch", params, Pending::Files(word.to_owned()));
            }
        }
    }

    fn end_search(&mut self) {
        if self.names.search == FileSearch::Open {
            self.names.search = FileSearch::Closed;
            self.call("fuzzyFileSearch/sessionStop", json!({"sessionId": SEARCH}), Pending::Nothing);
        }
    }

    /// The search is there, or the server has none.
    pub(super) fn search_opened(&mut self, is_there: bool) {
        self.names.search = if is_there { FileSearch::Open } else { FileSearch::Absent };
        self.complete();
    }

    /// Another thread may be with another server.
    pub(super) fn forget_names(&mut self) {
        self.names = Names::default();
    }

    /// The files that a search has found so far.
    pub(super) fn take_found(&mut self, params: &Value) {
        if params["sessionId"] == SEARCH {
            let word = format!("@{}", params["query"].as_str().unwrap_or_default());
            self.take_files(&word, params);
        }
    }

    pub(super) fn take_files(&mut self, word: &str, answer: &Value) {
        if self.composer.wanted().as_deref() != Some(word) {
            return;
        }
        let files = answer["files"].as_array().into_iter().flatten();
        let path = |file: &Value| Some((format!("@{} ", file["path"].as_str()?), String::new()));
        self.composer.offer(files.filter_map(path).take(MOST_FILES).collect());
    }

    pub(super) fn take_prompts(&mut self, answer: &Value) {
        let text = |prompt: &Value, name: &str| prompt[name].as_str().unwrap_or_default().to_owned();
        let prompt = |prompt: &Value| {
            let help = format!("{} {}", text(prompt, "argumentHint"), text(prompt, "description"));
            Prompt { name: text(prompt, "name"), help: help.trim().to_owned(), content: text(prompt, "content") }
        };
        self.names.prompts = answer["data"].as_array().into_iter().flatten().map(prompt).collect();
        self.complete();
    }

    pub(super) fn take_skills(&mut self, answer: &Value) {
        let folders = answer["data"].as_array().into_iter().flatten();
        let skills: Vec<&Value> = folders
            .flat_map(|folder| folder["skills"].as_array().into_iter().flatten())
            .filter(|skill| skill["enabled"] != false)
            .collect();
        let text = |skill: &Value, name: &str| skill[name].as_str().unwrap_or_default().to_owned();
        self.names.skills = skills.iter().map(|skill| (text(skill, "name"), text(skill, "description"))).collect();
        if skills.is_empty() && self.composer.wanted().as_deref() == Some("$") {
            self.hint = Some("There are no skills".to_owned());
        }
        self.names.skill_files = skills.iter().map(|skill| (text(skill, "name"), text(skill, "path").into())).collect();
        self.complete();
    }

    /// The text of a saved prompt that a line calls. `None` if it calls none; a mistake is told.
    pub(super) fn saved_prompt(&mut self, line: &str) -> Option<Result<String, ()>> {
        let call = line.trim().strip_prefix(PROMPTS)?;
        let (name, arguments) = call.split_once(char::is_whitespace).unwrap_or((call, ""));
        let Some(prompt) = self.names.prompts.iter().find(|prompt| prompt.name == name) else {
            let text = format!("There is no prompt `{name}`. Type / for a list");
            self.remark(Style::Yellow, &text);
            return Some(Err(()));
        };
        Some(prompt_text::expand(&prompt.content, arguments).map_err(|why| self.remark(Style::Yellow, &why)))
    }
}
