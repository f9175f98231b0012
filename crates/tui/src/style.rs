//! Styled text.

use std::io;

/// How text is set apart. Everything reads well without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Plain,
    Dim,
    Bold,
    Italic,
    Green,
    Yellow,
    Red,
    /// A heading of an answer.
    Heading,
    /// Code within an answer.
    Code,
    /// What stands before a line, and before each row of it if it has to be broken.
    Gutter,
    /// What stands before a line; the further rows of it are indented as far.
    Hang,
}

impl Style {
    /// The numbers that switch it on.
    #[must_use]
    pub fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Bold => Some("1"),
            Self::Dim | Self::Gutter | Self::Hang => Some("2"),
            Self::Italic => Some("3"),
            Self::Heading => Some("1;4"),
            Self::Red => Some("31"),
            Self::Green => Some("32"),
            Self::Yellow => Some("33"),
            Self::Code => Some("36"),
        }
    }

    /// Whether it stands before a line.
    #[must_use]
    pub fn is_before_lines(self) -> bool {
        matches!(self, Self::Gutter | Self::Hang)
    }
}

/// Text in one style. It holds nothing a terminal would obey but the ends of lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub style: Style,
    pub text: String,
}

impl Span {
    #[must_use]
    pub fn new(style: Style, text: impl Into<String>) -> Self {
        Self { style, text: text.into() }
    }
}

/// A line, or a row that fits a width.
pub type Row = Vec<Span>;

/// What text is written with.
pub trait Ink {
    /// Writes text that holds nothing a terminal would obey but the ends of lines.
    ///
    /// # Errors
    /// Those of the output.
    fn write(&mut self, style: Style, text: &str) -> io::Result<()>;
}

/// Ink that is kept, in pieces.
impl Ink for Vec<Span> {
    fn write(&mut self, style: Style, text: &str) -> io::Result<()> {
        add(self, style, text);
        Ok(())
    }
}

/// Adds text to a line that is kept.
pub(crate) fn add(row: &mut Vec<Span>, style: Style, text: &str) {
    match row.last_mut() {
        _ if text.is_empty() => {}
        Some(last) if last.style == style && !style.is_before_lines() => last.text.push_str(text),
        _ => row.push(Span::new(style, text)),
    }
}
