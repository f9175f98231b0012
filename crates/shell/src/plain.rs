//! The subset of shell syntax that means the same in sh, bash and zsh: literal words joined by `&&`, `||`, `|`, `;` and
//! line breaks.
//!
//! Invariant: anything that a shell could expand, split or treat as syntax is rejected, so the words parsed here are
//! the words that run.

use std::ops::Range;

use crate::limits;
use crate::reason::{Reason, ReasonKind};
use crate::understand::is_among;

/// A literal word and its position in the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlainWord {
    pub(crate) text: String,
    pub(crate) span: Range<usize>,
}

/// A command of literal words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlainCommand {
    pub(crate) words: Vec<PlainWord>,
    /// Whether it reads the output of the previous command.
    pub(crate) piped: bool,
}

/// Words that open, close or change commands in one of the shells when they come first.
const KEYWORDS: &str = "! - [[ builtin case command coproc declare do done elif else end esac exec export fi float for foreach \
    function if in integer let local nocorrect noglob readonly repeat select then time typeset until while";

/// Parses a script as commands of literal words.
pub(crate) fn commands(script: &str) -> Result<Vec<PlainCommand>, Reason> {
    if script.len() > limits::SCRIPT_BYTES {
        return Err(Reason::new(ReasonKind::TooLong));
    }
    if let Some(at) = script.find(|c: char| c.is_control() && c != '\n' && c != '\t') {
        return Err(Reason::at(ReasonKind::Control, script, at));
    }
    let mut reader = Reader { script, at: 0, commands: Vec::new(), words: Vec::new(), piped: false, total: 0 };
    reader.read()?;
    if reader.commands.is_empty() { Err(Reason::new(ReasonKind::Nothing)) } else { Ok(reader.commands) }
}

/// Parses a text as the words of exactly one command.
pub(crate) fn words(text: &str) -> Result<Vec<String>, Reason> {
    let commands = commands(text)?;
    match <[_; 1]>::try_from(commands) {
        Ok([only]) => Ok(only.words.into_iter().map(|word| word.text).collect()),
        Err(_) => Err(Reason::new(ReasonKind::TooMany)),
    }
}

