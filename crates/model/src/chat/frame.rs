//! The bytes around the text of a chunk.
//!
//! Most chunks of an answer differ from the one before in their text alone, so the rest is compared and not parsed again.
//!
//! Invariant: a chunk has a frame only if it would be parsed to the same text and nothing else.

/// The largest frame that is remembered.
const MOST_BYTES: usize = 4096;

/// The bytes before and after the text of a chunk.
#[derive(Debug, Default)]
pub(super) struct Frame {
    before: String,
    after: String,
}

impl Frame {
    /// The text of a chunk with this frame. The part within the frame has to be one JSON string and nothing else.
    pub(super) fn text(&self, data: &str) -> Option<String> {
        if self.before.is_empty() {
            return None;
        }
        let text = data.strip_prefix(self.before.as_str())?.strip_suffix(self.after.as_str())?;
        serde_json::from_str(text).ok()
    }

    /// Remembers the frame of a chunk. The text is the part of it that says something, still encoded.
    pub(super) fn learn(&mut self, data: &str, text: &str) {
        let begin = (text.as_ptr() as usize).checked_sub(data.as_ptr() as usize);
        let parts = begin.and_then(|begin| Some((data.get(..begin)?, data.get(begin + text.len()..)?)));
        self.before.clear();
        if let Some((before, after)) = parts.filter(|(before, after)| before.len() + after.len() <= MOST_BYTES) {
            self.before.push_str(before);
            self.after.clear();
            self.after.push_str(after);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: &str = r#"{"choices":[{"delta":{"content":"a"}}]}"#;

    fn learnt() -> Frame {
        let mut frame = Frame::default();
        frame.learn(CHUNK, &CHUNK[32..35]);
        frame
    }

    #[test]
    fn only_a_chunk_that_differs_in_its_text_has_the_frame() {
        let frame = learnt();
        assert_eq!(frame.text(CHUNK).as_deref(), Some("a"));
        assert_eq!(frame.text(r#"{"choices":[{"delta":{"content":"\"}}]}é"}}]}"#).as_deref(), Some("\"}}]}é"));
        for other in [
            r#"{"choices":[{"delta":{"content":"a","tool_calls":""}}]}"#,
            r#"{"choices":[{"delta":{"content":"a"},"x":{"y":"b"}}]}"#,
            r#"{"choices":[{"delta":{"content":null}}]}"#,
            r#"{"choices":[{"delta":{"content":"a}}]}"#,
            r#"{"choices":[{"delta":{"content":}}]}"#,
            "",
        ] {
            assert_eq!(frame.text(other), None, "{other}");
        }
        assert_eq!(Frame::default().text("\"a\""), None);
    }

    #[test]
    fn a_large_frame_or_a_text_from_elsewhere_is_not_remembered() {
        let mut frame = learnt();
        let large = format!(r#"{{"x":"{}","content":"a"}}"#, "y".repeat(MOST_BYTES));
        frame.learn(&large, &large[large.len() - 4..large.len() - 1]);
        assert_eq!((frame.text(&large), frame.text(CHUNK)), (None, None));
        let mut frame = learnt();
        frame.learn(&CHUNK[..20], &CHUNK[32..35]);
        assert_eq!(frame.text(CHUNK), None);
    }
}
