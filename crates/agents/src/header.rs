//! The header of an agent: the first bold text of its reasoning.

use codex_log::{Body, Delta};

/// The number of bytes of the reasoning that are searched.
const SEARCHED_BYTES: usize = 4096;
/// The longest header.
const HEADER_CHARS: usize = 120;

/// Finds the header of an agent. It is found once.
#[derive(Debug, Default)]
pub(crate) struct HeaderFinder {
    text: String,
    is_done: bool,
}

impl HeaderFinder {
    /// Sees an event, and returns the header if it is complete.
    pub(crate) fn see(&mut self, body: &Body) -> Option<String> {
        if self.is_done {
            return None;
        }
        match body {
            Body::ItemDelta { delta: Delta::Summary { text, .. }, .. } => self.text.push_str(text),
            Body::ItemCompleted(item) if item.is_thought() => self.text = item.title().into_owned(),
            _ => return None,
        }
        let header = bold(&self.text);
        if header.is_some() || self.text.len() > SEARCHED_BYTES {
            self.is_done = true;
            self.text = String::new();
        }
        header
    }
}

/// The first text between two pairs of asterisks.
fn bold(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("**")?;
    let (header, _) = rest.split_once("**")?;
    let header: String = header.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(HEADER_CHARS).collect();
    (!header.is_empty()).then_some(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bold_text_is_the_header() {
        assert_eq!(bold("so **Reading  the\ndiff** and **more**"), Some("Reading the diff".to_owned()));
        assert_eq!(bold("**half"), None);
        assert_eq!(bold("****"), None);
    }
}
