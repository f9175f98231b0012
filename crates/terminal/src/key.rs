//! Keys, by one name each.

/// A key, or something that a terminal sends like one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    Char(char),
    Ctrl(char),
    Alt(char),
    /// A function key.
    F(u8),
    Enter,
    /// A line break that does not send the message.
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
    BackTab,
    AltUp,
    AltDown,
    Esc,
    /// Text that was pasted.
    Paste(String),
}
