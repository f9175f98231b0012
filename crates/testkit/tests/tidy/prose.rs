//! Comments, documents and help texts are written in plain English: sentences have a subject, and phrases that read
//! like a translation do not come back.

use crate::{Source, no_complaints, root, sources};

/// Words that begin a sentence only where a noun would serve.
const OPENERS: &[&str] =
    &["What ", "Whoever ", "Whatever ", "How ", "Where ", "Which ", "Why ", "That which ", "Anew "];

/// Phrases that a native speaker would not write, in lower case, with a replacement. They are joined at run time so that
/// this file does not contain them.
const PHRASES: &[(&[&str], &str)] = &[
    (&["made ", "anew"], "rebuilt, recreated or made again"),
    (&["begins ", "anew"], "restarts"),
    (&["started ", "anew"], "restarted"),
    (&["has it ", "that"], "says that"),
    (&["of its own ", "accord"], "by itself"),
    (&["stands ", "beside"], "is next to"),
    (&["lies ", "beside"], "is next to"),
    (&["kept ", "beside"], "is stored next to"),
    (&["of our own ", "making"], "an addition of this program"),
    (&["in the words ", "of clients"], "in the form that clients read"),
    (&["put ", "away"], "archived"),
    (&["summed ", "up"], "compacted or summarised"),
    (&["makes no ", "sense"], "is invalid"),
    (&["comes to ", "nothing"], "fails"),
    (&["hears ", "of"], "is notified of"),
    (&["whoever ", "asks"], "the requester"),
    (&["in ", "vain"], "without success"),
    (&["lets ", "go of"], "drops or removes"),
    (&["let go ", "of"], "dropped or removed"),
    (&["goes on ", "with"], "continues or resumes"),
    (&["go on ", "with "], "continue or resume"),
    (&["used ", "up"], "exhausted"),
    (&["takes the ", "place of"], "replaces"),
    (&["take the ", "place of"], "replace"),
    (&["in so many ", "words"], "explicitly"),
    (&["in the words ", "of"], "in the dialect or the form of"),
    (&["the thoughts ", "themselves"], "raw reasoning"),
    (&["of somebody ", "else's"], "of another program or user"),
    (&["said its ", "last word"], "disconnected, or closed its side"),
    (&["is for nobody ", "to"], "must not be"),
    (&["brings ", "along"], "supplies"),
    (&["where nobody ", "looks"], "if output is not a terminal"),
    (&["reads ", "along"], "subscribes"),
    (&[" read ", "along"], "subscribe"),
    (&["listens by ", "numbers"], "subscribes by event numbers"),
    (&["events of the ", "queue it"], "`codex/event/*`"),
    (&["that somebody ", "wrote"], "written"),
    (&["as it sees ", "fit"], "adaptive, or its own choice"),
    (&["the model is ", "told of"], "the model receives, or is informed of"),
];

/// Whether a file holds Rust; all others are documents.
fn is_rust(name: &str) -> bool {
    std::path::Path::new(name).extension().is_some_and(|extension| extension == "rs")
}

/// The text of a comment line, or of a line of a document.
fn prose<'a>(name: &str, line: &'a str) -> Option<&'a str> {
    let line = line.trim_start();
    if !is_rust(name) {
        // A heading may be a clause.
        return (!line.starts_with('#')).then(|| line.trim_start_matches(['-', '*', '>', '|', ' ']));
    }
    let comment = line.strip_prefix("//")?;
    Some(comment.trim_start_matches(['/', '!']).trim_start())
}

fn offences(text: &str) -> Vec<String> {
    let begins = |sentence: &str| OPENERS.iter().find(|opener| sentence.starts_with(**opener));
    let mut sentences = std::iter::once(text).chain(text.match_indices(". ").map(|(at, _)| &text[at + 2..]));
    let opener = sentences.find_map(begins).map(|opener| format!("a sentence begins with `{}`", opener.trim()));
    let lower = text.to_lowercase();
    let phrases = PHRASES.iter().filter_map(|(parts, instead)| {
        let phrase = parts.concat();
        lower.contains(&phrase).then(|| format!("`{phrase}`; say: {instead}"))
    });
    opener.into_iter().chain(phrases).collect()
}

fn complaints(source: &Source) -> Vec<String> {
    let mut is_code = false;
    let mut complaints = Vec::new();
    for (number, line) in source.text.lines().enumerate() {
        is_code ^= !is_rust(&source.name) && line.trim_start().starts_with("```");
        let Some(text) = prose(&source.name, line).filter(|_| !is_code) else { continue };
        complaints.extend(offences(text).into_iter().map(|what| format!("{}:{}: {what}", source.name, number + 1)));
    }
    complaints
}

/// The documents of the repository.
fn documents() -> Vec<Source> {
    let mut paths: Vec<_> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(Into::into).into();
    for folder in ["docs", "docs/decisions"] {
        let entries = std::fs::read_dir(root().join(folder)).expect("there are documents");
        let names = entries.map(|entry| entry.expect("it can be listed").file_name());
        let pages = names.map(|name| std::path::Path::new(folder).join(name));
        paths.extend(pages.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    let read = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(root().join(&path)).expect("a document can be read");
        Source { name: path.display().to_string(), text }
    };
    paths.into_iter().map(read).collect()
}

#[test]
fn comments_and_help_texts_are_plain_english() {
    let sources = sources();
    let checked = sources.iter().filter(|source| !source.name.starts_with("crates/testkit/tests/tidy/"));
    no_complaints(checked.flat_map(complaints).collect());
}

#[test]
fn documents_are_plain_english() {
    let documents = documents();
    assert!(documents.len() > 20, "only {} documents were found", documents.len());
    no_complaints(documents.iter().flat_map(complaints).collect());
}

#[test]
fn a_sentence_without_a_subject_is_noticed() {
    let text =
        "/// What it is called.\nfn a() {}\n// Fine. Whoever reads this objects.\nlet a = \"What else\";\n".to_owned();
    let found = complaints(&Source { name: "crates/x/src/lib.rs".to_owned(), text });
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn a_translated_phrase_is_noticed_outside_code_blocks() {
    let phrase = ["made ", "anew"].concat();
    let text = format!("The index is {phrase}.\n```sh\necho {phrase}\n```\n## What works\n");
    let found = complaints(&Source { name: "docs/x.md".to_owned(), text });
    assert_eq!(found.len(), 1, "{found:?}");
}
