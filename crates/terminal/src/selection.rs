//! The selected entry of a list: the keys that move it, and the part of the list around it.

use crate::key::Key;

/// The number of entries that Page Up and Page Down skip.
const PAGE: isize = 10;

/// The position that a key moves the selection to, in a list with this many entries; `None` for any other key.
#[must_use]
pub fn moved(at: usize, count: usize, key: &Key) -> Option<usize> {
    let last = count.saturating_sub(1);
    let by = |by: isize| at.saturating_add_signed(by).min(last);
    match key {
        Key::Up | Key::Ctrl('p') => Some(by(-1)),
        Key::Down => Some(by(1)),
        Key::PageUp => Some(by(-PAGE)),
        Key::PageDown => Some(by(PAGE)),
        Key::Home => Some(0),
        Key::End => Some(last),
        _ => None,
    }
}

/// The first entry in view, if there is room for some: the selected one is in the middle as far as possible.
#[must_use]
pub fn first_in_view(at: usize, count: usize, room: usize) -> usize {
    at.saturating_sub(room / 2).min(count.saturating_sub(room))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_stays_in_its_list() {
        let after = |at, count, key| moved(at, count, &key);
        assert_eq!(after(0, 3, Key::Up), Some(0));
        assert_eq!(after(2, 3, Key::Down), Some(2));
        assert_eq!(after(5, 30, Key::PageDown), Some(15));
        assert_eq!(after(5, 30, Key::PageUp), Some(0));
        assert_eq!(after(5, 30, Key::End), Some(29));
        assert_eq!(after(0, 0, Key::End), Some(0));
        assert_eq!(after(0, 3, Key::Char('x')), None);
    }

    #[test]
    fn the_selected_entry_is_in_view() {
        assert_eq!(first_in_view(0, 30, 10), 0);
        assert_eq!(first_in_view(15, 30, 10), 10);
        assert_eq!(first_in_view(29, 30, 10), 20);
        assert_eq!(first_in_view(1, 3, 10), 0);
    }
}
