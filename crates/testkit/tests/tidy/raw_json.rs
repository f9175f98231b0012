//! The chat works on the types of the protocol, not on JSON: no member of a message is named in it, and no message is
//! composed by hand.

use proc_macro2::{Delimiter, TokenTree};

use crate::tokens::{is_mark, product, string, walk};
use crate::{Source, known, no_complaints, sources};

/// The chat: `views` and `dialogue` are parts of it.
const CHAT: &[&str] = &["crates/tui/src/", "crates/views/src/", "crates/dialogue/src/"];

/// Methods of a JSON value that take the name of a member.
const GETTERS: &[&str] = &["get", "get_mut", "pointer"];

fn is_name(group: &proc_macro2::Group) -> bool {
    let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
    matches!(tokens.as_slice(), [token] if string(token).is_some())
}

/// Whether the token at this place makes or reads JSON: `json!`, `value["member"]` or `.get("member")`.
fn is_raw(tokens: &[TokenTree], place: usize) -> bool {
    let before = place.checked_sub(1).and_then(|place| tokens.get(place));
    match &tokens[place] {
        TokenTree::Ident(name) => {
            let is_getter = is_mark(before, '.') && GETTERS.iter().any(|getter| name == getter);
            let named = matches!(tokens.get(place + 1), Some(TokenTree::Group(group)) if is_name(group));
            (name == "json" && is_mark(tokens.get(place + 1), '!')) || (is_getter && named)
        }
        TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket && is_name(group) => match before {
            Some(TokenTree::Ident(name)) => !["in", "return", "match", "if", "else"].iter().any(|word| name == word),
            Some(TokenTree::Group(group)) => group.delimiter() != Delimiter::Brace,
            _ => is_mark(before, '?'),
        },
        TokenTree::Group(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    }
}

/// The file's name for each place in it that makes or reads JSON.
fn raw(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    if CHAT.iter().any(|folder| source.name.starts_with(folder)) {
        walk(product(source), &mut |tokens| {
            let places = (0..tokens.len()).filter(|place| is_raw(tokens, *place));
            found.extend(places.map(|_| source.name.clone()));
        });
    }
    found
}

#[test]
fn the_chat_reads_and_writes_no_raw_json() {
    no_complaints(known::complaints("raw-json", &known::counted(sources().iter().flat_map(raw))));
}

#[test]
fn raw_json_is_noticed() {
    let text =
        "fn a(v: &Value) { v[\"b\"][\"c\"]; v.get(\"d\"); f()?[\"e\"]; json!({\"f\": [\"g\"]}); v.pointer(\"/h\"); }
        fn ordinary(v: &[&str]) { for x in [\"a\"] {} vec![\"a\"]; let y = &[\"a\"]; v.get(0); v[0]; map.get(key); }
        #[cfg(test)]
        mod tests { json!(1) }";
    let source = |name: &str| Source { name: name.to_owned(), text: text.to_owned() };
    assert_eq!(raw(&source("crates/tui/src/new.rs")).len(), 6);
    assert!(raw(&source("crates/tui/src/full/tests/new.rs")).is_empty());
    assert!(raw(&source("crates/client/src/new.rs")).is_empty());
}