struct Reader<'a> {
    script: &'a str,
    at: usize,
    commands: Vec<PlainCommand>,
    words: Vec<PlainWord>,
    piped: bool,
    total: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.script.get(self.at..).and_then(|rest| rest.chars().next())
    }

    fn second(&self) -> Option<char> {
        self.script.get(self.at..).and_then(|rest| rest.chars().nth(1))
    }

    fn refuse<T>(&self, what: ReasonKind) -> Result<T, Reason> {
        Err(Reason::at(what, self.script, self.at))
    }

    fn read(&mut self) -> Result<(), Reason> {
        // After `&&`, `||` and `|` a command has to follow; line breaks are allowed in between.
        let mut wanted = false;
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' => self.at += 1,
                '\n' => {
                    wanted &= self.words.is_empty();
                    self.end_command()?;
                    self.at += 1;
                }
                ';' => {
                    if self.words.is_empty() || self.second() == Some(';') {
                        return self.refuse(ReasonKind::Operator);
                    }
                    self.end_command()?;
                    wanted = false;
                    self.at += 1;
                }
                '&' | '|' => {
                    self.operator(c)?;
                    wanted = true;
                }
                _ => self.word()?,
            }
        }
        wanted &= self.words.is_empty();
        self.end_command()?;
        if wanted { self.refuse(ReasonKind::Operator) } else { Ok(()) }
    }

    fn operator(&mut self, c: char) -> Result<(), Reason> {
        let second = self.second();
        let width = match (c, second) {
            ('&', Some('&')) | ('|', Some('|')) => 2,
            ('&', _) => return self.refuse(ReasonKind::Background),
            (_, Some('&')) => return self.refuse(ReasonKind::Redirection),
            _ => 1,
        };
        if self.words.is_empty() {
            return self.refuse(ReasonKind::Operator);
        }
        self.end_command()?;
        self.piped = c == '|' && width == 1;
        self.at += width;
        Ok(())
    }

    fn end_command(&mut self) -> Result<(), Reason> {
        if self.words.is_empty() {
            return Ok(());
        }
        if self.commands.len() >= limits::COMMANDS {
            return self.refuse(ReasonKind::TooMany);
        }
        let (words, piped) = (std::mem::take(&mut self.words), std::mem::take(&mut self.piped));
        self.commands.push(PlainCommand { words, piped });
        Ok(())
    }

    fn word(&mut self) -> Result<(), Reason> {
        let start = self.at;
        let mut text = String::new();
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' => break,
                '\'' => self.single_quoted(&mut text)?,
                '"' => self.double_quoted(&mut text)?,
                '\\' => self.escape(&mut text)?,
                _ => {
                    self.bare(c, start)?;
                    text.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
        self.total += 1;
        if self.total > limits::WORDS {
            return self.refuse(ReasonKind::TooMany);
        }
        if self.words.is_empty() {
            self.check_program(&text, start)?;
        }
        self.words.push(PlainWord { text, span: start..self.at });
        Ok(())
    }

    /// Accepts only unquoted characters that no shell gives a meaning to.
    fn bare(&self, c: char, start: usize) -> Result<(), Reason> {
        let before = self.script.get(start..self.at).and_then(|word| word.chars().next_back());
        match c {
            '0'..='9' | 'A'..='Z' | 'a'..='z' | '_' | '-' | '.' | '/' | ':' | ',' | '+' | '@' | '%' | ']' => Ok(()),
            '=' if self.words.is_empty() => self.refuse(ReasonKind::Assignment),
            // zsh expands a word that starts with `=` to the path of a program.
            '=' if before.is_some() => Ok(()),
            // No shell expands a tilde after a letter or digit, as in `HEAD~1`.
            '~' if before.is_some_and(|before| before.is_ascii_alphanumeric()) => Ok(()),
            '$' | '`' => self.refuse(ReasonKind::Expansion),
            '<' | '>' => self.refuse(ReasonKind::Redirection),
            '(' | ')' => self.refuse(ReasonKind::Group),
            '#' => self.refuse(ReasonKind::Comment),
            '!' => self.refuse(ReasonKind::Keyword),
            _ if c.is_ascii() => self.refuse(ReasonKind::Pattern),
            _ => self.refuse(ReasonKind::NonAscii),
        }
    }

    fn single_quoted(&mut self, text: &mut String) -> Result<(), Reason> {
        let inside = self.script.get(self.at + 1..).unwrap_or("");
        let Some(length) = inside.find('\'') else { return self.refuse(ReasonKind::Open) };
        text.push_str(inside.get(..length).unwrap_or(""));
        self.at += length + 2;
        Ok(())
    }

    fn double_quoted(&mut self, text: &mut String) -> Result<(), Reason> {
        let open = self.at;
        self.at += 1;
        while let Some(c) = self.peek() {
            let next = self.second();
            match c {
                '"' => {
                    self.at += 1;
                    return Ok(());
                }
                '\\' if next == Some('\n') => return self.refuse(ReasonKind::Escape),
                '\\' if matches!(next, Some('$' | '`' | '"' | '\\')) => {
                    text.extend(next);
                    self.at += 2;
                }
                // A dollar sign before the closing quote is literal, as in the pattern "x$".
                '$' if next != Some('"') => return self.refuse(ReasonKind::Expansion),
                '`' => return self.refuse(ReasonKind::Expansion),
                _ => {
                    text.push(c);
                    self.at += c.len_utf8();
                }
            }
        }
        self.at = open;
        self.refuse(ReasonKind::Open)
    }

    /// A backslash before punctuation makes it literal in every shell; elsewhere it only hides something.
    fn escape(&mut self, text: &mut String) -> Result<(), Reason> {
        match self.second() {
            Some(c) if c == ' ' || c.is_ascii_punctuation() => {
                text.push(c);
                self.at += 2;
                Ok(())
            }
            _ => self.refuse(ReasonKind::Escape),
        }
    }

    fn check_program(&self, text: &str, start: usize) -> Result<(), Reason> {
        if is_among(KEYWORDS, text) {
            return Err(Reason::at(ReasonKind::Keyword, self.script, start));
        }
        let odd = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+' | ':' | '@' | ','));
        if text.is_empty() || text.starts_with(['-', '%', '@', ':', ',']) && text != ":" || text.contains(odd) {
            return Err(Reason::at(ReasonKind::Pattern, self.script, start));
        }
        Ok(())
    }
}
