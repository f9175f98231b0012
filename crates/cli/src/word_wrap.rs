//! Text broken between words, on its way to a terminal.

use std::io::{self, Write};

use unicode_width::UnicodeWidthChar;

/// How far apart tabs are.
const TAB: usize = 8;

/// Passes text on and breaks lines between words. Rows that go on are indented as their line is; a word that is wider than
/// the terminal is left to it.
#[derive(Debug)]
pub(crate) struct WordWrap<W: Write> {
    output: W,
    /// How wide the terminal is; none if lines are not to be broken.
    columns: Option<usize>,
    /// Where the next word begins, but for the spaces before it.
    column: usize,
    /// How far the line is indented.
    indent: usize,
    /// The spaces that were not written yet.
    spaces: usize,
    /// The word that was not written yet, with the sequences around it, and its width.
    word: String,
    width: usize,
    /// Whether a sequence has begun that the terminal obeys.
    is_in_sequence: bool,
}

impl<W: Write> WordWrap<W> {
    pub(crate) fn new(output: W, columns: Option<usize>) -> Self {
        let word = String::new();
        Self { output, columns, column: 0, indent: 0, spaces: 0, word, width: 0, is_in_sequence: false }
    }

    fn take(&mut self, c: char) -> io::Result<()> {
        match c {
            _ if self.is_in_sequence => {
                self.is_in_sequence = !c.is_ascii_alphabetic();
                self.word.push(c);
            }
            '\u{1b}' => {
                self.is_in_sequence = true;
                self.word.push(c);
            }
            ' ' => {
                self.end_word()?;
                self.spaces += 1;
            }
            '\n' | '\r' | '\t' => {
                self.end_word()?;
                self.spaces = 0;
                write!(self.output, "{c}")?;
                self.column = if c == '\t' { (self.column / TAB + 1) * TAB } else { 0 };
                self.indent = 0;
            }
            c => {
                self.width += c.width().unwrap_or(0);
                self.word.push(c);
            }
        }
        Ok(())
    }

    fn end_word(&mut self) -> io::Result<()> {
        if self.width > 0 {
            let end = self.column + self.spaces + self.width;
            if self.column == 0 {
                self.indent = self.spaces;
            }
            if self.column > self.indent && self.columns.is_some_and(|columns| end > columns) {
                write!(self.output, "\n{:1$}", "", self.indent)?;
                self.column = self.indent;
            } else {
                write!(self.output, "{:1$}", "", self.spaces)?;
                self.column += self.spaces;
            }
            self.spaces = 0;
            self.column += self.width;
        }
        self.output.write_all(self.word.as_bytes())?;
        self.word.clear();
        self.width = 0;
        Ok(())
    }
}

impl<W: Write> Write for WordWrap<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.columns.is_none() {
            return self.output.write(bytes);
        }
        String::from_utf8_lossy(bytes).chars().try_for_each(|c| self.take(c))?;
        Ok(bytes.len())
    }

    /// A word that has not ended stays: only its end tells where it goes.
    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

impl<W: Write> Drop for WordWrap<W> {
    fn drop(&mut self) {
        // An output that is gone takes no last word.
        let _: io::Result<()> = self.end_word().and_then(|()| self.output.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pieces: &[&str], columns: Option<usize>, expected: &str) {
        let mut written = Vec::new();
        let mut wrap = WordWrap::new(&mut written, columns);
        for piece in pieces {
            wrap.write_all(piece.as_bytes()).unwrap();
            wrap.flush().unwrap();
        }
        drop(wrap);
        assert_eq!(String::from_utf8(written).unwrap(), expected);
    }

    #[test]
    fn lines_are_broken_between_words() {
        check(&["one two three\n"], Some(8), "one two\nthree\n");
        check(&["one tw", "o thr", "ee"], Some(8), "one two\nthree");
        check(&["  a bb ccc dddd\nx y\n"], Some(8), "  a bb\n  ccc\n  dddd\nx y\n");
        check(&["a incomprehensible b\n"], Some(8), "a\nincomprehensible\nb\n");
        check(&["größe größe\n\n"], Some(11), "größe größe\n\n");
        check(&["one two three\n"], None, "one two three\n");
    }

    #[test]
    fn colours_take_no_room() {
        check(&["\x1b[1m> \x1b[0mone \x1b[32mtwo\x1b[0m\n"], Some(9), "\x1b[1m> \x1b[0mone \x1b[32mtwo\x1b[0m\n");
        check(&["\x1b[2mone two\x1b[0m\n"], Some(5), "\x1b[2mone\ntwo\x1b[0m\n");
    }
}
