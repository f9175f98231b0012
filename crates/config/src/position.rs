//! Lines and columns of positions in a text.

/// Decodes UTF-8; on failure, returns the line and the column of the first bad byte.
pub(crate) fn decode(bytes: &[u8]) -> Result<&str, (usize, usize)> {
    str::from_utf8(bytes).map_err(|error| {
        let valid = bytes.get(..error.valid_up_to()).and_then(|valid| str::from_utf8(valid).ok()).unwrap_or_default();
        Lines::new(valid).line_column(valid.len())
    })
}

/// The line starts of a text, so that many positions are found without counting again.
pub(crate) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let after_breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { text, starts: std::iter::once(0).chain(after_breaks).collect() }
    }

    /// The line of a byte offset, starting at 1.
    pub(crate) fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset)
    }

    /// The line and the column of a byte offset, both starting at 1, columns in characters.
    pub(crate) fn line_column(&self, offset: usize) -> (usize, usize) {
        let line = self.line(offset);
        let start = self.starts.get(line - 1).copied().unwrap_or(0);
        let before = self.text.get(start..offset).or_else(|| self.text.get(start..)).unwrap_or("");
        (line, before.chars().count() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_text_have_a_place() {
        assert_eq!(decode("aü".as_bytes()), Ok("aü"));
        assert_eq!(decode(b"a\nb\xff"), Err((2, 2)));
    }

    #[test]
    fn offsets_become_lines_and_columns() {
        let lines = Lines::new("ab\nüx\n");
        let found: Vec<_> = [0, 2, 3, 5, 6, 7, 99].into_iter().map(|offset| lines.line_column(offset)).collect();
        assert_eq!(found, [(1, 1), (1, 3), (2, 1), (2, 2), (2, 3), (3, 1), (3, 1)]);
        assert_eq!(Lines::new("").line_column(0), (1, 1));
    }
}
