//! Fold levels: the part of an item and of its output that is shown.
//!
//! Invariant: every level is a subset of the lines of the next one, and a line tells how many are hidden.

use codex_terminal::{Row, Span, Style, printable};

/// The number of first and of last lines that a preview shows.
const HEAD_LINES: usize = 5;
const TAIL_LINES: usize = 5;

/// The part of an item that is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Fold {
    /// Commands and names of files, without output.
    Commands,
    /// The first and the last lines.
    #[default]
    Preview,
    /// Everything.
    All,
}

impl Fold {
    /// The next level, around.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Commands => Self::Preview,
            Self::Preview => Self::All,
            Self::All => Self::Commands,
        }
    }

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Commands => "commands",
            Self::Preview => "preview",
            Self::All => "all",
        }
    }
}

/// The line that stands for hidden ones.
#[must_use]
pub fn more(hidden: usize) -> Option<Row> {
    (hidden > 0).then(|| vec![Span::new(Style::Gutter, "  "), Span::new(Style::Dim, format!("… {hidden} more lines"))])
}

/// The lines of some output at a fold level.
#[must_use]
pub fn folded(output: &str, fold: Fold) -> Vec<Row> {
    let line = |text: &str| vec![Span::new(Style::Gutter, "  │ "), Span::new(Style::Dim, printable(text))];
    let count = output.lines().count();
    let (head, tail) = match fold {
        Fold::Commands => (0, 0),
        Fold::Preview if count > HEAD_LINES + TAIL_LINES + 1 => (HEAD_LINES, TAIL_LINES),
        Fold::Preview | Fold::All => (count, 0),
    };
    let mut lines: Vec<Row> = output.lines().take(head).map(line).collect();
    lines.extend(more(count - head - tail));
    lines.extend(output.lines().skip(count - tail).map(line));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_lines_are_counted() {
        let output = "line\n".repeat(30);
        let count = |fold| folded(&output, fold).len();
        assert_eq!((count(Fold::Commands), count(Fold::Preview), count(Fold::All)), (1, 11, 30));
        let text = |row: &Row| row.iter().map(|span| span.text.as_str()).collect::<String>();
        assert_eq!(text(&folded(&output, Fold::Preview)[5]), "  … 20 more lines");
        assert_eq!(Fold::Commands.next().next().next(), Fold::Commands);
        assert_eq!(folded("one\n", Fold::Preview).len(), 1);
    }
}
