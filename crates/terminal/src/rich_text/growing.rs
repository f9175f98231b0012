//! The lines of a Markdown text that grows at its end, such as an answer that streams in.
//!
//! A block cannot change any more once another one has begun behind it, so its lines are settled, and only the last block
//! is laid out again. Of a long block of code, which changes nothing before its end, complete lines are settled too.
//!
//! Invariant: settled and open lines together are those of the whole text, in any pieces.

use std::borrow::Cow;

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};

use super::{Writer, lines, parser};
use crate::highlight::Within;
use crate::{Row, Span, Style};

/// The number of lines of open code from which on they are settled.
const LONG_CODE: usize = 32;

/// The layout of a text that grows.
#[derive(Debug, Clone, Default)]
pub struct Growing {
    width: usize,
    /// The number of bytes whose lines are settled, and of those in which nothing else can be settled.
    settled: usize,
    tried: usize,
    has_lines: bool,
    /// The block of code that the settled bytes end in.
    code: Option<OpenCode>,
    /// Whether the text has to be laid out whole.
    is_whole: bool,
}

#[derive(Debug, Clone)]
struct OpenCode {
    /// The line that opens it.
    fence: String,
    /// The part of the code in which the settled bytes end.
    within: Within,
}

/// The lines of a text that has grown.
#[derive(Debug, Default)]
pub struct Grown {
    /// Whether lines that were settled before are not any more.
    pub starts_over: bool,
    /// The lines behind those that were settled before.
    pub settled: Vec<Row>,
    /// The lines behind all settled ones.
    pub open: Vec<Row>,
}

/// The last block of a text.
#[derive(Debug, Default)]
struct LastBlock {
    start: usize,
    is_fenced: bool,
}

impl Growing {
    /// An empty text. Tables use at most `width` columns if they can.
    #[must_use]
    pub fn new(width: usize) -> Self {
        Self { width, ..Self::default() }
    }

    /// Takes the text, which begins like the one before.
    pub fn update(&mut self, text: &str) -> Grown {
        let starts_over = self.is_whole || !text.is_char_boundary(self.settled);
        if starts_over {
            *self = Self::new(self.width);
        }
        let mut settled = Vec::new();
        let open = self.settle(text, &mut settled).and_then(|()| self.laid(&text[self.settled..]));
        if let Some((open, _)) = open {
            return Grown { starts_over, settled, open };
        }
        *self = Self { is_whole: true, ..Self::new(self.width) };
        Grown { starts_over: true, settled: Vec::new(), open: lines(text, self.width) }
    }

    /// Adds the lines of all that is complete; `None` if the text has to be laid out whole.
    fn settle(&mut self, text: &str, settled: &mut Vec<Row>) -> Option<()> {
        let end = text.rfind('\n').map_or(0, |at| at + 1);
        if end <= self.tried {
            return Some(());
        }
        self.tried = end;
        let rest = &text[self.settled..end];
        let source = self.source(rest);
        let last = last_block(&source)?;
        // The last block begins behind the fence that stands before the rest, or with it.
        let start = last.start.saturating_sub(source.len() - rest.len());
        if start > 0 {
            self.take(&rest[..start], settled)?;
            self.code = None;
        }
        let fence = match &self.code {
            Some(code) => Some(code.fence.clone()),
            None if last.is_fenced => rest[start..].lines().next().map(str::to_owned),
            None => None,
        };
        if let Some(fence) = fence {
            let lines = rest[start..].lines().skip(usize::from(self.code.is_none()));
            if lines.clone().count() >= LONG_CODE && !lines.clone().any(|line| ends_code(&fence, line)) {
                let within = self.take(&rest[start..], settled)?;
                self.code = Some(OpenCode { fence, within });
            }
        }
        Some(())
    }

    /// Settles the lines of a text; returns the part of its code in which it ends.
    fn take(&mut self, text: &str, settled: &mut Vec<Row>) -> Option<Within> {
        let (lines, within) = self.laid(text)?;
        self.settled += text.len();
        self.has_lines |= !lines.is_empty();
        settled.extend(lines);
        Some(within)
    }

    /// A text behind the settled one, which may be within code.
    fn source<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.code {
            Some(code) => Cow::Owned(format!("{}\n{text}", code.fence)),
            None => Cow::Borrowed(text),
        }
    }

    /// The lines of a text behind the settled one, and the part of its code in which it ends; `None` if the text has to
    /// be laid out whole.
    fn laid(&self, text: &str) -> Option<(Vec<Row>, Within)> {
        let source = self.source(text);
        let parser = blocks(&source)?;
        // The settled lines are represented by one of them, so that blocks keep their distance.
        let before = usize::from(self.has_lines);
        let mut writer = Writer {
            width: self.width,
            lines: vec![vec![Span::new(Style::Plain, "settled")]; before],
            is_continued: self.code.is_some(),
            within: self.code.as_ref().map(|code| code.within).unwrap_or_default(),
            ..Writer::default()
        };
        parser.for_each(|event| writer.event(event));
        let within = writer.within;
        let mut lines = writer.finish();
        lines.drain(..before);
        Some((lines, within))
    }
}

