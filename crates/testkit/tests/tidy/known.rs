//! Offences that are known and still to be fixed. Each list of them may only shrink.

use std::collections::BTreeMap;

/// One offence a line: its rule, how often it occurs, and where.
const LIST: &str = include_str!("known.txt");

/// The entries of a rule: where, and how often.
fn listed<'a>(list: &'a str, rule: &str) -> BTreeMap<&'a str, usize> {
    let entries = list.lines().filter_map(|line| {
        let (of, rest) = line.split_once(' ')?;
        let (count, place) = rest.split_once(' ')?;
        (of == rule).then(|| (place, count.parse().expect("the second word of a line is a number")))
    });
    entries.collect()
}

fn compare(list: &str, rule: &str, found: &BTreeMap<String, usize>) -> Vec<String> {
    let listed = listed(list, rule);
    let more = found.iter().filter_map(|(place, count)| {
        let known = listed.get(place.as_str()).copied().unwrap_or_default();
        (*count > known).then(|| format!("{rule} {count} {place}: {known} are known, and no more may come"))
    });
    let fewer = listed.iter().filter_map(|(place, known)| {
        let count = found.get(*place).copied().unwrap_or_default();
        (count < *known).then(|| format!("{rule} {known} {place}: {count} are left, so correct known.txt"))
    });
    more.chain(fewer).collect()
}

/// The complaints about offences that are not in the list, and about those in the list that are gone.
pub(crate) fn complaints(rule: &str, found: &BTreeMap<String, usize>) -> Vec<String> {
    compare(LIST, rule, found)
}

/// How often each place was found.
pub(crate) fn counted(places: impl IntoIterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for place in places {
        *counts.entry(place).or_default() += 1;
    }
    counts
}

#[test]
fn the_list_is_sorted_and_names_nothing_twice() {
    let lines: Vec<(&str, &str)> = LIST
        .lines()
        .map(|line| {
            let mut parts = line.splitn(3, ' ');
            (parts.next().unwrap_or_default(), parts.nth(1).unwrap_or_default())
        })
        .collect();
    let wrong = lines.windows(2).filter(|two| two[0] >= two[1]);
    crate::no_complaints(wrong.map(|two| format!("known.txt: {} {} is out of place", two[1].0, two[1].1)).collect());
}

#[test]
fn a_list_shrinks_and_never_grows() {
    let list = "raw-json 2 a.rs\nraw-json 1 b.rs\nname 9 a.rs\n";
    let found = |counts: &[(&str, usize)]| counts.iter().map(|(place, count)| ((*place).to_owned(), *count)).collect();
    assert!(compare(list, "raw-json", &found(&[("a.rs", 2), ("b.rs", 1)])).is_empty());
    let grown = compare(list, "raw-json", &found(&[("a.rs", 3), ("b.rs", 1), ("c.rs", 1)]));
    assert_eq!(grown.len(), 2, "{grown:?}");
    let shrunk = compare(list, "raw-json", &found(&[("a.rs", 1)]));
    assert_eq!(shrunk.len(), 2, "{shrunk:?}");
}
