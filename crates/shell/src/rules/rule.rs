//! A single rule and its matching.

use std::path::PathBuf;

use codex_wire::command_line::join;

use super::syntax::{Call, Located, Place, SyntaxError, Value};
use super::{Decision, Scope};
use crate::plain;
use crate::script::Word;
use crate::understand::base_name;

/// The trailing comment of a rule for sandboxed runs only. Other programs that read the file ignore it.
pub(super) const CONFINED: &str = "codex: in the sandbox only";

/// A rule about commands with a given prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    /// For each word of the prefix, the accepted alternatives.
    pattern: Vec<Vec<String>>,
    pub(super) decision: Decision,
    /// The runs that it allows.
    pub(super) scope: Scope,
    pub(super) justification: Option<String>,
    /// The rule as written.
    pub(super) text: String,
    pub(super) file: PathBuf,
    pub(super) line: usize,
}

/// The match of a rule with words that may be known only at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    No,
    /// Unknown words could make it match.
    Perhaps,
    Yes,
}

impl Rule {
    /// Builds a rule from a call of `prefix_rule`, and checks it against its own examples.
    pub(super) fn from_call(call: Call, file: PathBuf) -> Result<Self, SyntaxError> {
        let mut pattern = None;
        let mut decision = Decision::Allow;
        let mut justification = None;
        let mut examples = Vec::new();
        for (name, located) in call.arguments {
            match name.as_str() {
                "pattern" => pattern = Some(read_pattern(located)?),
                "decision" => decision = read_decision(&located)?,
                "justification" => justification = Some(read_text(located)?),
                "match" => examples.push((true, located)),
                "not_match" => examples.push((false, located)),
                _ => {
                    let problem = format!("`prefix_rule` has no argument `{name}`");
                    return Err(SyntaxError::new(located.place, problem));
                }
            }
        }
        let Some(pattern) = pattern else {
            return Err(SyntaxError::new(call.place, "`prefix_rule` needs a `pattern`"));
        };
        let scope = if call.comment.as_deref() == Some(CONFINED) { Scope::Confined } else { Scope::Anywhere };
        let rule = Self { pattern, decision, scope, justification, text: call.text, file, line: call.place.line };
        for (wanted, examples) in examples {
            rule.check_examples(wanted, examples)?;
        }
        Ok(rule)
    }

    fn check_examples(&self, wanted: bool, examples: Located) -> Result<(), SyntaxError> {
        for example in read_list(examples)? {
            let place = example.place;
            let words = read_example(example)?;
            if self.matches(&words) != wanted {
                let but = if wanted { "does not match its own example" } else { "matches what it should not:" };
                return Err(SyntaxError::new(place, format_args!("the rule {but} `{}`", join(&words))));
            }
        }
        Ok(())
    }

    /// Whether a command starts with the words of the rule.
    pub(super) fn matches(&self, command: &[String]) -> bool {
        command.len() >= self.pattern.len() && self.pattern.iter().zip(command).all(|(may, word)| may.contains(word))
    }

    /// Compares with words that may be unknown; the folder of the program is ignored.
    pub(super) fn fit(&self, command: &[Word]) -> Fit {
        let mut fit = Fit::Yes;
        for (at, may) in self.pattern.iter().enumerate() {
            match command.get(at) {
                None => return Fit::No,
                Some(Word::Literal(word)) => {
                    let name = if at == 0 { base_name(word) } else { word };
                    if !may.iter().any(|may| may == word || may == name) {
                        return Fit::No;
                    }
                }
                Some(Word::Pattern(_) | Word::Unknown) => fit = Fit::Perhaps,
            }
        }
        fit
    }

    /// The words of a command that the rule covers.
    pub(super) fn prefix_of<'a>(&self, command: &'a [String]) -> &'a [String] {
        command.get(..self.pattern.len()).unwrap_or(command)
    }
}

fn read_text(located: Located) -> Result<String, SyntaxError> {
    match located.value {
        Value::Text(text) => Ok(text),
        other => Err(SyntaxError::new(located.place, format_args!("expected a string, found {}", other.kind()))),
    }
}

fn read_list(located: Located) -> Result<Vec<Located>, SyntaxError> {
    match located.value {
        Value::List(values) => Ok(values),
        other => Err(SyntaxError::new(located.place, format_args!("expected a list, found {}", other.kind()))),
    }
}

fn read_decision(located: &Located) -> Result<Decision, SyntaxError> {
    let unknown = || SyntaxError::new(located.place, "a decision is \"allow\", \"prompt\" or \"forbidden\"");
    match &located.value {
        Value::Text(text) => text.parse().map_err(|()| unknown()),
        Value::List(_) | Value::Word(_) => Err(unknown()),
    }
}

fn read_pattern(located: Located) -> Result<Vec<Vec<String>>, SyntaxError> {
    let place = located.place;
    let mut pattern = Vec::new();
    for element in read_list(located)? {
        let place = element.place;
        let alternatives = match element.value {
            Value::Text(text) => vec![text],
            Value::List(values) => values.into_iter().map(read_text).collect::<Result<_, _>>()?,
            Value::Word(_) => return Err(SyntaxError::new(place, "expected a string or a list of strings")),
        };
        if alternatives.is_empty() {
            return Err(SyntaxError::new(place, "a list of alternatives cannot be empty"));
        }
        pattern.push(alternatives);
    }
    if pattern.is_empty() { Err(empty_pattern(place)) } else { Ok(pattern) }
}

fn empty_pattern(place: Place) -> SyntaxError {
    SyntaxError::new(place, "a pattern cannot be empty: it would match every command")
}

/// Parses an example: a list of words, or a string with one plain command.
fn read_example(located: Located) -> Result<Vec<String>, SyntaxError> {
    let place = located.place;
    match located.value {
        Value::List(values) => values.into_iter().map(read_text).collect(),
        Value::Text(text) => match plain::words(&text) {
            Ok(words) => Ok(words),
            Err(reason) => Err(SyntaxError::new(place, format_args!("the example is not one plain command: {reason}"))),
        },
        Value::Word(_) => Err(SyntaxError::new(place, "an example is a string or a list of strings")),
    }
}
