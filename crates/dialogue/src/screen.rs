//! Draws scrolling text, and a footer that changes in place.
//!
//! Invariants: only this file of the chat writes to the terminal; another user interface would replace it. The terminal
//! obeys only control sequences that are added here.

use std::io::{self, Write};

use crate::transcript::{Style, printable};
use crate::wrap::{row_columns, rows, typed_rows};
use crate::{Row, Span};

#[derive(Debug, Clone, Copy)]
pub struct Capabilities {
    pub colour: bool,
    /// Whether the cursor cannot be moved.
    pub is_dumb: bool,
}

/// The part below the scrolling text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Footer {
    /// Rows of a list, above everything else.
    pub list: Vec<Row>,
    pub status: Row,
    /// Whether that line is a question, which a dumb terminal shows too.
    pub is_question: bool,
    /// The input and its cursor, if something can be typed.
    pub typed: Option<(String, usize)>,
}

pub struct Screen<W> {
    out: W,
    capabilities: Capabilities,
    width: usize,
    height: usize,
    /// The current incomplete line.
    line: Row,
    footer: Footer,
    /// The widths of the rows drawn below the scrolled text, and the cursor position among them.
    drawn: Vec<usize>,
    cursor: (usize, usize),
    /// The input as last echoed by a dumb terminal.
    echoed: Option<String>,
}

impl<W: Write> Screen<W> {
    pub fn new(out: W, capabilities: Capabilities, size: (u16, u16)) -> Self {
        let mut screen = Self {
            out,
            capabilities,
            width: 0,
            height: 0,
            line: Row::new(),
            footer: Footer::default(),
            drawn: Vec::new(),
            cursor: (0, 0),
            echoed: None,
        };
        screen.measure(size);
        screen
    }

    fn measure(&mut self, (width, height): (u16, u16)) {
        // A terminal that does not know its size reports zero.
        let or = |size: u16, usual| if size == 0 { usual } else { usize::from(size) };
        self.width = or(width, 80).max(8);
        self.height = or(height, 24).max(4);
    }

