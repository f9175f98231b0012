//! A session consists of parts: they meet in six files, and there are few of them.

use crate::{Source, no_complaints, sources};

/// The files where the parts of a session meet.
const MEETING: &[&str] = &[
    "crates/engine/src/session/mod.rs",
    "crates/engine/src/session/perform.rs",
    "crates/engine/src/session/ending.rs",
    "crates/engine/src/session/requests.rs",
    "crates/engine/src/session/spending.rs",
    "crates/engine/src/session/tree.rs",
];

const MOST_FIELDS: usize = 12;

fn complaints(source: &Source) -> Vec<String> {
    if !source.name.starts_with("crates/engine/src/") {
        return Vec::new();
    }
    let mut found = Vec::new();
    let is_impl = |line: &&str| line.starts_with("impl Session ") || line.ends_with(" for Session {");
    if !MEETING.contains(&source.name.as_str()) && source.text.lines().any(|line| is_impl(&line)) {
        found.push(format!("{}: only {} implement a session", source.name, MEETING.join(" and ")));
    }
    if let Some((_, rest)) = source.text.split_once("struct Session {\n") {
        let fields = rest.lines().take_while(|line| *line != "}").filter(|line| !line.trim().starts_with("//"));
        let count = fields.filter(|line| line.contains(": ")).count();
        if count > MOST_FIELDS {
            found.push(format!("{}: a session has {count} fields, {MOST_FIELDS} are allowed", source.name));
        }
    }
    found
}

#[test]
fn sessions_are_made_of_parts() {
    let sources = sources();
    assert!(MEETING.iter().all(|name| sources.iter().any(|source| source.name == *name)), "the files have moved");
    no_complaints(sources.iter().flat_map(complaints).collect());
}

#[test]
fn a_session_that_grows_or_spreads_is_noticed() {
    let source = |name: &str, text: &str| Source { name: name.to_owned(), text: text.to_owned() };
    let spread = source("crates/engine/src/session/goals.rs", "impl Session {\n}\n");
    assert_eq!(complaints(&spread).len(), 1);
    let fields: Vec<String> = (0..13).map(|number| format!("    /// One: two.\n    field{number}: u8,\n")).collect();
    let fields = fields.concat();
    let large = source(MEETING[0], &format!("pub(crate) struct Session {{\n{fields}}}\n\nimpl Session {{\n}}\n"));
    assert_eq!(complaints(&large), ["crates/engine/src/session/mod.rs: a session has 13 fields, 12 are allowed"]);
}
