//! Renders Markdown as it streams in: headings, emphasis, code and lists, as styled text.
//!
//! Invariants: text that arrives in pieces is rendered as if it had arrived at once. Only the marks themselves are
//! dropped, and everything else is shown unchanged. Text is held back only while it may be part of a mark, and never
//! for more than `MOST_PENDING` bytes of a started line.

use crate::style::add;
use crate::{Span, Style, printable};

/// The maximum distance to the end of an emphasis.
const MOST_PENDING: usize = 1024;

/// The longest line of dashes that counts as a rule.
const LONGEST_RULE: usize = 200;

/// The prefixes of code and of quotes.
const CODE_INDENT: &str = "    ";
const QUOTE: &str = "│ ";

/// A Markdown renderer.
#[derive(Debug)]
pub struct Markdown {
    /// The style of ordinary text.
    base: Style,
    /// The prefix of every line.
    gutter: &'static str,
    /// Received text that is not rendered yet.
    pending: String,
    place: Place,
    /// The character before the held text, within its line.
    before: Option<char>,
    /// The open code fence: its character and length.
    fence: Option<(char, usize)>,
}

/// The parser state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The start of a line, not classified yet.
    Start,
    /// A line of text in a style.
    Text(Style),
    /// A line of code.
    Code,
}

/// The classification of a line.
enum LineKind {
    /// More text is needed.
    Unknown,
    /// The line opens or closes a code block. It is not rendered itself.
    Fence(Option<(char, usize)>),
    Rule,
    /// A mark of this many bytes, rendered as this span, followed by text.
    Text(usize, Option<Span>, Style),
}

impl Markdown {
    /// A renderer with the given style for ordinary text, and a prefix for every line.
    #[must_use]
    pub fn new(base: Style, gutter: &'static str) -> Self {
        Self { base, gutter, pending: String::new(), place: Place::Start, before: None, fence: None }
    }

    /// Adds text, and renders what is complete.
    pub fn push(&mut self, text: &str, out: &mut Vec<Span>) {
        self.pending.push_str(&printable(text));
        self.advance(false, out);
    }

    /// Renders the rest. The next text starts over.
    pub fn finish(&mut self, out: &mut Vec<Span>) {
        self.advance(true, out);
        *self = Self::new(self.base, self.gutter);
    }

    fn advance(&mut self, is_end: bool, out: &mut Vec<Span>) {
        let pending = std::mem::take(&mut self.pending);
        let mut rest = pending.as_str();
        while !rest.is_empty() {
            let (line, is_whole) = rest.find('\n').map_or((rest, is_end), |end| (&rest[..end], true));
            if self.place == Place::Start {
                let Some(used) = self.begin(line, is_whole, out) else { break };
                rest = rest.get(used..).unwrap_or_default();
                if self.place == Place::Start || !rest.is_empty() {
                    continue;
                }
                break;
            }
            let used = self.text(line, is_whole, out);
            rest = &rest[used..];
            let Some(next) = rest.strip_prefix('\n') else { break };
            add(out, Style::Plain, "\n");
            (rest, self.place, self.before) = (next, Place::Start, None);
        }
        rest.clone_into(&mut self.pending);
    }

    /// Classifies a line, and returns how many bytes were consumed; `None` if more text is needed.
    fn begin(&mut self, line: &str, is_whole: bool, out: &mut Vec<Span>) -> Option<usize> {
        let begin = match self.fence {
            Some(fence) => within_fence(line, is_whole, fence),
            None => block(line, is_whole, self.base),
        };
        match begin {
            LineKind::Unknown => None,
            LineKind::Fence(fence) => {
                self.fence = fence;
                Some(line.len() + 1)
            }
            LineKind::Rule => {
                add(out, Style::Gutter, self.gutter);
                add(out, Style::Dim, "────────");
                self.place = Place::Text(self.base);
                Some(line.len())
            }
            LineKind::Text(mark, shown, style) => {
                add(out, Style::Gutter, self.gutter);
                out.extend(shown);
                self.place = if self.fence.is_some() { Place::Code } else { Place::Text(style) };
                Some(mark)
            }
        }
    }

    /// Renders the complete part of a line, and returns its length in bytes.
    fn text(&mut self, line: &str, is_whole: bool, out: &mut Vec<Span>) -> usize {
        let Place::Text(base) = self.place else {
            add(out, Style::Code, line);
            return line.len();
        };
        let used = Inline { base, before: self.before, is_whole }.write(line, out);
        self.before = line[..used].chars().next_back().or(self.before);
        used
    }
}