    pub fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }

    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Shows scrolling text, and the new footer.
    pub fn show(&mut self, spans: Vec<Span>, footer: Footer) -> io::Result<()> {
        if self.capabilities.is_dumb {
            return self.show_dumb(&spans, footer);
        }
        if spans.is_empty() && footer == self.footer && !self.drawn.is_empty() {
            return Ok(());
        }
        let mut finished = Vec::new();
        for span in spans {
            let mut lines = span.text.split('\n');
            self.add(span.style, lines.next().unwrap_or_default());
            for text in lines {
                finished.extend(rows(&std::mem::take(&mut self.line), self.width));
                self.add(span.style, text);
            }
        }
        let mut unfinished = rows(&std::mem::take(&mut self.line), self.width);
        self.line = unfinished.pop().unwrap_or_default();
        finished.extend(unfinished);
        self.footer = footer;
        let up = self.cursor.0;
        self.draw(up, &finished)
    }

    fn add(&mut self, style: Style, text: &str) {
        if !text.is_empty() {
            self.line.push(Span::new(style, text));
        }
    }

    /// Adapts to a new size of the terminal. Drawn rows may have been rewrapped.
    pub fn resize(&mut self, size: (u16, u16)) -> io::Result<()> {
        self.measure(size);
        if self.capabilities.is_dumb {
            return Ok(());
        }
        let (row, column) = self.cursor;
        let taken = |columns: &usize| columns.div_ceil(self.width).max(1);
        let up = self.drawn.iter().take(row).map(taken).sum::<usize>() + column / self.width;
        self.draw(up, &[])
    }

    /// Clears and redraws everything. Each row is cleared separately, because terminals keep a copy of a screen that is
    /// cleared as a whole.
    pub fn clear(&mut self) -> io::Result<()> {
        if self.capabilities.is_dumb {
            return Ok(());
        }
        let mut frame = b"\x1b[H".to_vec();
        for row in 0..self.height {
            frame.extend(if row == 0 { b"\x1b[K".as_slice() } else { b"\r\n\x1b[K" });
        }
        frame.extend(b"\x1b[H");
        self.out.write_all(&frame)?;
        self.draw(0, &[])
    }

    /// Removes the footer because another program gets the terminal. The next drawing starts over.
    pub fn leave(&mut self) -> io::Result<()> {
        if self.capabilities.is_dumb {
            return self.end_echo().and_then(|()| self.out.flush());
        }
        let footer = std::mem::take(&mut self.footer);
        self.draw(self.cursor.0, &[])?;
        self.footer = footer;
        if !self.line.is_empty() {
            write!(self.out, "\r\n")?;
        }
        self.forget();
        self.out.flush()
    }

    pub fn come_back(&mut self) -> io::Result<()> {
        if self.capabilities.is_dumb {
            return Ok(());
        }
        self.forget();
        self.draw(0, &[])
    }

    fn forget(&mut self) {
        self.drawn.clear();
        self.cursor = (0, 0);
    }

    /// Removes the footer, and leaves the cursor at the start of a line.
    pub fn finish(&mut self) -> io::Result<()> {
        if self.capabilities.is_dumb {
            return self.end_echo().and_then(|()| self.out.flush());
        }
        self.show(Vec::new(), Footer::default())?;
        if !self.line.is_empty() {
            self.line.clear();
            write!(self.out, "\r\n")?;
        }
        self.forget();
        self.out.flush()
    }

    /// Draws rows that scroll, then the incomplete line and the footer. The cursor is `up` rows below the first row
    /// that was drawn before.
    fn draw(&mut self, up: usize, finished: &[Row]) -> io::Result<()> {
        let mut frame = b"\x1b[?25l\r".to_vec();
        if up > 0 {
            write!(frame, "\x1b[{up}A")?;
        }
        // Not from the first column: in the first row that would clear the whole screen.
        frame.extend(b" \x1b[J\r\x1b[K");
        for row in finished {
            self.paint(row, &mut frame)?;
            frame.extend(b"\r\n");
        }
        let (live, cursor) = self.below();
        for (at, row) in live.iter().enumerate() {
            if at > 0 {
                frame.extend(b"\r\n");
            }
            self.paint(row, &mut frame)?;
        }
        let back = live.len().saturating_sub(1) - cursor.0;
        if back > 0 {
            write!(frame, "\x1b[{back}A")?;
        }
        frame.push(b'\r');
        if cursor.1 > 0 {
            write!(frame, "\x1b[{}C", cursor.1)?;
        }
        frame.extend(b"\x1b[?25h");
        self.drawn = live.iter().map(|row| row_columns(row)).collect();
        self.cursor = cursor;
        self.out.write_all(&frame)?;
        self.out.flush()
    }

    /// The rows that are drawn in place, and the cursor position.
    fn below(&self) -> (Vec<Row>, (usize, usize)) {
        let mut live = Vec::new();
        if !self.line.is_empty() {
            live.push(self.line.clone());
        }
        let most = self.height.saturating_sub(3);
        live.extend(self.footer.list.iter().take(most.saturating_sub(live.len())).cloned());
        if !self.footer.status.is_empty() {
            live.extend(rows(&self.footer.status, self.width).into_iter().take(self.height / 2));
        }
        let Some((text, at)) = &self.footer.typed else {
            let column = live.last().map_or(0, |row| row_columns(row)).min(self.width - 1);
            return (live.clone(), (live.len().saturating_sub(1), column));
        };
        let most = self.height.saturating_sub(live.len() + 1).clamp(1, self.height / 2);
        let (typed, (row, column)) = typed_rows(text, *at, self.width, most);
        let cursor = (live.len() + row, column);
        live.extend(typed);
        (live, cursor)
    }

    fn paint(&self, row: &[Span], frame: &mut Vec<u8>) -> io::Result<()> {
        row.iter().try_for_each(|span| match span.style.code().filter(|_| self.capabilities.colour) {
            Some(code) => write!(frame, "\x1b[{code}m{}\x1b[0m", printable(&span.text)),
            None => write!(frame, "{}", printable(&span.text)),
        })
    }

    /// Without cursor movement, everything is written once, in order.
    fn show_dumb(&mut self, spans: &[Span], footer: Footer) -> io::Result<()> {
        if !spans.is_empty() {
            self.end_echo()?;
        }
        for span in spans {
            write!(self.out, "{}", lines(&span.text, "\r\n"))?;
        }
        if footer.is_question && footer != self.footer {
            self.end_echo()?;
            for span in &footer.status {
                write!(self.out, "{}", lines(&span.text, "\r\n"))?;
            }
            write!(self.out, "\r\n")?;
        }
        let is_idle = footer.status.is_empty();
        if let Some((text, _)) = footer.typed.as_ref().filter(|(text, _)| is_idle || !text.is_empty()) {
            if let Some(more) = self.echoed.as_deref().and_then(|echoed| text.strip_prefix(echoed)) {
                write!(self.out, "{}", lines(more, "\r\n  "))?;
            } else {
                self.end_echo()?;
                write!(self.out, "> {}", lines(text, "\r\n  "))?;
            }
            self.echoed = Some(text.clone());
        }
        self.footer = footer;
        self.out.flush()
    }

    fn end_echo(&mut self) -> io::Result<()> {
        match self.echoed.take() {
            Some(_) => write!(self.out, "\r\n"),
            None => Ok(()),
        }
    }
}

/// Text with other line breaks, and no control sequences.
fn lines(text: &str, end: &str) -> String {
    printable(text).replace('\n', end)
}

#[cfg(test)]
mod tests;
