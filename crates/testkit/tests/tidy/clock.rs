//! The time of day is asked for in one way, which survives a clock before 1970.

use crate::{Source, no_complaints, sources};

/// Calls that panic then, in halves so that this file does not contain them, with what to use.
const PANICKING: &[(&str, &str, &str)] = &[
    ("Utc::", "now", "codex_wire::time::now"),
    ("Local::", "now", "codex_wire::time::now"),
    ("Uuid::", "now_v7", "codex_wire::ids::fresh_uuid"),
];

/// The file that checks the clock before it makes an id.
const IDS: &str = "crates/wire/src/ids.rs";

fn complaints(source: &Source) -> Vec<String> {
    if source.is_test() || source.name == IDS {
        return Vec::new();
    }
    // Tests are at the end of a file.
    let product = source.text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let found = PANICKING.iter().filter(|(first, second, _)| product.contains(&format!("{first}{second}")));
    found.map(|(first, second, instead)| format!("{}: {first}{second}; use {instead}", source.name)).collect()
}

#[test]
fn the_clock_is_read_in_one_way() {
    no_complaints(sources().iter().flat_map(complaints).collect());
}

#[test]
fn another_way_to_read_the_clock_is_noticed() {
    let text = format!("fn a() {{ Utc::{}() }}\n#[cfg(test)]\nmod tests {{ Local::{}() }}", "now", "now");
    assert_eq!(complaints(&Source { name: "crates/x/src/lib.rs".to_owned(), text }).len(), 1);
}
