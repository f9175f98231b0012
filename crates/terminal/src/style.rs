//! Styled text.

use std::io;

/// The style of text. Everything is readable without it.
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
    Link,
    /// Words, texts, comments and numbers of code, its types, and the names of its functions and keys.
    Keyword,
    Quoted,
    Comment,
    Number,
    Type,
    Name,
    /// Changed words of a diff.
    AddedWord,
    RemovedWord,
    /// Selected text, and titles.
    Selected,
    Bar,
    /// A line prefix that is repeated on each wrapped row.
    Gutter,
    /// A line prefix; wrapped rows are indented by its width.
    Hang,
}

impl Style {
    /// The SGR parameters that switch it on.
    #[must_use]
    pub fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Bold => Some("1"),
            Self::Dim | Self::Gutter | Self::Hang | Self::Comment => Some("2"),
            Self::Italic => Some("3"),
            Self::Heading => Some("1;4"),
            Self::Red => Some("31"),
            Self::Green | Self::Quoted => Some("32"),
            Self::Yellow | Self::Number | Self::Type => Some("33"),
            Self::Code | Self::Name => Some("36"),
            Self::Link => Some("4;36"),
            Self::Keyword => Some("35"),
            Self::AddedWord => Some("7;32"),
            Self::RemovedWord => Some("7;31"),
            Self::Selected | Self::Bar => Some("7"),
        }
    }

    /// Whether it is a line prefix.
    #[must_use]
    pub fn is_before_lines(self) -> bool {
        matches!(self, Self::Gutter | Self::Hang)
    }
}

/// Text in one style. It contains no control characters except line breaks.
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

/// A line, or a row of a given width.
pub type Row = Vec<Span>;

/// A sink for styled text.
pub trait Ink {
    /// Writes text that contains no control characters except line breaks.
    ///
    /// # Errors
    /// Those of the output.
    fn write(&mut self, style: Style, text: &str) -> io::Result<()>;
}

/// Collects the text in pieces.
impl Ink for Vec<Span> {
    fn write(&mut self, style: Style, text: &str) -> io::Result<()> {
        add(self, style, text);
        Ok(())
    }
}

/// Adds text to a collected line.
pub(crate) fn add(row: &mut Vec<Span>, style: Style, text: &str) {
    match row.last_mut() {
        _ if text.is_empty() => {}
        Some(last) if last.style == style && !style.is_before_lines() => last.text.push_str(text),
        _ => row.push(Span::new(style, text)),
    }
}
