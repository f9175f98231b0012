//! Text for people has one exit, so that nothing is forgotten when all of it has to be processed.

use proc_macro2::TokenTree;

use crate::tokens::{is_mark, product, walk};
use crate::{Source, no_complaints, sources};

/// The crates that write for people, and the only place in them that opens the streams.
const WRITERS: &[&str] = &["crates/cli/src/", "crates/terminal/src/", "crates/tui/src/"];
const CONSOLE: &str = "crates/console/src/lib.rs";

/// Macros that bypass that place.
const MACROS: &[&str] = &["print", "println", "eprint", "eprintln"];
/// Functions that open the streams.
const OPENERS: &[&str] = &["stdout", "stderr"];

/// The uses of a stream among tokens: a macro by its name, a function that is called without arguments and not as a
/// method.
fn ways(tokens: &[TokenTree], found: &mut Vec<String>) {
    for (place, token) in tokens.iter().enumerate() {
        let TokenTree::Ident(name) = token else { continue };
        let (text, line) = (name.to_string(), name.span().start().line);
        let is_method = place > 0 && is_mark(tokens.get(place - 1), '.');
        let is_way = match tokens.get(place + 1) {
            Some(TokenTree::Punct(mark)) => mark.as_char() == '!' && MACROS.contains(&text.as_str()),
            Some(TokenTree::Group(words)) => {
                words.stream().is_empty() && !is_method && OPENERS.contains(&text.as_str())
            }
            _ => false,
        };
        if is_way {
            found.push(format!("{line}: {text}"));
        }
    }
}

fn complaints(source: &Source) -> Vec<String> {
    if !WRITERS.iter().any(|writer| source.name.starts_with(writer)) || source.name == CONSOLE {
        return Vec::new();
    }
    let mut found = Vec::new();
    walk(product(source), &mut |tokens| ways(tokens, &mut found));
    found.iter().map(|way| format!("{}:{way}: write through `console`", source.name)).collect()
}

#[test]
fn only_the_console_opens_standard_output_and_standard_error() {
    no_complaints(sources().iter().flat_map(complaints).collect());
}

#[test]
fn a_way_past_the_console_is_noticed() {
    let text = "use std::io::stderr;
        fn a() { println!(\"x\"); }
        fn b() { writeln!(std::io::stdout(), \"x\"); stderr().lock(); }
        fn c(child: Child) { child.stdout(); command.stderr(Stdio::null()); console::out(); print(); }
        #[cfg(test)]
        mod tests { fn d() { eprintln!() } }";
    let source = |name: &str| Source { name: name.to_owned(), text: text.to_owned() };
    let found = complaints(&source("crates/cli/src/new.rs"));
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(complaints(&source("crates/tui/src/new.rs")).len(), 3);
    assert!(complaints(&source(CONSOLE)).is_empty());
    assert!(complaints(&source("crates/cli/tests/it/new.rs")).is_empty());
}
