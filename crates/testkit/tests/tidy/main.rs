//! The rules of the house, as tests. They guard ideas: who may know whom, why a crate exists, how long a function is,
//! how things are called, and where JSON, files and streams are read and written.
#![expect(clippy::expect_used, reason = "a test may fail where it stands")]

mod arrows;
mod clients;
mod clock;
mod documents;
mod item_kinds;
mod known;
mod names;
mod packages;
mod prose;
mod raw_json;
mod reading;
mod reasons;
mod sessions;
mod settings;
mod sizes;
mod streams;
mod tokens;
mod vocabulary;
mod walls;
mod words;

use std::path::{Path, PathBuf};

/// The root of the workspace.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("the crate lies two folders below the root").to_owned()
}

/// A Rust file of the workspace.
struct Source {
    /// Its path relative to the root.
    name: String,
    text: String,
}

impl Source {
    /// Whether the whole file is test code.
    fn is_test(&self) -> bool {
        ["/tests/", "/benches/"].iter().any(|folder| self.name.contains(folder))
            || self.name.ends_with("/tests.rs")
            || self.name.starts_with("crates/testkit/")
    }
}

/// All Rust files of the workspace.
fn sources() -> Vec<Source> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of the workspace can be read") {
            let path = entry.expect("an entry of a folder can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("a source file can be read");
                let name = path.strip_prefix(&root).expect("it lies below the root").display().to_string();
                found.push(Source { name, text });
            }
        }
    }
    assert!(found.len() > 20, "the walk found only {} files", found.len());
    found
}

/// Fails with all complaints at once, so that one run shows them all.
#[track_caller]
fn no_complaints(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}