/// The blocks of a text, if each depends on itself alone. Any block may use a link that is defined in another one, and a
/// carriage return ends lines in some places only.
fn blocks(text: &str) -> Option<Parser<'_>> {
    let is_lone = |(at, _): (usize, &str)| !text[at + 1..].starts_with('\n');
    let parser = parser(text);
    let has_definitions = parser.reference_definitions().iter().next().is_some();
    (!has_definitions && !text.match_indices('\r').any(is_lone)).then_some(parser)
}

/// The last block of a text, from the start of its first line on; `None` if the text has to be laid out whole.
fn last_block(text: &str) -> Option<LastBlock> {
    let (mut last, mut depth) = (LastBlock::default(), 0);
    for (event, range) in blocks(text)?.into_offset_iter() {
        let is_fenced = matches!(event, Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))));
        if depth == 0 {
            let start = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
            last = LastBlock { start, is_fenced };
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth -= 1,
            _ => {}
        }
    }
    Some(last)
}

/// Whether a line ends the code that a fence has opened.
fn ends_code(fence: &str, line: &str) -> bool {
    let fence = fence.trim_start_matches(' ');
    let mark = fence.chars().next().unwrap_or('`');
    let count = fence.chars().take_while(|c| *c == mark).count();
    let shown = line.trim();
    shown.chars().count() >= count && shown.chars().all(|c| c == mark)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Parts of Markdown, so that random texts have every kind of block and every way to begin or break one.
    const PIECES: &[&str] = &[
        "word ",
        "another word",
        "\n",
        "\n",
        "\n\n",
        "\r\n",
        "\r",
        "# ",
        "## ",
        "- ",
        "* ",
        "1. ",
        "2) ",
        "  ",
        "    ",
        "\t",
        "> ",
        "```",
        "```rust\n",
        "````\n",
        "~~~\n",
        "/* ",
        "*/ ",
        "| a | b |\n",
        "|---|---|\n",
        "| c ",
        "---\n",
        "===\n",
        "-",
        "`",
        "**",
        "*",
        "_",
        "[a]",
        "[a]: https://x.y\n",
        "[b](https://z)",
        "<div>\n",
        "</div>\n",
        "<!-- ",
        "-->",
        "<b>",
        "https://x.y/z ",
        "\\",
        "&amp;",
        "日本",
        "\u{feff}",
        "\u{0}",
        "- [x] ",
        "\"",
        "\"\"\"",
        "```py\n",
        "```ts\n",
    ];

    /// Some pieces of text, a few of them often enough for long code.
    fn texts() -> impl Strategy<Value = Vec<String>> {
        let piece = proptest::sample::select(PIECES).prop_map(str::to_owned);
        let code = (0..60usize).prop_map(|count| "let x = 1; /* \n".repeat(count));
        prop::collection::vec(prop_oneof![20 => piece, 1 => code], 0..40)
    }

    /// Checks that every step has the lines of the whole text so far.
    #[track_caller]
    fn check<'a>(pieces: impl IntoIterator<Item = &'a str>, width: usize) {
        let (mut growing, mut text, mut settled) = (Growing::new(width), String::new(), Vec::new());
        for piece in pieces {
            text.push_str(piece);
            let grown = growing.update(&text);
            if grown.starts_over {
                settled.clear();
            }
            settled.extend(grown.settled);
            let shown = [settled.clone(), grown.open].concat();
            assert_eq!(shown, lines(&text, width), "{text:?}");
        }
    }

    proptest! {
        /// The lines are those of the whole text, wherever it was cut.
        #[test]
        fn growing_and_whole_texts_have_the_same_lines(pieces in texts(), width in 10usize..60) {
            check(pieces.iter().map(String::as_str), width);
        }

        /// The same if the text comes letter by letter.
        #[test]
        fn letters_are_pieces_too(pieces in texts()) {
            let text: String = pieces.concat().chars().take(300).collect();
            check(text.split_inclusive(|_| true), 30);
        }
    }

    /// The bytes that are left to lay out again behind a text.
    fn open_bytes(text: &str) -> usize {
        let mut growing = Growing::new(80);
        growing.update(text);
        text.len() - growing.settled
    }

    #[test]
    fn only_the_last_block_is_laid_out_again() {
        let paragraphs = "Some words of an answer.\n\n".repeat(1000);
        assert!(open_bytes(&format!("{paragraphs}The end")) < 40);
        let code = "let x = 1;\n".repeat(1000);
        assert!(open_bytes(&format!("{paragraphs}```rust\n{code}let")) < 40);
        assert!(open_bytes(&format!("```rust\n{code}```\n\nIt was long.\n\nAnd")) < 40);
    }

    #[test]
    fn a_definition_of_a_link_reaches_earlier_blocks() {
        check(["See [a].\n\nMore.\n\n", "[a]: https://x.y\n", "\nEnd.\n\n", "End of [a]"], 60);
    }
}
