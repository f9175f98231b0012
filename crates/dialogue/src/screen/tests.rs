//! Tests the screen with a small terminal emulator that supports exactly what the chat sends.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use unicode_width::UnicodeWidthChar;

use super::*;

/// A terminal that wraps lines at its right edge, as real ones do: with the next character.
struct EmulatedTerminal {
    width: usize,
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
}

impl EmulatedTerminal {
    fn new(width: usize) -> Self {
        Self { width, lines: vec![Vec::new()], row: 0, column: 0 }
    }

    fn take(&mut self, bytes: &[u8]) {
        let text = std::str::from_utf8(bytes).unwrap();
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            match c {
                '\r' => self.column = 0,
                '\n' => self.down(),
                '\x1b' => {
                    assert_eq!(rest.next(), Some('['), "only such sequences are sent");
                    let mut number = String::new();
                    let end = rest.find(|c| {
                        number.push(*c);
                        c.is_ascii_alphabetic()
                    });
                    number.pop();
                    self.obey(end.unwrap(), number.parse().unwrap_or(1));
                }
                c => self.put(c),
            }
        }
    }

    fn down(&mut self) {
        self.row += 1;
        if self.row == self.lines.len() {
            self.lines.push(Vec::new());
        }
    }

    fn obey(&mut self, what: char, number: usize) {
        match what {
            'A' => self.row = self.row.checked_sub(number).expect("the cursor stays on the screen"),
            'C' => self.column += number,
            'K' => self.lines[self.row].truncate(self.column),
            'H' => (self.row, self.column) = (0, 0),
            'J' => {
                assert!((self.row, self.column) != (0, 0), "a terminal keeps a copy of what is cleared as a whole");
                self.lines.truncate(self.row + 1);
                self.lines[self.row].truncate(self.column);
            }
            'h' | 'l' | 'm' => {}
            other => panic!("{other} is not sent"),
        }
    }

    fn put(&mut self, c: char) {
        let wide = c.width().unwrap_or(0);
        if self.column + wide > self.width {
            self.column = 0;
            self.down();
        }
        let line = &mut self.lines[self.row];
        while line.len() < self.column {
            line.push(' ');
        }
        line.truncate(self.column);
        line.push(c);
        // A wide character fills two cells.
        line.extend(std::iter::repeat_n('\0', wide.saturating_sub(1)));
        self.column += wide;
    }

    fn shown(&self) -> String {
        let line = |line: &Vec<char>| line.iter().filter(|c| **c != '\0').collect::<String>().trim_end().to_owned();
        self.lines.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// A screen on such a terminal.
struct Shown {
    screen: Screen<Vec<u8>>,
    terminal: EmulatedTerminal,
}

impl Shown {
    fn new(width: u16, height: u16) -> Self {
        let screen = Screen::new(Vec::new(), Capabilities { colour: true, is_dumb: false }, (width, height));
        Self { screen, terminal: EmulatedTerminal::new(usize::from(width)) }
    }

    fn show(&mut self, text: &str, typed: &str) -> &mut Self {
        let spans = if text.is_empty() { Vec::new() } else { vec![Span::new(Style::Dim, text)] };
        let footer = Footer { typed: Some((typed.to_owned(), typed.len())), ..Footer::default() };
        self.screen.show(spans, footer).unwrap();
        let bytes = std::mem::take(&mut self.screen.out);
        self.terminal.take(&bytes);
        self
    }

    #[track_caller]
    fn check(&self, expected: Expect) {
        let EmulatedTerminal { row, column, .. } = self.terminal;
        expected.assert_eq(&format!("{}\ncursor {row} {column}\n", self.terminal.shown()));
    }
}

#[test]
fn streamed_text_appears_above_the_typed_text() {
    let mut shown = Shown::new(20, 10);
    shown.show("Hel", "").show("lo wor", "ty").show("ld, this goes on\nnext", "typed");
    shown.check(expect![[r#"
        Hello world, this
        goes on
        next
        > typed
        cursor 3 7
    "#]]);
}

#[test]
fn a_prompt_of_several_rows_is_drawn_in_place() {
    let mut shown = Shown::new(20, 10);
    shown.show("a\n", "one\ntwo").show("", "one\ntwo 日本語 日本語 日").show("b\n", "x");
    shown.check(expect![[r#"
        a
        b
        > x
        cursor 2 3
    "#]]);
}

#[test]
fn nothing_is_left_below_at_the_end() {
    let mut shown = Shown::new(20, 10);
    shown.show("unfinished", "typed");
    shown.screen.finish().unwrap();
    let bytes = std::mem::take(&mut shown.screen.out);
    shown.terminal.take(&bytes);
    shown.check(expect![[r#"
        unfinished

        cursor 1 0
    "#]]);
}

#[test]
fn a_screen_is_cleared_and_redrawn() {
    let mut shown = Shown::new(20, 4);
    shown.show("one\ntwo\nunfinished", "typed");
    shown.screen.clear().unwrap();
    shown.show("", "typed!");
    shown.check(expect![[r#"
        unfinished
        > typed!
        cursor 1 8
    "#]]);
}

#[test]
fn somebody_else_may_have_the_terminal_for_a_while() {
    let mut shown = Shown::new(20, 10);
    shown.show("unfinished", "typed");
    shown.screen.leave().unwrap();
    shown.screen.out.extend(b"Stopped\r\n");
    shown.screen.come_back().unwrap();
    shown.show(" line\n", "typed");
    shown.check(expect![[r#"
        unfinished
        Stopped
        unfinished line
        > typed
        cursor 3 7
    "#]]);
}

#[test]
fn a_dumb_terminal_gets_text_once() {
    let mut screen = Screen::new(Vec::new(), Capabilities { colour: false, is_dumb: true }, (0, 0));
    let footer = |typed: &str| Footer { typed: Some((typed.to_owned(), typed.len())), ..Footer::default() };
    for typed in ["", "h", "he", "hx", "hello"] {
        screen.show(Vec::new(), footer(typed)).unwrap();
    }
    screen.show(vec![Span::new(Style::Bold, "> hello\n")], Footer::default()).unwrap();
    screen.finish().unwrap();
    assert_eq!(String::from_utf8(screen.out).unwrap(), "> he\r\n> hx\r\n> hello\r\n> hello\r\n");
}

proptest! {
    /// However text is split, the screen ends up as if it had arrived at once, with the cursor after the input.
    #[test]
    fn pieces_make_no_difference(
        pieces in proptest::collection::vec(("[a-z日 \n]{0,30}", "[a-z日\n]{0,30}"), 1..8),
        width in 10u16..40,
    ) {
        let mut piecewise = Shown::new(width, 12);
        for (text, typed) in &pieces {
            piecewise.show(text, typed);
        }
        let mut at_once = Shown::new(width, 12);
        let all: String = pieces.iter().map(|(text, _)| text.as_str()).collect();
        at_once.show(&all, &pieces[pieces.len() - 1].1);
        prop_assert_eq!(piecewise.terminal.shown(), at_once.terminal.shown());
        prop_assert_eq!(piecewise.terminal.column, at_once.terminal.column);
    }
}
