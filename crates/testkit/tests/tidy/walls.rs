//! Modules that do not know each other, and modules without I/O.

use proc_macro2::TokenTree;

use crate::tokens::{is_mark, product};
use crate::{Source, no_complaints, sources};

/// A folder, the files and folders in it that are outside of the wall, and the names that no other path there may contain.
const WALLS: &[(&str, &[&str], &[&str])] = &[
    ("crates/pipe/src/mcp/", &[], &["proto"]),
    ("crates/pipe/src/proto/", &[], &["mcp"]),
    ("crates/tui/src/full/", &["run.rs", "run/"], &["crossterm", "tokio"]),
    ("crates/views/src/", &[], &["crossterm", "tokio"]),
];

/// The names among tokens that are parts of paths: those next to `::`, and those in the braces of a `use`.
fn path_names(tokens: proc_macro2::TokenStream, is_use: bool, found: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (place, token) in tokens.iter().enumerate() {
        let before = place.checked_sub(1).and_then(|place| tokens.get(place));
        match token {
            TokenTree::Ident(name) => {
                let is_part =
                    is_mark(before, ':') && place.checked_sub(2).is_some_and(|two| is_mark(tokens.get(two), ':'));
                let is_first = is_mark(tokens.get(place + 1), ':') && is_mark(tokens.get(place + 2), ':');
                let is_used = matches!(before, Some(TokenTree::Ident(word)) if word == "use");
                if is_part || is_first || is_used || is_use {
                    found.push(name.to_string());
                }
            }
            TokenTree::Group(group) => path_names(group.stream(), is_mark(before, ':') || is_use, found),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

fn complaints(source: &Source) -> Vec<String> {
    let is_inside = |folder: &str, outside: &[&str]| {
        source.name.strip_prefix(folder).is_some_and(|file| !outside.iter().any(|outside| file.starts_with(outside)))
    };
    let walls: Vec<_> = WALLS.iter().filter(|(folder, outside, _)| is_inside(folder, outside)).collect();
    if walls.is_empty() {
        return Vec::new();
    }
    let mut names = Vec::new();
    path_names(product(source), false, &mut names);
    let mut crossed: Vec<&&str> = walls.iter().flat_map(|(_, _, never)| *never).collect();
    crossed.retain(|name| names.iter().any(|found| found == **name));
    crossed.into_iter().map(|name| format!("{}: it may not know `{name}`", source.name)).collect()
}

#[test]
fn modules_behind_walls_do_not_know_each_other() {
    let sources = sources();
    let missing = WALLS.iter().filter(|(folder, _, _)| !sources.iter().any(|source| source.name.starts_with(folder)));
    let missing = missing.map(|(folder, _, _)| format!("{folder}: the wall stands around nothing"));
    no_complaints(sources.iter().flat_map(complaints).chain(missing).collect());
}

#[test]
fn a_path_through_a_wall_is_noticed() {
    let found = |name: &str, text: &str| complaints(&Source { name: name.to_owned(), text: text.to_owned() }).len();
    let session = "crates/pipe/src/mcp/session.rs";
    assert_eq!(found(session, "use crate::proto::Reader;"), 1);
    assert_eq!(found(session, "use super::super::{call, proto};"), 1);
    assert_eq!(found(session, "fn a(x: crate::proto::Reader) {}"), 1);
    assert_eq!(found(session, "fn a(proto: Reader) { let x = proto; read(\"proto\") }"), 0);
    assert_eq!(found(session, "#[cfg(test)]\nmod tests { use crate::proto::Reader; }"), 0);
    assert_eq!(found("crates/pipe/src/proto/reader.rs", "use crate::mcp::message;"), 1);
    assert_eq!(found("crates/tui/src/full/keys.rs", "fn a() { tokio::spawn(b) }"), 1);
    assert_eq!(found("crates/tui/src/full/run.rs", "use tokio::sync::mpsc;"), 0);
}