/// Classifies a line within a code block.
fn within_fence(line: &str, is_whole: bool, (mark, count): (char, usize)) -> LineKind {
    let text = line.trim_matches(' ');
    if text.chars().all(|c| c == mark) {
        if !is_whole {
            return LineKind::Unknown;
        }
        if text.len() >= count {
            return LineKind::Fence(None);
        }
    }
    LineKind::Text(0, Some(Span::new(Style::Gutter, CODE_INDENT)), Style::Code)
}

/// Classifies a line outside of code blocks.
fn block(line: &str, is_whole: bool, base: Style) -> LineKind {
    let text = line.trim_start_matches(' ');
    let indent = line.len() - text.len();
    let spaces = (indent > 0).then(|| Span::new(Style::Hang, " ".repeat(indent)));
    let plain = LineKind::Text(indent, spaces, base);
    let Some(first) = text.chars().next() else { return if is_whole { plain } else { LineKind::Unknown } };
    let run = text.chars().take_while(|c| *c == first).count();
    let after = &text[run * first.len_utf8()..];
    let is_open = after.is_empty() && !is_whole;
    match first {
        '#' if run <= 6 && !is_whole && after.trim_start_matches(' ').is_empty() => LineKind::Unknown,
        '#' if run <= 6 && after.starts_with(' ') => {
            let mark = line.len() - after.trim_start_matches(' ').len();
            LineKind::Text(mark, None, if run <= 2 { Style::Heading } else { Style::Bold })
        }
        '`' | '~' if run >= 3 && !is_whole && !after.contains('`') => LineKind::Unknown,
        '`' | '~' if run >= 3 && !after.contains('`') => LineKind::Fence(Some((first, run))),
        '`' | '~' if run < 3 && is_open => LineKind::Unknown,
        '>' if is_open && run == 1 => LineKind::Unknown,
        '>' => {
            let mark = if text[1..].starts_with(' ') { 2 } else { 1 };
            LineKind::Text(indent + mark, Some(Span::new(Style::Gutter, QUOTE)), base)
        }
        '-' | '*' | '_' | '+' => dashes(text, is_whole).unwrap_or_else(|| {
            let is_item = first != '_' && run == 1 && after.starts_with(' ');
            if is_item { item(indent, "•", 2, base) } else { plain }
        }),
        '0'..='9' => numbered(text, indent, is_whole, base).unwrap_or(plain),
        _ => plain,
    }
}

fn item(indent: usize, mark: &str, length: usize, base: Style) -> LineKind {
    LineKind::Text(indent + length, Some(Span::new(Style::Hang, format!("{}{mark} ", " ".repeat(indent)))), base)
}

/// A rule, or a possible start of one.
fn dashes(text: &str, is_whole: bool) -> Option<LineKind> {
    let first = text.chars().next()?;
    let may_be = text.len() <= LONGEST_RULE && text.chars().all(|c| c == first || c == ' ');
    match (may_be, is_whole) {
        (true, false) => Some(LineKind::Unknown),
        (true, true) if first != '+' && text.matches(first).count() >= 3 => Some(LineKind::Rule),
        _ => None,
    }
}

/// A numbered item, or a possible start of one.
fn numbered(text: &str, indent: usize, is_whole: bool, base: Style) -> Option<LineKind> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, after) = text.split_at(digits);
    let dot = after.chars().next();
    match (dot, after.get(1..).unwrap_or_default()) {
        _ if digits > 9 => None,
        (None, _) | (Some('.' | ')'), "") if !is_whole => Some(LineKind::Unknown),
        (Some('.' | ')'), rest) if rest.starts_with(' ') => {
            Some(item(indent, &format!("{number}{}", &after[..1]), digits + 2, base))
        }
        _ => None,
    }
}

/// Text within a line.
struct Inline {
    base: Style,
    /// The character before it.
    before: Option<char>,
    /// Whether the line ends after it.
    is_whole: bool,
}

/// The markup at a position.
enum Mark {
    /// Ordinary text of this many bytes.
    None(usize),
    /// More text is needed.
    Unknown,
    /// Text between marks of this length, and its style.
    Around { marks: usize, end: usize, style: Style },
    /// An escaped character.
    Escaped(usize),
}

