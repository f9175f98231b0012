//! Markdown as lines of styled text, with tables, links and coloured code.
//!
//! Invariant: pure. Text of a model becomes text of the screen only through [`printable`]. A link is shown with its
//! address, so that nobody has to trust its text.

mod growing;

pub use growing::{Growing, Grown};

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::highlight;
use crate::style::add;
use crate::wrap::row_columns;
use crate::{Row, Span, Style, printable};

/// The lines of a Markdown text. Tables use at most `width` columns if they can.
#[must_use]
pub fn lines(text: &str, width: usize) -> Vec<Row> {
    let mut writer = Writer { width, ..Writer::default() };
    parser(text).for_each(|event| writer.event(event));
    writer.finish()
}

fn parser(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS)
}

/// The last block of code of a Markdown text, without its fence and indent.
#[must_use]
pub fn last_code(text: &str) -> Option<String> {
    let (mut last, mut open) = (None, None::<String>);
    for event in Parser::new(text) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => open = Some(String::new()),
            Event::Text(text) => open.iter_mut().for_each(|code| code.push_str(&text)),
            Event::End(TagEnd::CodeBlock) => last = open.take(),
            _ => {}
        }
    }
    last
}

#[derive(Default)]
struct Writer {
    width: usize,
    lines: Vec<Row>,
    line: Row,
    /// The styles around the text.
    styles: Vec<Style>,
    /// The next number of each list around the text; `None` for one without numbers.
    lists: Vec<Option<u64>>,
    /// The mark of an item whose first line is still to come.
    mark: Option<String>,
    quotes: usize,
    code: Option<(String, String)>,
    /// The part of the last code in which it ended.
    within: highlight::Within,
    /// Whether the first block continues code that was begun before.
    is_continued: bool,
    link: Option<String>,
    table: Option<Table>,
}

#[derive(Default)]
struct Table {
    rows: Vec<Vec<Row>>,
    cell: Row,
}

