//! Names of keys: `ctrl-x`, `alt-up`, `f2`, `pageup`, a character.

use crate::key::Key;

/// Keys with a name of their own.
const NAMED: &[(&str, Key)] = &[
    ("enter", Key::Enter),
    ("ctrl-j", Key::NewLine),
    ("alt-enter", Key::NewLine),
    ("shift-enter", Key::NewLine),
    ("tab", Key::Char('\t')),
    ("space", Key::Char(' ')),
    ("shift-tab", Key::BackTab),
    ("backspace", Key::Backspace),
    ("delete", Key::Delete),
    ("left", Key::Left),
    ("right", Key::Right),
    ("ctrl-left", Key::WordLeft),
    ("alt-left", Key::WordLeft),
    ("ctrl-right", Key::WordRight),
    ("alt-right", Key::WordRight),
    ("up", Key::Up),
    ("down", Key::Down),
    ("alt-up", Key::AltUp),
    ("alt-down", Key::AltDown),
    ("pageup", Key::PageUp),
    ("pagedown", Key::PageDown),
    ("home", Key::Home),
    ("end", Key::End),
    ("esc", Key::Esc),
    ("ctrl-/", Key::Ctrl('7')),
    ("ctrl-_", Key::Ctrl('7')),
    ("ctrl-space", Key::Ctrl(' ')),
    // Terminals send the byte of another key for these.
    ("ctrl-h", Key::Ctrl('h')),
    ("alt-backspace", Key::Ctrl('w')),
];

/// The key with a name.
#[must_use]
pub fn parse(name: &str) -> Option<Key> {
    let is_lower = name.len() > 1;
    let lower = if is_lower { name.to_lowercase() } else { name.to_owned() };
    if let Some((_, key)) = NAMED.iter().find(|(known, _)| *known == lower) {
        return Some(key.clone());
    }
    if let Some(number) = lower.strip_prefix('f').and_then(|number| number.parse().ok()) {
        return (1..=12).contains(&number).then_some(Key::F(number));
    }
    let one = |text: &str| {
        let mut characters = text.chars();
        characters.next().filter(|c| characters.next().is_none() && !c.is_control())
    };
    if let Some(c) = lower.strip_prefix("ctrl-").and_then(one) {
        return c.is_ascii_alphanumeric().then_some(Key::Ctrl(c));
    }
    // Alt with an upper-case letter is a key of its own.
    if lower.starts_with("alt-") {
        return one(&name[4..]).map(Key::Alt);
    }
    one(name).map(Key::Char)
}

/// The name of a key.
#[must_use]
pub fn name(key: &Key) -> String {
    if let Some((known, _)) = NAMED.iter().find(|(_, named)| named == key) {
        return (*known).to_owned();
    }
    match key {
        Key::Char(c) => c.to_string(),
        Key::Ctrl(c) => format!("ctrl-{c}"),
        Key::Alt(c) => format!("alt-{c}"),
        Key::F(number) => format!("f{number}"),
        other => format!("{other:?}").to_lowercase(),
    }
}

/// The name of a key in a hint, as keyboards have it: `Ctrl-X`, `Shift-Tab`.
#[must_use]
pub fn label(key: &Key) -> String {
    match key {
        Key::Char(c) if !c.is_whitespace() => c.to_string(),
        Key::Alt(c) if c.is_uppercase() => format!("Alt-Shift-{c}"),
        Key::PageUp => "Page Up".to_owned(),
        Key::PageDown => "Page Down".to_owned(),
        key => {
            let capital = |part: &str| {
                let mut letters = part.chars();
                letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>()).unwrap_or_default()
            };
            name(key).split('-').map(capital).collect::<Vec<_>>().join("-")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_those_of_keyboards() {
        let labels = [
            (Key::Ctrl('x'), "Ctrl-X"),
            (Key::Char('d'), "d"),
            (Key::Char('\t'), "Tab"),
            (Key::BackTab, "Shift-Tab"),
            (Key::AltUp, "Alt-Up"),
            (Key::Alt('>'), "Alt->"),
            (Key::Alt('r'), "Alt-R"),
            (Key::Alt('R'), "Alt-Shift-R"),
            (Key::F(2), "F2"),
            (Key::PageUp, "Page Up"),
        ];
        for (key, shown) in labels {
            assert_eq!(label(&key), shown);
        }
    }

    #[test]
    fn names_are_read() {
        for (name, key) in [
            ("ctrl-r", Key::Ctrl('r')),
            ("Ctrl-R", Key::Ctrl('r')),
            ("alt-<", Key::Alt('<')),
            ("alt-N", Key::Alt('N')),
            ("f12", Key::F(12)),
            ("Alt-Enter", Key::NewLine),
            ("G", Key::Char('G')),
            ("é", Key::Char('é')),
            ("f", Key::Char('f')),
        ] {
            assert_eq!(parse(name), Some(key), "{name}");
        }
        for name in ["", "ctrl-", "ctrl-é", "f13", "f0", "hyper-x", "ab", "alt-", "\u{1b}"] {
            assert_eq!(parse(name), None, "{name}");
        }
    }
}
