//! Lines that are longer than whatever a store reads at once.

use super::{append_turn, begin, commit, lines};
use crate::store::{ReadFrom, ThreadStore};

pub(super) fn long_lines_are_read_back(store: &dyn ThreadStore) {
    let (thread, mut writer) = begin(store, &["one"]);
    for length in [70_000, 10, 3 << 20, 1 << 20, 10, 200_000] {
        append_turn(&mut *writer, &"x".repeat(length));
    }
    for number in 0..2000 {
        append_turn(&mut *writer, &format!("turn {number}"));
    }
    commit(&mut *writer, true);
    let all = lines(store, thread, ReadFrom::Start);
    assert_eq!(all.len(), 1 + 2 * (1 + 6 + 2000));
    let mut end = 0;
    for (text, after) in &all {
        end += text.len() as u64 + 1;
        assert_eq!(end, *after, "lines come in order, and none is left out");
    }
    assert_eq!(end, writer.position());
    for place in [0, 3, 7, 8, 12, 500, all.len() - 1] {
        let rest = lines(store, thread, ReadFrom::Position(all[place].1));
        assert!(rest == all[place + 1..], "from line {place} on");
    }
}