impl Inline {
    /// Renders the complete part, and returns its length in bytes.
    fn write(&self, line: &str, out: &mut Vec<Span>) -> usize {
        let (mut at, mut done) = (0, 0);
        while let Some(c) = line[at..].chars().next() {
            let mark = match c {
                '\\' => self.escape(line, at),
                '`' => self.code(line, at),
                '*' | '_' => self.emphasis(line, at, c),
                _ => Mark::None(c.len_utf8()),
            };
            match mark {
                Mark::None(length) => at += length,
                Mark::Unknown => break,
                Mark::Escaped(length) => {
                    add(out, self.base, &line[done..at]);
                    (done, at) = (at + 1, at + 1 + length);
                }
                Mark::Around { marks, end, style } => {
                    add(out, self.base, &line[done..at]);
                    let inner = &line[at + marks..end];
                    if style == Style::Code {
                        add(out, style, inner);
                    } else {
                        Self { base: self.with(style), before: Some(c), is_whole: true }.write(inner, out);
                    }
                    (done, at) = (end + marks, end + marks);
                }
            }
        }
        add(out, self.base, &line[done..at]);
        at
    }

    /// The style of an emphasis within styled text.
    fn with(&self, style: Style) -> Style {
        if matches!(self.base, Style::Heading | Style::Bold) { self.base } else { style }
    }

    /// Whether more of the line may decide.
    fn may_wait(&self, line: &str, at: usize) -> bool {
        // A few more bytes decide whether a mark that starts just within reach ends there.
        !self.is_whole && line.len() - at < MOST_PENDING + 8
    }

    fn escape(&self, line: &str, at: usize) -> Mark {
        match line[at + 1..].chars().next() {
            None if !self.is_whole => Mark::Unknown,
            Some(c) if c.is_ascii_punctuation() => Mark::Escaped(1),
            _ => Mark::None(1),
        }
    }

    fn code(&self, line: &str, at: usize) -> Mark {
        let count = run(line, at, '`');
        self.around(line, (at, '`', count), |_, _| true, Style::Code)
    }

    fn emphasis(&self, line: &str, at: usize, c: char) -> Mark {
        let count = run(line, at, c);
        let before = line[..at].chars().next_back().or(self.before);
        let next = line[at + count..].chars().next();
        let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        if next.is_none() && !self.is_whole {
            return Mark::Unknown;
        }
        if count > 3 || next.is_none_or(char::is_whitespace) || is_word(before) {
            return Mark::None(count);
        }
        let ends = |before: Option<char>, after: Option<char>| {
            before.is_some_and(|c| !c.is_whitespace() && c != '\\') && (c == '*' || !is_word(after))
        };
        self.around(line, (at, c, count), ends, if count == 1 { Style::Italic } else { Style::Bold })
    }

    /// Searches for the closing mark: the same length, and valid neighbours.
    fn around(
        &self,
        line: &str,
        (start, c, count): (usize, char, usize),
        ends: impl Fn(Option<char>, Option<char>) -> bool,
        style: Style,
    ) -> Mark {
        let mut at = start + count;
        while let Some(place) = line[at..].find(c).map(|found| at + found).filter(|place| *place < start + MOST_PENDING)
        {
            let length = run(line, place, c);
            let after = line[place + length..].chars().next();
            if after.is_none() && self.may_wait(line, start) {
                return Mark::Unknown;
            }
            // Three may close both this and an emphasis within it.
            let is_fitting = length == count || (length == 3 && c != '`');
            if is_fitting && place > start + count && ends(line[..place].chars().next_back(), after) {
                return Mark::Around { marks: count, end: place + length - count.min(length), style };
            }
            at = place + length;
        }
        if self.may_wait(line, start) { Mark::Unknown } else { Mark::None(count) }
    }
}

