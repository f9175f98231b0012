//! A form that is filled in line by line, for a screen that appends lines: each field is told with a label and numbered
//! choices, and its value is typed.

use serde_json::Value;

use super::{Field, Form};
use crate::editor::{Edit, Editor};
use crate::key::Key;
use crate::{Row, Span, Style};

/// The effect of a key.
#[derive(Debug, PartialEq)]
pub enum Filled {
    /// The typed text may have changed.
    Typing,
    /// Lines to append.
    Told(Vec<Span>),
    Send(Value),
    Decline,
}

/// A form, and the text being typed for the field with the focus.
#[derive(Debug)]
pub struct Filling {
    form: Form,
    entry: Editor,
}

impl Filling {
    #[must_use]
    pub fn new(form: Form) -> Self {
        Self { form, entry: Editor::default() }
    }

    /// The typed text and its cursor.
    #[must_use]
    pub fn shown(&self) -> (String, usize) {
        if self.form.focus().is_some_and(Field::is_secret) {
            let hidden = "•".repeat(self.entry.text().chars().count());
            return (hidden.clone(), hidden.len());
        }
        self.entry.shown()
    }

    /// Handles a key other than those that cancel.
    pub fn press(&mut self, key: &Key) -> Filled {
        if self.entry.press(key) != Edit::Submit {
            return Filled::Typing;
        }
        let text = self.entry.take();
        if self.form.focus().is_some() {
            return Filled::Told(match self.form.enter_line(text.trim_end_matches('\n')) {
                Ok(()) => self.told(),
                Err(problem) => vec![Span::new(Style::Red, format!("  {problem}\n"))],
            });
        }
        match text.trim() {
            "1" | "y" | "yes" => Filled::Send(self.form.answer()),
            "2" | "n" | "no" => Filled::Decline,
            _ => Filled::Told(self.told()),
        }
    }

    /// The field with the focus, or the choice to send.
    #[must_use]
    pub fn told(&self) -> Vec<Span> {
        let lines: Vec<Row> = match self.form.focus() {
            Some(field) => {
                let (number, count) = (self.form.number(), self.form.count());
                let mut lines = field.spoken();
                if let Some(first) = lines.first_mut() {
                    first.insert(0, Span::new(Style::Dim, format!("  Field {number} of {count}: ")));
                }
                lines
            }
            None => vec![
                vec![Span::new(Style::Bold, "  Send these values?")],
                vec![Span::new(Style::Plain, "  1. Send")],
                vec![Span::new(Style::Plain, "  2. Decline")],
            ],
        };
        lines.into_iter().flat_map(|row| row.into_iter().chain([Span::new(Style::Plain, "\n")])).collect()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::super::from_schema;
    use super::*;

    fn enter(filling: &mut Filling, text: &str) -> Filled {
        for c in text.chars() {
            filling.press(&Key::Char(c));
        }
        filling.press(&Key::Enter)
    }

    fn text(spans: &[Span]) -> String {
        spans.iter().map(|span| span.text.as_str()).collect()
    }

    #[test]
    fn fields_are_told_with_labels_and_numbers_and_typed_line_by_line() {
        let schema = json!({"required": ["name", "size"], "properties": {
            "name": {"type": "string", "title": "Your\u{202e} name"},
            "size": {"type": "string", "enum": ["s", "m"], "enumNames": ["Small", "Medium"], "default": "m"},
            "colours": {"type": "array", "items": {"enum": ["red", "green", "blue"]}},
            "sure": {"type": "boolean"}}});
        let mut filling = Filling::new(from_schema(&schema).unwrap());
        let mut said = text(&filling.told());
        for line in ["", "Ada", "", "3, 1", "maybe", "y", "what"] {
            match enter(&mut filling, line) {
                Filled::Told(spans) => said = format!("{said}> {line}\n{}", text(&spans)),
                other => panic!("{other:?}"),
            }
        }
        expect![[r#"
              Field 1 of 4: Your\u{202e} name (required)
            > 
              a value is required
            > Ada
              Field 2 of 4: size (required), type a number
                1. Small
                2. Medium (chosen)
            > 
              Field 3 of 4: colours, type numbers with commas
                1. red
                2. green
                3. blue
            > 3, 1
              Field 4 of 4: sure · y or n
            > maybe
              type y or n
            > y
              Send these values?
              1. Send
              2. Decline
            > what
              Send these values?
              1. Send
              2. Decline
        "#]]
        .assert_eq(&said);
        let values = json!({"name": "Ada", "size": "m", "colours": ["red", "blue"], "sure": true});
        assert_eq!(enter(&mut filling, "1"), Filled::Send(values));
    }

    #[test]
    fn a_secret_is_not_shown_and_a_form_can_be_declined() {
        let schema = json!({"properties": {"key": {"type": "string", "format": "password"}}});
        let mut filling = Filling::new(from_schema(&schema).unwrap());
        filling.press(&Key::Char('x'));
        assert_eq!(filling.shown().0, "•");
        assert!(matches!(enter(&mut filling, "y"), Filled::Told(_)));
        assert_eq!(enter(&mut filling, "2"), Filled::Decline);
    }
}
