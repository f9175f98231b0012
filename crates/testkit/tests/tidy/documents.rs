//! Documents name only tests that exist.

use crate::{Source, no_complaints, root, sources};

/// The document that names tests as `file::test`.
const NAMES_TESTS: &str = "docs/compatibility.md";

/// The names in backquotes of the form `file::test`.
fn named(text: &str) -> Vec<(&str, &str)> {
    let is_name =
        |name: &&str| name.chars().all(|letter| letter.is_ascii_lowercase() || "_0123456789:".contains(letter));
    text.split('`').skip(1).step_by(2).filter(is_name).filter_map(|name| name.split_once("::")).collect()
}

fn complaints(text: &str, sources: &[Source]) -> Vec<String> {
    let exists = |file: &str, test: &str| {
        let mut files =
            sources.iter().filter(|source| source.is_test() && source.name.ends_with(&format!("/{file}.rs")));
        files.any(|source| source.text.contains(&format!("fn {test}(")))
    };
    let missing = named(text).into_iter().filter(|(file, test)| !exists(file, test));
    missing.map(|(file, test)| format!("{NAMES_TESTS}: there is no test {file}::{test}")).collect()
}

#[test]
fn documents_name_existing_tests() {
    let text = std::fs::read_to_string(root().join(NAMES_TESTS)).expect("the document can be read");
    assert!(named(&text).len() > 50, "{:?}", named(&text));
    no_complaints(complaints(&text, &sources()));
}

#[test]
fn a_missing_test_is_noticed() {
    let test = Source { name: "crates/x/tests/it/a.rs".to_owned(), text: "fn one() {}".to_owned() };
    let found = complaints("`a::one`, `a::two`, `b::one`, `thread/start`", &[test]);
    assert_eq!(found.len(), 2, "{found:?}");
}