/// The number of repetitions of a character at a position.
fn run(line: &str, at: usize, c: char) -> usize {
    line[at..].chars().take_while(|other| *other == c).count()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn rendered<'a>(pieces: impl IntoIterator<Item = &'a str>) -> String {
        let (mut markdown, mut out) = (Markdown::new(Style::Plain, ""), Vec::new());
        for piece in pieces {
            markdown.push(piece, &mut out);
        }
        markdown.finish(&mut out);
        let mut joined: Vec<Span> = Vec::new();
        for span in out {
            add(&mut joined, span.style, &span.text);
        }
        let letter = |style| match style {
            Style::Plain => 'p',
            Style::Dim => 'd',
            Style::Bold => 'b',
            Style::Italic => 'i',
            Style::Heading => 'h',
            Style::Code => 'c',
            Style::Gutter => '|',
            Style::Hang => '-',
            _ => '?',
        };
        let shown: Vec<_> = joined.iter().map(|span| format!("{{{}}}{}", letter(span.style), span.text)).collect();
        shown.concat()
    }

    #[track_caller]
    fn check(text: &str, expected: Expect) {
        expected.assert_eq(&rendered([text]));
    }

    #[test]
    fn emphasis_and_code_within_a_line() {
        check("a **b** *c* __d__ _e_ ***f*** `g`", expect!["{p}a {b}b{p} {i}c{p} {b}d{p} {i}e{p} {b}f{p} {c}g"]);
        check("**bold with `code` and *more***", expect!["{b}bold with {c}code{b} and more"]);
        check("``a ` b`` and `**not bold**`", expect!["{c}a ` b{p} and {c}**not bold**"]);
        check("**Bergen**.", expect!["{b}Bergen{p}."]);
    }

    #[test]
    fn text_without_markup_is_shown_unchanged() {
        for text in ["2 * 3 * 4", "snake_case_name", "*.rs and *.toml", "a ** b", "**open", "`open", "2*3*4", "#tag"] {
            assert_eq!(rendered([text]), format!("{{p}}{text}"));
        }
        check(r"\*no\* \_no\_ \n", expect![r"{p}*no* _no_ \n"]);
    }

    #[test]
    fn blocks() {
        check(
            "# Title\n## Part *one*\n### Small\ntext\n\n---\n> quoted\n",
            expect![[r#"
                {h}Title{p}
                {h}Part one{p}
                {b}Small{p}
                text

                {d}────────{p}
                {|}│ {p}quoted
            "#]],
        );
        check(
            "- one\n* two\n  - **three**\n10. ten\n1) one\n-dash\n1.5 is no item\n",
            expect![[r#"
                {-}• {p}one
                {-}• {p}two
                {-}  • {b}three{p}
                {-}10. {p}ten
                {-}1) {p}one
                -dash
                1.5 is no item
            "#]],
        );
        check(
            "see:\n```rust\nfn a() {\n    *b\n\n```\nand `x`\n~~~\n```\n~~~\nend",
            expect![[r#"
                {p}see:
                {|}    {c}fn a() {{p}
                {|}    {c}    *b{p}
                {|}    {p}
                and {c}x{p}
                {|}    {c}```{p}
                end"#]],
        );
    }

    #[test]
    fn text_is_shown_as_soon_as_it_is_decided() {
        let (mut markdown, mut out) = (Markdown::new(Style::Plain, ""), Vec::new());
        let mut take = |piece: &str| {
            markdown.push(piece, &mut out);
            std::mem::take(&mut out).into_iter().map(|span| span.text).collect::<String>()
        };
        assert_eq!(take("It is "), "It is ");
        assert_eq!(take("**very"), "");
        assert_eq!(take("** good"), "very good");
        assert_eq!(take(&format!(" `{}", "x".repeat(MOST_PENDING))), " ");
        assert_eq!(take(&"y".repeat(10)).len(), MOST_PENDING + 11, "it does not wait for ever");
    }

    #[test]
    fn a_gutter_stands_before_every_line_and_nothing_is_obeyed() {
        let (mut markdown, mut out) = (Markdown::new(Style::Dim, "~ "), Vec::new());
        markdown.push("**a**\n- b\x1b[2J", &mut out);
        markdown.finish(&mut out);
        let shown: String = out.iter().map(|span| span.text.as_str()).collect();
        assert_eq!(shown, "~ a\n~ • b\u{fffd}[2J");
    }

    proptest! {
        /// However text is split, it is rendered as if it had arrived at once.
        #[test]
        fn pieces_make_no_difference(text in "([a-c]| |\n|\\*|\\*\\*|_|`|```\n|# |- |1\\. |> |~|\\\\|日){0,40}", cuts in proptest::collection::vec(0usize..40, 0..6)) {
            let whole = rendered([text.as_str()]);
            let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            let mut cuts: Vec<usize> = cuts.into_iter().filter_map(|cut| places.get(cut).copied()).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            prop_assert_eq!(rendered(cuts.windows(2).map(|pair| &text[pair[0]..pair[1]])), whole);
        }
    }
}