impl Writer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None if self.link.is_none() => self.text_with_addresses(&text),
                None => self.text(self.style(), &text),
            },
            Event::Code(text) => self.text(Style::Code, &text),
            Event::Html(text) | Event::InlineHtml(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.text(self.style(), &text);
            }
            Event::SoftBreak if self.table.is_some() => self.text(Style::Plain, " "),
            Event::SoftBreak | Event::HardBreak => self.end_line(),
            Event::Rule => {
                self.block();
                self.text(Style::Dim, "────────");
                self.end_line();
            }
            Event::TaskListMarker(is_done) => self.text(Style::Plain, if is_done { "[x] " } else { "[ ] " }),
            Event::FootnoteReference(name) => self.text(Style::Dim, &format!("[{name}]")),
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or(Style::Plain)
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.block(),
            Tag::Heading { level, .. } => {
                self.block();
                self.styles.push(if level <= HeadingLevel::H2 { Style::Heading } else { Style::Bold });
            }
            Tag::BlockQuote(_) => {
                self.block();
                self.quotes += 1;
            }
            Tag::CodeBlock(kind) => {
                if !std::mem::take(&mut self.is_continued) {
                    self.block();
                    self.within = highlight::Within::Code;
                }
                let name = match kind {
                    CodeBlockKind::Fenced(name) => name.split([' ', ',', '{']).next().unwrap_or_default().to_owned(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((name, String::new()));
            }
            Tag::List(start) => {
                if self.lists.is_empty() {
                    self.block();
                } else {
                    self.end_line();
                }
                self.lists.push(start);
            }
            Tag::Item => {
                self.end_line();
                let indent = "  ".repeat(self.lists.len().saturating_sub(1));
                self.mark = Some(match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{indent}{}. ", *number - 1)
                    }
                    _ => format!("{indent}• "),
                });
            }
            Tag::Emphasis => self.styles.push(Style::Italic),
            Tag::Strong => self.styles.push(Style::Bold),
            Tag::Strikethrough => self.styles.push(Style::Dim),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.link = Some(dest_url.into_string());
                self.styles.push(Style::Link);
            }
            Tag::Table(_) => {
                self.block();
                self.table = Some(Table::default());
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_line(),
            TagEnd::Heading(_) => {
                self.styles.pop();
                self.end_line();
            }
            TagEnd::BlockQuote(_) => {
                self.end_line();
                self.quotes -= 1;
            }
            TagEnd::CodeBlock => {
                let (name, text) = self.code.take().unwrap_or_default();
                for row in highlight::code_within(&name, &printable(&text), &mut self.within) {
                    let mut line = vec![Span::new(Style::Hang, format!("{}    ", self.indent()))];
                    line.extend(row);
                    self.lines.push(line);
                }
            }
            TagEnd::List(_) => {
                self.end_line();
                self.lists.pop();
            }
            TagEnd::Item => {
                if self.mark.is_some() {
                    self.text(Style::Plain, "");
                }
                self.end_line();
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                let address = self.link.take().unwrap_or_default();
                let line = self.table.as_ref().map_or(&self.line, |table| &table.cell);
                if line.last().is_none_or(|span| span.text != address) {
                    self.text(Style::Plain, " (");
                    self.text(Style::Link, &address);
                    self.text(Style::Plain, ")");
                }
            }
            TagEnd::TableCell => {
                if let Some(table) = &mut self.table {
                    let cell = std::mem::take(&mut table.cell);
                    table.rows.last_mut().into_iter().for_each(|row| row.push(cell.clone()));
                }
            }
            TagEnd::Table => {
                let table = self.table.take().unwrap_or_default();
                self.lines.extend(table.lines(self.width));
            }
            _ => {}
        }
    }

    /// Text whose addresses are links to themselves.
    fn text_with_addresses(&mut self, text: &str) {
        let style = self.style();
        let mut rest = text;
        while let Some(start) = rest.find("https://").into_iter().chain(rest.find("http://")).min() {
            let tail = &rest[start..];
            let is_part = |c: char| c.is_ascii_graphic() && !matches!(c, '<' | '>' | '"' | '`' | '|' | '\\');
            let end = tail.find(|c| !is_part(c)).unwrap_or(tail.len());
            let address = tail[..end].trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '\'', '*', '_']);
            self.text(style, &rest[..start]);
            self.text(Style::Link, address);
            rest = &tail[address.len()..];
        }
        self.text(style, rest);
    }

    fn text(&mut self, style: Style, text: &str) {
        let text = printable(text);
        if let Some(table) = &mut self.table {
            add(&mut table.cell, style, &text.replace('\n', " "));
            return;
        }
        for (at, piece) in text.split('\n').enumerate() {
            if at > 0 {
                self.end_line();
            }
            if self.line.is_empty() {
                self.begin_line();
            }
            add(&mut self.line, style, piece);
        }
    }

    /// The marks before each line.
    fn begin_line(&mut self) {
        if self.quotes > 0 {
            self.line.push(Span::new(Style::Gutter, "│ ".repeat(self.quotes)));
        }
        if let Some(mark) = self.mark.take() {
            self.line.push(Span::new(Style::Hang, mark));
        } else if !self.lists.is_empty() {
            self.line.push(Span::new(Style::Hang, self.indent()));
        }
    }

    /// The indent of the lines of an item after its first one.
    fn indent(&self) -> String {
        let numbered = matches!(self.lists.last(), Some(Some(_)));
        let mark = if self.lists.is_empty() { 0 } else { 2 + usize::from(numbered) };
        " ".repeat(2 * self.lists.len().saturating_sub(1) + mark)
    }

    fn end_line(&mut self) {
        if !self.line.is_empty() {
            self.lines.push(std::mem::take(&mut self.line));
        }
    }

    fn finish(mut self) -> Vec<Row> {
        self.end_line();
        while self.lines.last().is_some_and(Row::is_empty) {
            self.lines.pop();
        }
        self.lines
    }

    /// An empty line before a block, unless it begins an item.
    fn block(&mut self) {
        self.end_line();
        let is_spaced = self.lists.is_empty() && self.mark.is_none();
        if is_spaced && self.lines.last().is_some_and(|last| !last.is_empty()) {
            self.lines.push(Row::new());
        }
    }
}

/// The least width of a column.
const LEAST_COLUMN: usize = 6;

impl Table {
    /// The lines of a table: in columns, or each cell on a line of its own if there is no room.
    fn lines(self, width: usize) -> Vec<Row> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widest = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| row_columns(cell)).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..count).map(widest).collect();
        let room = width.saturating_sub(3 * count.saturating_sub(1));
        if count == 0 || room < count * LEAST_COLUMN {
            return self.list();
        }
        while widths.iter().sum::<usize>() > room {
            let Some(most) = widths.iter_mut().max() else { break };
            *most -= 1;
        }
        let mut lines = Vec::new();
        for (at, cells) in self.rows.iter().enumerate() {
            let cells: Vec<Vec<Row>> = widths
                .iter()
                .enumerate()
                .map(|(column, width)| {
                    crate::wrap::rows(cells.get(column).map_or(&[][..], Vec::as_slice), (*width).max(1))
                })
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            lines.extend((0..height).map(|part| joined(&cells, &widths, part, at == 0)));
            if at == 0 {
                let bars: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(vec![Span::new(Style::Dim, bars.join("─┼─"))]);
            }
        }
        lines
    }

    /// Each row as a list of its cells with the heads of their columns.
    fn list(self) -> Vec<Row> {
        let mut rows = self.rows.into_iter();
        let heads = rows.next().unwrap_or_default();
        let mut lines = Vec::new();
        for row in rows {
            for (at, cell) in row.into_iter().enumerate() {
                let head: String = heads.get(at).into_iter().flatten().map(|span| span.text.as_str()).collect();
                let mut line = vec![Span::new(Style::Hang, if at == 0 { "• " } else { "  " })];
                add(&mut line, Style::Bold, &format!("{head}: "));
                line.extend(cell);
                lines.push(line);
            }
        }
        lines
    }
}

