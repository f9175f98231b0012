//! Wraps text into rows of a given width: pure, so that terminal output can be tested without a terminal.

use std::ops::Range;

use unicode_width::UnicodeWidthChar;

use crate::{Row, Span, Style};

/// The width of a character in columns.
fn columns(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// The width of a row in columns.
#[must_use]
pub fn row_columns(row: &[Span]) -> usize {
    row.iter().flat_map(|span| span.text.chars()).map(columns).sum()
}

/// The minimum room next to a prefix; with less, the prefix is dropped.
const BESIDE_GUTTER: usize = 16;

/// The distance between tab stops.
const TAB: usize = 8;

/// Wraps a line into rows, between words if possible. The line's prefix is repeated on every row, or indents it. There
/// is always at least one row.
#[must_use]
pub fn rows(line: &[Span], width: usize) -> Vec<Row> {
    let before = line.iter().take_while(|span| span.style.is_before_lines()).count();
    let room = width.saturating_sub(row_columns(&line[..before]));
    let (before, room) = if before > 0 && room >= BESIDE_GUTTER { (before, room) } else { (0, width) };
    let (first, rest) = line.split_at(before);
    let further: Row = first.iter().map(repeated).collect();
    let gutter = |rows: &Vec<Row>| if rows.is_empty() { first } else { &further };
    let cells = cells(rest);
    let mut rows = Vec::new();
    let (mut start, mut column, mut word) = (0, 0, 0);
    for (at, (c, _)) in cells.iter().enumerate() {
        let wide = columns(*c);
        let broken = rows.len();
        while column + wide > room && at > start {
            let breaks_at = if *c == ' ' || word <= start { at } else { word };
            rows.push(row(gutter(&rows), without_end_spaces(&cells[start..breaks_at])));
            start = breaks_at;
            column = cells[start..at].iter().map(|(c, _)| columns(*c)).sum();
        }
        if *c == ' ' {
            word = at + 1;
            if at == start && rows.len() > broken {
                // The space between two words ended the previous row.
                start = word;
                continue;
            }
        }
        column += wide;
    }
    rows.push(row(gutter(&rows), cells.get(start..).unwrap_or_default()));
    rows
}

/// The rows of names of keys, with dots between them. A row breaks between two of them, and not between a key and what it
/// does.
#[must_use]
pub fn hint_rows(hints: &str, width: usize) -> Vec<Row> {
    let mut lines: Vec<String> = Vec::new();
    for hint in hints.split(" · ") {
        let wider = lines.last().map(|line| format!("{line} · {hint}"));
        match wider.filter(|wider| wider.chars().map(columns).sum::<usize>() <= width) {
            Some(wider) => lines.last_mut().into_iter().for_each(|line| line.clone_from(&wider)),
            None => lines.push(hint.to_owned()),
        }
    }
    lines.into_iter().flat_map(|line| rows(&[Span::new(Style::Dim, line)], width.max(1))).collect()
}

/// The rows of keys and their meanings, each key in bold. A row breaks before a key only, as long as that is possible.
#[must_use]
pub fn choice_rows(choices: &[Span], width: usize) -> Vec<Row> {
    let mut lines: Vec<Row> = vec![Row::new()];
    for choice in choices.chunk_by(|_, next| next.style != Style::Bold) {
        let columns = |row: &[Span]| row_columns(row) - row.last().map_or(0, |last| blanks(&last.text));
        let last = lines.last().map_or(0, |line| row_columns(line));
        match lines.last_mut().filter(|line| line.is_empty() || last + columns(choice) <= width) {
            Some(line) => line.extend_from_slice(choice),
            None => lines.push(choice.to_vec()),
        }
    }
    lines.iter().flat_map(|line| rows(line, width.max(1))).collect()
}

/// The number of blanks at the end of a text.
fn blanks(text: &str) -> usize {
    text.len() - text.trim_end_matches(' ').len()
}

/// The prefix of a line, as repeated on a wrapped row.
fn repeated(span: &Span) -> Span {
    match span.style {
        Style::Hang => Span::new(Style::Gutter, " ".repeat(row_columns(std::slice::from_ref(span)))),
        _ => span.clone(),
    }
}

fn without_end_spaces(cells: &[(char, Style)]) -> &[(char, Style)] {
    let end = cells.iter().rposition(|(c, _)| *c != ' ').map_or(0, |last| last + 1);
    &cells[..end]
}

/// The characters of a line with their styles; tabs become spaces up to the next stop.
fn cells(line: &[Span]) -> Vec<(char, Style)> {
    let mut cells = Vec::new();
    let mut column = 0;
    for (c, style) in line.iter().flat_map(|span| span.text.chars().map(|c| (c, span.style))) {
        let (c, count) = if c == '\t' { (' ', TAB - column % TAB) } else { (c, 1) };
        cells.extend(std::iter::repeat_n((c, style), count));
        column += count * columns(c);
    }
    cells
}

fn row(before: &[Span], cells: &[(char, Style)]) -> Row {
    let mut row: Row = before.to_vec();
    for (c, style) in cells {
        match row.last_mut() {
            Some(last) if last.style == *style && !style.is_before_lines() => last.text.push(*c),
            _ => row.push(Span::new(*style, *c)),
        }
    }
    row
}

/// The prefixes of the first and of further rows of the input.
const PROMPT: (&str, &str) = ("> ", "  ");

/// Up to `most` rows of the text being typed, and the row and column of the cursor among them.
#[must_use]
pub fn typed_rows(text: &str, cursor: usize, width: usize, most: usize) -> (Vec<Row>, (usize, usize)) {
    typed_rows_with(PROMPT.0, text, cursor, 0..0, (width, most))
}

/// The same with another mark before the first row, and with a range of the text that is selected.
#[must_use]
pub fn typed_rows_with(
    first_mark: &'static str,
    text: &str,
    cursor: usize,
    selected: Range<usize>,
    (width, most): (usize, usize),
) -> (Vec<Row>, (usize, usize)) {
    let room = width.saturating_sub(PROMPT.1.len()).max(2);
    let mut starts = typed_starts(text, room);
    let mut row = starts.partition_point(|start| *start <= cursor).saturating_sub(1);
    let mut column = typed_columns(&text[starts[row]..cursor]);
    if cursor == text.len() && column >= room {
        // The next character begins a row.
        starts.push(text.len());
        (row, column) = (row + 1, 0);
    }
    // The rows around the cursor, if not all fit.
    let first = if starts.len() > most { row.saturating_sub(most / 2).min(starts.len() - most) } else { 0 };
    let shown = starts.iter().enumerate().skip(first).take(most).map(|(at, start)| {
        let end = starts.get(at + 1).copied().unwrap_or(text.len());
        let mark = if at == 0 { first_mark } else { PROMPT.1 };
        let typed = typed_row(&text[*start..end], *start, &selected, room);
        std::iter::once(Span::new(Style::Bold, mark)).chain(typed).collect()
    });
    (shown.collect(), (row - first, column.min(room - 1) + PROMPT.1.len()))
}

/// The columns of a character that is typed at a column.
fn typed_width(c: char, column: usize) -> usize {
    if c == '\t' { TAB - column % TAB } else { columns(c) }
}

fn typed_columns(text: &str) -> usize {
    text.chars().fold(0, |column, c| column + typed_width(c, column))
}

/// The place in a text at which each of its rows begins: between words, or anywhere in a word that is too long. A space
/// between two rows may be beyond the end of the first one.
fn typed_starts(text: &str, room: usize) -> Vec<usize> {
    let (mut starts, mut start, mut word, mut column) = (vec![0], 0, 0, 0);
    for (at, c) in text.char_indices() {
        if c == '\n' {
            (start, word, column) = (at + 1, at + 1, 0);
            starts.push(start);
            continue;
        }
        let is_hanging = c == ' ' && column == room;
        while column + typed_width(c, column) > room && at > start && !is_hanging {
            start = if word > start { word } else { at };
            column = typed_columns(&text[start..at]);
            starts.push(start);
        }
        column += typed_width(c, column);
        if matches!(c, ' ' | '\t') {
            word = at + 1;
        }
    }
    starts
}

/// A row of the text being typed, which begins at a place, with its selected part.
fn typed_row(text: &str, start: usize, selected: &Range<usize>, room: usize) -> Row {
    let (mut row, mut column) = (Row::new(), 0);
    for (at, c) in text.char_indices().filter(|(_, c)| *c != '\n') {
        let wide = typed_width(c, column);
        if column + wide > room {
            break;
        }
        let style = if selected.contains(&(start + at)) { Style::Selected } else { Style::Plain };
        if row.last().is_none_or(|span: &Span| span.style != style) {
            row.push(Span::new(style, ""));
        }
        if let Some(span) = row.last_mut() {
            let (c, count) = if c == '\t' { (' ', wide) } else { (c, 1) };
            span.text.extend(std::iter::repeat_n(c, count));
        }
        column += wide;
    }
    if row.is_empty() { vec![Span::new(Style::Plain, "")] } else { row }
}

/// Wraps streaming text between words. Colour sequences have no width.
#[derive(Debug)]
pub struct Flow {
    width: usize,
    column: usize,
    /// The current word and its width.
    word: (String, usize),
    is_in_sequence: bool,
}

impl Flow {
    #[must_use]
    pub fn new(width: usize) -> Self {
        Self { width, column: 0, word: (String::new(), 0), is_in_sequence: false }
    }

    /// Adds text, and returns the complete part. A word is complete when it ends.
    pub fn push(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            if self.is_in_sequence || c == '\x1b' {
                self.is_in_sequence = c == '\x1b' || !c.is_ascii_alphabetic();
                self.word.0.push(c);
                continue;
            }
            if !matches!(c, ' ' | '\n') {
                self.word.0.push(c);
                self.word.1 += columns(c);
                continue;
            }
            let (word, wide) = std::mem::take(&mut self.word);
            if self.column > 0 && self.column + wide > self.width {
                out.push('\n');
                self.column = 0;
            }
            out.push_str(&word);
            out.push(c);
            self.column = if c == '\n' { 0 } else { self.column + wide + 1 };
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn text(row: &[Span]) -> String {
        row.iter().map(|span| span.text.as_str()).collect()
    }

    fn shown(rows: &[Row]) -> String {
        rows.iter().map(|row| format!("[{}]\n", text(row))).collect::<Vec<_>>().concat()
    }

    #[track_caller]
    fn check(gutter: &str, line: &str, width: usize, expected: Expect) {
        let mut spans = vec![Span::new(Style::Gutter, gutter), Span::new(Style::Plain, line)];
        spans.retain(|span| !span.text.is_empty());
        expected.assert_eq(&shown(&rows(&spans, width)));
    }

    #[test]
    fn lines_break_between_words_and_long_words_anywhere() {
        check(
            "",
            "the quick brown fox",
            10,
            expect![[r#"
            [the quick]
            [brown fox]
        "#]],
        );
        check(
            "",
            "abcdefghijklmnop q",
            10,
            expect![[r#"
            [abcdefghij]
            [klmnop q]
        "#]],
        );
        check(
            "",
            "日本語のテキスト",
            7,
            expect![[r#"
            [日本語]
            [のテキ]
            [スト]
        "#]],
        );
        check(
            "",
            "a\tb",
            20,
            expect![[r#"
            [a       b]
        "#]],
        );
        check(
            "",
            "",
            20,
            expect![[r#"
            []
        "#]],
        );
    }

    #[test]
    fn a_gutter_stands_before_every_row() {
        check(
            "  | ",
            "one two three four five six",
            24,
            expect![[r#"
            [  | one two three four]
            [  | five six]
        "#]],
        );
    }

    #[test]
    fn hanging_text_indents_further_rows() {
        let line = [
            Span::new(Style::Gutter, "| "),
            Span::new(Style::Hang, "1. "),
            Span::new(Style::Plain, "one two three four five"),
        ];
        assert_eq!(shown(&rows(&line, 22)), "[| 1. one two three]\n[|    four five]\n");
    }

    #[test]
    fn a_row_can_continue_where_it_was_broken() {
        let mut line = vec![Span::new(Style::Plain, "one two th")];
        let mut all = rows(&line, 8);
        line = all.pop().unwrap();
        line.push(Span::new(Style::Plain, "ree four"));
        assert_eq!(shown(&all) + &shown(&rows(&line, 8)), "[one two]\n[three]\n[four]\n");
    }

    #[test]
    fn a_stream_is_broken_between_words() {
        let mut flow = Flow::new(10);
        let pieces = ["one tw", "o three\n", "\x1b[1mfour\x1b[0m five", " s\n", "abcdefghijklm n\n"];
        let shown: String = pieces.iter().map(|piece| flow.push(piece)).collect();
        assert_eq!(shown, "one two \nthree\n\x1b[1mfour\x1b[0m five \ns\nabcdefghijklm \nn\n");
    }

    #[track_caller]
    fn check_typed(before: &str, after: &str, (width, most): (usize, usize), expected: Expect) {
        let (rows, cursor) = typed_rows(&format!("{before}{after}"), before.len(), width, most);
        expected.assert_eq(&format!("{}{cursor:?}\n", shown(&rows)));
    }

    #[test]
    fn the_cursor_is_where_the_next_character_goes() {
        check_typed(
            "",
            "",
            (10, 5),
            expect![[r#"
            [> ]
            (0, 2)
        "#]],
        );
        check_typed(
            "12345678",
            "",
            (10, 5),
            expect![[r#"
            [> 12345678]
            [  ]
            (1, 2)
        "#]],
        );
        check_typed(
            "two wor",
            "ds are",
            (10, 5),
            expect![[r#"
            [> two ]
            [  words ]
            [  are]
            (1, 5)
        "#]],
        );
        check_typed(
            "twelve 8 ",
            "",
            (10, 5),
            expect![[r#"
            [> twelve 8]
            [  ]
            (1, 2)
        "#]],
        );
        check_typed(
            "日",
            "本",
            (10, 5),
            expect![[r#"
            [> 日本]
            (0, 4)
        "#]],
        );
        check_typed(
            "a\n",
            "b",
            (10, 5),
            expect![[r#"
            [> a]
            [  b]
            (1, 2)
        "#]],
        );
        check_typed(
            "1\n2\n3\n4",
            "\n5\n6",
            (10, 3),
            expect![[r#"
            [  3]
            [  4]
            [  5]
            (1, 3)
        "#]],
        );
    }

    proptest! {
        /// No row is too wide, and no word is lost.
        #[test]
        fn rows_fit_and_keep_all_words(line in "[a-z日é ]{0,80}", width in 4usize..30) {
            let all = rows(&[Span::new(Style::Plain, line.clone())], width);
            for row in &all {
                prop_assert!(row_columns(row) <= width, "{row:?}");
            }
            let squeezed = |text: &str| text.replace(' ', "");
            let kept: String = all.iter().map(|row| text(row)).collect();
            prop_assert_eq!(squeezed(&kept), squeezed(&line));
        }

        /// The cursor is always within the rows.
        #[test]
        fn the_cursor_is_within(text in "[a-z日 \n\t]{0,60}", place in 0usize..60, width in 6usize..30, most in 1usize..6) {
            let cursor = text.char_indices().map(|(at, _)| at).nth(place).unwrap_or(text.len());
            let (rows, (row, column)) = typed_rows(&text, cursor, width, most);
            prop_assert!(row < rows.len() && rows.len() <= most);
            prop_assert!(column < width, "{column} {width}");
            prop_assert!(rows.iter().all(|row| row_columns(row) <= width), "{rows:?}");
            // Nothing but the space between two rows is left out.
            let (all, _) = typed_rows(&text, cursor, width, usize::MAX);
            let squeezed = |text: &str| text.replace([' ', '\n', '\t'], "");
            let kept: String = all.iter().map(|row| self::text(&row[1..])).collect();
            prop_assert_eq!(squeezed(&kept), squeezed(&text));
        }
    }
}
