//! Encoded events, shared by all subscribers that want the same form.
//!
//! Invariant: an event with only one subscriber is not stored here.

use std::sync::OnceLock;

/// The maximum number of forms of an event.
pub const FORMS: usize = 3;

/// The forms of one event.
#[derive(Debug, Default)]
pub struct Encodings {
    forms: [OnceLock<(FormKey, Lines)>; FORMS],
}

/// The parameters of an encoding besides the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormKey {
    /// The options of the reader.
    pub wishes: u8,
    /// The state of the reader, as far as the encoding depends on it.
    pub state: i64,
}

/// Messages as lines.
#[derive(Debug, Default)]
pub struct Lines {
    /// All lines, one after the other.
    pub bytes: Vec<u8>,
    /// The end of each line, and the position of its method name.
    pub ends: Vec<LineEnd>,
}

/// The end of a line.
#[derive(Debug, Clone)]
pub struct LineEnd {
    /// The start of the next line.
    pub end: usize,
    /// The position of the method name.
    pub method: std::ops::Range<usize>,
}

impl Encodings {
    /// The lines of a form, which the first subscriber that needs them encodes. `None` if that subscriber wanted other
    /// options.
    pub fn lines(&self, form: usize, key: FormKey, make: impl FnOnce() -> Lines) -> Option<&Lines> {
        let (made_for, lines) = self.forms.get(form)?.get_or_init(|| (key, make()));
        (*made_for == key).then_some(lines)
    }
}

impl Lines {
    /// Each line with the name of its method.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &str)> {
        let mut start = 0;
        self.ends.iter().map(move |LineEnd { end, method }| {
            let line = self.bytes.get(start..*end).unwrap_or_default();
            start = *end;
            let method = self.bytes.get(method.clone()).and_then(|name| std::str::from_utf8(name).ok());
            (line, method.unwrap_or_default())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_made_once_and_only_for_those_who_want_it_alike() {
        let encodings = Encodings::default();
        let (plain, other) = (FormKey { wishes: 0, state: 0 }, FormKey { wishes: 1, state: 0 });
        let made = || Lines {
            bytes: b"{\"method\":\"a\"}\n{\"method\":\"bc\"}\n".to_vec(),
            ends: vec![LineEnd { end: 15, method: 11..12 }, LineEnd { end: 31, method: 26..28 }],
        };
        let first = encodings.lines(0, plain, made).unwrap();
        let lines: Vec<_> = first.iter().collect();
        assert_eq!(lines, [(&b"{\"method\":\"a\"}\n"[..], "a"), (&b"{\"method\":\"bc\"}\n"[..], "bc")]);
        assert!(encodings.lines(0, plain, || panic!("it is there")).is_some());
        assert!(encodings.lines(0, other, || panic!("it is there")).is_none());
        assert!(encodings.lines(1, other, Lines::default).is_some());
        assert!(encodings.lines(FORMS, plain, made).is_none());
    }
}