/// One row of the screen of a row of a table.
fn joined(cells: &[Vec<Row>], widths: &[usize], part: usize, is_head: bool) -> Row {
    let mut line = Row::new();
    for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
        if at > 0 {
            add(&mut line, Style::Dim, " │ ");
        }
        let row = cell.get(part).map_or(&[][..], Vec::as_slice);
        for span in row {
            let style = if is_head && span.style == Style::Plain { Style::Bold } else { span.style };
            add(&mut line, style, &span.text);
        }
        if at + 1 < cells.len() {
            add(&mut line, Style::Plain, &" ".repeat(width.saturating_sub(row_columns(row))));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str, width: usize) -> String {
        let line = |row: Row| row.iter().map(|span| span.text.as_str()).collect::<String>() + "\n";
        lines(text, width).into_iter().map(line).collect()
    }

    #[track_caller]
    fn check(text: &str, width: usize, expected: Expect) {
        expected.assert_eq(&shown(text, width));
    }

    #[test]
    fn blocks_have_marks_and_space() {
        check(
            "# Title\n\nText with [a link](https://x.y/z) and <https://x.y>.\n\n- one\n- two\n  1. deep\n\n> quoted\n\n```rust\nlet a;\n```\n---\nEnd",
            60,
            expect![[r#"
                Title

                Text with a link (https://x.y/z) and https://x.y.

                • one
                • two
                  1. deep

                │ quoted

                    let a;

                ────────

                End
            "#]],
        );
    }

    #[test]
    fn addresses_are_links_without_the_punctuation_around_them() {
        let all = lines("See https://x.y/a_b?c=1, (http://z.w/).\n", 60);
        let links: Vec<&str> =
            all.iter().flatten().filter(|span| span.style == Style::Link).map(|span| span.text.as_str()).collect();
        assert_eq!(links, ["https://x.y/a_b?c=1", "http://z.w/"]);
        assert_eq!(shown("See https://x.y/a_b?c=1, (http://z.w/).", 60), "See https://x.y/a_b?c=1, (http://z.w/).\n");
    }

    #[test]
    fn a_table_fits_its_width() {
        let table = "| name | what it does |\n|---|---|\n| a | a long text that needs two rows |\n| `b` | short |\n";
        check(
            table,
            30,
            expect![[r#"
                name │ what it does
                ─────┼────────────────────────
                a    │ a long text that needs
                     │ two rows
                b    │ short
            "#]],
        );
        check(
            table,
            8,
            expect![[r#"
                • name: a
                  what it does: a long text that needs two rows
                • name: b
                  what it does: short
            "#]],
        );
    }

    #[test]
    fn nothing_of_a_model_is_a_sequence() {
        assert_eq!(shown("a\x1b[2J `b\x07` <b\x1b>", 40), "a\u{fffd}[2J b\u{fffd} <b\u{fffd}>\n");
        assert_eq!(shown("[ok](javascript:x)", 40), "ok (javascript:x)\n");
    }

    proptest! {
        /// Any text is shown, and its words are all there.
        #[test]
        fn words_are_kept(text in "([a-c]{1,5}|[ \n]|\\*\\*|- |# |> |`|\\| |[0-9]\\. ){0,60}", width in 1usize..80) {
            let all = shown(&text, width);
            // Cells of a table beyond its header are not shown, as elsewhere.
            let is_below_header = |line: &str| line.contains('|') && line.chars().all(|c| "|- :>".contains(c));
            prop_assume!(!text.lines().any(|line| line.contains('-') && is_below_header(line)));
            for letter in ['a', 'b', 'c'] {
                let count = |text: &str| text.chars().filter(|c| *c == letter).count();
                // A fence has the name of a language, which is not shown.
                prop_assert!(text.contains("```") || count(&all) == count(&text), "{all:?}");
            }
        }
    }
}
