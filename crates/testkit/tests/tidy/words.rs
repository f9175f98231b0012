//! Words that are banned from the sources.

use crate::{Source, no_complaints, sources};

/// Names that say nothing about the purpose of a file.
const EMPTY_NAMES: &[&str] = &["utils", "util", "common", "helpers", "helper", "manager", "misc"];

/// Marks of unfinished work, written in halves so that this file does not contain them.
const UNFINISHED: &[(&str, &str)] =
    &[("todo", "!("), ("unimplemented", "!("), ("TO", "DO"), ("FIX", "ME"), ("dbg", "!(")];

/// Signs of a test that does not test, or one that sleeps.
const IDLE_TESTS: &[(&str, &str)] = &[("#[ig", "nore"), ("thread::", "sleep(")];

fn complaints(source: &Source) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut parts = source.name.trim_end_matches(".rs").split('/');
    if parts.any(|part| EMPTY_NAMES.contains(&part)) {
        complaints.push(format!("{}: a name that says nothing", source.name));
    }
    for (number, line) in source.text.lines().enumerate() {
        for (first, second) in UNFINISHED.iter().chain(IDLE_TESTS) {
            let word = format!("{first}{second}");
            if line.contains(&word) {
                complaints.push(format!("{}:{}: {word}", source.name, number + 1));
            }
        }
    }
    complaints
}

#[test]
fn no_empty_names_and_no_unfinished_work() {
    no_complaints(sources().iter().flat_map(complaints).collect());
}

#[test]
fn a_forbidden_word_is_noticed() {
    let text = format!("fn a() {{ {}{}) }}", "todo", "!(");
    let found = complaints(&Source { name: "crates/x/src/utils.rs".to_owned(), text });
    assert_eq!(found.len(), 2, "{found:?}");
}
