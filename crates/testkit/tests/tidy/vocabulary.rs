//! A new kind of item touches few files, and rollout lines are known in one place.

use crate::{Source, no_complaints, sources};

/// The maximum number of product files that may name a kind: its own, the one that lists all kinds, and those of three
/// dialects.
const MOST_FILES: usize = 5;

/// Crates that create items, which does not require knowing all kinds. The model's items are its own.
const MAKERS: &[&str] = &["crates/agents/", "crates/engine/", "crates/mcp/", "crates/tools/", "crates/model/"];

/// The types of lines.
const LINES: &[&str] = &["event_msg", "response_item", "turn_context", "session_meta", "compacted"];

/// The code that knows what a line is: the log, the store, and the wire types.
const READERS: &[&str] = &["crates/log/", "crates/store/", "crates/wire/src/rollout.rs"];

/// The part of a file before its tests; nothing for test files.
fn product(source: &Source) -> &str {
    if source.is_test() { "" } else { source.text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default() }
}

/// The kinds of items, as listed by the log.
fn kinds(sources: &[Source]) -> Vec<String> {
    let list = sources.iter().find(|source| source.name == "crates/log/src/item/mod.rs");
    let list = list.expect("the log lists the kinds of items");
    let (_, list) = list.text.split_once("pub enum Item {").expect("they are an enum");
    let (list, _) = list.split_once("\n}").expect("it ends");
    list.lines().filter_map(|line| Some(line.trim().split_once('(')?.0.to_owned())).collect()
}

fn names_kind(source: &Source, kind: &str) -> bool {
    let is_own = source.name.starts_with("crates/log/src/item/");
    let word = if is_own { format!("Self::{kind}(") } else { format!("Item::{kind}(") };
    let is_longer = |at: usize| product(source)[..at].ends_with(|c: char| c.is_alphanumeric());
    product(source).match_indices(&word).any(|(at, _)| !is_longer(at))
}

#[test]
fn a_kind_of_item_is_known_in_few_files() {
    let sources = sources();
    let kinds = kinds(&sources);
    assert!(kinds.len() > 5, "{kinds:?}");
    let is_maker = |source: &&Source| MAKERS.iter().any(|maker| source.name.starts_with(maker));
    let files = |kind: &String| {
        let named = sources.iter().filter(|source| !is_maker(source) && names_kind(source, kind));
        named.map(|source| source.name.as_str()).collect::<Vec<_>>()
    };
    let counted = kinds.iter().map(|kind| (kind, files(kind)));
    let too_many = counted.filter(|(_, files)| files.len() > MOST_FILES);
    no_complaints(too_many.map(|(kind, files)| format!("{kind} is named in {}", files.join(", "))).collect());
}

fn names_line(source: &Source) -> Vec<String> {
    if READERS.iter().any(|reader| source.name.starts_with(reader)) {
        return Vec::new();
    }
    let named = LINES.iter().filter(|line| product(source).contains(&format!("\"{line}\"")));
    named.map(|line| format!("{}: leave the type {line} to the log", source.name)).collect()
}

#[test]
fn lines_are_known_to_log_and_store_alone() {
    no_complaints(sources().iter().flat_map(names_line).collect());
}

#[test]
fn a_reader_of_lines_elsewhere_is_noticed() {
    let text =
        "fn a(kind: &str) -> bool { kind == \"event_msg\" }\n#[cfg(test)]\nmod tests { \"compacted\" }".to_owned();
    let found = names_line(&Source { name: "crates/x/src/lib.rs".to_owned(), text });
    assert_eq!(found.len(), 1, "{found:?}");
}
