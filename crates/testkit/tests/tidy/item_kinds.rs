//! The kinds of items are spelled as strings by the protocol alone, and by the translation of old events to it.

use crate::tokens::{product, string, walk};
use crate::{Source, known, no_complaints, sources};

/// The type whose variants are the kinds.
const ITEMS: &str = "crates/protocol/src/v2/item.rs";

/// The code that may spell them.
const SPELLERS: &[&str] = &["crates/protocol/src/", "crates/client/src/router/"];

/// The kinds as they cross the wire. Those of one word are left out, because such a word has other meanings.
fn kinds(sources: &[Source]) -> Vec<String> {
    let items = sources.iter().find(|source| source.name == ITEMS).expect("the protocol has items");
    let file = syn::parse_file(&items.text).expect("the file can be parsed");
    let variants = file.items.into_iter().filter_map(|item| match item {
        syn::Item::Enum(item) if item.ident == "ThreadItem" => Some(item.variants),
        _ => None,
    });
    let names = variants.flatten().map(|variant| variant.ident.to_string());
    let spelled = names.map(|name| name[..1].to_lowercase() + &name[1..]);
    spelled.filter(|name| name.contains(char::is_uppercase)).collect()
}

/// The file's name for each kind that it spells.
fn spelled(source: &Source, kinds: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    if !SPELLERS.iter().any(|speller| source.name.starts_with(speller)) {
        walk(product(source), &mut |tokens| {
            let strings = tokens.iter().filter_map(string).filter(|text| kinds.contains(text));
            found.extend(strings.map(|_| source.name.clone()));
        });
    }
    found
}

#[test]
fn kinds_of_items_are_spelled_in_one_place() {
    let sources = sources();
    let kinds = kinds(&sources);
    assert!(kinds.len() > 8, "{kinds:?}");
    let found = known::counted(sources.iter().flat_map(|source| spelled(source, &kinds)));
    no_complaints(known::complaints("item-kind", &found));
}

#[test]
fn a_spelled_kind_is_noticed() {
    let text = "fn a(kind: &str) -> bool { kind == \"fileChange\" || matches!(kind, \"webSearch\" | \"other\") }
        #[cfg(test)]
        mod tests { \"fileChange\" }";
    let kinds = ["fileChange".to_owned(), "webSearch".to_owned()];
    let source = |name: &str| Source { name: name.to_owned(), text: text.to_owned() };
    assert_eq!(spelled(&source("crates/tui/src/new.rs"), &kinds).len(), 2);
    assert!(spelled(&source("crates/client/src/router/items.rs"), &kinds).is_empty());
}
