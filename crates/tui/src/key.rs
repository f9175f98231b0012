//! Keys, by one name each.

/// A key, or what a terminal sends as if it were one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    Char(char),
    Ctrl(char),
    Alt(char),
    Enter,
    /// A new line that sends nothing.
    NewLine,
    Backspace,
    Delete,
    Left,
    Right,
    WordLeft,
    WordRight,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Esc,
    /// Text that was pasted.
    Paste(String),
}
