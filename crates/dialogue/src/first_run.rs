//! The first run: there is no key and no configured provider, so the person chooses how to start.
//!
//! Invariant: a key is never shown.

use crate::ask::{ChatEnd, Dialogue};
use crate::key::Key;
use crate::question::choice;
use crate::screen::Footer;
use crate::{Row, Span, Style};

const LONGEST_KEY: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    Key(String),
    Local(Server),
    /// Look for local servers again.
    SearchAgain,
    Offline,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub id: String,
    pub name: String,
    pub model: String,
}

impl Server {
    #[must_use]
    pub fn describe(&self) -> String {
        format!("{} on this machine (model {})", self.name, self.model)
    }
}

#[derive(Debug, Default)]
pub struct FirstRun {
    servers: Vec<Server>,
    key: Option<String>,
}

impl FirstRun {
    #[must_use]
    pub fn new(servers: Vec<Server>) -> Self {
        Self { servers, key: None }
    }

    #[must_use]
    pub fn question(&self) -> Vec<Span> {
        let mut shown =
            vec![Span::new(Style::Yellow, "Welcome to Codex. There is no API key yet. How do you want to start?\n")];
        let mut offer = |key: &str, what: &str| {
            shown.push(Span::new(Style::Gutter, "  "));
            shown.extend(choice(key, what));
            shown.push(Span::new(Style::Plain, "\n"));
        };
        offer("k", "enter an OpenAI API key");
        for (key, server) in LETTERS.iter().zip(&self.servers) {
            offer(key, &format!("use {}", server.describe()));
        }
        if self.servers.is_empty() {
            offer("l", "use a local server (none answers now: start Ollama or LM Studio, then press l)");
        }
        offer("o", "try it offline with a built-in model, for this run only");
        shown.push(Span::new(
            Style::Dim,
            "Or quit and run `codex login` for a ChatGPT account, or set OPENAI_API_KEY.\n",
        ));
        shown
    }
}

/// The keys that choose a server: one for each that the program knows.
pub const LETTERS: [&str; 4] = ["l", "m", "n", "p"];

impl Dialogue for FirstRun {
    type Answer = Choice;

    fn footer(&self) -> Footer {
        let status = match &self.key {
            Some(key) => {
                let length = key.chars().count();
                let text = format!("API key (not shown, {length} characters), Enter to store it, Esc to go back: ");
                vec![Span::new(Style::Bold, text)]
            }
            None => self.choices(),
        };
        Footer { status, is_question: self.key.as_ref().is_none_or(String::is_empty), ..Footer::default() }
    }

    fn press(&mut self, key: &Key) -> Option<Result<Choice, ChatEnd>> {
        if self.key.is_some() {
            return self.type_key(key).map(Ok);
        }
        match key {
            Key::Char('k' | 'K') => self.key = Some(String::new()),
            Key::Char('l' | 'L') if self.servers.is_empty() => return Some(Ok(Choice::SearchAgain)),
            Key::Char('o' | 'O') => return Some(Ok(Choice::Offline)),
            Key::Esc | Key::Char('q' | 'Q') | Key::Ctrl('c' | 'd') => return Some(Err(ChatEnd::ByChoice)),
            Key::Char(letter) => {
                let letter = letter.to_ascii_lowercase().to_string();
                let place = LETTERS.iter().position(|known| *known == letter)?;
                return self.servers.get(place).cloned().map(|server| Ok(Choice::Local(server)));
            }
            _ => {}
        }
        None
    }
}

impl FirstRun {
    fn choices(&self) -> Row {
        let mut row = Vec::from(choice("k", "key  "));
        match self.servers.as_slice() {
            [_, _, ..] => row.extend(
                LETTERS.iter().zip(&self.servers).flat_map(|(key, server)| choice(key, &format!("{}  ", server.name))),
            ),
            _ => row.extend(choice("l", "local server  ")),
        }
        row.extend(choice("o", "offline  "));
        row.extend(choice("esc", "leave"));
        row
    }

    fn type_key(&mut self, pressed: &Key) -> Option<Choice> {
        let key = self.key.get_or_insert_default();
        match pressed {
            Key::Enter if !key.trim().is_empty() => return self.key.take().map(Choice::Key),
            Key::Char(c) if key.len() < LONGEST_KEY => key.push(*c),
            Key::Paste(text) if key.len() + text.len() <= LONGEST_KEY => key.push_str(text.trim()),
            Key::Backspace => key.truncate(key.char_indices().next_back().map_or(0, |(at, _)| at)),
            Key::Ctrl('u') => key.clear(),
            Key::Esc | Key::Ctrl('c' | 'd') => self.key = None,
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str) -> Server {
        Server { id: "ollama".to_owned(), name: name.to_owned(), model: "m".to_owned() }
    }

    fn text(spans: &[Span]) -> String {
        spans.iter().map(|span| span.text.as_str()).collect()
    }

    #[test]
    fn a_key_is_typed_and_not_shown() {
        let mut asked = FirstRun::default();
        assert_eq!(asked.press(&Key::Char('x')), None);
        assert_eq!(text(&asked.footer().status), "[k] key  [l] local server  [o] offline  [esc] leave");
        asked.press(&Key::Char('k'));
        assert_eq!(asked.press(&Key::Enter), None, "there is no key yet");
        for key in [Key::Paste(" sk-secret\r".to_owned()), Key::Char('1'), Key::Char('2'), Key::Backspace] {
            assert_eq!(asked.press(&key), None);
            assert!(!text(&asked.footer().status).contains("secret"), "{:?}", asked.footer());
        }
        assert_eq!(asked.press(&Key::Enter), Some(Ok(Choice::Key("sk-secret1".to_owned()))));
        asked.press(&Key::Char('k'));
        assert_eq!(asked.press(&Key::Esc), None, "back to the choices");
        assert_eq!(asked.press(&Key::Esc), Some(Err(ChatEnd::ByChoice)));
    }

    #[test]
    fn servers_are_offered_as_they_answer() {
        let mut asked = FirstRun::default();
        assert_eq!(asked.press(&Key::Char('l')), Some(Ok(Choice::SearchAgain)));
        assert_eq!(asked.press(&Key::Char('m')), None);
        asked.servers = vec![server("Ollama"), server("LM Studio")];
        assert_eq!(text(&asked.footer().status), "[k] key  [l] Ollama  [m] LM Studio  [o] offline  [esc] leave");
        assert!(text(&asked.question()).contains("[m] use LM Studio on this machine (model m)\n"));
        assert_eq!(asked.press(&Key::Char('m')), Some(Ok(Choice::Local(server("LM Studio")))));
        assert_eq!(asked.press(&Key::Char('n')), None);
        asked.servers.extend([server("llama.cpp"), server("vLLM")]);
        assert!(text(&asked.footer().status).contains("[l] Ollama  [m] LM Studio  [n] llama.cpp  [p] vLLM  [o]"));
        assert_eq!(asked.press(&Key::Char('P')), Some(Ok(Choice::Local(server("vLLM")))));
        assert_eq!(asked.press(&Key::Char('o')), Some(Ok(Choice::Offline)));
    }
}
