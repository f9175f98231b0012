//! Questions with fields: the schema of an MCP server, or the questions of a model, filled in with keys.
//!
//! Invariant: pure. Labels of a server are escaped like everything that a person decides about, and only values that
//! the schema allows are sent.

mod field;
mod filling;
mod schema;

pub use self::field::{Field, Kind, Wanted};
pub use self::filling::{Filled, Filling};
pub use self::schema::{from_questions, from_schema};

use serde_json::{Map, Value, json};

use crate::key::Key;
use crate::{Row, Span, Style};

/// The effect of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormKey {
    Changed,
    /// All values are there and fit.
    Send,
    Decline,
    /// The key has no meaning here.
    Ignored,
}

/// The form of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerForm {
    /// The content of an elicitation: a value for each field.
    Content,
    /// The answers to the questions of a model: a list of texts for each.
    Answers,
}

#[derive(Debug, Clone)]
pub struct Form {
    fields: Vec<Field>,
    answer: AnswerForm,
    /// The field with the focus; after the last come the two buttons.
    at: usize,
    /// The problem of the field with the focus.
    problem: Option<String>,
}

impl Form {
    #[must_use]
    pub fn new(fields: Vec<Field>, answer: AnswerForm) -> Self {
        Self { fields, answer, at: 0, problem: None }
    }

    /// Handles a key.
    pub fn press(&mut self, key: &Key) -> FormKey {
        self.problem = None;
        let buttons = self.fields.len();
        match key {
            Key::Char('\t') => self.go(1),
            Key::BackTab => self.go(-1),
            Key::Enter if self.at == buttons => return self.send(),
            Key::Enter if self.at > buttons => return FormKey::Decline,
            Key::Enter => self.leave_field(),
            Key::Up if self.fields.get(self.at).is_none_or(Field::takes_no_rows) => self.go(-1),
            Key::Down if self.fields.get(self.at).is_none_or(Field::takes_no_rows) => self.go(1),
            Key::Left | Key::Right if self.at >= buttons => self.go(if *key == Key::Left { -1 } else { 1 }),
            key => {
                let is_taken = self.fields.get_mut(self.at).is_some_and(|field| field.press(key));
                return if is_taken { FormKey::Changed } else { FormKey::Ignored };
            }
        }
        FormKey::Changed
    }

    fn go(&mut self, by: isize) {
        let count = self.fields.len() + 2;
        self.at = (self.at + count).saturating_add_signed(by) % count;
    }

    /// Enter goes on to the next field, unless this one has a problem.
    fn leave_field(&mut self) {
        match self.fields.get(self.at).map(Field::value) {
            Some(Err(problem)) => self.problem = Some(problem),
            Some(Ok(_)) | None => self.go(1),
        }
    }

    fn send(&mut self) -> FormKey {
        let wrong = self.fields.iter().enumerate().find_map(|(at, field)| Some((at, field.value().err()?)));
        match wrong {
            Some((at, problem)) => {
                (self.at, self.problem) = (at, Some(problem));
                FormKey::Changed
            }
            None => FormKey::Send,
        }
    }

    /// The answer. A field without a value is left out.
    #[must_use]
    pub fn answer(&self) -> Value {
        let values = self.fields.iter().filter_map(|field| Some((field.name.clone(), field.value().ok()??)));
        match self.answer {
            AnswerForm::Content => Value::Object(values.collect()),
            AnswerForm::Answers => {
                let list = |value: Value| match value {
                    Value::Array(values) => values,
                    value => vec![value],
                };
                let answers: Map<String, Value> =
                    values.map(|(name, value)| (name, json!({"answers": list(value)}))).collect();
                json!({"answers": answers})
            }
        }
    }

    /// The lines of the form, and the number of the one with the focus.
    #[must_use]
    pub fn lines(&self) -> (Vec<Row>, usize) {
        let (mut lines, mut focus) = (Vec::new(), 0);
        for (at, field) in self.fields.iter().enumerate() {
            let is_here = at == self.at;
            if is_here {
                focus = lines.len();
            }
            let (rows, row) = field.lines(is_here);
            if is_here {
                focus += row;
            }
            lines.extend(rows);
            if let Some(problem) = self.problem.as_ref().filter(|_| is_here) {
                lines.push(vec![Span::new(Style::Red, format!("    {problem}"))]);
            }
        }
        if self.at >= self.fields.len() {
            focus = lines.len();
        }
        let style = |number: usize| if self.at == self.fields.len() + number { Style::Selected } else { Style::Plain };
        lines.push(vec![
            Span::new(Style::Plain, "  "),
            Span::new(style(0), "[ Send ]"),
            Span::new(Style::Plain, "  "),
            Span::new(style(1), "[ Decline ]"),
        ]);
        (lines, focus)
    }

    /// Enters a line as the value of the field with the focus, and goes on to the next one. The error is for people.
    pub(crate) fn enter_line(&mut self, line: &str) -> Result<(), String> {
        if let Some(field) = self.fields.get_mut(self.at) {
            field.enter_line(line)?;
            self.at += 1;
        }
        Ok(())
    }

    /// The number of the field with the focus, counted from 1.
    pub(crate) fn number(&self) -> usize {
        self.at + 1
    }

    /// The field with the focus.
    pub(crate) fn focus(&self) -> Option<&Field> {
        self.fields.get(self.at)
    }

    /// The number of fields.
    pub(crate) fn count(&self) -> usize {
        self.fields.len()
    }
}

#[cfg(test)]
mod tests;
