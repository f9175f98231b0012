//! Dependencies point down only, and there are few of them.

use std::collections::{BTreeMap, BTreeSet};

use toml_edit::DocumentMut;

use crate::{no_complaints, root};

/// What nearly every crate stands on: the words of the agent, and the one way to read a file. They use no other crate of
/// ours, so that using one ties nothing together, and they do not count among the crates that another uses.
const FOUNDATIONS: &[&str] = &["files", "wire"];

/// The crates from the bottom up. A crate may use those on lower levels only.
const LEVELS: &[&[&str]] = &[
    FOUNDATIONS,
    &["protocol"],
    &["client", "config", "git", "mcp", "model", "patch", "sandbox", "search", "shell", "store", "transport"],
    &["engine", "tui"],
    &["server"],
    &["cli"],
];

/// Crates for tests only: no crate may need them to be built.
const TEST_CRATES: &[&str] = &["testkit"];

/// What a crate must never depend on, though it lies lower or elsewhere.
const FORBIDDEN: &[(&str, &str)] = &[
    ("client", "engine"),
    ("tui", "engine"),
    ("engine", "protocol"),
    ("files", "tokio"),
    ("wire", "tokio"),
    ("protocol", "tokio"),
    ("patch", "tokio"),
    ("shell", "tokio"),
    ("config", "tokio"),
    ("store", "tokio"),
    ("git", "tokio"),
    ("search", "tokio"),
];

const MOST_INTERNAL: usize = 8;
const LOCKED_PACKAGES: usize = 550;

/// The crates of the workspace with what each needs to be built.
fn crates() -> BTreeMap<String, BTreeSet<String>> {
    let folders = std::fs::read_dir(root().join("crates")).expect("the workspace has crates");
    let mut crates = BTreeMap::new();
    for folder in folders {
        let folder = folder.expect("an entry of a folder can be read").path();
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("a crate has a manifest");
        let name = folder.file_name().expect("it has a name").to_string_lossy().into_owned();
        crates.insert(name, dependencies(&manifest));
    }
    crates
}

/// The names under `[dependencies]`, those of the workspace without their prefix.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let manifest: DocumentMut = manifest.parse().expect("a manifest is TOML");
    let table = manifest.get("dependencies").and_then(|item| item.as_table_like());
    let names = table.into_iter().flat_map(|table| table.iter());
    names.map(|(name, _)| name.strip_prefix("codex-").unwrap_or(name).to_owned()).collect()
}

fn level(name: &str) -> Option<usize> {
    LEVELS.iter().position(|level| level.contains(&name))
}

fn complaints(crates: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut complaints = Vec::new();
    for (name, needs) in crates {
        let own = level(name);
        if own.is_none() && !TEST_CRATES.contains(&name.as_str()) {
            complaints.push(format!("{name}: give it a level"));
        }
        let internal: Vec<&String> = needs.iter().filter(|need| crates.contains_key(*need)).collect();
        let counted = internal.iter().filter(|need| !FOUNDATIONS.contains(&need.as_str())).count();
        if counted > MOST_INTERNAL {
            complaints.push(format!("{name}: uses {counted} crates, {MOST_INTERNAL} are allowed"));
        }
        for need in internal {
            if own.is_some() && level(need) >= own {
                complaints.push(format!("{name} -> {need}: the arrow does not point down"));
            }
            if own.is_some() && TEST_CRATES.contains(&need.as_str()) {
                complaints.push(format!("{name} -> {need}: only for tests"));
            }
        }
        for (_, need) in FORBIDDEN.iter().filter(|(from, need)| name == from && needs.contains(*need)) {
            complaints.push(format!("{name} -> {need}: never"));
        }
    }
    complaints
}

#[test]
fn arrows_point_down() {
    no_complaints(complaints(&crates()));
}

#[test]
fn an_arrow_that_points_up_is_noticed() {
    let manifest = "[dependencies]\ncodex-engine.workspace = true\ntokio = \"1\"\n";
    let crates = BTreeMap::from([
        ("wire".to_owned(), dependencies(manifest)),
        ("engine".to_owned(), BTreeSet::new()),
        ("odd".to_owned(), BTreeSet::new()),
    ]);
    let complaints = complaints(&crates);
    assert_eq!(
        complaints,
        ["odd: give it a level", "wire -> engine: the arrow does not point down", "wire -> tokio: never"]
    );
}

#[test]
fn the_lock_file_stays_short() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).expect("the workspace has a lock file");
    let packages = lock.lines().filter(|line| *line == "[[package]]").count();
    assert!(packages > 10, "the lock file was not understood");
    assert!(packages <= LOCKED_PACKAGES, "{packages} packages are locked, {LOCKED_PACKAGES} are allowed");
}
