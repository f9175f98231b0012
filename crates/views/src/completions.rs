//! A list of completions for the word before the cursor.

use codex_terminal::key::Key;
use codex_terminal::{Row, Span, Style, one_line, printable, selection};

/// The number of completions in view.
const LIST_ROWS: usize = 8;
/// The widest word of a list next to which other words are aligned.
const MOST_WORD: usize = 40;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completions {
    /// Words with their help.
    pub entries: Vec<(String, String)>,
    /// The word that they complete.
    word: String,
    at: usize,
}

/// The effect of a key on the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Completed {
    Moved,
    Closed,
    Chosen(String),
    /// The key is none of the list.
    Nothing,
}

impl Completions {
    /// A list for a word, if there are entries. More entries for the same word keep the selected one; another word begins
    /// with the best one.
    #[must_use]
    pub fn offered(before: Option<Self>, word: &str, entries: Vec<(String, String)>) -> Option<Self> {
        let before = before.filter(|list| list.word == word);
        let chosen = before.and_then(|list| list.entries.into_iter().nth(list.at)).map(|(entry, _)| entry);
        let at = chosen.and_then(|chosen| entries.iter().position(|(entry, _)| *entry == chosen)).unwrap_or(0);
        (!entries.is_empty()).then_some(Self { entries, word: word.to_owned(), at })
    }

    pub fn press(&mut self, key: &Key) -> Completed {
        let end = self.entries.len().saturating_sub(1);
        match key {
            Key::Up | Key::Ctrl('p') => self.at = self.at.checked_sub(1).unwrap_or(end),
            Key::Down | Key::Ctrl('n') => self.at = if self.at >= end { 0 } else { self.at + 1 },
            Key::Esc => return Completed::Closed,
            Key::Char('\t') | Key::Enter => {
                return self
                    .entries
                    .get(self.at)
                    .map_or(Completed::Nothing, |(word, _)| Completed::Chosen(word.clone()));
            }
            _ => return Completed::Nothing,
        }
        Completed::Moved
    }

    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        let count = self.entries.len();
        let first = selection::first_in_view(self.at, count, LIST_ROWS);
        let shown: Vec<_> = self.entries.iter().enumerate().skip(first).take(LIST_ROWS).collect();
        let widest = shown.iter().map(|(_, (word, _))| word.chars().count()).max().unwrap_or(0).min(MOST_WORD);
        let row = |(at, (word, help)): (usize, &(String, String))| {
            let style = if at == self.at { Style::Selected } else { Style::Plain };
            let (word, help) = (printable(word), printable(help));
            vec![
                Span::new(style, format!(" {:<widest$} ", one_line(&word))),
                Span::new(Style::Dim, format!(" {}", one_line(&help))),
            ]
        };
        let mut rows: Vec<Row> = shown.into_iter().map(row).collect();
        if count > LIST_ROWS {
            rows.push(vec![Span::new(Style::Dim, format!(" {} of {count} · arrows move, Tab completes", self.at + 1))]);
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<(String, String)> {
        words.iter().map(|word| ((*word).to_owned(), String::new())).collect()
    }

    #[test]
    fn the_selection_stays_for_a_word_and_begins_again_for_another() {
        let list = Completions::offered(None, "@a", words(&["@ab", "@ac"])).expect("entries");
        let mut list = Completions::offered(Some(list), "@a", words(&["@ab", "@ac"])).expect("entries");
        assert_eq!(list.press(&Key::Up), Completed::Moved, "it goes around");
        let mut list = Completions::offered(Some(list), "@a", words(&["@aa", "@ab", "@ac"])).expect("entries");
        assert_eq!(list.press(&Key::Enter), Completed::Chosen("@ac".to_owned()), "more files were found");
        let mut list = Completions::offered(Some(list), "@ac", words(&["@acb", "@ac"])).expect("entries");
        assert_eq!(list.press(&Key::Char('\t')), Completed::Chosen("@acb".to_owned()));
        assert_eq!((list.press(&Key::Esc), list.press(&Key::Left)), (Completed::Closed, Completed::Nothing));
        assert_eq!(Completions::offered(Some(list), "@x", Vec::new()), None);
    }
}
